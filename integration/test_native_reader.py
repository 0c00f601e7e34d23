"""Records read in C are those that confluent-kafka gives, batch by batch, on a real broker."""

import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from integration.conftest import TopicFactory
from integration.random_records import PARTS, assert_equal, send, some_bytes, some_headers
from integration.raw_producer import send_with_header
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.errors import BrokerAway, KafkaFailed, OffsetsLost, TopicGone
from parquet_sink.kafka import batch_builder, native, native_batches
from parquet_sink.kafka.cluster import native_admin
from parquet_sink.kafka.cluster.cluster import MANY, NONE_SO_LATE, KafkaCluster
from parquet_sink.kafka.cluster.native_admin import described, described_in_c
from parquet_sink.kafka.range_reader import RangeReader
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.records import RecordBatch, RecordParts

pytestmark = pytest.mark.skipif(native.not_there() != "", reason=native.not_there())


@pytest.fixture
def both(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[RecordBatch]]:
    """Reads [start, end) of a topic in C and by confluent-kafka, finds both equal, and gives the batches."""
    assert native.why_not() == ""  # which loads it

    def read(
        topic: str,
        start: int,
        end: int,
        parts: RecordParts,
        *,
        limits: tuple[int, int] | None = None,
        isolation: str = "read_committed",
        servers: str = broker.bootstrap_servers,
    ) -> list[RecordBatch]:
        if limits is not None:
            for module in (batch_builder, native_batches):
                monkeypatch.setattr(module, "BATCH_RECORDS", limits[0])
                monkeypatch.setattr(module, "BATCH_BYTES", limits[1])
        client = {"bootstrap.servers": servers}
        settings = KafkaSettings((topic,), None, "connect-native", client, isolation_level=isolation)
        found: list[list[RecordBatch]] = []
        for in_c in (True, False):
            monkeypatch.setattr(native, "is_used", lambda in_c=in_c: in_c)
            reader = RangeReader(settings, topic, 0, start, end, parts=parts)
            found.append(list(reader.batches()))
            assert reader.next_offset >= end
        in_c, by_client = found
        assert [len(one) for one in in_c] == [len(one) for one in by_client]
        for one, other in zip(in_c, by_client, strict=True):
            assert_equal(one, other, parts)
        return in_c

    return read


