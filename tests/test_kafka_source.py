"""The source as Spark sees it: offsets with reasons, ranges as tasks, rows of blocks and outcomes."""

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from parquet_sink import handoff
from parquet_sink.config.secret import Secret
from parquet_sink.config.settings import (
    ConnectorSettings,
    FileSettings,
    FlushSettings,
    KafkaSettings,
    PushSettings,
    ShapeSettings,
)
from parquet_sink.errors import KafkaFailed, OffsetsLost
from parquet_sink.files.rotation import Reason
from parquet_sink.kafka import reader, stream
from parquet_sink.kafka.admission import Candidate, Range
from parquet_sink.kafka.block import Block, decode
from parquet_sink.kafka.offsets import Key
from parquet_sink.kafka.rows import WARM_UP, Span, unpack
from parquet_sink.kafka.source import BlockReader, KafkaBlocks, Work
from parquet_sink.state import Failure, State

SETTINGS = ConnectorSettings(
    "orders",
    KafkaSettings(("orders",), None, "connect-orders", {"bootstrap.servers": "localhost:9092"}, tasks_max=2),
    FlushSettings(1_000_000, 100, 2_000),
    ShapeSettings(),
    FileSettings("/nowhere"),
    PushSettings("http://localhost/", Secret("AppKey k"), "t"),
)
LIMIT = ReadAllAvailable()
IDS = {"orders": "id-of-orders", "items": "id-of-items"}


class FakeTicker:
    """Says what a test wants."""

    def __init__(self, starts: dict[Key, int]) -> None:
        self.starts = starts
        self.next: list[Candidate] = []
        self.put_down: list[Candidate] = []
        self.begun = 0
        self.ticks: list[Mapping[Key, int]] = []
        self.error: Exception | None = None
        self.drained = self.closed = False
        self.topic_ids = IDS

    def begin(self) -> dict[Key, int]:
        self.begun += 1
        if self.error is not None:
            raise self.error
        return dict(self.starts)

    def tick(self, start: Mapping[Key, int]) -> list[Candidate]:
        self.ticks.append(start)
        if self.error is not None:
            raise self.error
        return self.next

    def repeated(self, planned: Sequence[Candidate]) -> list[Candidate]:
        return [one for one in planned if one in self.put_down]

    def drain(self) -> None:
        self.drained = True

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def ticker(monkeypatch: pytest.MonkeyPatch) -> FakeTicker:
    """The ticker that the reader will make."""
    fake = FakeTicker({("orders", 0): 5, ("orders", 1): 0})
    monkeypatch.setattr(stream, "Ticker", lambda settings, state, instance: fake)
    return fake


@pytest.fixture
def source(tmp_path: Path) -> Iterator[BlockReader]:
    """The reader as Spark makes it."""
    settings = replace(SETTINGS, files=FileSettings(str(tmp_path / "tmp")))
    handoff.write(settings, tmp_path / "run")
    made = KafkaBlocks({handoff.RUN_FOLDER: str(tmp_path / "run")}).streamReader(None)  # type: ignore[arg-type]
    yield made
    if made._state is not None:
        made._state.close()


def spans(work: list[Any]) -> list[list[Span]]:
    """The ranges of each task."""
    return [list(one.spans) for one in work]


def again(source: BlockReader) -> BlockReader:
    """The reader of the next run, over the same checkpoint."""
    return pickle.loads(pickle.dumps(source))


FIVE_TO_NINE = ("orders", 0, Range(5, 9, Reason.INTERVAL))
SPAN = Span("orders", 0, 5, 9, "interval")


def test_offsets_carry_ranges_and_reasons(source: BlockReader, ticker: FakeTicker) -> None:
    """A range with its reason travels inside the offset, because planning and admission share no memory."""
    start = source.initialOffset()
    ticker.next = [FIVE_TO_NINE]
    end = source.latestOffset(start, LIMIT)
    (work,) = source.partitions(start, end)
    assert spans([work]) == [[SPAN]]
    assert work.topic_ids == {"orders": "id-of-orders"}  # type: ignore[attr-defined]


