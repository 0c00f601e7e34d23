"""A range is read to its very end and not beyond, whatever lies in it."""

import logging
import threading
from collections.abc import Sequence
from itertools import cycle, pairwise
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.errors import KafkaFailed, OffsetsLost, TopicGone
from parquet_sink.kafka import batch_builder, range_reader
from parquet_sink.kafka.batch_builder import BATCH_BYTES, BATCH_RECORDS
from parquet_sink.kafka.client import renewal
from parquet_sink.kafka.consumer_cache import ConsumerCache
from parquet_sink.kafka.range_reader import SILENCE_S, RangeReader
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.records import RecordBatch
from tests.factories import Clock
from tests.kafka.messages import Message
from tests.messages import assert_line_says, saying
from tests.thorough import FIXTURES_SHARED, examples

KAFKA = KafkaSettings(topics=("orders",), group="connect-orders", client={"bootstrap.servers": "localhost:9092"})
ACCEPTING = KafkaSettings(("orders",), None, "connect-orders", KAFKA.client, lost_offsets="CONTINUE")


class Log:
    """A topic-partition, and a consumer of it. `records` have gaps where markers and aborted records are."""

    def __init__(self, records: Sequence[tuple[int, bytes | None]], end: int, first: int = 0) -> None:
        self.records, self.end, self.first = sorted(records), end, first
        self.events: list[KafkaError] = []
        self.assigned: list[int] = []
        self.epochs: list[int | None] = []
        self.gone = False
        self.asked: list[int] = []
        self._position: int | None = None
        self._told_end: int | None = None
        self.closed = False

    def assign(self, where: list[TopicPartition]) -> None:
        self._position, self._told_end = where[0].offset, None
        self.assigned.append(where[0].offset)
        self.epochs.append(where[0].leader_epoch)

    def unassign(self) -> None:
        self._position = None

    def close(self) -> None:
        self.closed = True

    def get_watermark_offsets(self, tp: TopicPartition, timeout: float) -> tuple[int, int]:
        if self.gone:
            raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
        return self.first, self.end

    def consume(self, count: int, timeout: float) -> list[Message]:
        """As librdkafka does: records as they come, then once that the end is reached."""
        assert self._position is not None
        self.asked.append(count)
        if self.events:
            return [Message(-1001, None, self.events.pop(0))]
        if self._position < self.first:
            return [Message(self._position, b"offset out of range", KafkaError(KafkaError._AUTO_OFFSET_RESET))]
        taken: list[Message] = []
        for offset, value in self.records:
            if offset >= self._position and len(taken) < count:
                taken.append(Message(offset, value))
        if taken:
            self._position = taken[-1].offset() + 1
        if len(taken) < count and self._told_end != self.end:
            self._position = self._told_end = self.end
            taken.append(Message(self.end, None, KafkaError(KafkaError._PARTITION_EOF)))
        return taken


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """No consumer of an earlier test, messages that are ours, and `client_options.build` put back at the end."""
    anew(monkeypatch)
    monkeypatch.setattr(range_reader, "Message", Message)
    monkeypatch.setattr(batch_builder, "Message", Message)
    monkeypatch.setattr(range_reader, "message_offset", Message.offset)
    monkeypatch.setattr(batch_builder, "message_offset", Message.offset)
    monkeypatch.setattr(batch_builder, "_value", Message.value)
    monkeypatch.setattr(batch_builder, "_key", Message.key)
    monkeypatch.setattr(range_reader.client_options, "build", range_reader.client_options.build)


