"""Small ranges of many topic-partitions are read by one assignment, as the same batches as if each were read alone."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.kafka import batch_builder, consumer_cache, several_ranges
from parquet_sink.kafka.batch_builder import BATCH_BYTES, BATCH_RECORDS, BatchBuilder
from parquet_sink.kafka.consumer_cache import ConsumerCache
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.kafka.several_ranges import SMALL_RECORDS, TOGETHER_BYTES, TOGETHER_RANGES, SmallRanges
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import VALUES_ONLY, RecordBatch
from tests.factories import Clock
from tests.kafka.messages import Message
from tests.thorough import FIXTURES_SHARED, examples

KAFKA = KafkaSettings(topics=("orders",), group="connect-orders", client={"bootstrap.servers": "localhost:9092"})
GONE = KafkaError(KafkaError._AUTO_OFFSET_RESET)
QUEUE_BYTES = 1 << 20
"""What waits in the client, about."""
Record = tuple[int, bytes | None]


class Broker:
    """Topic-partitions, each with its records and where it ends, and a consumer of them that gives them mixed.

    events: what comes of a topic-partition before anything else. away: those of which nothing comes.
    """

    def __init__(self, logs: dict[PartitionKey, tuple[list[Record], int]], chance: random.Random | None = None) -> None:
        self.logs, self._chance = logs, chance or random.Random(1)
        self.events: dict[PartitionKey | None, list[KafkaError]] = {}
        self.away: set[PartitionKey] = set()
        self.assignments: list[list[PartitionKey]] = []
        self.clock = Clock()
        self.given_bytes = 0
        self._positions: dict[PartitionKey, int] = {}
        self._ended: set[PartitionKey] = set()

    def assign(self, where: Sequence[TopicPartition]) -> None:
        self._positions = {(one.topic, one.partition): one.offset for one in where}
        self._ended = set()
        self.assignments.append(list(self._positions))

    def incremental_unassign(self, where: Sequence[TopicPartition]) -> None:
        for one in where:
            del self._positions[one.topic, one.partition]

    def unassign(self) -> None:
        self._positions = {}

    def close(self) -> None:
        """Nothing is open."""

    def consume(self, count: int, timeout: float) -> list[Message]:
        assert count > 0
        self.clock.sleep(timeout)
        if self.events.get(None):
            return [Message(-1001, None, self.events[None].pop())]
        taken: list[Message] = []
        keys = [key for key in self._positions if key not in self.away]
        self._chance.shuffle(keys)
        for key in keys:
            if len(taken) < count and sum(len(one.value() or b"") for one in taken) < QUEUE_BYTES:
                taken += self._of(key, self._chance.randint(1, count - len(taken)))
        self.given_bytes += sum(len(one.value() or b"") for one in taken)
        return taken

    def _of(self, key: PartitionKey, count: int) -> list[Message]:
        if self.events.get(key):
            return [Message(self._positions[key], None, self.events[key].pop(), key)]
        records, end = self.logs[key]
        found = [Message(*one, None, key) for one in records if one[0] >= self._positions[key]][:count]
        if found:
            self._positions[key] = found[-1].offset() + 1
        elif key not in self._ended:
            self._ended.add(key)
            found = [Message(end, None, KafkaError(KafkaError._PARTITION_EOF), key)]
        return found


@pytest.fixture(autouse=True)
def ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages are ours."""
    monkeypatch.setattr(batch_builder, "Message", Message)
    for module in (batch_builder, several_ranges):
        monkeypatch.setattr(module, "message_offset", Message.offset)
    monkeypatch.setattr(batch_builder, "_value", Message.value)
    monkeypatch.setattr(batch_builder, "_key", Message.key)


def read(monkeypatch: pytest.MonkeyPatch, broker: Broker, ranges: Sequence[PlannedRange]) -> list[Any]:
    """Of each range its batches; None where they are left to its own reader."""
    cache = ConsumerCache()
    cache._sweeping.set()
    monkeypatch.setattr(several_ranges, "consumers", cache)
    monkeypatch.setattr(several_ranges, "time", broker.clock)
    monkeypatch.setattr(consumer_cache.client_options, "build", lambda kind, settings: broker)
    reader = SmallRanges(KAFKA, ranges, VALUES_ONLY)
    return [reader.take(one) for one in ranges]


def expected(broker: Broker, planned: PlannedRange) -> list[RecordBatch]:
    """As a builder makes them of the range's records alone."""
    key = (planned.topic, planned.partition)
    builder, found = BatchBuilder(*key), []
    for record in broker.logs[key][0]:
        if planned.start <= record[0] < planned.end:
            builder.add([Message(*record, None, key)])  # type: ignore[list-item]
            found += builder.full()
    rest = builder.rest()
    return found if rest is None else [*found, rest]


def log_of(count: int, size: int = 2) -> tuple[list[Record], int]:
    """Records without a gap, from 0."""
    return [(offset, b"x" * size) for offset in range(count)], count


def whole(broker: Broker) -> list[PlannedRange]:
    """A range for all of each topic-partition."""
    return [PlannedRange(*key, 0, end, "interval") for key, (_, end) in broker.logs.items()]


