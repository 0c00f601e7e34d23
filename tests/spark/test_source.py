"""The source as Spark sees it: offsets with ranges, ranges as tasks, rows of ranges or of records."""

import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from parquet_sink.config.secret import Secret
from parquet_sink.errors import OffsetsLost, failure_named
from parquet_sink.files.rotation import Reason
from parquet_sink.files.settings import FileSettings
from parquet_sink.kafka.settings import DeadLetterSettings, FlushSettings, KafkaSettings
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import Header, RecordBatch, RecordParts
from parquet_sink.planner.admission import Candidate, Range
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.settings.connector import ErrorSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.spark import handoff
from parquet_sink.spark.rows import WARM_UP, ranges_in
from parquet_sink.spark.source import KafkaRanges, RangeSource, Work
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import SLOTS
from parquet_sink.state.store import WARM_UP as WARM_UP_FIRST
from parquet_sink.targets.push.settings import PushSettings
from tests.factories import run_of

SETTINGS = SinkSettings(
    "orders",
    KafkaSettings(("orders",), None, "connect-orders", {"bootstrap.servers": "localhost:9092"}, tasks_max=2),
    FlushSettings(1_000_000, 100, 2_000),
    ShapeSettings(),
    FileSettings("/nowhere"),
    PushSettings("http://localhost/", Secret("AppKey k"), "t"),
)
LIMIT = ReadAllAvailable()


class FakePlanner:
    """Says what a test wants."""

    def __init__(self, starts: dict[PartitionKey, int]) -> None:
        self.starts = starts
        self.next: list[PlannedRange] = []
        self.most_tasks: int | None = 2
        self.put_down: list[Candidate] = []
        self.begun = 0
        self.ticks: list[Mapping[PartitionKey, int]] = []
        self.error: Exception | None = None
        self.drained = self.closed = False
        self.dead_letters: DeadLetterSettings | None = None
        self.filled: list[PlannedRange] = []
        self.waited_s: list[float] = []

    def begin(self, dead_letters: DeadLetterSettings | None = None) -> dict[PartitionKey, int]:
        self.begun += 1
        self.dead_letters = dead_letters
        if self.error is not None:
            raise self.error
        return dict(self.starts)

    def tick(self, read: Mapping[PartitionKey, int]) -> list[PlannedRange]:
        self.ticks.append(read)
        if self.error is not None:
            raise self.error
        return self.next

    def fills(self, within_s: float) -> bool:
        self.waited_s.append(within_s)
        self.next = self.filled
        return bool(self.filled)

    @property
    def in_flight(self) -> list[PlannedRange]:
        return self.next

    def repeated(self, planned: Sequence[Candidate]) -> list[PlannedRange]:
        return [SPAN for one in planned if one in self.put_down]

    def tasks(self) -> int | None:
        return self.most_tasks

    def drain(self) -> None:
        self.drained = True

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def planner() -> FakePlanner:
    """The planner that the reader will make."""
    return FakePlanner({("orders", 0): 5, ("orders", 1): 0})


@dataclass
class Makes:
    """What makes the planner: it gives this one."""

    planner: FakePlanner

    def __call__(self, settings: Any, state: Any, instance: Any, *, reported: bool) -> Any:
        return self.planner


def source_of(folder: Path, planner: FakePlanner, form: str = "ranges") -> RangeSource:
    """A reader of the settings in a run folder."""
    made = KafkaRanges({handoff.RUN_FOLDER: str(folder), "rows": form})
    return RangeSource(made.handoff, made.form, RecordParts(keys=True), make_planner=Makes(planner))


@pytest.fixture
def source(tmp_path: Path, planner: FakePlanner) -> Iterator[RangeSource]:
    """The reader, with that planner."""
    settings = replace(SETTINGS, files=FileSettings(str(tmp_path / "tmp")))
    with run_of(settings, tmp_path / "run"), closed(source_of(tmp_path / "run", planner)) as made:
        yield made


@contextmanager
def closed(reader: RangeSource) -> Iterator[RangeSource]:
    """What it opened is closed in the end, which is left to the end of its process else."""
    yield reader
    if reader._state is not None:
        reader._state.close()


