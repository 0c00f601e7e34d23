"""Reading in turn with writing: the same batches, ends and errors as reading ahead."""

import sys
import threading
import time
from collections.abc import Iterator

import pytest

from parquet_sink.kafka.several_ranges import SWITCH_S, ReadAhead, ReadInTurn, reading
from parquet_sink.model.ranges import LearnedSchema, PlannedRange
from parquet_sink.model.records import RecordBatch

RANGES = [PlannedRange("t", number, 0, 10 * size, "records") for number, size in enumerate((3, 0, 1))]


def batches(planned: PlannedRange) -> Iterator[RecordBatch]:
    """Ten records each."""
    for start in range(planned.start, planned.end, 10):
        yield RecordBatch.of(planned.topic, planned.partition, range(start, start + 10), [0] * 10, [b"{}"] * 10)


def fails_after_one(planned: PlannedRange) -> Iterator[RecordBatch]:
    """A range that cannot be read to its end."""
    yield from list(batches(planned))[:1]
    raise OSError(f"{planned.partition}")


def seen(reader: ReadAhead | ReadInTurn, skip_at: tuple[int, int] | None = None) -> list[tuple[int, object]]:
    """Topic-partition and first offset of each batch, the end, or the error. skip_at: after which of them to skip."""
    found: list[tuple[int, object]] = []
    with reader as items:
        for planned, item in items:
            told = item.offsets[0].as_py() if isinstance(item, RecordBatch) else item and str(item)
            found.append((planned.partition, told))
            if skip_at == found[-1]:
                items.skip(planned)
    return found


@pytest.mark.parametrize("kind", [ReadAhead, ReadInTurn])
def test_every_range_has_its_batches_and_its_end(kind: type[ReadAhead | ReadInTurn]) -> None:
    """In order, an empty range among them."""
    assert seen(kind(RANGES, batches)) == [(0, 0), (0, 10), (0, 20), (0, None), (1, None), (2, 0), (2, None)]


@pytest.mark.parametrize("kind", [ReadAhead, ReadInTurn])
def test_an_error_is_the_end_of_its_range_alone(kind: type[ReadAhead | ReadInTurn]) -> None:
    """The ranges after it are read."""
    assert seen(kind(RANGES, fails_after_one)) == [(0, 0), (0, "0"), (1, "1"), (2, 0), (2, "2")]


def test_what_is_skipped_is_not_read() -> None:
    """Its end comes all the same, and the next range."""
    assert seen(ReadInTurn(RANGES, batches), skip_at=(0, 10)) == [
        (0, 0),
        (0, 10),
        (0, None),
        (1, None),
        (2, 0),
        (2, None),
    ]


def test_one_that_reads_in_turn_reads_no_more_than_is_asked_for() -> None:
    """Nothing of the second batch was touched when the first is given."""
    asked: list[int] = []

    def read(planned: PlannedRange) -> Iterator[RecordBatch]:
        for batch in batches(planned):
            asked.append(batch.offsets[0].as_py())
            yield batch

    with ReadInTurn(RANGES, read) as items:
        next(iter(items))
    assert asked == [0]


@pytest.mark.parametrize(("fit", "ahead_bytes"), [(1, 1), (1, 0), (2, 0), (5, 0), (12, 0)])
def test_what_waits_is_bounded_by_its_bytes(fit: int, ahead_bytes: int) -> None:
    """A batch larger than the bound waits alone, smaller ones together; when they were taken reading goes on."""
    planned = PlannedRange("t", 0, 0, 100, "records")
    size = next(batches(planned)).nbytes
    asked: list[int] = []
    stuck = threading.Event()

    def read(planned: PlannedRange) -> Iterator[RecordBatch]:
        for batch in batches(planned):
            asked.append(batch.offsets[0].as_py())
            if len(asked) > fit:
                stuck.set()
            yield batch

    with ReadAhead([planned], read, ahead_bytes or fit * size + size // 2) as items:
        if fit < 10:
            assert stuck.wait(30)
            time.sleep(0.05)
            assert len(asked) == fit + 1, "one more is in hand and waits for room"
        assert [item.offsets[0].as_py() for _, item in items if isinstance(item, RecordBatch)] == list(
            range(0, 100, 10)
        )


def test_reading_ends_when_nobody_takes_anything_any_more() -> None:
    """A thread that waits for room does not outlive its user."""
    with ReadAhead([PlannedRange("t", 0, 0, 1_000, "records")], batches, 1) as items:
        next(iter(items))
    assert "read-ahead" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize(("ahead", "kind"), [(True, ReadAhead), (False, ReadInTurn)])
def test_ranges_say_how_they_are_read(ahead: bool, kind: type) -> None:
    """All ranges of a task say the same."""
    assert isinstance(reading([PlannedRange("t", 0, 0, 2_000, "age", read_ahead=ahead)], batches), kind)


@pytest.mark.parametrize(
    ("records", "per_record", "kind"),
    [(3, None, ReadInTurn), (3, 100.0, ReadInTurn), (500, 1_000_000.0, ReadAhead), (50_000, None, ReadAhead)],
)
def test_small_ranges_need_no_thread(records: int, per_record: float | None, kind: type) -> None:
    """What is read at once is not read ahead, unless its few records are known to be large."""
    small = [PlannedRange("t", number, 0, 3, "age") for number in range(20)]
    one = PlannedRange("t", 30, 0, records, "age", known=LearnedSchema(bytes_per_record=per_record))
    assert isinstance(reading([one, *small], batches), kind)


def test_who_writes_has_not_to_wait_for_who_reads() -> None:
    """While a thread reads ahead Python switches threads more often; afterwards as before."""
    before = sys.getswitchinterval()
    with ReadAhead(RANGES, batches) as reader:
        assert sys.getswitchinterval() == pytest.approx(SWITCH_S)
        list(reader)
    assert sys.getswitchinterval() == before
