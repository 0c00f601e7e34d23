"""Records that Kafka has and that cannot be processed: too large, or in a compressed batch that is damaged."""

import json
import struct
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from integration.conftest import TopicFactory
from integration.harness import Sink
from integration.letters import letters
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.errors import InvalidRecord
from parquet_sink.kafka import native
from parquet_sink.kafka.range_reader import RangeReader, require_values
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.kafka.several_ranges import read_together
from parquet_sink.model.events import RecordsSetAside
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import RecordParts
from parquet_sink.model.rejected import VALUE_NOT_KEPT
from parquet_sink.worker.loop.status import Status
from tests.messages import assert_says, saying

LIMIT = 100_000
CODECS = ("zstd", "gzip", "snappy", "lz4")


def produce(broker: Broker, topic: str, values: list[bytes], codec: str = "none", **header: bytes) -> None:
    """Send the values as one batch, in order."""
    options = {"linger.ms": 200, "compression.type": codec, "message.max.bytes": 8_000_000, "batch.size": 8_000_000}
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **options})
    for value in values:
        producer.produce(topic, value, b"key", headers=dict(header))
    assert producer.flush(30) == 0


def order(number: int, note: int = 0) -> bytes:
    """Return an order with a note of so many characters."""
    return json.dumps({"n": number, "note": "x" * note}).encode()


