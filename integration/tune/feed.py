"""Produces the loads at their moments, and keeps when each record arrived."""

import threading
import time
from collections.abc import Sequence

from confluent_kafka import Message, Producer

from integration.bench import load as bench_load
from integration.tune.loads import SETTLE_S, MeasuredLoad
from parquet_sink.errors import KafkaFailed

Stamps = dict[tuple[int, int], float]
"""Epoch seconds by topic-partition and offset."""
PATIENCE_S = 60.0


class Feed:
    """Of all loads at once, from `began` (epoch seconds) for so many seconds."""

    def __init__(
        self,
        servers: str,
        loads: Sequence[MeasuredLoad],
        seconds: float,
        values: Sequence[bytes],
        *,
        first_offset: int = 0,
    ) -> None:
        """first_offset: what topic-partitions hold already."""
        self._first = first_offset
        self._servers, self._loads, self._seconds, self._values = servers, loads, seconds, values
        self.stamps: dict[str, Stamps] = {one.name: {} for one in loads}
        self._failures: list[str] = []

    def run(self, began: float, topics: dict[str, str]) -> None:
        """Produces everything, backlogs in threads of their own. topics: by name of the load. Raises KafkaFailed."""
        threads = [
            threading.Thread(target=self._backlog, args=(began, one, topics[one.name]), daemon=True)
            for one in self._loads
            if one.backlog
        ]
        for thread in threads:
            thread.start()
        self._moments(began, topics)
        for thread in threads:
            thread.join(PATIENCE_S)
        if self._failures:
            raise KafkaFailed(f"{len(self._failures)} records were not taken: {self._failures[0]}")

    def _moments(self, began: float, topics: dict[str, str]) -> None:
        producer = Producer({"bootstrap.servers": self._servers, "linger.ms": 5, "log_level": 3})
        wanted = sorted(
            (at, one.name, partition) for one in self._loads for at, partition in one.moments(self._seconds)
        )
        for number, (at, name, partition) in enumerate(wanted):
            while (wait := began + at - time.time()) > 0:
                producer.poll(min(wait, 0.05))
            producer.produce(
                topics[name],
                self._values[number % len(self._values)],
                partition=partition,
                on_delivery=lambda error, message, name=name: self._delivered(name, error, message),
            )
        if producer.flush(PATIENCE_S):
            raise KafkaFailed(f"Not all records were taken within {PATIENCE_S:.0f} s.")

    def _delivered(self, name: str, error: object, message: Message) -> None:
        if error is not None:
            self._failures.append(str(error))
            return
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        self.stamps[name][partition, offset] = message.timestamp()[1] / 1000

    def _backlog(self, began: float, one: MeasuredLoad, topic: str) -> None:
        """Records of a transaction are there all at once, when it is committed."""
        try:
            with bench_load.held_back(self._servers, topic, one.partitions, one.backlog, self._values) as producer:
                time.sleep(max(began + SETTLE_S - time.time(), 0))
                at = time.time()
                producer.commit_transaction(PATIENCE_S)
                at = (at + time.time()) / 2
        except Exception as error:  # noqa: BLE001 - told by `run`, in the thread that waits
            self._failures.append(str(error))
            return
        self.stamps[one.name] |= {(p, offset): at for p in range(one.partitions) for offset in self._offsets(one)}

    def _offsets(self, one: MeasuredLoad) -> range:
        return range(self._first, self._first + one.backlog)