def ranges(work: Sequence[Any]) -> list[list[PlannedRange]]:
    """The ranges of each task."""
    return [list(one.ranges) for one in work]


def planned(topic: str, partition: int, start: int, end: int, reason: str = "interval") -> PlannedRange:
    """As the planner plans it."""
    return PlannedRange(topic, partition, start, end, reason, accepted=start, topic_id=f"id-of-{topic}")


def again(source: RangeSource) -> AbstractContextManager[RangeSource]:
    """The reader of the next run, over the same checkpoint."""
    return closed(RangeSource(source._given, source._form, source._parts, make_planner=source._make_planner))


FIVE_TO_NINE = ("orders", 0, Range(5, 9, Reason.INTERVAL))
SPAN = planned("orders", 0, 5, 9)


def test_offsets_carry_ranges_and_reasons(source: RangeSource, planner: FakePlanner) -> None:
    """A range with its reason travels inside the offset, because planning and admission share no memory."""
    start = source.initialOffset()
    planner.next = [SPAN]
    end = source.latestOffset(start, LIMIT)
    (work,) = source.partitions(start, end)
    assert ranges([work]) == [[SPAN]]


def test_nothing_due_is_no_micro_batch(source: RangeSource, planner: FakePlanner) -> None:
    """When nothing is due the offsets stay equal, so that Spark starts nothing; Spark's first one is empty."""
    start = source.initialOffset()
    assert source.latestOffset(start, LIMIT) == start
    assert source.partitions(start, start) == []
    assert planner.ticks == [{}]


def test_it_begins_once(source: RangeSource, planner: FakePlanner) -> None:
    """Spark asks for the initial offset again before the first micro-batch; nothing is asked or signed again."""
    start = source.initialOffset()
    planner.next = [SPAN]
    end = source.latestOffset(start, LIMIT)
    assert source.initialOffset() == start
    assert ranges(source.partitions(start, end)) == [[SPAN]]
    assert planner.begun == 1


@pytest.mark.parametrize("form", ["ranges", "records"])
def test_the_dead_letter_topic_is_made_for_the_sink_alone(tmp_path: Path, planner: FakePlanner, form: str) -> None:
    """A program that reads records writes no dead letters."""
    letters = DeadLetterSettings("dlq")
    errors = ErrorSettings(dead_letters=letters)
    with run_of(replace(SETTINGS, files=FileSettings(str(tmp_path / "tmp")), errors=errors), tmp_path / "run"):
        source = source_of(tmp_path / "run", planner, form)
        source.initialOffset()
        source._opened().close()
    assert planner.dead_letters == (letters if form == "ranges" else None)


def test_what_was_read_is_accepted_when_spark_asks_again(source: RangeSource, planner: FakePlanner) -> None:
    """Spark asks for more only after the micro-batch: then the ends of its ranges count, and nothing else does."""
    start = source.initialOffset()
    planner.next = [SPAN]
    end = source.latestOffset(start, LIMIT)
    source.partitions(start, end)
    planner.next = []
    assert source.latestOffset(end, LIMIT) == end
    assert planner.ticks == [{}, {("orders", 0): 9}]


def test_what_fills_a_file_between_two_ticks_is_taken(source: RangeSource, planner: FakePlanner) -> None:
    """Half a tick after one that found nothing; what was read is accepted once. Not before the first micro-batch."""
    start = source.initialOffset()
    assert source.latestOffset(start, LIMIT) == start
    assert planner.waited_s == []
    planner.next = [SPAN]
    end = source.latestOffset(start, LIMIT)
    source.partitions(start, end)
    planner.next, planner.filled = [], [planned("orders", 0, 9, 20)]
    later = source.latestOffset(end, LIMIT)
    assert ranges(source.partitions(end, later)) == [planner.filled]
    assert planner.waited_s == [0.25]
    assert planner.ticks == [{}, {}, {("orders", 0): 9}, {}]


