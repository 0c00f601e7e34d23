"""Messages of the Kafka client to batches of records, cut at the same records however the messages came."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, TIMESTAMP_NOT_AVAILABLE, Message

from parquet_sink.kafka.settings import RECORD_BYTES, RECORD_MAX
from parquet_sink.model.records import VALUES_ONLY, Header, RecordBatch, RecordParts, Unread, header_lists

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
TIMESTAMP_TYPES: Final = {
    TIMESTAMP_NOT_AVAILABLE: "NoTimestampType",
    TIMESTAMP_CREATE_TIME: "CreateTime",
    TIMESTAMP_LOG_APPEND_TIME: "LogAppendTime",
}
"""Kafka's names of the kinds of timestamps, by the client's numbers 0, 1 and 2."""
_value: Callable[[Message], bytes | None] = Message.value
_key: Callable[[Message], bytes | None] = Message.key
_client_headers: Callable[[Message], list[Header] | None] = Message.headers  # type: ignore[assignment]
"""To be called by `map` alone: it looks for an exception left behind; Python's own call, once specialised, does not."""


class BatchBuilder:
    """Collects the records of one topic-partition, in offset order, and gives them in batches.

    A batch ends after BATCH_RECORDS records, or before the record that would take it past BATCH_BYTES. What is not
    read does not count, so batches are a function of where the range starts, of its records, and of `parts`. A record
    of more than `record_bytes` is a batch of its own, without its value (`RecordBatch.unread`): its value and key
    count, and its headers where `parts` has them.
    """

    def __init__(
        self, topic: str, partition: int, parts: RecordParts = VALUES_ONLY, record_bytes: int = RECORD_BYTES
    ) -> None:
        self._topic, self._partition, self._parts = topic, partition, parts
        self._full: list[RecordBatch] = []
        self._pieces: list[RecordBatch] = []
        self._messages: list[Message] = []
        self._records = self._bytes = 0
        self._record_bytes = record_bytes

    @property
    def room(self) -> int:
        """How many records to ask for at most."""
        return BATCH_RECORDS - self._records

    def add(self, messages: Sequence[Message]) -> int:
        """Takes the next records; no events. Gives their bytes, as far as they are read.

        They become arrays at once, while the processor has them in its cache.
        """
        read, begin, total = _Read.of(messages, self._parts), 0, 0
        for index, size in read.find_oversized(self._record_bytes):
            total += self._add(read.part(begin, index))
            self._end()
            self._keep(read.without_value(index, self._record_bytes), 0)
            self._end(reject_size(message_offset(messages[index]), size, self._record_bytes))
            begin = index + 1
        return total + self._add(read.part(begin, len(messages)) if begin else read)

    def _add(self, read: "_Read") -> int:
        size = read.bytes
        if self._records + len(read.messages) <= BATCH_RECORDS and self._bytes + size <= BATCH_BYTES:
            self._keep(read, size)
        else:
            self._keep_by_one(read)
        return size

    def full(self) -> Iterator[RecordBatch]:
        """Takes out each batch that is full."""
        if self._records >= BATCH_RECORDS or self._bytes > BATCH_BYTES:
            self._end()
        full, self._full = self._full, []
        yield from full

    def rest(self) -> RecordBatch | None:
        """Takes out what is left after `full`, when the range has ended; None if that is nothing."""
        self._end()
        return self._full.pop() if self._full else None

    def _keep_by_one(self, read: "_Read") -> None:
        """Where a batch ends among the records."""
        begin = size = 0
        for index, one in enumerate(read.sizes()):
            records = self._records + index - begin
            if records and (records == BATCH_RECORDS or self._bytes + size + one > BATCH_BYTES):
                self._keep(read.part(begin, index), size)
                self._end()
                begin, size = index, 0
            size += one
        self._keep(read.part(begin, len(read.messages)), size)

    def _keep(self, read: "_Read", size: int) -> None:
        if not read.messages:
            return
        self._pieces.append(read.batch(self._topic, self._partition))
        self._records += len(read.messages)
        self._bytes += size
        if self._parts.single:
            self._messages += read.messages

    def _end(self, unread: Unread | None = None) -> None:
        if self._records:
            source = KeptMessages(self._messages) if self._parts.single else None
            self._full.append(replace(RecordBatch.joined(self._pieces, source), unread=unread))
        self._pieces, self._messages = [], []
        self._records = self._bytes = 0


