"""Tombstones to rows of their primary keys: `connect.ems.tombstones=row`.

A record with a null value, as Kafka had it or after the transforms, says that what its key names is gone. Its key goes
the way of a value (lower case, decimals to doubles, obfuscation, flattening), so that it comes to the texts and types
that rows of the topic have; `TombstoneFit` validates it against the topic's columns. Keys are decoded for tombstones
alone, unless a transform asked for all of them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.config.key import ems
from parquet_sink.convert.arrays import either
from parquet_sink.convert.decoded import (
    Decoder,
    Float32,
    InferredColumns,
    Int32,
    LearningDecoder,
    Piece,
    Reading,
    SchemaColumns,
    Tree,
    Untyped,
)
from parquet_sink.convert.invalid import InvalidValue, of_key, show
from parquet_sink.model.rejected import Stage
from parquet_sink.rows import added_columns
from parquet_sink.rows.column_builder import ColumnBuilder
from parquet_sink.rows.flatten.trees import rows_of, value_types_of
from parquet_sink.rows.run import (
    ColumnBatch,
    InferredBatch,
    Rejection,
    TombstoneBatch,
    TreeBatch,
    rejection_of,
)
from parquet_sink.rows.schema import arrow_types
from parquet_sink.rows.schema.evolution import Columns, can_align, nullable, takes
from parquet_sink.rows.schema.topic_columns import (
    SEPARATOR,
    Row,
    Step,
    TopicColumns,
    ValueTypes,
    column_name,
    to_fields,
)
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.transform.chain import decode_given
from parquet_sink.transform.records import DecodedRecords, chosen_of

_TYPES = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    Int32: pa.int32(),
    Float32: pa.float32(),
}
_TREE_NAMES = {
    **dict.fromkeys((int, float, Int32, Float32), "a number"),
    str: "a string",
    bool: "a boolean",
    list: "a list",
}
_TOMBSTONE: Final = f"{ems('tombstones')}=row: it is a tombstone"
_NO_KEY: Final = "has no key that says which row is deleted"


# A key that is not a record is the only primary key's value. Whatever else a key has counts for nothing: it is left out
# before anything looks at it.
@dataclass(frozen=True)
class NoRecord:
    """Keys that can fill no primary key's column, and why."""

    positions: pa.Int64Array
    reason: str


class KeyFields:
    """names: the primary keys that come from a record, as the settings name them."""

    def __init__(self, names: tuple[str, ...], settings: ShapeSettings) -> None:
        self._names, self._flatten, self._lowercase = names, settings.flatten, settings.lowercase

    def of(self, piece: Piece) -> Iterator[Piece | NoRecord]:
        """The same keys with nothing but those fields, perhaps none; all are records now."""
        if isinstance(piece, Untyped):
            yield from self._of_trees(piece)
        elif not pa.types.is_struct(piece.rows.type):
            yield self._alone(piece.positions, piece.rows, arrow_types.type_name(piece.rows.type))
        elif isinstance(piece, InferredColumns):
            yield InferredColumns(piece.positions, self._rows(piece.rows, ""), self._trees_of(piece), piece.lists)
        else:
            yield SchemaColumns(piece.positions, self._rows(piece.rows, ""))

    def _of_trees(self, piece: Untyped) -> Iterator[Piece | NoRecord]:
        """Keys that are no records by their types: each type is a column at once."""
        by_type: dict[type, tuple[list[int], list[object]]] = {}
        for position, tree in zip(piece.positions.to_pylist(), piece.trees, strict=True):
            positions, trees = by_type.setdefault(type(tree), ([], []))
            positions.append(position)
            trees.append(tree)
        for kind, (positions, trees) in by_type.items():
            at = pa.array(positions, pa.int64())
            if kind is dict:
                yield Untyped(at, [self._tree(tree, "") for tree in trees])  # type: ignore[arg-type]
            elif kind in _TYPES:
                yield self._alone(at, pa.array(trees, _TYPES[kind]), _TREE_NAMES[kind])
            else:
                yield NoRecord(at, f"its key is {_TREE_NAMES.get(kind, 'no record')}")

    def _alone(self, positions: pa.Int64Array, values: pa.Array, what: str) -> SchemaColumns | NoRecord:
        if len(self._names) > 1:
            several = f"which cannot fill {len(self._names)} columns of {ems('data.primary.key')}"
            return NoRecord(positions, f"its key is not a record but {what}, {several}")
        return SchemaColumns(
            positions, pa.StructArray.from_arrays([values], fields=[pa.field(self._names[0], values.type)])
        )

    def _trees_of(self, piece: InferredColumns) -> Callable[[int], Tree]:
        return lambda row: self._tree(piece.tree(row), "")

    def _tree(self, tree: Tree, prefix: str) -> Tree:
        found: Tree = {}
        for name, value in tree.items():
            below = f"{prefix}{name}{SEPARATOR}"
            if self._is_entered(isinstance(value, dict) and bool(value)):
                if self._leads(below) and (inner := self._tree(value, below)):  # type: ignore[arg-type]
                    found[name] = inner
            elif self._is_key(prefix + name):
                found[name] = value
        return found

    def _rows(self, rows: pa.StructArray, prefix: str) -> pa.StructArray:
        children, fields = [], []
        for index, field in enumerate(rows.type):
            below = f"{prefix}{field.name}{SEPARATOR}"
            if self._is_entered(pa.types.is_struct(field.type) and field.type.num_fields > 0):
                inner = self._rows(rows.field(index), below) if self._leads(below) else None
                if inner is not None and inner.type.num_fields:
                    children.append(inner)
                    fields.append(field.with_type(inner.type))
            elif self._is_key(prefix + field.name):
                children.append(rows.field(index))
                fields.append(field)
        if not children:
            return pa.array([{}] * len(rows), pa.struct([]))
        return pa.StructArray.from_arrays(children, fields=fields, mask=rows.is_null() if rows.null_count else None)

    def _is_entered(self, is_object: bool) -> bool:
        return self._flatten and is_object

    def _is_key(self, joined: str) -> bool:
        return self._column(joined) in self._names

    def _leads(self, joined: str) -> bool:
        column = self._column(joined)
        return any(name.startswith(column) for name in self._names)

    def _column(self, joined: str) -> str:
        """Lower case comes first, as for values: it may make characters that no column's name has."""
        text = joined.lower() if self._lowercase else joined
        return column_name(text) if self._flatten else text


