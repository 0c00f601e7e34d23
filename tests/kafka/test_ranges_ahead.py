"""When ranges that are fetched ahead are left to consumers of their own."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError

from parquet_sink.kafka import ranges_ahead
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.consumer_cache import CachedConsumer, ConsumerCache
from parquet_sink.kafka.native_batches import Reading
from parquet_sink.kafka.ranges_ahead import AHEAD_RANGES, AHEAD_RECORDS, POLL_S, QUIET_S, RangesAhead
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.ranges import PlannedRange
from tests.factories import Clock
from tests.kafka.messages import Message

KAFKA = KafkaSettings(topics=("orders",), group="connect-orders", client={"bootstrap.servers": "localhost:9092"})
NOTHING = Reading(heard=False)
SOME = Reading(heard=True, full=True)


class Consumer:
    """Notes what it has, and gives what waits in its main queue."""

    def __init__(self) -> None:
        self.assigned: set[int] = set()
        self.most = 0
        self.main: list[Message] = []

    def incremental_assign(self, where: Sequence[Any]) -> None:
        self.assigned |= {one.partition for one in where}
        self.most = max(self.most, len(self.assigned))

    def incremental_unassign(self, where: Sequence[Any]) -> None:
        self.assigned -= {one.partition for one in where}

    def unassign(self) -> None:
        self.assigned = set()

    def consume(self, count: int, timeout: float) -> list[Message]:
        given, self.main = self.main, []
        return given

    def close(self) -> None:
        """Nothing is open."""


class Stand:
    """A consumer whose queues give these readings, after a poll where nothing is heard."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.consumer, self.clock = Consumer(), Clock()
        self.readings: list[Reading] = []
        cache, stand = ConsumerCache(), self
        cache._sweeping.set()

        class Queue:
            def __init__(self, consumer: object, topic: str, partition: int) -> None:
                self.close: Callable[[], None] = lambda: None

            def read(self, builder: object, end: int, timeout_s: float) -> Reading:
                found = stand.readings.pop(0)
                if not found.heard:
                    stand.clock.sleep(timeout_s)
                return found

        patch.setattr(cache, "take", lambda *given, **how: CachedConsumer(self.consumer, 1))  # type: ignore[arg-type]
        for name, double in (("consumers", cache), ("NativeQueue", Queue), ("time", self.clock)):
            patch.setattr(ranges_ahead, name, double)

    def read(self, ahead: RangesAhead, reading: Reading) -> Reading | None:
        """What comes of this one."""
        self.readings = [reading]
        return ahead.read(None, 100)  # type: ignore[arg-type]


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch) -> Stand:
    """Of one test."""
    return Stand(monkeypatch)


def ranges_of(count: int, records: int = 100) -> list[PlannedRange]:
    """Of one topic-partition each."""
    return [PlannedRange("orders", number, 0, records, "age") for number in range(count)]


def begun(ahead: RangesAhead, number: int, records: int = 100) -> bool:
    """Of `ranges_of`."""
    return ahead.begin("orders", number, 0, records)


def test_only_waiting_for_kafka_is_silence(stand: Stand) -> None:
    """What a task takes to write what came is none, however long; who waits in vain goes on alone, as do those left."""
    ahead = RangesAhead(KAFKA, ranges_of(3))
    assert begun(ahead, 0)
    for _ in range(3):
        assert stand.read(ahead, SOME) == SOME
        stand.clock.sleep(2 * QUIET_S)
        assert stand.read(ahead, NOTHING) == NOTHING
    waits = list(iter(lambda: stand.read(ahead, NOTHING), None))
    assert len(waits) == pytest.approx(QUIET_S / POLL_S, abs=3)
    assert not begun(ahead, 1)
    ahead.close()
    assert not stand.consumer.assigned


def test_a_record_in_the_main_queue_is_a_gap(stand: Stand) -> None:
    """It is missing in the queue that it belongs to: nothing of any queue is believed."""
    ahead = RangesAhead(KAFKA, ranges_of(3))
    assert begun(ahead, 0)
    stand.consumer.main = [Message(-1, None, KafkaError(KafkaError._ALL_BROKERS_DOWN))]
    assert stand.read(ahead, SOME) == SOME
    stand.consumer.main = [Message(7, b"v")]
    assert stand.read(ahead, SOME) is None
    assert not begun(ahead, 1)


def test_trouble_is_of_one_range(stand: Stand) -> None:
    """The end of the topic-partition, below the range's or there, and what passes, are none."""
    ahead = RangesAhead(KAFKA, ranges_of(3))
    assert begun(ahead, 0)
    end = KafkaError(client_options.END_OF_PARTITION)
    for offset in (99, 100):
        found = stand.read(ahead, Reading(heard=True, event=(end, offset)))
        assert found is not None
        assert found.at_end == (offset == 100)
    gone = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    assert stand.read(ahead, Reading(heard=True, event=(gone, 0))) is None
    assert begun(ahead, 1)


@pytest.mark.parametrize("records", [1, AHEAD_RECORDS // 5, 10 * AHEAD_RECORDS])
def test_what_is_ahead_is_bounded(stand: Stand, records: int) -> None:
    """In ranges and in records; the next one is ahead in any case, and each has its turn once, in order."""
    count, most = 50, max(2, min(AHEAD_RANGES, AHEAD_RECORDS // records))
    ahead = RangesAhead(KAFKA, ranges_of(count, records))
    for number in range(0, count, 2):
        assert begun(ahead, number, records)
        assert {number, min(number + 1, count - 1)} <= stand.consumer.assigned
        assert not begun(ahead, number, records)
    assert stand.consumer.most == most
    assert not begun(ahead, 1, records)