def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process: no consumer waits."""
    cache = ConsumerCache()
    cache._sweeping.set()
    monkeypatch.setattr(range_reader, "consumers", cache)


def opened(log: Log, start: int, end: int, kafka: KafkaSettings = KAFKA, topic_id: str = "") -> RangeReader:
    """A reader of a range of that log."""
    range_reader.client_options.build = lambda kind, settings: log  # type: ignore[assignment]
    return RangeReader(kafka, "orders", 3, start, end, topic_id)


def offsets(blocks: Sequence[RecordBatch]) -> list[int]:
    """All offsets in them."""
    return [offset for block in blocks for offset in block.offsets.to_pylist()]


def log_of(count: int, end: int | None = None) -> Log:
    """Records without a gap from 0."""
    return Log([(offset, b'{"n":%d}' % offset) for offset in range(count)], count if end is None else end)


def test_a_range_is_read_whole() -> None:
    """Values, timestamps and offsets of [start, end) arrive, and the next offset is the end."""
    source = opened(log_of(100), 10, 20)
    (block,) = source.batches()
    assert (block.topic, block.partition) == ("orders", 3)
    assert block.offsets.to_pylist() == list(range(10, 20))
    assert block.timestamps.to_pylist() == list(range(1_010, 1_020))
    assert block.values.to_pylist() == [b'{"n":%d}' % n for n in range(10, 20)]
    assert source.next_offset == 20


def test_nothing_past_the_end_is_given() -> None:
    """Records at or past the end belong to a later range."""
    log = Log([(offset, b"1") for offset in (0, 1, 5, 6, 7)], 8)
    assert offsets(list(opened(log, 0, 4).batches())) == [0, 1]


def test_a_range_ends_before_markers_by_the_end_event() -> None:
    """The last offsets are transaction markers or aborted records: the end of the topic-partition ends the range."""
    log = Log([(0, b"1"), (1, b"2")], 5)
    source = opened(log, 0, 5)
    assert offsets(list(source.batches())) == [0, 1]
    assert source.next_offset == 5


def test_a_range_without_records_ends() -> None:
    """Nothing but markers: no block, and the range counts as read."""
    source = opened(Log([], 4), 2, 4)
    assert list(source.batches()) == []
    assert source.next_offset == 4


def test_an_end_event_below_the_range_is_not_its_end() -> None:
    """Between two appends the broker says "end" too early: reading goes on until the range is done."""

    class Growing(Log):
        def consume(self, count: int, timeout: float) -> list[Message]:
            taken = super().consume(count, timeout)
            if len(self.records) == 1:
                self.records, self.end = [(0, b"1"), (1, b"2"), (2, b"3")], 3
                self.assign([TopicPartition("orders", 3, 1)])
            return taken

    assert offsets(list(opened(Growing([(0, b"1")], 1), 0, 3).batches())) == [0, 1, 2]


class Dripping(Log):
    """A consumer that gives as many records at once as it likes."""

    def __init__(self, records: Sequence[tuple[int, bytes | None]], end: int, portions: Sequence[int]) -> None:
        super().__init__(records, end)
        self._portions = cycle(portions)

    def consume(self, count: int, timeout: float) -> list[Message]:
        return super().consume(min(count, next(self._portions)), timeout)


sizes = st.lists(st.sampled_from([0, 1, 10, 40, 100, 101, 500]), min_size=1, max_size=120)
portions = st.lists(st.integers(1, 50), min_size=1, max_size=9)


@settings(suppress_health_check=FIXTURES_SHARED, deadline=None)
@given(sizes, portions, portions)
def test_blocks_do_not_depend_on_how_records_came(
    monkeypatch: pytest.MonkeyPatch, sizes: list[int], some: list[int], others: list[int]
) -> None:
    """However many records each poll gives, a block is filled up to exactly its limits, of records and of bytes."""
    monkeypatch.setattr(batch_builder, "BATCH_RECORDS", 25)
    monkeypatch.setattr(batch_builder, "BATCH_BYTES", 100)
    records = [(2 * number, b"x" * size or None) for number, size in enumerate(sizes)]
    end = 2 * len(records)
    blocks = []
    for how in (some, others):
        anew(monkeypatch)
        blocks.append(list(opened(Dripping(records, end, how), 0, end).batches()))
    assert [block.offsets.to_pylist() for block in blocks[0]] == [block.offsets.to_pylist() for block in blocks[1]]
    for block, following in pairwise(blocks[0]):
        held = sum(len(value or b"") for value in block.values.to_pylist())
        first = len(following.values[0].as_py() or b"")
        assert len(block) == 25 or held + first > 100
        assert len(block) == 1 or held <= 100
    assert offsets(blocks[0]) == [offset for offset, _ in records]


def test_what_was_delivered_before_is_no_loss() -> None:
    """A range that comes again begins behind what retention deleted, if all of that was accepted in an earlier try."""
    log = log_of(30)
    log.first = 12
    source = RangeReader(KAFKA, "orders", 3, 0, 30, accepted=15)
    opened(log, 0, 30)
    assert offsets(list(source.batches())) == list(range(12, 30))
    log.first = 16
    with pytest.raises(OffsetsLost, match=saying("orders, topic-partition 3", "15 to 15", "deleted")):
        list(RangeReader(KAFKA, "orders", 3, 0, 30, accepted=15).batches())


def test_a_tombstone_and_an_empty_value_are_told_apart() -> None:
    """A null value stays null, and an empty one empty."""
    (block,) = opened(Log([(0, None), (1, b"")], 2), 0, 2).batches()
    assert block.values.to_pylist() == [None, b""]


def test_a_record_without_a_timestamp_has_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of old producers have no timestamp."""
    monkeypatch.setattr(Message, "timestamp", lambda self: (0, -1))
    (block,) = opened(log_of(2), 0, 2).batches()
    assert block.timestamps.to_pylist() == [0, 0]