@dataclass
class Deletions:
    """The tombstones of a block. which: a mask over its records; rejected: by position, those that have no row."""

    which: np.ndarray
    parts: list[TombstoneBatch]
    rejected: dict[int, Rejection]

    def reject(self, positions: Iterable[int], reason: str, stage: Stage = Stage.SHAPE) -> None:
        """They have no row."""
        self.rejected |= {at: Rejection(stage, f"{_TOMBSTONE}, and {reason}") for at in positions}


class Tombstones:
    """One per topic and Spark task. decoder: of keys."""

    def __init__(self, settings: ShapeSettings, decoder: Decoder, reading: Reading, *, transformed: bool) -> None:
        """reading, transformed: as for values."""
        self._settings = replace(settings, explode=False, chunks=None)
        added = added_columns.names(settings)
        self._names = tuple(name for name in settings.primary_keys if name not in added)
        self._pieces = ColumnBuilder(self._settings, frozenset(), transformed=transformed, of_keys=True)
        self._fields = KeyFields(self._names, self._settings)
        plain = replace(reading, as_trees=False, anything=False, any_tree=True)
        self._decoder = decoder.for_topic(plain, None) if isinstance(decoder, LearningDecoder) else decoder

    def of(self, records: DecodedRecords, topic: TopicColumns) -> Deletions | None:
        """What becomes of the tombstones among decoded and transformed records; None when there are none."""
        which = _null_values(records)
        if not which.any():
            return None
        found = Deletions(which, [], {})
        decoded = np.zeros(len(which), np.bool_)
        for piece in self._keys(records, found):
            decoded[piece.positions.to_numpy()] = True
            for key in self._fields.of(piece):
                self._take(key, found, exact=not all(name in topic for name in self._names))
        found.reject(set(np.flatnonzero(which & ~decoded).tolist()) - found.rejected.keys(), _NO_KEY)
        return found

    def _keys(self, records: DecodedRecords, found: Deletions) -> Sequence[Piece]:
        """Their keys: those that transforms left, or as Kafka had them."""
        if records.keys is not None:
            return chosen_of(records.keys, found.which)
        keys = records.batch.keys
        assert keys is not None, "keys are read where tombstones become rows"
        wanted = pc.if_else(pa.array(found.which), keys, pa.scalar(None, keys.type))
        pieces, invalid = decode_given(self._decoder, wanted)
        found.rejected |= {at: Rejection(Stage.KEY_CONVERTER, of_key(why)) for at, why in invalid.items()}
        return pieces

    def _take(self, key: Piece | NoRecord, found: Deletions, *, exact: bool) -> None:
        """exact: the types of the keys' own values are wanted, because they may begin a column."""
        if isinstance(key, NoRecord):
            found.reject(key.positions.to_pylist(), key.reason)
        elif not isinstance(key, Untyped) and not key.rows.type.num_fields:
            found.reject(key.positions.to_pylist(), self._why_null(self._names))
        else:
            for part in self._pieces.of(key):
                self._take_part(part, found, exact=exact)

    def _take_part(self, part: ColumnBatch | TreeBatch | InferredBatch, found: Deletions, *, exact: bool) -> None:
        if isinstance(part, InferredBatch):
            self._add_inferred(part, found, exact=exact)
            return
        for position, rejection in part.invalid.items():
            found.reject([position], f"of its key: {rejection}", rejection.stage)
        if isinstance(part, ColumnBatch):
            self._add(part, found)
        else:
            self._add_rows(zip(part.positions, part.trees, strict=True), found)

    def _add_inferred(self, part: InferredBatch, found: Deletions, *, exact: bool) -> None:
        fallback = pa.repeat(pa.scalar(True, pa.bool_()), len(part.batch)) if exact else part.fallback
        if fallback is None:
            self._add(part.batch, found)
            return
        rest = pc.invert(fallback)
        arrays = tuple(array.filter(rest) for array in part.batch.arrays)
        self._add(ColumnBatch(part.batch.positions.filter(rest), part.batch.columns, arrays), found)
        self._add_rows(_each_alone(part, pc.indices_nonzero(fallback).to_pylist(), found), found)

    def _add_rows(self, keys: Iterable[tuple[int, Sequence[Tree]]], found: Deletions) -> None:
        """Keys without a schema, those of the same types as columns together."""
        alike: dict[str, tuple[ValueTypes, list[int], list[Row]]] = {}
        for position, trees in keys:
            try:
                (row,) = rows_of(trees, self._settings) if trees[0] else [{}]
            except InvalidValue as error:
                found.reject([position], f"of its key: {error}")
                continue
            row = {name: value for name, value in row.items() if name in self._names}
            types = value_types_of([row], frozenset())
            _, positions, rows = alike.setdefault(repr(types), (types, [], []))
            positions.append(position)
            rows.append(row)
        for types, positions, rows in alike.values():
            fields = tuple(to_fields(types))
            arrays = tuple(pa.array([row[field.name] for row in rows], field.type) for field in fields)
            self._add(ColumnBatch(pa.array(positions, pa.int64()), fields, arrays), found)

    def _add(self, batch: ColumnBatch, found: Deletions) -> None:
        """The rows of a batch that have all the primary keys that they must have."""
        own = {column.name: (column, array) for column, array in zip(batch.columns, batch.arrays, strict=True)}
        own = {name: both for name, both in own.items() if name in self._names}
        absent = {name: _nulls(own[name][1]) if name in own else np.ones(len(batch), np.bool_) for name in self._names}
        join = np.all if self._settings.allow_null_primary_keys else np.any
        bad = join(list(absent.values()), axis=0)
        for row in np.flatnonzero(bad).tolist():
            names = [name for name in self._names if absent[name][row]]
            found.reject([batch.positions[row].as_py()], self._why_null(names))
        kept = pa.array(~bad)
        columns, arrays = tuple(one for one, _ in own.values()), tuple(array.filter(kept) for _, array in own.values())
        if kept.true_count:
            found.parts.append(TombstoneBatch(ColumnBatch(batch.positions.filter(kept), columns, arrays)))

    def _why_null(self, names: Sequence[str]) -> str:
        """What is wrong with a key that has no value for these."""
        columns = f"column {names[0]}" if len(names) == 1 else f"columns {', '.join(names)}"
        may = "" if self._settings.allow_null_primary_keys else f", which only {ems('allow.null.pk')}=true permits"
        if len(names) == len(self._names):
            may = f"; it needs a field of such a name ({ems('data.primary.key')})"
        return f"its key has no value for {columns}{may}"


