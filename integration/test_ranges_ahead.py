"""Ranges that are fetched ahead of others give the batches that they give alone, on a real broker."""

import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from integration.conftest import TopicFactory
from integration.random_records import PARTS, assert_equal, send, some_bytes, some_headers
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.errors import OffsetsLost, TopicGone
from parquet_sink.kafka import batch_builder, native, native_batches, ranges_ahead
from parquet_sink.kafka.consumer_cache import ConsumerCache
from parquet_sink.kafka.range_reader import RangeReader
from parquet_sink.kafka.ranges_ahead import RangesAhead
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import RecordBatch, RecordParts

pytestmark = pytest.mark.skipif(native.not_there() != "", reason=native.not_there())


class Alone(RangesAhead):
    """Counts what is left to consumers of their own."""

    refused = 0

    def begin(self, topic: str, partition: int, start: int, end: int) -> bool:
        begun = super().begin(topic, partition, start, end)
        self.refused += not begun
        return begun


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Consumers of this test alone."""
    monkeypatch.setattr(ranges_ahead, "consumers", ConsumerCache())


def settings_of(broker: Broker, topic: str, isolation: str = "read_committed") -> KafkaSettings:
    """A reader's."""
    client = {"bootstrap.servers": broker.bootstrap_servers}
    return KafkaSettings((topic,), None, "connect-ahead", client, isolation_level=isolation)


def ends_of(broker: Broker, topic: str, partitions: int) -> list[int]:
    """Where each topic-partition ends."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "end"})
    with closing(consumer):
        return [consumer.get_watermark_offsets(TopicPartition(topic, one), timeout=20)[1] for one in range(partitions)]


def delete_below(broker: Broker, where: TopicPartition) -> None:
    """As retention does."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_records([where])[where].result(20)


def batches_of(
    kafka: KafkaSettings, planned: PlannedRange, parts: RecordParts, ahead: RangesAhead | None = None
) -> Iterator[RecordBatch]:
    """As a task reads a range."""
    reader = RangeReader(kafka, planned.topic, planned.partition, planned.start, planned.end, parts=parts, ahead=ahead)
    yield from reader.batches()
    assert reader.next_offset >= planned.end


def assert_same(kafka: KafkaSettings, ranges: Sequence[PlannedRange], parts: RecordParts) -> int:
    """Batch by batch; gives how many ranges were left to consumers of their own."""
    ahead = Alone(kafka, ranges)
    with closing(ahead):
        for planned in ranges:
            found = list(batches_of(kafka, planned, parts, ahead))
            expected = list(batches_of(kafka, planned, parts))
            assert [len(one) for one in found] == [len(one) for one in expected], planned
            for one, other in zip(found, expected, strict=True):
                assert_equal(one, other, parts)
    return ahead.refused