def test_blocks_are_bounded_in_records() -> None:
    """However long a range is, no block has more records than the bound."""
    blocks = list(opened(log_of(3 * BATCH_RECORDS), 0, 3 * BATCH_RECORDS).batches())
    assert max(map(len, blocks)) <= BATCH_RECORDS
    assert offsets(blocks) == list(range(3 * BATCH_RECORDS))


def test_a_huge_record_is_alone_in_its_block() -> None:
    """A record larger than a block does not make its neighbours' block larger."""
    huge = b"x" * (BATCH_BYTES + 1)
    log = Log([(0, b"1"), (1, huge), (2, b"2"), (3, b"3")], 4)
    blocks = [block.offsets.to_pylist() for block in opened(log, 0, 4).batches()]
    assert blocks == [[0], [1], [2, 3]]


def test_no_more_is_asked_for_than_the_range_holds() -> None:
    """The consumer is never asked for more records than are left in the range."""
    log = log_of(50)
    list(opened(log, 10, 17).batches())
    assert log.asked == [7]


def test_a_consumer_goes_on_where_it_stands() -> None:
    """The next range of the topic-partition uses the same consumer without a new assignment."""
    log = log_of(30)
    assert offsets(list(opened(log, 0, 10).batches())) == list(range(10))
    assert offsets(list(opened(log, 10, 30).batches())) == list(range(10, 30))
    assert log.assigned == [0]


def test_another_range_is_assigned_anew() -> None:
    """A range that does not follow on the last one is looked up at the broker."""
    log = log_of(30)
    list(opened(log, 0, 10).batches())
    assert offsets(list(opened(log, 5, 9).batches())) == [5, 6, 7, 8]
    assert log.assigned == [0, 5]


def test_a_range_of_a_topic_made_anew_is_assigned_anew() -> None:
    """What a consumer fetched ahead of the old topic does not count for the new one that has its name."""
    log = log_of(30)
    list(opened(log, 0, 10, topic_id="old").batches())
    assert offsets(list(opened(log, 10, 20, topic_id="new").batches())) == list(range(10, 20))
    assert offsets(list(opened(log, 20, 30, topic_id="new").batches())) == list(range(20, 30))
    assert log.assigned == [0, 10]


def test_records_taken_past_the_end_are_read_again() -> None:
    """When a gap at the end made the consumer hand out the next range's first record, that one is not lost."""
    log = Log([(offset, b"1") for offset in (0, 1, 5, 6)], 7)
    assert offsets(list(opened(log, 0, 4).batches())) == [0, 1]
    assert offsets(list(opened(log, 4, 7).batches())) == [5, 6]


def test_an_end_event_past_the_range_is_asked_for_again() -> None:
    """When one range has used up the event that ends the next, which holds markers only, that one ends all the same."""
    log = Log([(0, b"1"), (2, b"2")], 5)
    assert offsets(list(opened(log, 0, 3).batches())) == [0, 2]
    source = opened(log, 3, 5)
    assert list(source.batches()) == []
    assert log.assigned == [0, 3]


