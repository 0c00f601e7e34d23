"""Batches of records read in C: what `kafka/native.py` found fit for use, as `RecordBatch`es."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError

from parquet_sink.kafka import native
from parquet_sink.kafka.batch_builder import BATCH_BYTES, BATCH_RECORDS, HEADER_BYTES, TIMESTAMP_TYPES, reject_size
from parquet_sink.kafka.settings import RECORD_BYTES
from parquet_sink.model.records import HEADER_FIELDS, HEADERS, Header, RecordBatch, RecordParts

_NOTHING, _FULL, _END, _EVENT = range(4)
"""How `fill` ends."""


class NativeQueue:
    """The records of one topic-partition of a consumer. One thread at a time.

    It is made before the consumer is assigned to the topic-partition, and closed before the consumer is.
    """

    def __init__(self, consumer: Consumer, topic: str, partition: int) -> None:
        if not isinstance(consumer, Consumer):  # its memory is read
            raise TypeError(f"Records can be read in C of confluent-kafka's consumers only, not of {type(consumer)}.")
        self.topic, self.partition = topic, partition
        self._queue = native.extension().Queue(consumer, topic, partition)
        self.forget, self.close = self._queue.forget, self._queue.close

    def read(self, builder: "NativeBuilder", end: int, timeout_s: float) -> "Reading":
        """Fills the builder with records below `end`, until a batch is full, an event or the end comes, or nothing."""
        ended = self._queue.fill(builder.batch, end, int(timeout_s * 1000))
        if ended != _EVENT:
            return Reading(heard=ended != _NOTHING, at_end=ended == _END, full=ended == _FULL)
        code, text, offset = self._queue.event()
        return Reading(heard=True, event=(KafkaError(code, text), offset))


@dataclass(frozen=True)
class Reading:
    """How reading ended. heard: something came. at_end: the range is read. full: the batch. event: with its offset."""

    heard: bool
    at_end: bool = False
    full: bool = False
    event: tuple[KafkaError, int] | None = None


class NativeBuilder:
    """Batches of one range that are cut at the same records as those of `BatchBuilder`; then perhaps of another.

    record_bytes: as of `BatchBuilder`.
    """

    def __init__(self, topic: str, partition: int, parts: RecordParts, record_bytes: int = RECORD_BYTES) -> None:
        self._topic, self._partition, self.parts, self._record_bytes = topic, partition, parts, record_bytes
        kept = parts.keys or parts.single, parts.headers or parts.single
        self.batch = native.extension().Batch(
            BATCH_RECORDS, BATCH_BYTES, HEADER_BYTES, record_bytes, parts.keys, parts.headers, *kept
        )

    def begin(self, topic: str, partition: int) -> None:
        """Another range, in the same buffers: to make them grow anew takes longer than to fill them."""
        self._topic, self._partition = topic, partition
        self.batch.begin()

    @property
    def received(self) -> int:
        """The offset after the last record; -1 before the first."""
        return int(self.batch.received)

    def rest(self) -> RecordBatch | None:
        """What was read since the last full batch."""
        return self.take() if self.batch.records else None

    def take(self) -> RecordBatch:
        size, next_offset = self.batch.oversized, self.received
        offsets, timestamps, kinds, *buffers = self.batch.take()
        values, keys, names, header_values = (_Strings(*buffers[at : at + 3]) for at in (0, 3, 8, 11))
        headers = _HeaderBuffers(buffers[6], buffers[7], names, header_values)
        count, parts = len(offsets) // 8, self.parts
        return RecordBatch(
            self._topic,
            self._partition,
            pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(offsets)]),
            pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(timestamps)]),
            values.array(pa.binary()),
            keys.array(pa.binary()) if parts.keys else None,
            headers.array() if parts.headers else None,
            _Kept(keys, headers, kinds) if parts.single else None,
            _kinds(kinds) if parts.timestamp_types else None,
            reject_size(next_offset - 1, size, self._record_bytes) if size else None,
        )


class _Strings:
    """Byte strings or nulls as the extension has them: where each ends, all bytes, and 1 for each that is not null."""

    def __init__(self, ends: bytes, data: bytes, present: bytes) -> None:
        self._ends, self._data, self._present = np.frombuffer(ends, np.int64), data, present

    def array(self, type_: pa.DataType) -> Any:
        return pa.Array.from_buffers(
            type_, len(self._ends), [_bitmap(self._present), _offsets(self._ends), pa.py_buffer(self._data)]
        )

    def at(self, index: int) -> bytes | None:
        begin = int(self._ends[index - 1]) if index else 0
        return self._data[begin : int(self._ends[index])] if self._present[index] else None


class _HeaderBuffers:
    """The headers of records: where those of each end among all; 0 in `readable` where a name is not UTF-8."""

    def __init__(self, ends: bytes, readable: bytes, names: _Strings, values: _Strings) -> None:
        self._ends, self._readable, self._names, self._values = np.frombuffer(ends, np.int64), readable, names, values

    def array(self) -> pa.ListArray:
        columns = [self._names.array(pa.string()), self._values.array(pa.binary())]
        structs = pa.StructArray.from_arrays(columns, fields=HEADER_FIELDS)
        buffers = [_bitmap(self._readable), _offsets(self._ends)]
        return pa.Array.from_buffers(HEADERS, len(self._ends), buffers, children=[structs])

    def at(self, index: int) -> tuple[Header, ...] | None:
        if not self._readable[index]:
            return None
        begin = int(self._ends[index - 1]) if index else 0
        found = range(begin, int(self._ends[index]))
        return tuple(((self._names.at(one) or b"").decode(), self._values.at(one)) for one in found)


class _Kept:
    """A `RecordSource` over the buffers of a batch."""

    def __init__(self, keys: _Strings, headers: _HeaderBuffers, kinds: bytes) -> None:
        self._keys, self._headers, self._kinds = keys, headers, kinds

    def key(self, index: int) -> bytes | None:
        return self._keys.at(index)

    def headers(self, index: int) -> tuple[Header, ...] | None:
        return self._headers.at(index)

    def timestamp_type(self, index: int) -> str:
        return TIMESTAMP_TYPES[self._kinds[index]]


def _offsets(ends: np.ndarray) -> pa.Buffer:
    """Arrow's offsets of 32 bits; what they are about stays below 2 GiB by the bounds of a batch."""
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends
    return pa.py_buffer(offsets)


def _bitmap(present: bytes) -> pa.Buffer | None:
    if b"\0" not in present:
        return None
    return pa.py_buffer(np.packbits(np.frombuffer(present, np.uint8), bitorder="little"))


def _kinds(kinds: bytes) -> pa.StringArray:
    numbers = np.frombuffer(kinds, np.int8)
    if numbers.min() == numbers.max():
        return pa.repeat(TIMESTAMP_TYPES[numbers[0]], len(numbers))
    return pa.array(list(TIMESTAMP_TYPES.values())).take(pa.array(numbers))
