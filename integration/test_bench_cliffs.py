"""The measurement of records that are dear to shape: its cases are what they say, and each can be measured."""

import random
from dataclasses import replace
from itertools import islice

import pytest

from integration.bench import cliffs


@pytest.mark.parametrize("name", cliffs.CASES)
def test_each_case_can_be_measured(name: str) -> None:
    """No record of a case is invalid, and what is counted is there."""
    us, runs = cliffs.measure(replace(cliffs.CASES[name], block=30))
    assert us > 0
    assert runs >= cliffs.BLOCKS


def test_records_are_the_same_in_every_run() -> None:
    """Figures of two runs are of the same records."""
    for case in cliffs.CASES.values():
        one, other = (list(islice(case.records(random.Random(7)), 5)) for _ in range(2))
        assert one == other


def test_cases_that_are_not_known_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """The message names what there is."""
    assert cliffs.main(["nothing"]) == 2
    assert "there are plain, lower" in capsys.readouterr().err