def _null_values(records: DecodedRecords) -> np.ndarray:
    which = np.zeros(len(records.batch), np.bool_)
    which[records.positions.to_numpy()] = True
    for piece in records.values:
        which[piece.positions.to_numpy()] = False
    return which


def _nulls(array: pa.Array) -> np.ndarray:
    found: np.ndarray = array.is_null().to_numpy(zero_copy_only=False)
    return found


def _each_alone(part: InferredBatch, rows: Iterable[int], found: Deletions) -> Iterator[tuple[int, Sequence[Tree]]]:
    for row in rows:
        position = part.batch.positions[row].as_py()
        try:
            yield position, part.trees(row)
        except InvalidValue as error:
            found.reject([position], f"of its key: {error}", rejection_of(error).stage)


_NUMBERS: Final = (pa.int32(), pa.int64(), pa.float32(), pa.float64())
_BEYOND: Final = 2.0**63


class TombstoneFit:
    """Which tombstones of one batch the topic's columns take, as these are when asked.

    Their keys must be values that a row of the topic can have there. A number may be written in another type than the
    column's as long as it is the same number. Nothing is widened for a tombstone: a key that no row has deletes
    nothing, and one that only looks alike would delete another row. names: the primary keys from the payload.
    """

    def __init__(self, batch: ColumnBatch, topic: TopicColumns, names: Sequence[str]) -> None:
        self._batch, self._topic, self._names = batch, topic, names
        self._own = {column.name: array for column, array in zip(batch.columns, batch.arrays, strict=True)}
        self._version = -1
        self._unfit = np.array([], np.int64)

    def next(self, row: int) -> int:
        """The first row from here on that the columns do not take; the batch's length for none."""
        if self._version != self._topic.version:
            self._version = self._topic.version
            self._unfit = self._found()
        at = int(np.searchsorted(self._unfit, row))
        return int(self._unfit[at]) if at < len(self._unfit) else len(self._batch)

    def step(self) -> Step:
        """What the rows ask of the topic's columns: those that it lacks, and null where another column is required."""
        return self._topic.step(self._columns())

    def why_not(self, row: int) -> str:
        """What is wrong with a row that does not fit."""
        if missing := [name for name in self._names if name not in self._topic and name not in self._own]:
            why = "which no record of the topic had before; let keys have it, or a record with a value come first"
            return (
                f"{ems('tombstones')}=row: it is a tombstone, and its key has no value for column {missing[0]}, {why}"
            )
        for name, array in self._own.items():
            if array[row].is_valid and name in self._topic:
                column = self._topic.field(name).type
                mask = different(array.slice(row, 1), column)
                if mask is not None and mask[0].as_py():
                    return _why(name, array.type, column)
        raise AssertionError("a tombstone that fits")

    def _columns(self) -> Columns:
        """The primary keys' columns, those that are there as they are."""
        own = {column.name: column for column in self._batch.columns}
        return tuple(nullable(self._topic.field(name) if name in self._topic else own[name]) for name in own)

    def _found(self) -> np.ndarray:
        if any(name not in self._topic and name not in self._own for name in self._names):
            return np.arange(len(self._batch))
        mask: pa.BooleanArray | None = None
        for name, array in self._own.items():
            if name in self._topic:
                mask = either(mask, different(array, self._topic.field(name).type))
        return np.array([], np.int64) if mask is None else np.flatnonzero(mask.to_numpy(zero_copy_only=False))