def test_retention_overtaking_stops_and_names_the_offsets() -> None:
    """Offsets that Kafka deleted before they were read end the connector, with the range and the cure."""
    source = opened(Log([(50, b"1")], 60, first=50), 10, 60)
    with pytest.raises(OffsetsLost) as found:
        list(source.batches())
    for words in ("topic-partition 3", "offsets 10 to 49", "(40 offsets)", "connect.ems.lost.offsets.policy=CONTINUE"):
        assert words in str(found.value)
    assert source.next_offset == 10


def test_accepted_loss_is_logged_and_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    """With CONTINUE reading goes on with the first record that Kafka still holds, and the log names the loss."""
    caplog.set_level(logging.WARNING)
    source = opened(Log([(50, b"1"), (51, b"2")], 52, first=50), 10, 52, ACCEPTING)
    assert offsets(list(source.batches())) == [50, 51]
    assert source.lost == [(10, 50, "retention")]
    assert "offsets 10 to 49" in caplog.text


def test_a_range_lost_whole_is_passed_over() -> None:
    """With CONTINUE a range of which nothing is left ends without a record."""
    source = opened(Log([(50, b"1")], 60, first=50), 10, 20, ACCEPTING)
    assert list(source.batches()) == []
    assert (source.next_offset, source.lost) == (50, [(10, 20, "retention")])


def test_a_range_past_the_end_is_looked_up_anew_even_if_loss_is_accepted() -> None:
    """Nothing comes after an offset past the end, so waiting there has no end: the query must start again."""
    log = log_of(5)
    log.events = [KafkaError(KafkaError._AUTO_OFFSET_RESET)]
    with pytest.raises(KafkaFailed, match=saying("stands at offset 10", "ends at 5")) as found:
        list(opened(log, 10, 20, ACCEPTING).batches())
    assert found.value.topic_partition == ("orders", 3)


@pytest.mark.parametrize("code", [KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT])
def test_a_broker_that_comes_back_is_waited_for(code: int) -> None:
    """Events that say the broker is away do not end a range."""
    log = log_of(5)
    log.events = [KafkaError(code), KafkaError(code)]
    assert offsets(list(opened(log, 0, 5).batches())) == list(range(5))


def test_what_waiting_does_not_cure_fails() -> None:
    """A refusal ends the range, naming topic-partition, offset and cause."""
    log = log_of(5)
    log.events = [KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)]
    with pytest.raises(KafkaFailed, match=saying("orders, topic-partition 3", "offset 0", "kafka-acls")) as found:
        list(opened(log, 0, 5).batches())
    assert found.value.topic_partition == ("orders", 3)