def test_a_range_that_comes_again_is_another_micro_batch(source: RangeSource, planner: FakePlanner) -> None:
    """Spark compares offsets only; the same range twice must not look like nothing new."""
    start = source.initialOffset()
    planner.next = [SPAN]
    end = source.latestOffset(start, LIMIT)
    again = source.latestOffset(end, LIMIT)
    assert again != end
    assert ranges(source.partitions(end, again)) == [[SPAN]]


def test_a_kept_checkpoint_is_no_position(source: RangeSource, planner: FakePlanner) -> None:
    """A new run over an earlier checkpoint begins where the group stands; what Spark kept is not committed."""
    start = source.initialOffset()
    planner.next = [SPAN]
    end = source.latestOffset(start, LIMIT)
    planner.begun, planner.next = 0, []
    with again(source) as following:
        assert following.latestOffset(end, LIMIT) == end
    assert (planner.begun, planner.ticks[-1]) == (1, {})


@pytest.mark.parametrize("still", [True, False])
def test_a_micro_batch_that_spark_repeats(source: RangeSource, planner: FakePlanner, still: bool) -> None:
    """What an earlier run planned and did not end is read again as far as the group has it put down."""
    start = source.initialOffset()
    planner.next = [SPAN]
    end = source.latestOffset(start, LIMIT)
    planner.begun = 0
    planner.put_down = [FIVE_TO_NINE] if still else []
    with again(source) as following:
        assert ranges(following.partitions(start, end)) == ([[SPAN]] if still else [])
        assert planner.begun == 1
        following.latestOffset(end, LIMIT)
    assert planner.ticks[-1] == ({("orders", 0): 9} if still else {})


@pytest.mark.parametrize("kept", [{"orders": {"0": [9, "interval"]}}, {"batch": {"0": [9, "interval"]}}, {}])
def test_a_checkpoint_of_an_earlier_version(source: RangeSource, planner: FakePlanner, kept: dict[str, Any]) -> None:
    """Offsets that hold positions, whatever the topic's name, are no ranges; the group's offsets count."""
    assert source.partitions({}, kept) == []
    assert source.latestOffset(kept, LIMIT) == kept
    planner.next = [SPAN]
    end = source.latestOffset(kept, LIMIT)
    assert ranges(source.partitions(kept, end)) == [[SPAN]]


def test_tasks_are_bounded(source: RangeSource, planner: FakePlanner) -> None:
    """`tasks.max` bounds the Spark tasks of a micro-batch, not the ranges."""
    start = source.initialOffset()
    planner.next = [planned("orders", p, 0, 10) for p in range(5)]
    end = source.latestOffset(start, LIMIT)
    assert sorted(map(len, ranges(source.partitions(start, end)))) == [2, 3]
    planner.most_tasks = 1
    assert list(map(len, ranges(source.partitions(start, end)))) == [5]


def test_a_trigger_available_now_drains(source: RangeSource, planner: FakePlanner) -> None:
    """`--until-caught-up` takes what is there whatever the thresholds say."""
    start = source.initialOffset()
    source.prepareForTriggerAvailableNow()
    source.latestOffset(start, source.getDefaultReadLimit())
    assert planner.drained


def test_what_goes_wrong_is_left_for_the_program(source: RangeSource, planner: FakePlanner) -> None:
    """Spark turns exceptions into text, so the failure is left as a value, by name and words."""
    start = source.initialOffset()
    planner.error = OffsetsLost("offsets 1 to 4")
    with pytest.raises(OffsetsLost):
        source.latestOffset(start, LIMIT)
    state = SqliteStore(source._given.state_path)
    assert state.failure() == failure_named("OffsetsLost", "offsets 1 to 4")
    state.close()


def test_it_travels_without_its_connections(source: RangeSource, planner: FakePlanner) -> None:
    """What goes to workers is the settings, not a client or an open file."""
    source.initialOffset()
    back = pickle.loads(pickle.dumps(source))
    assert back._planner is None
    assert back._state is None
    assert back._given == source._given


def test_stopping_closes_the_planner(source: RangeSource, planner: FakePlanner) -> None:
    """At the end of the query the clients are closed; without any there is nothing to close."""
    source.stop()
    source.initialOffset()
    source.stop()
    assert planner.closed


