"""KeyToValue and HeaderToValue: fields of the key, and headers, as fields of the value."""

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, cast

import numpy as np
import pyarrow as pa

from parquet_sink.addons.transforms.fields.errors import kind, tree_kind
from parquet_sink.addons.transforms.whole.additions import (
    Additions,
    Column,
    Existing,
    Group,
    Pool,
)
from parquet_sink.config.key import Key, Origin, Type
from parquet_sink.config.values import Values
from parquet_sink.convert.decoded import Piece, SchemaColumns, Untyped
from parquet_sink.convert.invalid import show
from parquet_sink.model.records import RecordParts
from parquet_sink.transform.fields.plain import columns_of
from parquet_sink.transform.headers import Headers, HeaderValue, of_tree
from parquet_sink.transform.keys import connect_key
from parquet_sink.transform.protocol import Side, WrongSettings
from parquet_sink.transform.records import DecodedRecords, as_trees

_KEY = "KeyToValue"


def _existing_key(what: str) -> Key:
    """The rule for names that the value has already."""
    return connect_key(
        "existing",
        Type.STRING,
        f"What is done where the value has a field of that name already: `fail`: the record is invalid; `keep`: the "
        f"value's own stays; `replace`: {what} takes its place.",
        default="fail",
        choices=("fail", "keep", "replace"),
        origin=Origin.OWN,
    )


def _prefix_key(what: str) -> Key:
    """What stands before names that are not given one by one."""
    return connect_key(
        "prefix",
        Type.STRING,
        f"What stands before the name of each {what} that is not given another one.",
        default="",
        may_be_empty=True,
        origin=Origin.OWN,
    )


class _ToValue:
    """Which fields or headers are taken, and how they are called in the value."""

    def __init__(self, values: Values, side: Side, listed: str) -> None:
        """listed: the key that has them, each as `name` or `name:new`; nothing: all, behind the prefix."""
        if side == "key":
            raise WrongSettings({"type": f"{type(self).__name__} works on values alone; leave $Key out."})
        self._prefix, self._existing = values.text("prefix") or "", cast("Existing", values.text("existing"))
        pairs = (one.partition(":") for one in values.names(listed))
        self._chosen = {old: new if colon else self._prefix + old for old, colon, new in pairs} or None

    def _new(self, name: str) -> str:
        return self._prefix + name if self._chosen is None else self._chosen[name]


