"""What all rows share: broker, reference target, folder, certificates; and topics that remember their records."""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaError, Message, Producer

from integration.oracle.oracle import Oracle
from integration.oracle.records import KEYS, key_of, large_value_of, value_of
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess

FLUSH_S: Final = 120.0
STEP_S: Final = 0.02
Record = tuple[int, int, bytes, bytes]
"""partition, offset, key, value"""


@dataclass(frozen=True)
class World:
    """certificates: a folder as `certificates.make` fills it."""

    broker: Broker
    target: TargetProcess
    folder: Path
    certificates: Path


class Topic:
    """A topic, and every record that Kafka acknowledged in it.

    encode: the value as it is produced, None: as it is. first: number of the first record; new fields come with powers
    of two, and with them new files.
    """

    def __init__(
        self,
        broker: Broker,
        name: str,
        partitions: int = 1,
        config: dict[str, str] | None = None,
        *,
        encode: Callable[[bytes], bytes] | None = None,
        first: int = 0,
        transactional: bool = False,
    ) -> None:
        self.name, self.partitions, self.encode = name, partitions, encode
        self.next = first
        self._broker = broker
        self._records: list[Record] = []
        self._failure: str | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        options = {"linger.ms": 5, "enable.idempotence": True, "log_level": 0}
        own = {"transactional.id": name} if transactional else {}
        self._producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **options, **own})
        if transactional:
            self._producer.init_transactions(FLUSH_S)
        broker.create_topic(name, partitions, config)

    def produce(self, count: int, *, large: bool = False) -> None:
        """So many more records, acknowledged. Raises RuntimeError when Kafka does not take them."""
        for _ in range(count):
            self._send(large_value_of if large else value_of)
        self.flush()

    def transaction(self, count: int, *, commit: bool) -> None:
        """So many records, which all reach the broker; aborted, they do not count."""
        self._producer.begin_transaction()
        before = len(self._records)
        self.produce(count)
        if commit:
            self._producer.commit_transaction(FLUSH_S)
        else:
            self._producer.abort_transaction(FLUSH_S)
            del self._records[before:]

    def feed(self, per_second: float) -> None:
        """Produces in a thread until `flush`."""
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, args=(per_second,), name=f"feed {self.name}", daemon=True)
        self._thread.start()

    def flush(self) -> None:
        """Ends `feed`, and waits until everything is acknowledged."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._producer.flush(FLUSH_S):
            self._failure = self._failure or f"Kafka did not acknowledge everything within {FLUSH_S:.0f} s"
        if self._failure:
            raise RuntimeError(f"topic {self.name}: {self._failure}")

    def grow(self, partitions: int) -> None:
        """Records go to so many topic-partitions, once the producer knows them."""
        deadline = time.monotonic() + FLUSH_S
        while len(self._producer.list_topics(self.name, timeout=FLUSH_S).topics[self.name].partitions) < partitions:
            if time.monotonic() > deadline:
                raise RuntimeError(f"topic {self.name} did not grow to {partitions} topic-partitions")
            time.sleep(STEP_S)
        self.partitions = partitions

    def forget(self, which: Callable[[Record], bool] = lambda _: True) -> int:
        """Records that Kafka does not have any more: none of them may be asked for. How many there were."""
        before = len(self._records)
        self._records = [record for record in self._records if not which(record)]
        return before - len(self._records)

    @property
    def records(self) -> list[Record]:
        return list(self._records)

    def ends(self) -> dict[int, int]:
        """The offset after the last acknowledged record, by partition."""
        found = dict.fromkeys(range(self.partitions), 0)
        for partition, offset, _, _ in self.records:
            found[partition] = max(found.get(partition, 0), offset + 1)
        return found

    def oracle(self) -> Oracle:
        """A fresh oracle that knows all records."""
        made = Oracle()
        for partition, offset, key, value in self.records:
            made.produced(partition, offset, key, value)
        return made

    def _run(self, per_second: float) -> None:
        began, sent = time.monotonic(), 0
        while not self._stop.wait(STEP_S):
            while sent < (time.monotonic() - began) * per_second and not self._stop.is_set():
                self._send(value_of)
                sent += 1
            self._producer.poll(0)

    def _send(self, values: Callable[[int], bytes | None]) -> None:
        """The next record that is no tombstone: these are the affair of other tests."""
        value = values(self.next)
        if value is None:
            self.next += 1
            value = values(self.next)
        assert value is not None
        number, self.next = self.next, self.next + 1
        partition = number * 7919 % KEYS % self.partitions

        def told(error: KafkaError | None, message: Message) -> None:
            self._told(value, error, message)

        while True:
            try:
                sent = value if self.encode is None else self.encode(value)
                self._producer.produce(self.name, sent, key_of(number), partition, told)
                break
            except BufferError:
                self._producer.poll(0.1)

    def _told(self, value: bytes, error: KafkaError | None, message: Message) -> None:
        offset, partition, key = message.offset(), message.partition(), message.key()
        if error is not None or offset is None or partition is None or not isinstance(key, bytes):
            self._failure = self._failure or str(error)
            return
        self._records.append((partition, offset, key, value))


def keep_offsets(offsets: Iterable[int]) -> Callable[[Record], bool]:
    """For `forget`: everything but these offsets of partition 0."""
    kept = set(offsets)
    return lambda record: record[1] not in kept
