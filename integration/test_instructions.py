"""No stage takes more instructions for a record than it did, whatever the machine and however busy it is."""

import pytest

from integration.instructions import __main__ as instructions


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_no_stage_takes_more_than_it_did() -> None:
    """Where libraries or Python are others than those that the kept counts were made with, they say nothing."""
    if why := instructions.missing():
        pytest.skip(why)
    kept = instructions.kept()
    if (now := instructions.built_with()) != kept["built_with"]:
        pytest.skip(
            f"counted with {kept['built_with']}, and this is {now}: python -m integration.instructions --record"
        )
    most = {stage: each * (1 + instructions.TOLERANCE) for stage, each in kept["instructions_per_record"].items()}
    found = instructions.count()
    assert {stage: each for stage, each in found.items() if each > most[stage]} == {}
