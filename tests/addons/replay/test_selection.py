"""From what an operator chose to offsets, or to what is wrong with it."""

from typing import Any

import pytest

from parquet_sink.addons.replay.copies import Span
from parquet_sink.addons.replay.plan import Held, Past, Survey
from parquet_sink.addons.replay.selection import MOST_OFFSET, Selection, chosen, problems
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.model.partitions import PartitionKey
from tests.addons.replay.uploads import uploaded
from tests.messages import assert_says, saying

A, B = ("orders", 0), ("orders", 1)
HELD = {A: Held(100, 900), B: Held(0, 50)}


def choose(
    selection: Selection, *, held: dict[PartitionKey, Held] = HELD, elsewhere: bool = False, **more: Any
) -> dict[PartitionKey, list[Span]]:
    """In a world of two topic-partitions, of which the first is delivered up to 800."""
    found = Survey(held, more.get("delivered", {A: 800}), more.get("since", {}), more.get("until", {}))
    return chosen(selection, found, more.get("past", {}), elsewhere=elsewhere)


def test_without_a_choice_it_is_what_was_delivered() -> None:
    """Up to where the group stands; all that is there, where it stands nowhere, or for another target."""
    assert choose(Selection()) == {A: [(100, 800)], B: [(0, 50)]}
    assert choose(Selection(), elsewhere=True) == {A: [(100, 900)], B: [(0, 50)]}
    assert choose(Selection(), delivered={A: 50, B: 2_000}) == {A: [], B: [(0, 50)]}


def test_offsets_are_included_on_both_sides() -> None:
    """One topic-partition, also beyond what was delivered; one that lies below what is held is missing, not moved."""
    one = {A: HELD[A]}
    assert choose(Selection(first=200, last=850), held=one) == {A: [(200, 851)]}
    assert choose(Selection(first=200), held=one) == {A: [(200, 800)]}
    assert choose(Selection(last=200), held=one) == {A: [(100, 201)]}
    assert choose(Selection(first=5, last=200), held=one) == {A: [(5, 201)]}


@pytest.mark.parametrize(
    ("selection", "held", "words"),
    [
        (Selection(first=1), HELD, ("[--partition]", "missing", "one topic-partition", "orders 0, orders 1")),
        (Selection(first=1), {A: Held(0, 9), ("b", 0): Held(0, 9)}, ("[--topic]", "missing", "orders")),
        (Selection(first=900), {A: HELD[A]}, ("[--from]", "no offset 900", "holds 100 to 899")),
        (Selection(last=900), {A: HELD[A]}, ("[--to]", "no offset 900", "holds 100 to 899")),
        (Selection(last=99), {A: HELD[A]}, ("[--to]", "deleted offset 99", "holds 100 to 899")),
        (Selection(first=1), {A: Held(7, 7)}, ("[--from]", "no record now", "next offset is 7")),
        (Selection(newest=3), HELD, ("[--last]", "no file", "choose by --from")),
    ],
)
def test_what_cannot_be_is_told_with_what_is_there(
    selection: Selection, held: dict[PartitionKey, Held], words: tuple[str, ...]
) -> None:
    """The option, the value, and what Kafka or the history has."""
    with pytest.raises(InvalidConfiguration, match=saying(*words)):
        choose(selection, held=held)


def test_times_are_the_offsets_that_kafka_says() -> None:
    """From the first record of one time to the first of the other; a time after all records chooses none."""
    assert choose(Selection(since_ms=1, until_ms=2), since={A: 300, B: 50}, until={A: 400, B: 50}) == {
        A: [(300, 400)],
        B: [],
    }
    assert choose(Selection(since_ms=1), since={A: 300, B: 10}) == {A: [(300, 800)], B: [(10, 50)]}


def test_files_are_those_of_the_history() -> None:
    """The last of them by time, or by their names, each in its topic-partition."""
    files = [uploaded(0, at, 10 * at, 10 * at + 9) for at in range(5)] + [uploaded(1, 9, 0, 49)]
    past = {A: Past(files=[one for one in files if one.partition == 0]), B: Past(files=files[-1:])}
    assert choose(Selection(newest=2), past=past) == {A: [(40, 50)], B: [(0, 50)]}
    assert choose(Selection(newest=99), past=past) == {A: [(10 * at, 10 * at + 10) for at in range(5)], B: [(0, 50)]}
    names = (files[1].file_name, files[3].file_name)
    assert choose(Selection(files=names), past=past) == {A: [(10, 20), (30, 40)]}


def test_an_unknown_file_is_told_with_its_records_and_a_near_one() -> None:
    """Each name that is not there; of one that we made, the options that choose its records."""
    known = "topic-or%2Fders_partition-3_firstOffset-10_lastOffset-19_bytes-5_rows-10.parquet"
    past = {A: Past(files=[uploaded(0, 1, 10, 19, known)])}
    wrong = known.replace("bytes-5", "bytes-6")
    with pytest.raises(InvalidConfiguration) as caught:
        choose(Selection(files=(wrong, "x")), past=past)
    near, unknown = caught.value.problems
    assert_says(near, "[--file]", wrong, "--topic or/ders", "--partition 3", "--from 10", "--to 19")
    assert_says(near, f"Did you mean {known}?")
    assert_says(unknown, "[--file]", "no file x", "parquet-sink history")


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        (Selection(partition=-1), ("[--partition]", "-1 is not", f"0 and {2**31 - 1};")),
        (Selection(first=-5), ("[--from]", "-5 is not", f"0 and {MOST_OFFSET}")),
        (Selection(last=MOST_OFFSET + 1), ("[--to]", f"{MOST_OFFSET + 1} is not", f"0 and {MOST_OFFSET}")),
        (Selection(newest=0), ("[--last]", "0 is not", "1 and 1000000")),
        (Selection(first=5, last=4), ("[--to]", "4 is below --from, 5", "exchange them")),
        (Selection(since_ms=2, until_ms=2), ("[--until]", "not after --since", "exchange them")),
        (Selection(first=1, newest=2), ("[--last]", "--from and --to", "by --last", "keep one")),
        (Selection(since_ms=1, files=("a",)), ("[--file]", "--since and --until", "by --file", "keep one")),
        (Selection(topic="orders", files=("a",)), ("[--file]", "its topic-partition", "remove --topic")),
    ],
)
def test_a_selection_that_contradicts_itself(selection: Selection, words: tuple[str, ...]) -> None:
    """It is told before anything is asked of Kafka."""
    (problem,) = problems(selection)
    assert_says(problem, *words)


def test_a_selection_that_does_not() -> None:
    """One way, and where."""
    assert problems(Selection("orders", 0, 1, 1)) == []
    assert problems(Selection("orders", newest=5)) == []