def test_silence_fails_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that was promised and does not come for two minutes is an error, not a wait for ever."""
    clock = Clock()
    monkeypatch.setattr(range_reader, "time", clock)
    log = log_of(1)

    def silence(count: int, timeout: float) -> list[Any]:
        clock.seconds += timeout
        return []

    log.consume = silence  # type: ignore[method-assign]
    silent = ("orders, topic-partition 3", "no record", "for 120 s", "after offset 0", "goes to 5")
    with pytest.raises(KafkaFailed, match=saying(*silent)) as found:
        list(opened(log, 0, 5).batches())
    assert found.value.topic_partition == ("orders", 3)
    assert clock.seconds == pytest.approx(SILENCE_S, abs=1)


def test_another_consumer_goes_on_where_one_without_an_answer_stood(monkeypatch: pytest.MonkeyPatch) -> None:
    """No record is missing and none comes twice; the old consumer is closed, the new one is kept for later."""
    clock, old, new = Clock(), log_of(1_000, end=1_500), log_of(1_500)
    monkeypatch.setattr(range_reader, "time", clock)
    monkeypatch.setattr(renewal, "RENEW_S", 0.0)
    closed, made = threading.Event(), iter([old, new])
    consume = old.consume

    def until_deaf(count: int, timeout: float) -> list[Message]:
        clock.seconds += timeout
        return consume(count, timeout) if old._position != 1_000 else []

    def deaf(tp: TopicPartition, timeout: float) -> tuple[int, int]:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    monkeypatch.setattr(old, "consume", until_deaf)
    monkeypatch.setattr(old, "get_watermark_offsets", deaf)
    monkeypatch.setattr(old, "close", closed.set)
    reader = opened(old, 0, 1_500)
    monkeypatch.setattr(range_reader.client_options, "build", lambda kind, settings: next(made))
    assert offsets([*reader.batches()]) == list(range(1_500))
    assert (old.assigned, new.assigned) == ([0], [1_000])
    assert closed.wait(10)
    assert range_reader.consumers.take(KAFKA).consumer is new


def test_waiting_for_the_target_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """While blocks are not taken because an upload is slow, the time does not count against Kafka."""
    clock = Clock()
    monkeypatch.setattr(range_reader, "time", clock)
    log = log_of(1_500)
    script = [range(1_000), range(0), range(1_000, 1_500)]
    log.consume = lambda count, timeout: [Message(offset) for offset in script.pop(0)]  # type: ignore[method-assign]
    found: list[int] = []
    for block in opened(log, 0, 1_500).batches():
        found += block.offsets.to_pylist()
        clock.seconds += 10 * SILENCE_S
    assert found == list(range(1_500))


@settings(suppress_health_check=FIXTURES_SHARED, max_examples=examples(60))
@given(
    st.lists(st.tuples(st.integers(1, 4), st.none() | st.binary(max_size=30)), max_size=60),
    st.integers(0, 3),
    st.lists(st.integers(1, 100), max_size=8),
)
def test_ranges_in_a_row_give_every_record_once(
    monkeypatch: pytest.MonkeyPatch, steps: list[tuple[int, bytes | None]], markers: int, cuts: list[int]
) -> None:
    """Whatever gaps a log has and wherever ranges are cut, all records come out once and in order."""
    records, offset = [], -1
    for step, value in steps:
        offset += step
        records.append((offset, value))
    end = offset + 1 + markers
    log = Log(records, end)
    anew(monkeypatch)
    edges = sorted({0, end, *(cut for cut in cuts if cut < end)})
    found: list[tuple[int, bytes | None]] = []
    for start, stop in pairwise(edges):
        for block in opened(log, start, stop).batches():
            found += zip(block.offsets.to_pylist(), block.values.to_pylist(), strict=True)
    assert found == records


CUT = KafkaError(KafkaError._AUTO_OFFSET_RESET, "Partition log truncation detected: broker end offset is 2 (epoch 0)")


def test_a_start_is_assigned_with_its_epoch() -> None:
    """So that a client asks whether the log is the one that the offset belongs to, also where one stands there."""
    log = log_of(8)
    range_reader.client_options.build = lambda kind, settings: log  # type: ignore[assignment]
    for start, end, epoch in ((3, 5, 4), (5, 7, 4), (7, 8, -1)):
        list(RangeReader(KAFKA, "orders", 3, start, end, epoch=epoch).batches())
    assert list(zip(log.assigned, log.epochs, strict=True)) == [(3, 4), (5, 4)]


def test_a_log_that_was_cut_back_stops() -> None:
    """What the client says of it is a loss that is named."""
    log = log_of(8)
    log.events = [CUT]
    with pytest.raises(OffsetsLost, match=saying("stands at offset 5", "cut back to 2")):
        list(opened(log, 5, 8).batches())


def test_a_log_that_was_cut_back_is_read_on_if_loss_is_accepted(caplog: pytest.LogCaptureFixture) -> None:
    """With CONTINUE the range is read to its end, and the log names what was passed over."""
    log = log_of(8)
    log.events = [CUT]
    source = opened(log, 5, 8, ACCEPTING)
    assert offsets(list(source.batches())) == [5, 6, 7]
    assert source.lost == [(2, 5, "truncated")]
    assert_line_says(caplog.text, "orders, topic-partition 3", "from 2 to 4", "others than those delivered")


def test_a_topic_that_is_gone_ends_the_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client goes on waiting for a topic that was deleted; the reader asks after some seconds."""
    log = log_of(3, end=3)
    log.end, log.gone = 10, True
    log._told_end = 10
    monkeypatch.setattr(log, "consume", lambda count, timeout: [])
    monkeypatch.setattr(range_reader.time, "monotonic", cycle(range(0, 200, 6)).__next__)
    with pytest.raises(TopicGone, match=saying("orders, topic-partition 3", "was deleted")):
        list(opened(log, 3, 10).batches())