def test_nothing_due_is_no_micro_batch(source: BlockReader, ticker: FakeTicker) -> None:
    """When nothing is due the offsets stay equal, so that Spark starts nothing; Spark's first one is empty."""
    start = source.initialOffset()
    assert source.latestOffset(start, LIMIT) == start
    assert source.partitions(start, start) == []
    assert ticker.ticks == [{}]


def test_it_begins_once(source: BlockReader, ticker: FakeTicker) -> None:
    """Spark asks for the initial offset again before the first micro-batch; nothing is asked or signed again."""
    start = source.initialOffset()
    ticker.next = [FIVE_TO_NINE]
    end = source.latestOffset(start, LIMIT)
    assert source.initialOffset() == start
    assert spans(list(source.partitions(start, end))) == [[SPAN]]
    assert ticker.begun == 1


def test_what_was_read_is_accepted_when_spark_asks_again(source: BlockReader, ticker: FakeTicker) -> None:
    """Spark asks for more only after the micro-batch: then the ends of its ranges count, and nothing else does."""
    start = source.initialOffset()
    ticker.next = [FIVE_TO_NINE]
    end = source.latestOffset(start, LIMIT)
    source.partitions(start, end)
    ticker.next = []
    assert source.latestOffset(end, LIMIT) == end
    assert ticker.ticks == [{}, {("orders", 0): 9}]


def test_a_range_that_comes_again_is_another_micro_batch(source: BlockReader, ticker: FakeTicker) -> None:
    """Spark compares offsets only; the same range twice must not look like nothing new."""
    start = source.initialOffset()
    ticker.next = [FIVE_TO_NINE]
    end = source.latestOffset(start, LIMIT)
    again = source.latestOffset(end, LIMIT)
    assert again != end
    assert spans(list(source.partitions(end, again))) == [[SPAN]]


def test_a_kept_checkpoint_is_no_position(source: BlockReader, ticker: FakeTicker) -> None:
    """A new run over an earlier checkpoint begins where the group stands; what Spark kept is not committed."""
    start = source.initialOffset()
    ticker.next = [FIVE_TO_NINE]
    end = source.latestOffset(start, LIMIT)
    ticker.begun, ticker.next = 0, []
    following = again(source)
    assert following.latestOffset(end, LIMIT) == end
    assert (ticker.begun, ticker.ticks[-1]) == (1, {})


@pytest.mark.parametrize("still", [True, False])
def test_a_micro_batch_that_spark_repeats(source: BlockReader, ticker: FakeTicker, still: bool) -> None:
    """What an earlier run planned and did not end is read again as far as the group has it put down."""
    start = source.initialOffset()
    ticker.next = [FIVE_TO_NINE]
    end = source.latestOffset(start, LIMIT)
    ticker.begun = 0
    ticker.put_down = [FIVE_TO_NINE] if still else []
    following = again(source)
    assert spans(list(following.partitions(start, end))) == ([[SPAN]] if still else [])
    assert ticker.begun == 1
    following.latestOffset(end, LIMIT)
    assert ticker.ticks[-1] == ({("orders", 0): 9} if still else {})


@pytest.mark.parametrize("kept", [{"orders": {"0": [9, "interval"]}}, {"batch": {"0": [9, "interval"]}}, {}])
def test_a_checkpoint_of_an_earlier_version(source: BlockReader, ticker: FakeTicker, kept: dict[str, Any]) -> None:
    """Offsets that hold positions, whatever the topic's name, are no ranges; the group's offsets count."""
    assert source.partitions({}, kept) == []
    assert source.latestOffset(kept, LIMIT) == kept
    ticker.next = [FIVE_TO_NINE]
    end = source.latestOffset(kept, LIMIT)
    assert spans(list(source.partitions(kept, end))) == [[SPAN]]


def test_tasks_are_bounded(source: BlockReader, ticker: FakeTicker) -> None:
    """`tasks.max` bounds the Spark tasks of a micro-batch, not the ranges."""
    start = source.initialOffset()
    ticker.next = [("orders", p, Range(0, 10, Reason.RECORDS)) for p in range(5)]
    assert sorted(map(len, spans(list(source.partitions(start, source.latestOffset(start, LIMIT)))))) == [2, 3]