def end_of(broker: Broker, topic: str) -> int:
    """Of its only topic-partition."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "end"})
    try:
        return consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)[1]
    finally:
        consumer.close()


def test_the_installed_client_fits() -> None:
    """Where the extension was built, it is used: a client that it does not fit is no reason to skip these tests."""
    assert native.why_not() == ""
    assert native.is_used()
    assert native_admin.is_asked(AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}))


@pytest.mark.parametrize("seed", range(4))
def test_random_records_come_in_the_same_batches(
    broker: Broker, topic: TopicFactory, producer: Producer, both: Callable[..., list[RecordBatch]], seed: int
) -> None:
    """Nulls, empty values, repeated and unreadable headers, ranges and bounds of batches at random."""
    source = random.Random(seed)
    name = topic(config={"message.timestamp.type": source.choice(("CreateTime", "LogAppendTime"))})
    for _ in range(6):
        send(producer, name, source, source.choice((1, 30, 400)))
        if source.random() < 0.5:
            send_with_header(
                broker.bootstrap_servers,
                name,
                source.choice((b"caf\xe9", b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80\x80\x80")),
            )
    end = end_of(broker, name)
    for parts in PARTS:
        start = source.randrange(end)
        limits = source.choice((1, 7, 10_000)), source.choice((1, 500, 20_000, 4 << 20))
        batches = both(name, start, source.randrange(start + 1, end + 1), parts, limits=limits)
        assert batches
    assert sum(map(len, both(name, 0, end, PARTS[-1]))) == end


def test_transactions_leave_the_same_gaps(
    broker: Broker, topic: TopicFactory, both: Callable[..., list[RecordBatch]]
) -> None:
    """Aborted records and markers are not given, in ranges that begin and end among them."""
    source, name = random.Random(5), topic()
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name})
    producer.init_transactions(30)
    for turn in range(20):
        producer.begin_transaction()
        send(producer, name, source, source.choice((1, 5, 60)))
        if turn % 3 == 1:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    end = end_of(broker, name)
    whole = both(name, 0, end, PARTS[-1])
    assert 0 < sum(map(len, whole)) < end
    for _ in range(8):
        start = source.randrange(end)
        both(
            name,
            start,
            source.randrange(start + 1, end + 1),
            source.choice(PARTS),
            limits=(source.choice((1, 9)), 1 << 20),
        )
    assert sum(map(len, both(name, 0, end, PARTS[0], isolation="read_uncommitted"))) > sum(map(len, whole))


def test_compaction_leaves_the_same_gaps(both: Callable[..., list[RecordBatch]]) -> None:
    """Of each key the last record is left, tombstones among them, and ranges begin and end where nothing is."""
    source, name = random.Random(9), "compacted"
    with Broker(properties={"log.cleaner.enable": "true", "log.cleaner.backoff.ms": "100"}) as broker:
        config = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
        broker.create_topic(name, 1, config)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        for _ in range(6):  # a record begins the next segment, and the last one is never compacted
            for number in range(300):
                value = some_bytes(source, 500) if number % 3 else None
                producer.produce(name, value, b"%d" % source.randrange(40), headers=some_headers(source))
            assert producer.flush(120) == 0
            time.sleep(0.3)
        end, given, deadline = end_of(broker, name), 0, time.monotonic() + 60
        while True:
            given = sum(map(len, both(name, 0, end, PARTS[-1], servers=broker.bootstrap_servers)))
            if given < end // 2:
                break
            assert time.monotonic() < deadline, f"{given} of {end} records are left"
            time.sleep(0.5)
        for _ in range(8):
            start = source.randrange(end)
            wanted = source.randrange(start + 1, end + 1)
            both(
                name,
                start,
                wanted,
                source.choice(PARTS),
                limits=(source.choice((1, 9)), 1 << 20),
                servers=broker.bootstrap_servers,
            )


def test_large_records_come_in_batches_of_their_own(
    topic: TopicFactory, broker: Broker, both: Callable[..., list[RecordBatch]]
) -> None:
    """One that is larger than a batch may be, between small ones."""
    name = topic(config={"max.message.bytes": str(12 << 20)})
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "message.max.bytes": 12 << 20})
    sizes = (10, 5 << 20, 10, 10, 4 << 20, (4 << 20) - 10, 10, 1, 9 << 20)
    for size in sizes:
        producer.produce(name, bytes(size), b"key")
        assert producer.flush(120) == 0
    batches = both(name, 0, len(sizes), PARTS[-1])
    assert [len(one) for one in batches] == [1, 1, 2, 1, 1, 2, 1]


def test_a_hundred_thousand_records(
    topic: TopicFactory, broker: Broker, both: Callable[..., list[RecordBatch]]
) -> None:
    """Full batches of ten thousand, and the rest."""
    name = topic()
    broker.produce(name, ((b"%d" % number, b'{"id": %d}' % number) for number in range(100_003)), 0)
    assert [len(one) for one in both(name, 0, 100_003, PARTS[3])] == [10_000] * 10 + [3]


def test_ranges_one_after_the_other(
    topic: TopicFactory, producer: Producer, broker: Broker, both: Callable[..., list[RecordBatch]]
) -> None:
    """A consumer goes on where the last range ended, goes back, and comes again to a topic that it had left."""
    source, names = random.Random(7), [topic(), topic()]
    for name in names:
        send(producer, name, source, 3_000)
    at = [0, 0]
    for _ in range(30):
        which = source.randrange(2)
        start = source.choice((at[which], source.randrange(2_000)))
        end = min(3_000, start + source.choice((1, 50, 900)))
        assert sum(map(len, both(names[which], start, end, source.choice(PARTS)))) == end - start
        at[which] = end % 3_000


def test_events_stop_as_before(
    topic: TopicFactory, producer: Producer, broker: Broker, both: Callable[..., list[RecordBatch]]
) -> None:
    """Offsets that retention deleted raise OffsetsLost."""
    name = topic()
    send(producer, name, random.Random(1), 50)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_records([TopicPartition(name, 0, 20)])[TopicPartition(name, 0)].result(20)
    with pytest.raises(OffsetsLost):
        both(name, 10, 40, PARTS[0])


def test_topics_are_described_as_confluent_kafka_describes_them(broker: Broker, topic: TopicFactory) -> None:
    """Ids and partitions, also of topics that are not there and that cannot be; and where no broker answers."""
    assert native.why_not() == ""
    names = [topic(partitions=7), topic(partitions=1), "not-there", "no name!"]
    for servers, timeout_s in ((broker.bootstrap_servers, 10.0), ("127.0.0.1:1", 0.5)):
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        found = []
        for describe in (described, described_in_c):
            answers = describe(admin, names, timeout_s)
            failures = {name: one.exception(20.0) for name, one in answers.items()}
            found.append(
                {
                    name: one.result() if (error := failures[name]) is None else error.args[0].code()
                    for name, one in answers.items()
                }
            )
        by_client, in_c = found
        assert in_c == by_client


@pytest.fixture(scope="module")
def wide_topic(broker: Broker) -> str:
    """1,200 topic-partitions: records in some, two of them in transactions, of which one stays open."""
    assert native.is_used()  # which also loads what is asked in C
    name = f"wide-{random.randrange(1 << 40):x}"
    broker.create_topic(name, 1_200)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(300):
        producer.produce(name, b"v", partition=number * 4, timestamp=900 + number)
    assert producer.flush(120) == 0
    for partition, commits in ((1, True), (2, False)):
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"{name}-{partition}"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(name, b"v", partition=partition, timestamp=2_000)
        assert producer.flush(120) == 0
        if commits:
            producer.commit_transaction(30)
    return name


def listed(
    servers: str, keys: list[tuple[str, int]], spec: OffsetSpec, isolation: str, timeout_ms: int = 10_000
) -> Any:
    """What is found of these, and why some are not; or the error."""
    client = {"bootstrap.servers": servers, "log_level": 0, "default.api.timeout.ms": timeout_ms}
    cluster = KafkaCluster(KafkaSettings((), None, "connect-native", client, isolation_level=isolation))
    try:
        return cluster._list(keys, spec, cluster._isolation, least=NONE_SO_LATE), dict(cluster._reasons)
    except KafkaFailed as error:
        return type(error), str(error), error.topic_partition


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize("spec", [OffsetSpec.earliest(), OffsetSpec.latest(), OffsetSpec.for_timestamp(1_000)])
@pytest.mark.parametrize("count", [MANY, 999, 1_200])
def test_offsets_are_listed_as_confluent_kafka_lists_them(
    broker: Broker, wide_topic: str, monkeypatch: pytest.MonkeyPatch, spec: OffsetSpec, isolation: str, count: int
) -> None:
    """Also by timestamp, of topic-partitions without records and behind an open transaction, with leaders' epochs."""
    keys = [(wide_topic, number) for number in range(count)]
    found = []
    for in_c in (True, False):
        monkeypatch.setattr(native_admin, "is_asked", lambda admin, in_c=in_c: in_c)
        found.append(listed(broker.bootstrap_servers, keys, spec, isolation))
    assert found[0] == found[1]
    assert found[0][0].keys() == set(keys)


def test_what_has_no_offset_fails_as_for_confluent_kafka(
    broker: Broker, topic: TopicFactory, wide_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number that the topic does not have, a topic that is not there, a broker that does not answer."""
    some, number = [(wide_topic, number) for number in range(MANY)], (topic(), 7)
    asked = [
        (broker.bootstrap_servers, [*some, number], 60_000, (TopicGone, number)),
        (broker.bootstrap_servers, [("not-there", one) for one in range(MANY)], 3_000, (BrokerAway, ("not-there", 0))),
        ("127.0.0.1:1", some, 3_000, (BrokerAway, some[0])),
    ]
    for in_c in (True, False):
        monkeypatch.setattr(native_admin, "is_asked", lambda admin, in_c=in_c: in_c)
        for servers, keys, timeout_ms, expected in asked:
            kind, text, key = listed(servers, keys, OffsetSpec.latest(), "read_committed", timeout_ms)
            assert (kind, key) == expected, text
