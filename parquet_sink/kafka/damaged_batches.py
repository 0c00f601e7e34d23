"""Compressed batches of records that cannot be read: which offsets they have, so that reading can go on behind them.

The client says where such a batch begins, not where it ends. Asked for an offset in it, the broker sends the same
batch again; asked for one behind it, another. So its end is found by halves: ten requests for 1,000 records.
"""

import time
from typing import Final

from parquet_sink.errors import BrokerAway
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.consumer_cache import CachedConsumer, consumers
from parquet_sink.kafka.ranges_ahead import is_damage
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.process.threads import in_thread

POLL_S: Final = 0.5
ANSWER_S: Final = 30.0
_RECEIVE_MAX: Final = "receive.message.max.bytes"


class DamagedBatch:
    """A batch of records that the client cannot read. first: its first offset. said: the client's words."""

    def __init__(self, topic: str, partition: int, first: int, said: str) -> None:
        self._topic, self._partition, self._first, self._said = topic, partition, first, said

    def find_end(self, kafka: KafkaSettings, inside: int, limit: int) -> int:
        """Return the offset after the batch, at most `limit`. inside: an offset in it. Raise BrokerAway."""
        while limit - inside > 1:
            middle = (inside + limit) // 2
            cached = consumers.take(kafka, fresh=True)  # one that read a damaged batch may get no answer any more
            try:
                if self._has(cached, middle):
                    inside = middle
                else:
                    limit = middle
            finally:
                in_thread(cached.close)
        return limit

    def _has(self, cached: CachedConsumer, offset: int) -> bool:
        cached.assign(self._topic, self._partition, offset, in_c=False)
        deadline = time.monotonic() + ANSWER_S
        while time.monotonic() < deadline:
            for message in cached.consumer.consume(1, POLL_S):
                error = message.error()
                if error is None or error.code() == client_options.END_OF_PARTITION:
                    return False
                if is_damage(error):
                    return message.offset() == self._first
        raise BrokerAway(
            f"Topic {self._topic}, topic-partition {self._partition}: no answer about offset {offset}, which may be in "
            f"a damaged batch of records. Nothing is lost."
        ).at((self._topic, self._partition))

    def describe(self, first: int, next_offset: int, limit: str) -> str:
        """Return why the offsets [first, next_offset) cannot be read. limit: on a decompressed batch, in bytes."""
        offsets = f"offset {first}" if next_offset == first + 1 else f"offsets {first} to {next_offset - 1}"
        return (
            f"the batch of records with {offsets} is damaged, or larger than "
            f"[consumer.override.{_RECEIVE_MAX}]={limit} once it is decompressed ({self._said.rstrip('.')})"
        )