class KeyToValue(_ToValue):
    """Writes fields of the key into the value; a key that is not an object becomes one field."""

    keys: ClassVar[tuple[Key, ...]] = (
        connect_key(
            "fields",
            Type.LIST,
            "The key's fields to take, each as `name`, or as `name:field` where the field has another name in the "
            "value. Of a null key they are null.",
            default=(),
            default_text="all of the key's",
            origin=Origin.OWN,
        ),
        connect_key(
            "key.field",
            Type.STRING,
            "The field that a key becomes which has no fields (a number, a text); only where `fields` is not set.",
            default="key",
            may_be_empty=True,
            origin=Origin.OWN,
        ),
        _prefix_key("field of the key"),
        _existing_key("the key's"),
    )
    needs = RecordParts(keys=True)

    def __init__(self, values: Values, side: Side) -> None:
        super().__init__(values, side, "fields")
        self._key_field = values.text("key.field") or ""

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        """As `transform.protocol.Transform` says; tombstones stay."""
        keys = records.keys or ()
        work = Additions(_KEY, self._existing)
        piece_of, row_of = _places(len(records.batch), keys)
        pieces: list[Piece] = []
        for piece in records.values:
            at = piece.positions.to_numpy()
            groups = [
                group
                for number in range(-1, len(keys))
                for group in self._groups(
                    None if number < 0 else keys[number], np.flatnonzero(piece_of[at] == number), row_of[at], at, work
                )
            ]
            pieces += work.to(piece, groups)
        return replace(records, values=tuple(pieces)).reject(work.rejected)

    def _groups(
        self, key: Piece | None, mine: np.ndarray, row_of: np.ndarray, at: np.ndarray, work: Additions
    ) -> Iterator[Group]:
        """For the rows of a value's piece whose keys are in one piece, or in none. at: positions of all its rows."""
        if not len(mine):
            return
        if key is None:
            nulls = {new: pa.nulls(len(mine)) for new in (self._chosen or {}).values()}
            yield Group(mine, nulls)
        elif isinstance(key, SchemaColumns):
            columns = self._of_typed(key.rows.type, key.rows.take(pa.array(row_of[mine])))
            if isinstance(columns, str):
                work.rejected |= dict.fromkeys(at[mine].tolist(), columns)
            else:
                yield Group(mine, columns)
        else:
            yield from self._of_trees(as_trees(key), mine, row_of, at, work)

    def _of_typed(self, arrow: pa.DataType, rows: pa.Array) -> dict[str, Column] | str:
        """The fields that records of this type of key get, or why they cannot get them."""
        chosen = self._chosen
        if not pa.types.is_struct(arrow):
            if chosen is not None:
                return f"{_KEY} takes fields of the key, and the key is {kind(arrow)}"
            return {self._key_field: rows}
        arrays = columns_of(rows)
        absent = next((name for name in chosen or () if name not in arrays), None)
        if absent is not None:
            return f"{_KEY} does not find field {show((absent,))} in the key's schema"
        return {self._new(name): arrays[name] for name in (arrays if chosen is None else chosen)}

    def _of_trees(
        self, keys: Untyped, mine: np.ndarray, row_of: np.ndarray, at: np.ndarray, work: Additions
    ) -> Iterator[Group]:
        """By the types of their values, one record after the other."""
        values: list[HeaderValue] = []
        fields: list[dict[str, int]] = []
        kept: list[int] = []
        for row in mine.tolist():
            key = keys.trees[row_of[row]]
            if self._chosen is not None and not isinstance(key, dict):
                work.rejected[int(at[row])] = f"{_KEY} takes fields of the key, and the key is {tree_kind(key)}"
                continue
            own = self._fields(key)
            fields.append(dict(zip(own, range(len(values), len(values) + len(own)), strict=True)))
            values += map(of_tree, own.values())
            kept.append(row)
        rows = np.array(kept, np.int64)
        for group in Pool(values).groups_by_row(fields):
            yield Group(rows[group.rows], group.columns)

    def _fields(self, key: object) -> dict[str, object]:
        """What a record with this key gets."""
        if not isinstance(key, dict):
            return {self._key_field: key}
        chosen = self._chosen
        if chosen is None:
            return {self._new(name): value for name, value in key.items()}
        return {new: key.get(name) for name, new in chosen.items()}


def _places(count: int, keys: tuple[Piece, ...]) -> tuple[np.ndarray, np.ndarray]:
    """For each record of the batch the number of its key's piece, -1 for a null key, and the row there."""
    piece_of, row_of = np.full(count, -1, np.int64), np.zeros(count, np.int64)
    for number, piece in enumerate(keys):
        at = piece.positions.to_numpy()
        piece_of[at], row_of[at] = number, np.arange(len(at))
    return piece_of, row_of


class HeaderToValue(_ToValue):
    """Writes headers into the value, as the header converter decodes them; of a repeated name the last one counts."""

    keys: ClassVar[tuple[Key, ...]] = (
        connect_key(
            "headers",
            Type.LIST,
            "The headers to take, each as `name`, or as `name:field` where the field has another name. A record "
            "without such a header has null there.",
            default=(),
            default_text="all that a record has",
            origin=Origin.OWN,
        ),
        _prefix_key("header"),
        _existing_key("the header"),
    )

    def __init__(self, values: Values, side: Side) -> None:
        super().__init__(values, side, "headers")
        chosen = self._chosen
        self.needs = RecordParts(headers=True, header_values=None if chosen is None else frozenset(chosen))

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        """As `transform.protocol.Transform` says; tombstones stay."""
        if records.headers is None:
            return records
        work = Additions("HeaderToValue", self._existing)
        pool = Pool(records.headers.pool)
        chosen = self._chosen
        last = {new: records.headers.last(name) for name, new in (chosen or {}).items()}
        pieces: list[Piece] = []
        for piece in records.values:
            at = piece.positions.to_numpy()
            if chosen is None:
                groups = pool.groups_by_row(self._all(records.headers, at))
            else:
                groups = pool.groups({new: found[at] for new, found in last.items()})
            pieces += work.to(piece, list(groups))
        return replace(records, values=tuple(pieces)).reject(work.rejected)

    def _all(self, headers: Headers, positions: np.ndarray) -> Iterator[dict[str, int]]:
        """For each of these records, by the field's name, where the value of the last header is."""
        for places in headers.places(positions):
            yield {self._new(name): at for name, at in places.items()}
