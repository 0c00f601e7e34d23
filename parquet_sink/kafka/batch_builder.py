"""Messages of the Kafka client to batches of records, cut at the same records however the messages came."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, islice
from operator import methodcaller
from typing import Final

from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, TIMESTAMP_NOT_AVAILABLE, Message

from parquet_sink.model.records import VALUES_ONLY, Header, RecordBatch, RecordParts

BATCH_RECORDS: Final = 10_000
"""Records in one batch: enough to be vectorised, few enough to keep workers small (20,000 cost 200 MB more in all)."""
POLL_RECORDS: Final = 1_000
"""Asked of the client at once. It makes its messages with Python's lock in hand, and who writes meanwhile waits for it:
with 10,000 a range took 3.1 to 3.7 µs of wall time per record, with 1,000 2.5 to 3.0."""
BATCH_BYTES: Final = 4 << 20
"""Bytes of values in one batch, and of keys and headers where they are read, unless a single record is larger."""
HEADER_BYTES: Final = 64
"""What a header counts beside its own bytes: as Python objects, thousands of empty ones are not small."""

message_offset: Callable[[Message], int] = Message.offset  # type: ignore[assignment]
"""Of a record: it always has one; only events may not."""
_TIMESTAMP_TYPES: Final = {
    TIMESTAMP_NOT_AVAILABLE: "NoTimestampType",
    TIMESTAMP_CREATE_TIME: "CreateTime",
    TIMESTAMP_LOG_APPEND_TIME: "LogAppendTime",
}
_value: Callable[[Message], bytes | None] = Message.value
_key: Callable[[Message], bytes | None] = Message.key
_client_headers: Callable[[Message], list[Header] | None] = methodcaller("headers")
"""Through C, which looks for an exception left behind; Python's own method call, once it is specialised, does not."""


class BatchBuilder:
    """Collects the records of one topic-partition, in offset order, and gives them in batches.

    A batch ends after BATCH_RECORDS records, or before the record that would take it past BATCH_BYTES. What is not
    read does not count, so batches are a function of where the range starts, of its records, and of `parts`.
    """

    def __init__(self, topic: str, partition: int, parts: RecordParts = VALUES_ONLY) -> None:
        self._topic, self._partition, self._parts = topic, partition, parts
        self._messages: list[Message] = []
        self._values: list[bytes | None] = []
        self._keys: list[bytes | None] = []
        self._headers: list[Sequence[Header] | None] = []
        self._bytes = 0

    @property
    def room(self) -> int:
        """How many records to ask for at most."""
        return BATCH_RECORDS - len(self._messages)

    def add(self, messages: list[Message]) -> None:
        """Takes the next records; no events."""
        values = list(map(_value, messages))
        self._messages += messages
        self._values += values
        self._bytes += _total(values)
        if self._parts.keys:
            keys = list(map(_key, messages))
            self._keys += keys
            self._bytes += _total(keys)
        if self._parts.headers:
            headers = list(map(headers_of, messages))
            self._headers += headers
            self._bytes += sum(map(_header_bytes, headers))

    def full(self) -> Iterator[RecordBatch]:
        """Takes out each batch that is full."""
        while self._bytes > BATCH_BYTES or len(self._messages) >= BATCH_RECORDS:
            yield self._take(self._fitting() if self._bytes > BATCH_BYTES else BATCH_RECORDS)

    def rest(self) -> RecordBatch | None:
        """Takes out what is left, when the range has ended; None if that is nothing."""
        return self._take(len(self._messages)) if self._messages else None

    def _fitting(self) -> int:
        return min(max(bisect_right(list(accumulate(self._sizes())), BATCH_BYTES), 1), BATCH_RECORDS)

    def _sizes(self) -> Iterator[int]:
        for index, value in enumerate(self._values):
            size = len(value) if value else 0
            if self._parts.keys:
                size += len(self._keys[index] or b"")
            if self._parts.headers:
                size += _header_bytes(self._headers[index])
            yield size

    def _take(self, count: int) -> RecordBatch:
        messages, values = self._messages[:count], self._values[:count]
        keys = self._keys[:count] if self._parts.keys else None
        headers = self._headers[:count] if self._parts.headers else None
        self._bytes = self._bytes - sum(islice(self._sizes(), count)) if count < len(self._messages) else 0
        del self._messages[:count], self._values[:count], self._keys[:count], self._headers[:count]
        offsets = list(map(message_offset, messages))
        stamps = [ms if kind else 0 for kind, ms in map(Message.timestamp, messages)]
        source = KeptMessages(messages) if self._parts.single else None
        return RecordBatch.of(self._topic, self._partition, offsets, stamps, values, keys, headers, source)


class KeptMessages:
    """A `RecordSource`: the messages of a batch as the client gave them. Each has its value once more, in memory."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._headers: dict[int, tuple[Header, ...] | None] = {}

    def key(self, index: int) -> bytes | None:
        return _key(self._messages[index])

    def timestamp_type(self, index: int) -> str:
        return _TIMESTAMP_TYPES[self._messages[index].timestamp()[0]]

    def headers(self, index: int) -> tuple[Header, ...] | None:
        if index not in self._headers:
            found = headers_of(self._messages[index])
            self._headers[index] = None if found is None else tuple(found)
        return self._headers[index]


def next_poll(messages: Sequence[Message], asked: int) -> int:
    """How many records to ask for next: growing from a careful first poll, to POLL_RECORDS or what fills a batch."""
    last = messages[-1]
    size = len(last.value() or b"") + len(_key(last) or b"")
    return max(1, min(asked * 4, POLL_RECORDS, BATCH_BYTES // max(size, 1)))


def headers_of(message: Message) -> Sequence[Header] | None:
    """The headers of a record; None when a name is not UTF-8.

    To be called once for a message: confluent-kafka 2.16 leaves an exception behind for such a name, and afterwards
    gives a list whose use ends the process.
    """
    try:
        return _client_headers(message) or ()
    except SystemError:
        return None


def _total(values: list[bytes | None]) -> int:
    return sum(map(len, filter(None, values)))


def _header_bytes(headers: Sequence[Header] | None) -> int:
    return sum(HEADER_BYTES + len(name) + len(value or b"") for name, value in headers or ())
