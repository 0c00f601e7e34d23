"""The id of the Kafka cluster of the worker file, asked for once it is wanted and kept once it is known."""

import threading
import time
from collections.abc import Callable
from typing import Final

from parquet_sink.errors import SinkError
from parquet_sink.kafka.group import manual_offsets
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.worker.herder.errors import TimedOut

AGAIN_S: Final = 10.0
"""How long it is remembered that no broker answered: who asks for it again and again does not wait each time."""


class ClusterId:
    """May be asked by several threads; one of them asks Kafka. clock: seconds."""

    def __init__(
        self,
        brokers: KafkaSettings,
        ask: Callable[[KafkaSettings], str | None] = manual_offsets.cluster_id,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._brokers, self._ask, self._clock = brokers, ask, clock
        self._guard = threading.Lock()
        self._known: str | None = None
        self._failed: tuple[float, str] | None = None

    def get(self) -> str:
        """Raises TimedOut when no broker answers, or did not some seconds ago."""
        with self._guard:
            if self._known is not None:
                return self._known
            if self._failed is not None and self._clock() - self._failed[0] < AGAIN_S:
                raise TimedOut(self._failed[1])
            try:
                self._known = self._ask(self._brokers) or ""
            except SinkError as error:
                self._failed = self._clock(), f"The id of the Kafka cluster is not known: {error}"
                raise TimedOut(self._failed[1]) from None
            return self._known