def notes(broker: Broker, topic: str) -> list[tuple[bytes | None, bytes | None, dict[str, Any]]]:
    """Return key and value of each dead letter, and what its header says of the value that is not kept."""
    found = letters(broker, topic)
    return [(one.key(), one.value(), json.loads(dict(one.headers() or [])[VALUE_NOT_KEPT])) for one in found]


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_record_above_the_bound_stops_the_connector_and_what_is_before_it_is_delivered(
    sink: Sink, broker: Broker, topic: TopicFactory, codec: str
) -> None:
    """The failure names topic-partition, offset, size, the key, and the command that passes the record."""
    name = topic(config={"max.message.bytes": "8000000"})
    values = [order(0), order(1, LIMIT), order(2)]
    produce(broker, name, values, codec)
    run = sink.drain(name, record_max_bytes=LIMIT)
    assert run.status is Status.FAILED
    size = f"{len(values[1]) + 3:,} bytes"
    place = f"topic {name}, topic-partition 0, offset 1"
    assert_says(run.failure.message, place, size, "[connect.ems.record.max.bytes]=100000")
    assert_says(run.failure.message, f"--topic {name}:0", "--to-offset 2", "errors.tolerance=all")
    assert ([row["n"] for row in sink.rows()], sink.offsets(name)) == ([0], [1])


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_record_above_the_bound_is_diverted_without_its_value(
    sink: Sink, broker: Broker, topic: TopicFactory, codec: str
) -> None:
    """With errors.tolerance=all what follows is delivered; a dead letter says which record it was, its size and why."""
    name, dead = topic(config={"max.message.bytes": "8000000"}), topic()
    values = [order(0, LIMIT // 2), order(1, LIMIT), order(2), order(3, 5 * LIMIT)]
    produce(broker, name, values, codec)
    tolerant = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": dead}
    run = sink.drain(name, tolerant, record_max_bytes=LIMIT)
    assert (run.status, sink.offsets(name)) == (Status.DONE, [4])
    assert [row["n"] for row in sink.rows()] == [0, 2]
    found = notes(broker, dead)
    assert all(key == b"key" for key, _, _ in found)
    assert [value for _, value, _ in found] == [b"value not kept: " + note["reason"].encode() for _, _, note in found]
    place = {"topic": name, "partition": 0}
    places = [{**place, "offset": n, "next_offset": n + 1, "bytes": len(values[n]) + 3} for n in (1, 3)]
    assert [{key: note[key] for key in places[0]} for _, _, note in found] == places
    assert "[connect.ems.record.max.bytes]=100000" in found[0][2]["reason"]


@pytest.fixture(params=["in C", "by the client"])
def in_c(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Have records read in one of both ways."""
    assert native.why_not() == ""  # which loads it
    monkeypatch.setattr(native, "is_used", lambda: request.param == "in C")
    return native.is_used()


@pytest.mark.usefixtures("in_c")
@pytest.mark.parametrize("parts", [RecordParts(), RecordParts(single=True), RecordParts(headers=True, keys=True)])
def test_the_size_of_a_record_is_counted_alike_however_it_is_read(
    broker: Broker, topic: TopicFactory, parts: RecordParts
) -> None:
    """In C, by the client, and together with other small ranges: value and key count, and headers that are used."""
    names = topic(), topic()
    for name in names:
        for size in (990, 997, 998, 1_100):
            produce(broker, name, [b"v" * size], h=b"123456")
    client = {"bootstrap.servers": broker.bootstrap_servers}
    kafka = KafkaSettings(names, None, "connect-sizes", client, record_max_bytes=1_000)
    found = [list(RangeReader(kafka, names[0], 0, 0, 4, parts=parts).batches())]
    planned = [PlannedRange(name, 0, 0, 4, "records") for name in names]
    found.append(read_together(kafka, planned, parts)[names[0], 0])
    sizes = [[one.unread.size for one in batches if one.unread is not None] for batches in found]
    assert sizes == [[1_007, 1_008, 1_110] if parts.headers else [1_001, 1_103]] * 2


class Table:
    """CRC-32C, byte by byte: what Kafka has at the head of each batch."""

    def __init__(self) -> None:
        self._table = []
        for byte in range(256):
            for _ in range(8):
                byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)  # noqa: PLW2901
            self._table.append(byte)

    def checksum(self, data: bytes) -> int:
        """Return the checksum."""
        crc = 0xFFFFFFFF
        for byte in data:
            crc = self._table[(crc ^ byte) & 255] ^ (crc >> 8)
        return crc ^ 0xFFFFFFFF


def damage(path: Path, offset: int, *, checksum: bool) -> None:
    """Alter the compressed records of the batch that begins at the offset. checksum: make it fit again."""
    data, at = bytearray(path.read_bytes()), 0
    while (first := struct.unpack_from(">q", data, at)[0]) != offset:
        at += 12 + struct.unpack_from(">i", data, at + 8)[0]
    assert first == offset
    end = at + 12 + struct.unpack_from(">i", data, at + 8)[0]
    for index in range(at + 65, end):
        data[index] ^= 0x5A
    if checksum:
        struct.pack_into(">I", data, at + 17, Table().checksum(bytes(data[at + 21 : end])))
    path.write_bytes(data)


@pytest.fixture(scope="module")
def damaged() -> Iterator[Broker]:
    """A broker with a topic for each codec, in which the second and third of four batches, of five records, are bad."""
    with Broker() as broker:
        for name in (*CODECS, "crc"):
            broker.create_topic(name)
            for batch in range(4):
                produce(broker, name, [order(5 * batch + n, 100) for n in range(5)], "gzip" if name == "crc" else name)
        broker.stop()
        for name in (*CODECS, "crc"):
            (path,) = broker.data_dir.rglob(f"{name}-0/*.log")
            for offset in (5, 10):
                damage(path, offset, checksum=name != "crc")
        broker.start()
        yield broker


@pytest.mark.usefixtures("in_c")
@pytest.mark.parametrize("name", [*CODECS, "crc"])
def test_reading_goes_on_behind_a_damaged_batch(damaged: Broker, name: str) -> None:
    """Each damaged batch is one record that says which offsets it stands for, wherever the range begins and ends."""
    kafka = KafkaSettings((name,), None, "connect-damaged", {"bootstrap.servers": damaged.bootstrap_servers})

    def read(start: int, end: int) -> list[tuple[list[int], int | None]]:
        batches = RangeReader(kafka, name, 0, start, end).batches()
        return [(one.offsets.to_pylist(), one.unread and one.unread.next_offset) for one in batches]

    assert read(0, 20) == [([0, 1, 2, 3, 4], None), ([5], 10), ([10], 15), ([15, 16, 17, 18, 19], None)]
    assert read(3, 8) == [([3, 4], None), ([5], 8)]
    assert read(7, 13) == [([7], 10), ([10], 13)]
    assert read(14, 16) == [([14], 15), ([15], None)]
    assert read(0, 5) == [([0, 1, 2, 3, 4], None)]
    reader = RangeReader(kafka, name, 0, 4, 20)
    with pytest.raises(InvalidRecord, match=saying("offset 5:", "offsets 5 to 9", "damaged", "to 10 with")):
        list(require_values(reader.batches()))


@pytest.mark.parametrize("tolerance", ["all", "none"])
def test_the_error_policy_decides_about_a_damaged_batch(
    spark: SparkSession, damaged: Broker, target: TargetProcess, tmp_path: Path, tolerance: str
) -> None:
    """It is diverted with its offsets, and the connector goes on behind it; or it stops, with what to type."""
    sink, dead = Sink(spark, damaged, target, tmp_path), f"dead-{uuid.uuid4().hex[:8]}"
    damaged.create_topic(dead)
    more = {"errors.tolerance": tolerance, "errors.deadletterqueue.topic.name": dead}
    run = sink.drain("zstd", more)
    numbers = [row["n"] for row in sink.rows()]
    if tolerance == "none":
        assert (run.status, numbers, sink.offsets("zstd")) == (Status.FAILED, [0, 1, 2, 3, 4], [5])
        assert_says(run.failure.message, "offsets 5 to 9", "--topic zstd:0", "--to-offset 10", "errors.tolerance=all")
        return
    assert (run.status, sink.offsets("zstd")) == (Status.DONE, [20])
    assert numbers == [0, 1, 2, 3, 4, 15, 16, 17, 18, 19]
    found = [(note["offset"], note["next_offset"]) for _, _, note in notes(damaged, dead)]
    assert found == [(5, 10), (10, 15)]
    assert sum(one.count for one in run.events if isinstance(one, RecordsSetAside)) == 2


def test_a_batch_that_inflates_too_far_is_diverted(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """A batch in zstd above the reader's bound has the same way out, and its reason names the key of the bound."""
    name, dead = topic(config={"max.message.bytes": "8000000"}), topic()
    produce(broker, name, [order(0)])
    produce(broker, name, [order(n, 2_000_000) for n in range(1, 4)], "zstd")
    produce(broker, name, [order(4)])
    more = {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": dead,
        "consumer.override.fetch.max.bytes": "1000000",
        "consumer.override.receive.message.max.bytes": "1001000",
    }
    run = sink.drain(name, more)
    assert (run.status, [row["n"] for row in sink.rows()]) == (Status.DONE, [0, 4])
    ((_, _, note),) = notes(broker, dead)
    assert (note["offset"], note["next_offset"]) == (1, 4)
    assert "[consumer.override.receive.message.max.bytes]=1001000" in note["reason"]
