"""Headers of records as transforms find them: names as columns, values decoded by the header converter."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.config.report import quoted
from parquet_sink.convert.decoded import Decoder, Float32, InferredColumns, Int32, SchemaColumns

HeaderValue: TypeAlias = pa.Scalar | dict[str, object] | list[object]
"""A scalar, of type null for a null without a schema; an object or list without a schema is a tree."""

NULL: Final = pa.scalar(None, pa.null())

_LISTS: Final = pa.list_(pa.struct([pa.field("name", pa.string()), pa.field("at", pa.int64())]))
_PLAIN: Final = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    Int32: pa.int32(),
    Float32: pa.float32(),
}


class Header(NamedTuple):
    """One header of a record."""

    name: str
    value: HeaderValue


@dataclass(frozen=True)
class Headers:
    """The headers of all records of a batch. `headers[position]`: those of one record, in their order.

    lists: for each record the names, and where the value is: its place in `pool`; negative for one that was not
    decoded because nobody asked for headers of this name: the bytes are in `raw` at -1 less that.
    """

    lists: pa.ListArray
    pool: tuple[HeaderValue, ...]
    raw: pa.BinaryArray

    @classmethod
    def none(cls, count: int) -> "Headers":
        """Of records that have none."""
        return cls(pa.array([[]] * count, _LISTS), (NULL,), pa.array([], pa.binary()))

    @classmethod
    def of(cls, records: Sequence[Sequence[Header]]) -> "Headers":
        """Of records whose headers are decoded already."""
        pool: list[HeaderValue] = [NULL, *(one.value for headers in records for one in headers)]
        at = iter(range(1, len(pool)))
        lists = [[{"name": one.name, "at": next(at)} for one in headers] for headers in records]
        return cls(pa.array(lists, _LISTS), tuple(pool), pa.array([], pa.binary()))

    def __len__(self) -> int:
        return len(self.lists)

    def __getitem__(self, position: int) -> tuple[Header, ...]:
        return tuple(Header(one["name"], self.value(one["at"])) for one in self.lists[position].as_py())

    def value(self, at: int) -> HeaderValue:
        """A value by its place in `pool`, or the bytes of one that was not decoded."""
        return self.pool[at] if at >= 0 else self.raw[-1 - at]

    def has(self, name: str) -> pa.BooleanArray:
        """For each record whether it has a header of that name."""
        positions, entries = self._flat()
        found = np.zeros(len(self), np.bool_)
        found[positions[_is(entries.field("name"), (name,))]] = True
        return pa.array(found)

    def last(self, name: str) -> np.ndarray:
        """For each record where the value of its last header of that name is, as for `value`."""
        positions, entries = self._flat()
        chosen = _is(entries.field("name"), (name,))
        found = np.full(len(self), ABSENT, np.int64)
        found[positions[chosen]] = entries.field("at").to_numpy()[chosen]  # of equal positions the last one counts
        return found

    def first(self, name: str) -> np.ndarray:
        """Likewise of its first header of that name."""
        positions, entries = self._flat()
        chosen = np.flatnonzero(_is(entries.field("name"), (name,)))[::-1]
        found = np.full(len(self), ABSENT, np.int64)
        found[positions[chosen]] = entries.field("at").to_numpy()[chosen]
        return found

    def places(self, positions: np.ndarray) -> Iterator[dict[str, int]]:
        """For each of these records, by name, where the value of its last header of that name is."""
        starts = self.lists.offsets.to_numpy().tolist()
        entries = self.lists.values
        names, at = entries.field("name").to_pylist(), entries.field("at").to_pylist()
        for position in positions.tolist():
            own = slice(starts[position], starts[position + 1])
            yield dict(zip(names[own], at[own], strict=True))

    def without(self, names: Sequence[str]) -> "Headers":
        """All but those of these names."""
        positions, entries = self._flat()
        kept = ~_is(entries.field("name"), names)
        return self._of(positions[kept], entries.filter(pa.array(kept)), self.pool)

    def with_one(self, name: str, value: HeaderValue) -> "Headers":
        """Every record with another header behind its own."""
        return self.with_each(name, np.arange(len(self)), [value], np.zeros(len(self), np.int64))

    def with_each(
        self, name: str, positions: np.ndarray, values: Sequence[HeaderValue], which: np.ndarray | None = None
    ) -> "Headers":
        """The records at these positions with another header behind their own.

        values: one for each; or any number of them, of which `which` has the place for each.
        """
        which = np.arange(len(positions)) if which is None else which
        names = pa.repeat(pa.scalar(name, pa.string()), len(positions))
        more = pa.StructArray.from_arrays([names, pa.array(which + len(self.pool))], fields=_fields())
        own, entries = self._flat()
        every = np.concatenate([own, positions])
        order = np.argsort(every, kind="stable")
        both = pa.concat_arrays([entries, more]).take(pa.array(order))
        return self._of(every[order], both, (*self.pool, *values))

    def where(self, chosen: pa.BooleanArray, others: "Headers") -> "Headers":
        """These headers for the records that are chosen, those of another for the rest; both came from one batch."""
        if others.pool is self.pool:
            return Headers(pc.if_else(chosen, self.lists, others.lists), self.pool, self.raw)
        lists = _moved(others.lists, len(self.pool))
        return Headers(pc.if_else(chosen, self.lists, lists), (*self.pool, *others.pool), self.raw)

    def _flat(self) -> tuple[np.ndarray, pa.StructArray]:
        return pc.list_parent_indices(self.lists).to_numpy(), pc.list_flatten(self.lists)

    def _of(self, positions: np.ndarray, entries: pa.StructArray, pool: tuple[HeaderValue, ...]) -> "Headers":
        """positions: of each entry, increasing."""
        return Headers(_to_lists(positions, entries, len(self)), pool, self.raw)


ABSENT: Final = np.iinfo(np.int64).min
"""In `Headers.last`: there is none."""


def decoded(
    headers: pa.ListArray, decoder: Decoder, names: frozenset[str] | None = None
) -> tuple[Headers, Mapping[int, str]]:
    """The headers of a batch, and by position why those of a record cannot be decoded.

    headers: of type `model.records.HEADERS`, without nulls. names: whose values are decoded; None: all. A value that is
    null is null without a schema.
    """
    flat = pc.list_flatten(headers)
    positions = pc.list_parent_indices(headers).to_numpy()
    keys, raw = flat.field("key"), flat.field("value")
    wanted = np.full(len(flat), True) if names is None else _is(keys, sorted(names))
    at, pool, reasons = _values(raw, wanted, decoder)
    entries = pa.StructArray.from_arrays([keys, pa.array(at)], fields=_fields())
    bad = {
        int(positions[index]): f"header {quoted(keys[index].as_py())} cannot be decoded: {reason}"
        for index, reason in reversed(reasons.items())
    }
    return Headers(_to_lists(positions, entries, len(headers)), pool, raw), bad


def _values(
    raw: pa.BinaryArray, wanted: np.ndarray, decoder: Decoder
) -> tuple[np.ndarray, tuple[HeaderValue, ...], dict[int, str]]:
    """Where each value is, the pool, and by index why one cannot be decoded. Equal bytes are decoded once."""
    at = -1 - np.arange(len(raw))
    at[wanted] = 0
    asked = wanted & raw.is_valid().to_numpy(zero_copy_only=False)
    if not asked.any():
        return at, (NULL,), {}
    coded = raw.filter(pa.array(asked)).dictionary_encode()
    pool, invalid = _pool(coded.dictionary, decoder)
    places = coded.indices.to_numpy()
    at[asked] = places + 1
    where = np.flatnonzero(asked)
    bad = np.isin(places, list(invalid))
    return at, (NULL, *pool), {int(where[one]): invalid[int(places[one])] for one in np.flatnonzero(bad)}


def _pool(distinct: pa.BinaryArray, decoder: Decoder) -> tuple[list[HeaderValue], Mapping[int, str]]:
    found = decoder.decode(distinct)
    pool: list[HeaderValue] = [NULL] * len(distinct)
    for piece in found.pieces:
        assert not isinstance(piece, InferredColumns), "a decoder that learns was asked for trees"
        values: Iterable[HeaderValue] = piece.rows if isinstance(piece, SchemaColumns) else map(of_tree, piece.trees)
        for place, value in zip(piece.positions.to_pylist(), values, strict=True):
            pool[place] = value
    reasons = {at: why.replace("value.converter", "header.converter") for at, why in found.invalid.items()}
    return pool, reasons


def of_tree(tree: object) -> HeaderValue:
    """A value without a schema as that of a header."""
    if tree is None:
        return NULL
    if isinstance(tree, dict | list):
        return tree
    found = pa.scalar(tree, _PLAIN.get(type(tree)))
    if pa.types.is_timestamp(found.type):  # transforms make dates and times of numbers and texts
        return found.cast(pa.timestamp("ms", "UTC"))
    return found.cast(pa.time32("ms")) if pa.types.is_time(found.type) else found


def _fields() -> list[pa.Field]:
    return [_LISTS.value_type.field(index) for index in range(2)]


def _moved(lists: pa.ListArray, by: int) -> pa.ListArray:
    """The same headers, of values that stand so much later in the pool."""
    entries = pc.list_flatten(lists)
    at = entries.field("at").to_numpy()
    moved = pa.array(np.where(at >= 0, at + by, at))
    shifted = pa.StructArray.from_arrays([entries.field("name"), moved], fields=_fields())
    return _to_lists(pc.list_parent_indices(lists).to_numpy(), shifted, len(lists))


def _to_lists(positions: np.ndarray, entries: pa.StructArray, count: int) -> pa.ListArray:
    offsets = np.searchsorted(positions, np.arange(count + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), entries, type=_LISTS)


def _is(names: pa.StringArray, wanted: Sequence[str]) -> np.ndarray:
    """Which of the names are wanted."""
    found: np.ndarray = pc.is_in(names, pa.array(wanted, pa.string())).to_numpy(zero_copy_only=False)
    return found
