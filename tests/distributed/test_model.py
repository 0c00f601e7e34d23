"""A simulated cluster on many schedules: what distributed workers promise, and what each protection is for."""

import pytest

from tests.distributed.cluster_model import Violation, World
from tests.thorough import examples

SCHEDULES, CALM, PARTS = examples(2_000), examples(300), 4
FOUND_WITHIN = 500
UPLOADS, COMMITS, UNEVEN = "uploads after", "was committed to", "is not what would be assigned"


def run(schedules: int, without: str, troubles: list[str], *, calm: bool = False) -> None:
    """One after the other, to the first violation."""
    for seed in range(schedules):
        World(seed, without, troubles, calm=calm).run()


@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_promised_holds(part: int) -> None:
    """Workers are frozen, killed, cut off, stopped and replaced, messages slow or lost; clocks drift by a tenth."""
    for seed in range(part, SCHEDULES, PARTS):
        try:
            World(seed).run()
        except Violation as violation:
            raise AssertionError(f"seed {seed}: {violation}") from None


@pytest.mark.parametrize(
    ("without", "troubles", "violation"),
    [
        ("lease", ["frozen", "cut off"], UPLOADS),
        ("lease for each stay", ["frozen"], UPLOADS),
        ("a lease shorter than a session", ["frozen"], UPLOADS),
        ("fence", ["frozen", "cut off"], COMMITS),
        ("release", ["stopped", "elected"], UPLOADS),
        ("epochs of releases", ["stopped", "elected"], UPLOADS),
        ("the earlier stay counts", ["replaced"], UPLOADS),
        ("one writer", ["frozen"], UPLOADS),
        ("the end of the log", ["elected", "stopped"], UPLOADS),
        ("members asked for by the writer", ["elected", "elected", "killed"], UPLOADS),
        ("the end of a rest", ["frozen"], UNEVEN),
    ],
)
def test_each_protection_is_needed(without: str, troubles: list[str], violation: str) -> None:
    """With it taken out, some schedule breaks a promise; troubles are those that it is for."""
    with pytest.raises(Violation, match=violation):
        run(FOUND_WITHIN, without, troubles)


def test_who_is_well_bears_nothing_for_one_that_stands_still() -> None:
    """One worker is frozen for about a session, again and again: others keep leases, and connectors that run go on."""
    run(CALM, "", [], calm=True)


@pytest.mark.parametrize(
    ("without", "violation"),
    [
        ("the quiet after a stall", "the lease of . is over, which was well all along"),
        ("the rest of who is back", "moves to a, which has yet to end it"),
    ],
)
def test_what_protects_those_that_are_well_is_needed(without: str, violation: str) -> None:
    """Without it nothing is delivered twice, but others wait for the one that woke up."""
    with pytest.raises(Violation, match=violation):
        run(FOUND_WITHIN, without, [], calm=True)