def test_a_task_is_its_ranges(source: RangeSource) -> None:
    """A worker gives one row for each range, with all that the sink needs to know of it."""
    work = Work([planned("orders", 0, 5, 7), planned("orders", 1, 0, 1)])
    assert [one for batch in source.read(work) for one in ranges_in(batch)] == list(work.ranges)


@pytest.mark.parametrize(("count", "rows"), [(1, [1]), (100, [100]), (101, [100, 1]), (250, [100, 100, 50])])
def test_many_ranges_of_a_task_come_in_several_batches(source: RangeSource, count: int, rows: list[int]) -> None:
    """Each carries what is known of its topic, which may be large; all come, in order."""
    work = Work([planned("orders", partition, 0, 1) for partition in range(count)])
    batches = list(source.read(work))
    assert list(map(len, batches)) == rows
    assert [one for batch in batches for one in ranges_in(batch)] == list(work.ranges)


def a_batch_for_each(kafka: KafkaSettings, asked: PlannedRange, parts: RecordParts) -> Iterator[RecordBatch]:
    """The records of a range, with what is asked for of them."""
    assert (asked.topic_id, asked.epoch, parts.keys) == (f"id-of-{asked.topic}", -1, True)
    headers: list[list[Header] | None] | None = [[("a", None)]] if parts.headers else None
    for offset in range(asked.start, asked.end):
        yield RecordBatch.of(asked.topic, asked.partition, [offset], [0], [b"{}"], [b"k%d" % offset], headers)


@pytest.mark.parametrize("headers", [True, False])
def test_records_are_rows_when_asked(tmp_path: Path, headers: bool) -> None:
    """For other sinks the source gives one row for each record, of the columns of its schema."""
    handoff.write(replace(SETTINGS, files=FileSettings(str(tmp_path / "tmp"))), tmp_path / "run")
    options = {handoff.RUN_FOLDER: str(tmp_path / "run"), "rows": "records"}
    source = KafkaRanges({**options, "includeHeaders": "true"} if headers else options)
    parts = source.streamReader(None)._parts  # type: ignore[arg-type]
    reader = RangeSource(source.handoff, source.form, parts, read_records=a_batch_for_each)
    batches = list(reader.read(Work([planned("orders", 0, 5, 7)])))
    common = {"topic": "orders", "partition": 0, "timestamp": 0, "value": b"{}"}
    more = {"headers": [{"key": "a", "value": None}]} if headers else {}
    assert [row for batch in batches for row in batch.to_pylist()] == [
        {**common, "offset": offset, "key": b"k%d" % offset, **more} for offset in (5, 6)
    ]
    assert list(more) == [name for name in ["headers"] if name in source.schema()]


def test_the_first_micro_batch_warms_up(source: RangeSource, planner: FakePlanner) -> None:
    """With nothing due at the start each slot gets an empty task, once, for which nothing is read."""
    state = SqliteStore(source._given.state_path)
    state.set(WARM_UP_FIRST, True)
    state.set(SLOTS, 3)
    start = source.initialOffset()
    end = source.latestOffset(start, LIMIT)
    assert end != start
    work = list(source.partitions(start, end))
    assert [one.reason for pile in ranges(work) for one in pile] == [WARM_UP] * 3
    assert [batch.column("reason").to_pylist() for batch in source.read(work[0])] == [[WARM_UP]]
    assert planner.ticks == [{}]
    assert source.latestOffset(end, LIMIT) == end
    assert planner.ticks == [{}, {}]
    state.close()


def test_what_is_due_at_the_start_warms_up_by_itself(source: RangeSource, planner: FakePlanner) -> None:
    """An empty micro-batch before it would only make it wait."""
    with closing(SqliteStore(source._given.state_path)) as state:
        state.set(WARM_UP_FIRST, True)
    planner.next = [SPAN]
    start = source.initialOffset()
    end = source.latestOffset(start, LIMIT)
    assert ranges(source.partitions(start, end)) == [[SPAN]]
    planner.next = []
    assert source.latestOffset(end, LIMIT) == end