def test_many_small_ranges_are_read_by_one_assignment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a consumer that goes from one to the next each would wait for the fetch that was sent ahead for the last."""
    broker = Broker({("orders", number): log_of(3) for number in range(300)})
    found = read(monkeypatch, broker, whole(broker))
    assert found == [expected(broker, one) for one in whole(broker)]
    assert [len(one) for one in broker.assignments] == [300]


@st.composite
def logs(draw: st.DrawFn) -> dict[PartitionKey, tuple[list[Record], int]]:
    """With gaps, tombstones, and markers at the end."""
    made: dict[PartitionKey, tuple[list[Record], int]] = {}
    for number in range(draw(st.integers(2, 6))):
        offset, records = -1, []
        for step, value in draw(st.lists(st.tuples(st.integers(1, 4), st.none() | st.binary(max_size=9)), max_size=12)):
            offset += step
            records.append((offset, value))
        end = max(offset + 1 + draw(st.integers(0, 3)), 1)
        made[draw(st.sampled_from(["orders", "items"])), number] = (records, end)
    return made


@settings(suppress_health_check=FIXTURES_SHARED, max_examples=examples(100))
@given(logs(), st.randoms(use_true_random=False), st.data())
def test_each_range_gives_its_records_and_no_others(
    monkeypatch: pytest.MonkeyPatch,
    made: dict[PartitionKey, tuple[list[Record], int]],
    chance: random.Random,
    data: st.DataObject,
) -> None:
    """Whatever gaps there are, wherever ranges begin and end, and however records of topic-partitions come mixed."""
    broker = Broker(made, chance)
    ranges = []
    for key, (_, end) in made.items():
        start = data.draw(st.integers(0, end - 1))
        ranges.append(PlannedRange(*key, start, data.draw(st.integers(start + 1, end)), "interval"))
    assert read(monkeypatch, broker, ranges) == [expected(broker, one) for one in ranges]


def test_batches_end_where_they_end_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """By bytes, too."""
    broker = Broker({("orders", 0): log_of(5, BATCH_BYTES // 3), ("orders", 1): log_of(2)})
    found = read(monkeypatch, broker, whole(broker))
    assert found == [expected(broker, one) for one in whole(broker)]
    assert [len(one) for one in found[0]] == [3, 2]


def test_one_alone_and_large_ones_are_left_to_their_own_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one whose log is to be compared with what was read before, which only a new consumer does."""
    broker = Broker({("orders", number): log_of(SMALL_RECORDS + 1) for number in range(3)})
    large = whole(broker)
    small = PlannedRange("orders", 2, 0, 5, "interval")
    assert read(monkeypatch, broker, [*large[:2], small]) == [None, None, None]
    compared = PlannedRange("orders", 1, 0, 5, "interval", epoch=4)
    assert read(monkeypatch, broker, [compared, small]) == [None, None]
    assert broker.assignments == []


@pytest.mark.parametrize("event", [GONE, KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)])
def test_one_that_brings_trouble_is_left_to_its_own_reader(monkeypatch: pytest.MonkeyPatch, event: KafkaError) -> None:
    """It says what is wrong; the others are read."""
    broker = Broker({("orders", number): log_of(3) for number in range(3)})
    broker.events["orders", 1] = [event]
    ranges = whole(broker)
    assert read(monkeypatch, broker, ranges) == [expected(broker, ranges[0]), None, expected(broker, ranges[2])]


def test_what_passes_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one topic-partition, or of none in particular."""
    broker = Broker({("orders", number): log_of(3) for number in range(3)})
    broker.events["orders", 1] = [KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)] * 3
    broker.events[None] = [KafkaError(KafkaError._ALL_BROKERS_DOWN)]
    assert read(monkeypatch, broker, whole(broker)) == [expected(broker, one) for one in whole(broker)]


def test_one_of_which_nothing_comes_is_left_to_its_own_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """That one waits longer; and so is one whose log ends before the range does."""
    broker = Broker({("orders", number): log_of(3) for number in range(3)})
    broker.away = {("orders", 0)}
    first, _, third = whole(broker)
    longer = PlannedRange("orders", 1, 0, 9, "interval")
    assert read(monkeypatch, broker, [first, longer, third]) == [None, None, expected(broker, third)]
    assert several_ranges.QUIET_S <= broker.clock.seconds - Clock().seconds <= several_ranges.QUIET_S + 1


def test_what_is_held_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that are large are read one range after the other, but for those that were whole by then."""
    broker = Broker({("orders", number): log_of(8, 300_000) for number in range(40)})
    found = read(monkeypatch, broker, whole(broker))
    assert None in found
    assert broker.given_bytes <= TOGETHER_BYTES + QUEUE_BYTES + 8 * 300_000
    assert [one for one in found if one] == [
        expected(broker, planned) for planned, one in zip(whole(broker), found, strict=True) if one
    ]


@pytest.mark.parametrize(("size", "together"), [(1, TOGETHER_RANGES), (900, BATCH_RECORDS // 900)])
def test_more_are_read_in_groups(monkeypatch: pytest.MonkeyPatch, size: int, together: int) -> None:
    """Of so many records and ranges, each when its first range is asked for."""
    broker = Broker({("orders", number): log_of(size) for number in range(together + 2)})
    found = read(monkeypatch, broker, whole(broker))
    assert found == [expected(broker, one) for one in whole(broker)]
    assert [len(one) for one in broker.assignments] == [together, 2]
