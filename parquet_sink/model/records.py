"""Records of one topic-partition as Arrow arrays, and what of a record is read.

Batches of records are what the reading thread of a Spark task hands to the one that writes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

Header = tuple[str, bytes | None]

HEADER_FIELDS: Final = (pa.field("key", pa.string()), pa.field("value", pa.binary()))
HEADERS: Final = pa.list_(pa.field("element", pa.struct(HEADER_FIELDS)))
"""The type of `RecordBatch.headers`."""


@dataclass(frozen=True)
class RecordParts:
    """What of a record is read beside its offset, timestamp and value. `a | b`: what either asks for.

    keys, headers, timestamp_types: of all records. single: of single records, by `RecordBatch.source`, which costs
    those alone.
    header_values: names of the headers whose values a transform or predicate looks at decoded, where it asks for
    headers; None: of all. For names alone it is empty.
    """

    keys: bool = False
    headers: bool = False
    single: bool = False
    header_values: frozenset[str] | None = None
    timestamp_types: bool = False

    def __or__(self, other: "RecordParts") -> "RecordParts":
        return RecordParts(
            self.keys or other.keys,
            self.headers or other.headers,
            self.single or other.single,
            self._with_values_of(other),
            self.timestamp_types or other.timestamp_types,
        )

    def _with_values_of(self, other: "RecordParts") -> frozenset[str] | None:
        asked = [one.header_values for one in (self, other) if one.headers]
        named = [names for names in asked if names is not None]
        return frozenset().union(*named) if asked and len(named) == len(asked) else None


VALUES_ONLY: Final = RecordParts()
"""Nothing beside its offset, timestamp and value."""
NO_TIMESTAMP: Final = "NoTimestampType"
"""Kafka's name of the kind of timestamp that a record without one has."""


class RecordSource(Protocol):
    """Gives what was not read of all records of a batch. index: which record of the batch."""

    def key(self, index: int) -> bytes | None: ...

    def headers(self, index: int) -> tuple[Header, ...] | None:
        """None when they cannot be read, because a name is not UTF-8."""
        ...

    def timestamp_type(self, index: int) -> str:
        """CreateTime, LogAppendTime or NoTimestampType."""
        ...


@dataclass(frozen=True)
class Unread:
    """Records that Kafka has and that cannot be processed.

    reason: without a full stop. next_offset: the offset after the last of them. size: bytes of the only record, which
    is too large; 0 when that is unknown.
    """

    reason: str
    next_offset: int
    size: int = 0


