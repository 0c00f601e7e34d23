"""Each file beside the one of the first time, and why they differ."""

from dataclasses import replace

import pytest

from parquet_sink.addons.replay.copies import ReplayFile
from parquet_sink.addons.replay.plan import ReplayRange
from parquet_sink.addons.replay.results import Now, Verdict, compared
from parquet_sink.model.ranges import PlannedRange
from tests.messages import assert_says

NOW = Now("recipe", "2.0")
WAS = (ReplayFile("orders", 0, "a", 0, 9, 10, 10, 100, "d1"), ReplayFile("orders", 0, "b", 10, 19, 10, 10, 100, "d2"))
RANGE = ReplayRange(PlannedRange("orders", 0, 0, 20, "records"), ((0, 20),), True, "recipe", "2.0", WAS, thinned=False)


def sent(name: str, first: int, last: int, digest: str | None, records: int = 10) -> ReplayFile:
    """A file of now."""
    return ReplayFile("orders", 0, name, first, last, records, records, 100, digest)


SAME = [sent("a", 0, 9, "d1"), sent("b", 10, 19, "d2")]


def test_the_same() -> None:
    """By name and digest."""
    assert [(one.verdict, one.causes) for one in compared(RANGE, SAME, NOW, 1)] == [(Verdict.SAME, ())] * 2


def test_nothing_to_compare_with() -> None:
    """A file that the history has not, or has without its digest."""
    without = replace(RANGE, expected=(replace(WAS[0], digest=None),))
    found = compared(without, SAME, NOW, 1)
    assert [one.verdict for one in found] == [Verdict.NEW, Verdict.NEW]
    assert [bool(one.causes) for one in found] == [True, False]


@pytest.mark.parametrize(
    ("one", "now", "words"),
    [
        (replace(RANGE, version="1.0"), NOW, ("version 1.0", "now by 2.0")),
        (replace(RANGE, settings_digest="x"), NOW, ("the connector's settings",)),
        (replace(RANGE, deleted=(0, 3)), NOW, ("Kafka deleted", "offsets 0 to 2")),
        (replace(RANGE, recorded=False), NOW, ("the history no longer has", "cut again")),
        (RANGE, replace(NOW, fresh_salts=True), ("a fresh salt",)),
        (RANGE, NOW, ("not known", "a schema", "a class", "a library")),
    ],
)
def test_other_bytes_have_a_cause(one: ReplayRange, now: Now, words: tuple[str, ...]) -> None:
    """What is known of it, else where to look."""
    same, other = compared(one, [SAME[0], sent("b", 10, 19, "other")], now, 1)
    assert same.verdict is Verdict.SAME
    assert (other.verdict, other.was) == (Verdict.DIFFERENT, None)
    (cause,) = other.causes
    assert_says(cause, *words)


@pytest.mark.parametrize(("thinned", "words"), [(True, "compacted"), (None, "without a row now")])
def test_fewer_records(thinned: bool | None, words: str) -> None:
    """They are counted over the range; a file of the first time that has none now was not sent."""
    other, absent = compared(replace(RANGE, thinned=thinned), [sent("c", 2, 8, "x", 6)], NOW, 2)
    assert (other.verdict, other.was, other.round) == (Verdict.DIFFERENT, "a", 2)
    (cause,) = other.causes
    assert_says(cause, "14 records fewer", words)
    assert ("without a row" in cause) is (thinned is None)
    assert absent.causes == (cause,)
    assert (absent.verdict, absent.file.name) == (Verdict.ABSENT, "b")


def test_as_json() -> None:
    """Flat, with words for the verdict."""
    found = compared(RANGE, SAME[:1], NOW, 1)[0].to_dict()
    assert (found["name"], found["verdict"], found["digest"], found["causes"]) == ("a", "same", "d1", [])