def test_a_trigger_available_now_drains(source: BlockReader, ticker: FakeTicker) -> None:
    """`--until-caught-up` takes what is there whatever the thresholds say."""
    start = source.initialOffset()
    source.prepareForTriggerAvailableNow()
    source.latestOffset(start, source.getDefaultReadLimit())
    assert ticker.drained


def test_what_goes_wrong_is_left_for_the_program(source: BlockReader, ticker: FakeTicker) -> None:
    """Spark turns exceptions into text, so the failure is left as a value, by name and words."""
    start = source.initialOffset()
    ticker.error = OffsetsLost("offsets 1 to 4")
    with pytest.raises(OffsetsLost):
        source.latestOffset(start, LIMIT)
    state = State(source._given.state_path)
    assert state.failure() == Failure("OffsetsLost", "offsets 1 to 4")
    state.close()


def test_it_travels_without_its_connections(source: BlockReader, ticker: FakeTicker) -> None:
    """What goes to workers is the settings, not a client or an open file."""
    source.initialOffset()
    back = pickle.loads(pickle.dumps(source))
    assert back._ticker is None
    assert back._state is None
    assert back._given == source._given


def test_stopping_closes_the_ticker(source: BlockReader, ticker: FakeTicker) -> None:
    """At the end of the query the clients are closed; without any there is nothing to close."""
    source.stop()
    source.initialOffset()
    source.stop()
    assert ticker.closed


class FakeRange:
    """A range of two blocks, or of one and an error."""

    def __init__(self, kafka: KafkaSettings, topic: str, partition: int, start: int, end: int, topic_id: str) -> None:
        assert topic_id == "id-of-orders"
        self.next_offset, self._end, self._topic, self._partition = start, end, topic, partition

    def blocks(self) -> Iterator[Block]:
        while self.next_offset < self._end:
            self.next_offset += 1
            if self.next_offset == 3:
                raise KafkaFailed("away")
            yield Block.of(self._topic, self._partition, [self.next_offset - 1], [0], [b"{}"])


def test_a_range_is_its_blocks_and_its_end(source: BlockReader, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker gives one row for each block with the offset after it, and a last one that says: to the end."""
    monkeypatch.setattr(reader, "RangeReader", FakeRange)
    work = Work([Span("orders", 0, 5, 7, "size"), Span("orders", 1, 0, 1, "size")], IDS)
    rows = [arrived for batch in source.read(work) for arrived in unpack(batch)]
    assert [(row.span.partition, row.next_offset, row.block is not None) for row in rows] == [
        (0, 6, True),
        (0, 7, True),
        (0, 7, False),
        (1, 1, True),
        (1, 1, False),
    ]
    assert rows[0].block is not None
    assert decode(rows[0].block).offsets.to_pylist() == [5]


def test_an_error_of_a_range_is_a_row(source: BlockReader, monkeypatch: pytest.MonkeyPatch) -> None:
    """A range that cannot be read to its end says so in its last row; the next range of the task is read."""
    monkeypatch.setattr(reader, "RangeReader", FakeRange)
    work = Work([Span("orders", 0, 1, 9, "size"), Span("orders", 1, 5, 6, "size")], IDS)
    rows = [arrived for batch in source.read(work) for arrived in unpack(batch)]
    problem = rows[1].problem
    assert problem is not None
    assert (problem.kind, problem.message) == ("KafkaFailed", "away")
    assert rows[-1].next_offset == rows[-1].span.end == 6


def test_the_first_micro_batch_warms_up(source: BlockReader, ticker: FakeTicker) -> None:
    """Asked to warm up, the source first gives each slot an empty task, once, and reads nothing for it."""
    state = State(source._given.state_path)
    for word in ("warm", "slots"):
        state.say(word, 3)
    start = source.initialOffset()
    end = source.latestOffset(start, LIMIT)
    assert end != start
    work = list(source.partitions(start, end))
    assert [span.reason for pile in spans(work) for span in pile] == [WARM_UP] * 3
    assert [row.span.reason for batch in source.read(work[0]) for row in unpack(batch)] == [WARM_UP]
    assert ticker.ticks == []
    assert source.latestOffset(end, LIMIT) == end
    assert ticker.ticks == [{}]
    state.close()