@dataclass(frozen=True)
class RecordBatch:
    """Records of one topic-partition in offset order.

    offsets: int64, strictly increasing, no nulls; gaps are fine (transaction markers, compaction). timestamps: int64,
    epoch milliseconds, no nulls (0 when the record has none). values: binary, the bytes of the record's value as Kafka
    had them; null is a tombstone. keys: likewise; null: no key. headers: of type HEADERS, for each record its headers
    in their order, names may repeat, values may be null; the list is empty where there are none, and null where they
    cannot be read because a name is not UTF-8. timestamp_types: text, Kafka's names of the kinds of timestamps, no
    nulls. keys, headers and timestamp_types are None as a whole when they were not asked for. All have one entry per
    record; together the values, and the keys, stay below 2 GiB. source: gives keys and headers of single records, if
    that was asked for. unread: why the value of the only record is left out, and null here, although Kafka has one; the
    record then also stands for all that follow up to `next_offset`.
    """

    topic: str
    partition: int
    offsets: pa.Int64Array
    timestamps: pa.Int64Array
    values: pa.BinaryArray
    keys: pa.BinaryArray | None = None
    headers: pa.ListArray | None = None
    source: RecordSource | None = field(default=None, compare=False, repr=False)
    timestamp_types: pa.StringArray | None = None
    unread: Unread | None = None

    def __post_init__(self) -> None:
        names = ("timestamps", "values", "keys", "headers", "timestamp_types")
        arrays = {name: getattr(self, name) for name in names}
        lengths = {name: len(array) for name, array in arrays.items() if array is not None}
        if any(length != len(self.offsets) for length in lengths.values()):
            found = ", ".join(f"{length} {name}" for name, length in lengths.items())
            raise ValueError(
                f"RecordBatch of topic {self.topic}, topic-partition {self.partition}: {len(self.offsets)} offsets do "
                f"not match {found}."
            )

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def nbytes(self) -> int:
        """Of all arrays, as Arrow counts them."""
        arrays = (self.offsets, self.timestamps, self.values, self.keys, self.headers)
        return sum(array.nbytes for array in arrays if array is not None)

    @property
    def next_offset(self) -> int:
        """The offset after the last record."""
        return int(self.offsets[-1].as_py()) + 1 if self.unread is None else self.unread.next_offset

    @property
    def value_bytes(self) -> int:
        """Of all values together."""
        return int(self.values.total_values_length)

    def slice(self, begin: int, end: int) -> "RecordBatch":
        """Return some of the records; `source` is left out, as it counts those of the whole batch."""
        arrays = self.offsets, self.timestamps, self.values, self.keys, self.headers, self.timestamp_types
        offsets, stamps, values, keys, headers, kinds = (
            None if array is None else array.slice(begin, end - begin) for array in arrays
        )
        return RecordBatch(self.topic, self.partition, offsets, stamps, values, keys, headers, timestamp_types=kinds)

    def key_of(self, index: int) -> bytes | None:
        """The key of one record; None when it has none, or none was asked for."""
        if self.keys is None:
            return None if self.source is None else self.source.key(index)
        key: bytes | None = self.keys[index].as_py()
        return key

    def timestamp_type_of(self, index: int) -> str:
        """Kafka's name of the kind of one record's timestamp; CreateTime when that was not asked for."""
        if self.timestamp_types is not None:
            return str(self.timestamp_types[index])
        return "CreateTime" if self.source is None else self.source.timestamp_type(index)

    def headers_of(self, index: int) -> tuple[Header, ...] | None:
        """The headers of one record; None when they were not asked for, or cannot be read."""
        if self.headers is None:
            return None if self.source is None else self.source.headers(index)
        found = self.headers[index].as_py()
        return None if found is None else tuple((one["key"], one["value"]) for one in found)

    @classmethod
    def of(
        cls,
        topic: str,
        partition: int,
        offsets: Sequence[int],
        timestamps: Sequence[int],
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None = None,
        headers: Sequence[Sequence[Header] | None] | pa.ListArray | None = None,
        source: RecordSource | None = None,
        timestamp_types: Sequence[str] | str | None = None,
    ) -> "RecordBatch":
        """A batch from one entry per record. timestamp_types: one text if they are all the same.

        Raises ValueError when lengths differ or something exceeds 2 GiB.
        """
        where = f"RecordBatch of topic {topic}, topic-partition {partition}"
        if headers is not None and not isinstance(headers, pa.ListArray):
            headers = header_lists(headers, f"{where}: the headers")
        return cls(
            topic,
            partition,
            _integers(offsets),
            _integers(timestamps),
            _binary(values, f"{where}: the values"),
            None if keys is None else _binary(keys, f"{where}: the keys"),
            headers,
            source,
            None if timestamp_types is None else _texts(timestamp_types, len(offsets)),
        )

    @classmethod
    def joined(cls, batches: "Sequence[RecordBatch]", source: RecordSource | None = None) -> "RecordBatch":
        """One batch of some (at least one) of one topic-partition, read with the same parts. source: of all records."""
        first = batches[0]
        if len(batches) == 1:
            return replace(first, source=source)
        return cls(
            first.topic,
            first.partition,
            pa.concat_arrays([one.offsets for one in batches]),
            pa.concat_arrays([one.timestamps for one in batches]),
            pa.concat_arrays([one.values for one in batches]),
            None if first.keys is None else pa.concat_arrays([one.keys for one in batches]),
            None if first.headers is None else pa.concat_arrays([one.headers for one in batches]),
            source,
            None if first.timestamp_types is None else pa.concat_arrays([one.timestamp_types for one in batches]),
        )


def _integers(values: Sequence[int]) -> pa.Int64Array:
    """Through NumPy, which takes half of the time that Arrow takes for a list."""
    if isinstance(values, range):
        return pa.array(np.arange(values.start, values.stop, values.step, dtype=np.int64))
    return pa.array(np.fromiter(values, np.int64, len(values)))


def _binary(values: Sequence[bytes | None], what: str) -> pa.BinaryArray:
    array = pa.array(values, pa.binary())
    if isinstance(array, pa.ChunkedArray):
        raise ValueError(f"{what} exceed 2 GiB.")
    return array


def _texts(texts: Sequence[str] | str, count: int) -> pa.StringArray:
    return pa.repeat(texts, count) if isinstance(texts, str) else pa.array(texts, pa.string())


def header_lists(headers: Sequence[Sequence[Header] | None], what: str) -> pa.ListArray:
    """An array of type HEADERS. Raises ValueError when values, which the message calls `what`, exceed 2 GiB."""
    if headers.count(()) == len(headers):  # as most topics have it; the empty tuple is one object, so this costs little
        return _no_headers(len(headers))
    flat = list(chain.from_iterable(filter(None, headers)))
    names, values = zip(*flat, strict=False) if flat else ((), ())
    structs = pa.StructArray.from_arrays([pa.array(names, pa.string()), _binary(values, what)], fields=HEADER_FIELDS)
    ends = np.zeros(len(headers) + 1, np.int32)
    mask = None
    if type(None) in set(map(type, headers)):
        mask = pa.array([one is None for one in headers], pa.bool_())
    lengths: Iterable[int] = map(len, headers) if mask is None else (len(one or ()) for one in headers)  # type: ignore[arg-type]
    np.cumsum(np.fromiter(lengths, np.int32, len(headers)), out=ends[1:])
    return pa.ListArray.from_arrays(pa.array(ends), structs, type=HEADERS, mask=mask)


def _no_headers(count: int) -> pa.ListArray:
    none = pa.StructArray.from_arrays([pa.array([], one.type) for one in HEADER_FIELDS], fields=HEADER_FIELDS)
    return pa.ListArray.from_arrays(pa.array(np.zeros(count + 1, np.int32)), none, type=HEADERS)
