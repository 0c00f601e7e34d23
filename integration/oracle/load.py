"""The load: a producer at a bounded rate, in a thread of its own, that tells the oracle what Kafka acknowledged."""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from confluent_kafka import KafkaError, Message, Producer

from integration.oracle.oracle import Oracle
from integration.oracle.records import DROP, KEYS, is_dropped, key_of, spoilt, value_of

STEP_S: Final = 0.02
LEAST_STEPS: Final = 2.0
"""A second, of a load that sends fewer records."""
FLUSH_S: Final = 60.0
POLL_EVERY: Final = 1_000


_OPTIONS: Final[dict[str, str | int | float | bool]] = {
    "linger.ms": 5,
    "enable.idempotence": True,
    "topic.metadata.refresh.interval.ms": 2_000,  # else a load may rest for minutes after a broker was restarted
    "log_level": 0,
}


class _Pace:
    """Records that are due since a moment: `before` of them were sent then."""

    def __init__(self, per_second: float, before: int = 0) -> None:
        self.per_second, self._before, self._began = per_second, before, time.monotonic()

    @property
    def step_s(self) -> float:
        """How long to wait for the next records."""
        return max(STEP_S, 1 / max(self.per_second, LEAST_STEPS))

    def due(self) -> int:
        """The number up to which records are to be sent by now."""
        return self._before + int((time.monotonic() - self._began) * self.per_second)


class Load:
    """Produces records 0, 1, 2 ... until `stop`. Records of one key share a topic-partition.

    per_second: records at most. at_least: how many `enough` asks for. value_of: the value by number.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str,
        partitions: int,
        oracle: Oracle,
        *,
        per_second: float,
        at_least: int,
        value_of: Callable[[int], bytes | None] = value_of,
    ) -> None:
        self._topic, self._partitions, self._oracle = topic, partitions, oracle
        self._at_least, self._value_of = at_least, value_of
        self._pace = _Pace(per_second)
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, **_OPTIONS})
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self.sent = 0
        self.failure: str | None = None

    def start(self) -> None:
        self._thread.start()

    @property
    def enough(self) -> bool:
        return self.sent >= self._at_least

    def stop(self) -> None:
        """Ends the load and waits until Kafka has acknowledged everything."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._producer.flush(FLUSH_S):
            self.failure = self.failure or f"Kafka did not acknowledge everything within {FLUSH_S:.0f} s"

    def more(self, records: int) -> None:
        """Produces some more after `stop`, without a bound on the rate."""
        for _ in range(records):
            self._send()
        self.stop()

    @property
    def per_second(self) -> float:
        """The rate now."""
        return self._pace.per_second

    def pace(self, per_second: float) -> None:
        """Another rate from now on."""
        self._pace = _Pace(per_second, self.sent)

    def _run(self) -> None:
        self.pace(self._pace.per_second)
        while not self._stop.wait(self._pace.step_s):
            due = self._pace.due()
            while self.sent < due and not self._stop.is_set():
                self._send()
                if not self.sent % POLL_EVERY:
                    self._producer.poll(0)
                    due = min(due, self._pace.due())  # a lower rate holds at once
            self._producer.poll(0)

    def _send(self) -> None:
        number, key = self.sent, key_of(self.sent)
        value = spoilt(number, self._value_of(number))
        partition, dropped = number * 7919 % KEYS % self._partitions, is_dropped(number)
        headers = [(DROP, b"1")] if dropped else None
        while True:
            try:
                told = partial(self._delivered, dropped)
                self._producer.produce(self._topic, value, key, partition, told, headers=headers)
                break
            except BufferError:
                self._producer.poll(0.1)
        self.sent += 1

    def _delivered(self, dropped: bool, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failure = self.failure or str(error)
            return
        offset, partition, key = message.offset(), message.partition(), message.key()
        assert offset is not None
        assert partition is not None
        assert isinstance(key, bytes)
        self._oracle.produced(partition, offset, key, message.value(), dropped=dropped)