@dataclass(frozen=True)
class _Read:
    """What was read of consecutive records: lists with one entry for each; None where it was not asked for."""

    messages: Sequence[Message]
    values: list[bytes | None]
    keys: list[bytes | None] | None
    headers: list[Sequence[Header] | None] | None
    timestamp_types: bool = False

    @classmethod
    def of(cls, messages: Sequence[Message], parts: RecordParts) -> "_Read":
        keys = list(map(_key, messages)) if parts.keys else None
        headers = headers_of(messages) if parts.headers else None
        return cls(messages, list(map(_value, messages)), keys, headers, parts.timestamp_types)

    @property
    def bytes(self) -> int:
        structs = None if self.header_lists is None else self.header_lists.values
        headers = 0 if not structs else HEADER_BYTES * len(structs) + sum(map(_text_bytes, structs.flatten()))
        return _total(self.values) + _total(self.keys or ()) + headers

    @cached_property
    def header_lists(self) -> pa.ListArray | None:
        """Made once: of two headers a record, taking the lists apart costs as much as all else of building."""
        where = "RecordBatch: the headers"
        return None if self.headers is None else header_lists(self.headers, where)

    def sizes(self) -> list[int]:
        """Of each record; their sum is `bytes`."""
        sizes = [len(value or b"") for value in self.values]
        if self.keys is not None:
            sizes = [size + len(key or b"") for size, key in zip(sizes, self.keys, strict=True)]
        if self.headers is not None:
            sizes = [size + _header_bytes(one) for size, one in zip(sizes, self.headers, strict=True)]
        return sizes

    def part(self, begin: int, end: int) -> "_Read":
        keys = None if self.keys is None else self.keys[begin:end]
        headers = None if self.headers is None else self.headers[begin:end]
        return _Read(self.messages[begin:end], self.values[begin:end], keys, headers, self.timestamp_types)

    def find_oversized(self, limit: int) -> Iterator[tuple[int, int]]:
        """Yield position and bytes of each record that is larger than the limit."""
        sizes = [
            len(value or b"") + len(_key(message) or b"")
            for value, message in zip(self.values, self.messages, strict=True)
        ]
        if self.headers is not None and self.bytes + sum(sizes) > limit:
            sizes = [size + _text_sizes(texts) for size, texts in zip(sizes, self.headers, strict=True)]
        yield from ((index, size) for index, size in enumerate(sizes) if size > limit)

    def without_value(self, index: int, limit: int) -> "_Read":
        """Return one record without its value, and without key and headers where these are larger than the limit."""
        read, message = self.part(index, index + 1), self.messages[index]
        message.set_value(None)
        if len(_key(message) or b"") + sum(map(_text_sizes, read.headers or ())) > limit:
            message.set_key(None)
            message.set_headers([])
            keys: list[bytes | None] | None = None if read.keys is None else [None]
            read = replace(read, keys=keys, headers=None if read.headers is None else [None])
        return replace(read, values=[None])

    def batch(self, topic: str, partition: int) -> RecordBatch:
        kinds, stamps = zip(*map(Message.timestamp, self.messages), strict=True)
        if TIMESTAMP_NOT_AVAILABLE in set(kinds):
            stamps = tuple(ms if kind else 0 for kind, ms in zip(kinds, stamps, strict=True))
        names = _names_of(kinds) if self.timestamp_types else None
        lists = self._offsets(), stamps, self.values, self.keys, self.header_lists
        return RecordBatch.of(topic, partition, *lists, timestamp_types=names)

    def _offsets(self) -> Sequence[int]:
        """Of most topics they have no gaps: then the first and the last say it all."""
        span = range(message_offset(self.messages[0]), message_offset(self.messages[-1]) + 1)
        return span if len(span) == len(self.messages) else list(map(message_offset, self.messages))


class KeptMessages:
    """A `RecordSource`: the messages of a batch as the client gave them. Each has its value once more, in memory."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._headers: dict[int, tuple[Header, ...] | None] = {}

    def key(self, index: int) -> bytes | None:
        return _key(self._messages[index])

    def timestamp_type(self, index: int) -> str:
        return TIMESTAMP_TYPES[self._messages[index].timestamp()[0]]

    def headers(self, index: int) -> tuple[Header, ...] | None:
        if index not in self._headers:
            (found,) = headers_of([self._messages[index]])
            self._headers[index] = None if found is None else tuple(found)
        return self._headers[index]


def next_poll(messages: Sequence[Message], asked: int) -> int:
    """How many records to ask for next: growing from a careful first poll, to POLL_RECORDS or what fills a batch."""
    last = messages[-1]
    size = len(last.value() or b"") + len(_key(last) or b"")
    return max(1, min(asked * 4, POLL_RECORDS, BATCH_BYTES // max(size, 1)))


def _names_of(kinds: Sequence[int]) -> str | list[str]:
    """Of timestamps, which are nearly always of one kind."""
    first, *others = set(kinds)
    return [TIMESTAMP_TYPES[kind] for kind in kinds] if others else TIMESTAMP_TYPES[first]


def headers_of(messages: Sequence[Message]) -> list[Sequence[Header] | None]:
    """The headers of each record; None where a name is not UTF-8.

    To be called once for a message: confluent-kafka 2.16 leaves an exception behind for such a name, and afterwards
    gives a list whose use ends the process. To its producer such a name, as a text with surrogates, is a segmentation
    fault.
    """
    found: list[Sequence[Header] | None] = []
    unreadable: list[int] = []
    reading = map(_client_headers, messages)
    while len(found) < len(messages):
        try:
            found.extend(reading)  # what came before an exception stays in the list
        except SystemError:
            unreadable.append(len(found))
            found.append(None)
    found = [one or () for one in found] if any(found) else [()] * len(found)
    for index in unreadable:
        found[index] = None
    return found


def reject_size(offset: int, size: int, limit: int) -> Unread:
    """Return why a record of this size is not processed."""
    reason = (
        f"it has {size:,} bytes, more than [{RECORD_MAX}]={limit}; raise that key (value, key and the headers that "
        f"are used count)"
    )
    return Unread(reason, offset + 1, size)


def _total(values: Iterable[bytes | None]) -> int:
    return sum(map(len, filter(None, values)))


def _text_sizes(headers: Sequence[Header] | None) -> int:
    return sum(len(name.encode()) + len(value or b"") for name, value in headers or ())


def _header_bytes(headers: Sequence[Header] | None) -> int:
    return sum(HEADER_BYTES + len(name.encode()) + len(value or b"") for name, value in headers or ())


def _text_bytes(texts: pa.StringArray | pa.BinaryArray) -> int:
    return int(pc.sum(pc.binary_length(texts)).as_py() or 0)
