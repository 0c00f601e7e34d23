"""A simulated cluster on many schedules: what distributed workers promise, and what each protection is for."""

import pytest

from tests.distributed.cluster_model import Violation, World
from tests.thorough import examples

SCHEDULES, PARTS = examples(2_000), 4
FOUND_WITHIN = 500
UPLOADS, COMMITS = "uploads after", "was committed to"


def run(schedules: int, without: str, troubles: list[str]) -> None:
    """One after the other, to the first violation."""
    for seed in range(schedules):
        World(seed, without, troubles).run()


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
        ("members asked for by the writer", ["elected", "elected", "stopped"], UPLOADS),
    ],
)
def test_each_protection_is_needed(without: str, troubles: list[str], violation: str) -> None:
    """With it taken out, some schedule breaks a promise; troubles are those that it is for."""
    with pytest.raises(Violation, match=violation):
        run(FOUND_WITHIN, without, troubles)