@pytest.mark.parametrize("seed", range(4))
def test_random_ranges_come_in_the_same_batches(
    broker: Broker, topic: TopicFactory, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Of transactions that were committed, aborted or never begun; ranges of nothing, one record and thousands."""
    source = random.Random(seed)
    name, partitions = topic(partitions=40), 40
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    for turn in range(6):
        producer = Producer(servers | ({"transactional.id": f"{name}-{turn}"} if turn % 3 else {}))
        if turn % 3:
            producer.init_transactions(30)
            producer.begin_transaction()
        for partition in range(partitions):
            for _ in range(source.choice((0, 1, 1, 20, 300))):
                producer.produce(
                    name, some_bytes(source, 500), some_bytes(source, 50), partition, headers=some_headers(source)
                )
            producer.poll(0)
        assert producer.flush(30) == 0
        if turn % 3:
            producer.commit_transaction(30) if turn % 3 == 1 else producer.abort_transaction(30)
    ranges = []
    for partition, end in enumerate(ends_of(broker, name, partitions)):
        start = source.randrange(end + 1)
        ranges.append(PlannedRange(name, partition, start, source.randrange(start, end + 1), "age"))
    source.shuffle(ranges)
    for module in (batch_builder, native_batches):
        monkeypatch.setattr(module, "BATCH_RECORDS", source.choice((1, 7, 10_000)))
        monkeypatch.setattr(module, "BATCH_BYTES", source.choice((500, 20_000, 4 << 20)))
    isolation = source.choice(("read_committed", "read_uncommitted"))
    refused = assert_same(settings_of(broker, name, isolation), ranges, source.choice(PARTS))
    assert refused == sum(one.start == one.end for one in ranges)


def test_long_ranges_and_large_records_among_short_ones(
    broker: Broker, topic: TopicFactory, producer: Producer
) -> None:
    """A hundred thousand records, and some of a megabyte: what waits of each is bounded, and comes later."""
    name = topic(partitions=20, config={"max.message.bytes": str(4 << 20)})
    for number in range(100_003):
        if number % 10_000 == 0:
            producer.flush(60)
        producer.produce(name, b'{"id": %d}' % number, partition=3)
    for partition in range(20):
        for size in (10, 900_000, 10, 900_000, 900_000, 900_000):
            producer.produce(name, bytes(size), partition=partition)
        assert producer.flush(60) == 0
    ranges = [PlannedRange(name, number, 0, end, "age") for number, end in enumerate(ends_of(broker, name, 20))]
    assert assert_same(settings_of(broker, name), ranges, PARTS[0]) == 0


def test_records_that_were_deleted_before_a_range_are_not_missed(
    broker: Broker, topic: TopicFactory, producer: Producer
) -> None:
    """A range that begins where the topic-partition does now."""
    name = topic(partitions=3)
    for number in range(270):
        producer.produce(name, b"v", partition=number % 3)
    assert producer.flush(30) == 0
    delete_below(broker, TopicPartition(name, 1, 20))
    ranges = [PlannedRange(name, number, 20 * number, 90 - number, "age") for number in range(3)]
    assert assert_same(settings_of(broker, name), ranges, PARTS[4]) == 0


def test_one_that_lost_its_start_says_so_and_the_others_come(
    broker: Broker, topic: TopicFactory, producer: Producer
) -> None:
    """Its own consumer tells; where losses are accepted it goes on behind the gap."""
    name = topic(partitions=12)
    for partition in range(12):
        for number in range(50):
            producer.produce(name, b"%d" % number, partition=partition)
    assert producer.flush(30) == 0
    delete_below(broker, TopicPartition(name, 4, 20))
    ranges = [PlannedRange(name, number, 0, 50, "age") for number in range(12)]
    kafka = settings_of(broker, name)
    with closing(RangesAhead(kafka, ranges)) as ahead:
        for planned in ranges:
            if planned.partition == 4:
                with pytest.raises(OffsetsLost):
                    list(batches_of(kafka, planned, PARTS[0], ahead))
            else:
                assert sum(map(len, batches_of(kafka, planned, PARTS[0], ahead))) == 50
    assert_same(replace(kafka, lost_offsets="CONTINUE"), ranges, PARTS[0])


def test_a_topic_that_is_deleted_meanwhile_is_noticed(broker: Broker, topic: TopicFactory) -> None:
    """What was fetched of it may still come; the others come whole."""
    gone, kept = topic(partitions=1), topic(partitions=2)
    broker.produce(gone, [(None, b"x" * 1_000)] * 20_000)
    source, producer = random.Random(3), Producer({"bootstrap.servers": broker.bootstrap_servers})
    send(producer, kept, source, 2_000)
    ends = ends_of(broker, kept, 2)
    ranges = [
        PlannedRange(kept, 0, 0, ends[0], "age"),
        PlannedRange(gone, 0, 0, 20_000, "age"),
        PlannedRange(kept, 1, 0, ends[1], "age"),
    ]
    kafka = settings_of(broker, kept)
    with closing(RangesAhead(kafka, ranges)) as ahead:
        assert sum(map(len, batches_of(kafka, ranges[0], PARTS[0], ahead))) == ends[0]
        broker.delete_topic(gone)
        with pytest.raises(TopicGone):
            list(batches_of(kafka, ranges[1], PARTS[0], ahead))
        assert sum(map(len, batches_of(kafka, ranges[2], PARTS[0], ahead))) == ends[1]


def test_ranges_that_are_left_out_or_left_early_disturb_no_other(
    broker: Broker, topic: TopicFactory, producer: Producer
) -> None:
    """An attempt that ends early reads no further; the next task has the same consumer."""
    name, source = topic(partitions=60), random.Random(8)
    for partition in range(60):
        for number in range(40):
            producer.produce(name, b"%d of %d" % (number, partition), partition=partition)
    assert producer.flush(30) == 0
    kafka = settings_of(broker, name)
    for _ in range(3):
        ranges = [PlannedRange(name, number, source.randrange(20), 40, "age") for number in range(60)]
        with closing(RangesAhead(kafka, ranges)) as ahead:
            for planned in ranges:
                batches = batches_of(kafka, planned, PARTS[0], ahead)
                fate = source.random()
                if fate < 0.2:
                    next(batches)
                    batches.close()
                elif fate < 0.8:
                    found = [value.as_py() for batch in batches for value in batch.values]
                    assert found == [b"%d of %d" % (one, planned.partition) for one in range(planned.start, 40)]


def test_where_nothing_comes_each_has_its_own_consumer(
    broker: Broker, topic: TopicFactory, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as one was waited for in vain; what was begun goes on where it stands."""
    name = topic(partitions=20)
    for partition in range(20):
        for _ in range(40):
            producer.produce(name, b"v", partition=partition)
    assert producer.flush(30) == 0
    kafka, ranges = settings_of(broker, name), [PlannedRange(name, number, 0, 40, "age") for number in range(20)]
    monkeypatch.setattr(ranges_ahead, "QUIET_S", -1.0)
    monkeypatch.setattr(ranges_ahead, "POLL_S", 0.0)
    assert assert_same(kafka, ranges, PARTS[0]) >= 18


@pytest.mark.parametrize("parts", PARTS)
def test_what_was_read_in_part_is_in_no_other_range(
    broker: Broker, topic: TopicFactory, producer: Producer, parts: RecordParts
) -> None:
    """A range that goes on alone leaves records behind in the buffers that all ranges of a task have."""
    name, source = topic(partitions=3), random.Random(9)
    for partition in range(3):
        for _ in range(50):
            value, key = some_bytes(source, 500), some_bytes(source, 50)
            producer.produce(name, value, key, partition, headers=some_headers(source))
    assert producer.flush(30) == 0
    kafka, ranges = settings_of(broker, name), [PlannedRange(name, number, 0, 50, "age") for number in range(3)]
    assert native.is_used()
    with closing(RangesAhead(kafka, ranges)) as ahead:
        assert ahead.begin(name, 0, 0, 50)
        builder = ahead.builder(name, 0, parts)
        while (reading := ahead.read(builder, 20)) is not None and not reading.at_end:
            pass
        assert builder.batch.records == 20
        (found,), (expected,) = batches_of(kafka, ranges[1], parts, ahead), batches_of(kafka, ranges[1], parts)
        assert_equal(found, expected, parts)
        assert ahead.builder(name, 2, parts) is builder
        assert builder.received == -1
