"""Records at random, and batches of them compared, for tests of readers."""

import random
import time

from confluent_kafka import Producer

from parquet_sink.model.records import RecordBatch, RecordParts

PARTS = (
    RecordParts(),
    RecordParts(keys=True),
    RecordParts(headers=True, timestamp_types=True),
    RecordParts(single=True),
    RecordParts(keys=True, headers=True, single=True, timestamp_types=True),
)
READABLE = ("", "a", "größe", "name", "x" * 300, "\U0001f600")


def assert_equal(one: RecordBatch, other: RecordBatch, parts: RecordParts) -> None:
    """Arrays, their types and validity, and what single records are asked for."""
    for name in ("offsets", "timestamps", "values", "keys", "headers", "timestamp_types"):
        ours, theirs = getattr(one, name), getattr(other, name)
        assert (ours is None) == (theirs is None), name
        if ours is not None:
            ours.validate(full=True)
            assert ours.type == theirs.type
            assert ours.equals(theirs), name
    if parts.single:
        for index in range(len(one)):
            assert one.key_of(index) == other.key_of(index)
            assert one.headers_of(index) == other.headers_of(index)
            assert one.timestamp_type_of(index) == other.timestamp_type_of(index)


def some_bytes(source: random.Random, largest: int) -> bytes | None:
    """None, none, one, some or many."""
    size = source.choice((None, 0, 1, source.randrange(200), source.randrange(largest)))
    return None if size is None else source.randbytes(size)


def some_headers(source: random.Random) -> list[tuple[str, bytes | None]]:
    """Names that can be read; values may be null."""
    count = source.choice((0, 0, 1, 3, 20))
    return [(source.choice(READABLE), some_bytes(source, 100)) for _ in range(count)]


def send(producer: Producer, topic: str, source: random.Random, count: int, largest: int = 2_000) -> None:
    """Waits until the broker has all of them. Their times are those of today: retention would delete older ones."""
    now_ms = int(time.time() * 1_000)
    for number in range(count):
        headers = some_headers(source)
        producer.produce(
            topic, some_bytes(source, largest), some_bytes(source, 50), timestamp=now_ms + number, headers=headers
        )
        if number % 500 == 0:
            producer.poll(0)
    assert producer.flush(30) == 0
