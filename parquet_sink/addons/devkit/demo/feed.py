"""Producing the orders: a backlog as fast as it goes, then the rest evenly over some seconds. A thread of its own."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Final

from confluent_kafka import KafkaError, Message, Producer

from parquet_sink.addons.devkit.demo.expected import Delivered
from parquet_sink.addons.devkit.demo.orders import Change, changes
from parquet_sink.errors import DemoFailed

FLUSH_S: Final = 30.0
_BATCH: Final = 500
_TICK_S: Final = 0.05


class Feed:
    """Sends `backlog` changes when started, and `trickle` more over `duration_s` seconds after `go_on()`.

    What Kafka acknowledged is kept: `last` holds the last value of each order, `deleted` the orders whose last record
    has none, `ends` the records per topic-partition. Read these after `join()`.
    """

    def __init__(
        self, bootstrap_servers: str, topic: str, *, seed: int, backlog: int, trickle: int, duration_s: float
    ) -> None:
        self.topic, self.backlog, self.trickle, self._duration_s = topic, backlog, trickle, duration_s
        self.last: dict[int, Delivered] = {}
        self.ends: Counter[int] = Counter()
        self.deleted: set[int] = set()
        self.live_since_ms: int | None = None
        self._changes = changes(seed, backlog + trickle)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "enable.idempotence": True,  # the order of an order's changes is kept, whatever happens
                "linger.ms": 5,
                "compression.type": "lz4",
                "log_level": 0,
            }
        )
        self._acknowledged, self._error = 0, ""
        self._backlog_sent, self._go, self._stop = threading.Event(), threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="orders", daemon=True)

    @property
    def produced(self) -> int:
        """Records that Kafka has acknowledged."""
        return self._acknowledged

    @property
    def total(self) -> int:
        return self.backlog + self.trickle

    @property
    def backlog_sent(self) -> bool:
        return self._backlog_sent.is_set()

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def go_on(self) -> None:
        """Let the trickle begin."""
        self._go.set()

    def check(self) -> None:
        """Raises DemoFailed when a record was not accepted by Kafka."""
        if self._error:
            raise DemoFailed(f"Topic {self.topic}: Kafka did not accept a record: {self._error}")

    def stop(self) -> None:
        """End early, and wait for the thread."""
        self._stop.set()
        self._go.set()
        if self._thread.ident is not None:
            self._thread.join(FLUSH_S)

    def _run(self) -> None:
        try:
            self._send_all(islice(self._changes, self.backlog))
            self._flush()
            self._backlog_sent.set()
            self._go.wait()
            self.live_since_ms = time.time_ns() // 1_000_000
            self._send_evenly()
            self._flush()
        except Exception as error:  # noqa: BLE001 - a thread's last words: check() tells them to the demo
            self._error = self._error or str(error)

    def _send_all(self, some: Iterator[Change]) -> None:
        while not self._stop.is_set() and (batch := list(islice(some, _BATCH))):
            for change in batch:
                self._send(change)
            self._producer.poll(0)

    def _send_evenly(self) -> None:
        begun, sent = time.monotonic(), 0
        while sent < self.trickle and not self._stop.wait(_TICK_S):
            share = min((time.monotonic() - begun) / max(self._duration_s, _TICK_S), 1.0)
            due = round(share * self.trickle) - sent
            self._send_all(islice(self._changes, due))
            sent += due

    def _send(self, change: Change) -> None:
        while not self._stop.is_set():
            try:
                self._producer.produce(
                    self.topic, change.value, change.key, on_delivery=partial(self._delivered, change)
                )
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    def _flush(self) -> None:
        unsent = 0 if self._stop.is_set() else self._producer.flush(FLUSH_S)
        if unsent:
            self._error = self._error or f"{unsent} records were not acknowledged within {FLUSH_S:.0f} s"

    def _delivered(self, change: Change, error: KafkaError | None, message: Message) -> None:
        partition, offset, timestamp_ms = message.partition(), message.offset(), message.timestamp()[1]
        if error is not None or partition is None or offset is None:
            self._error = self._error or str(error)
            return
        self._acknowledged += 1
        self.ends[partition] = max(self.ends[partition], offset + 1)
        if change.value is None:
            self.last.pop(change.order_id, None)
            self.deleted.add(change.order_id)
        else:
            self.deleted.discard(change.order_id)
            self.last[change.order_id] = Delivered(change.value, partition, offset, timestamp_ms)