def different(array: pa.Array, to: pa.DataType) -> pa.BooleanArray | None:
    """Values that are not the same in a column of another type; None when all are."""
    if array.type.equals(to) or array.null_count == len(array):
        return None
    if array.type in _NUMBERS and to in _NUMBERS:
        found = _other_numbers(array, to)
        return pa.array(found) if found.any() else None
    if not takes(to, array.type):
        return array.is_valid()
    if can_align(array, to):
        return None
    return pa.array([not can_align(array.slice(row, 1), to) for row in range(len(array))], pa.bool_())


def as_number(array: pa.Array, to: pa.DataType) -> pa.Array:
    """Numbers, none of them `different`, as another type; other arrays as they are."""
    are_numbers = array.type in _NUMBERS and to in _NUMBERS
    return array.cast(to, safe=False) if are_numbers else array


def _other_numbers(array: pa.Array, to: pa.DataType) -> np.ndarray:
    """Which numbers another type of number does not hold."""
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    given = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
    wanted = to.to_pandas_dtype()
    with np.errstate(all="ignore"):
        if np.issubdtype(given.dtype, np.floating) and np.issubdtype(wanted, np.integer):
            given = np.where((given >= -_BEYOND) & (given < _BEYOND), given, 0.5)
        changed = given.astype(wanted)
        if np.issubdtype(given.dtype, np.integer) and np.issubdtype(wanted, np.floating):
            changed = np.where(changed < _BEYOND, changed, -0.5)
        same = changed.astype(given.dtype) == given
    different: np.ndarray = valid & ~same
    return different


def _why(name: str, own: pa.DataType, column: pa.DataType) -> str:
    given = f"{arrow_types.type_name(own)} that no row can have in that column ({column}), so it would delete nothing"
    cure = "let key.converter or a transform give the key the type that the value has"
    return f"{ems('tombstones')}=row: it is a tombstone, and its key's {show((name,))} is {given}; {cure}"
