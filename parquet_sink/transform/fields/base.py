"""The base of transforms that change the key or the value of each record by itself.

The exact form defines what becomes of a record: `FieldTransform.tree` without a schema, `TypedChange.value` with one.
Beside it a transform may have a form for columns, which must give the same; where that cannot tell, it says so of the
rows that it is in doubt of, and these are taken one by one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, TypeAlias, cast

import numpy as np
import pyarrow as pa

from parquet_sink.convert.arrays import either
from parquet_sink.convert.decoded import InferredColumns, Piece, SchemaColumns, Tree, Untyped
from parquet_sink.model.records import VALUES_ONLY, RecordParts
from parquet_sink.transform.fields.plain import columns_of, from_plain, read_as, records, to_plain
from parquet_sink.transform.protocol import RecordFault, Side
from parquet_sink.transform.records import DecodedRecords, Origin, Origins, as_trees, rows_of

_TYPES: Final = 256
"""Record types whose way is remembered."""
Found: TypeAlias = tuple[pa.Array, pa.BooleanArray | None]
"""A column, and rows whose value must be made by the exact form; None for none."""


@dataclass(frozen=True)
class Columns:
    """Many records changed at once.

    rows: one for each record, in the same order; a null row is a tombstone. doubtful: rows that must be changed one by
    one, whatever stands for them in `rows`; None for none. lists: of an `InferredColumns` piece, as there.
    """

    rows: pa.Array
    doubtful: pa.BooleanArray | None = None
    lists: frozenset[str] = frozenset()


class TypedChange(ABC):
    """What a transform does to records of one type. arrow: the type that they have then."""

    def __init__(self, arrow: pa.DataType) -> None:
        self.arrow = arrow

    @abstractmethod
    def value(self, value: object, origin: Origin) -> object:
        """The exact form: one record, as `plain.to_plain` gives it, changed; not in place. None: a tombstone.

        Raises RecordFault.
        """

    def columns(self, rows: pa.Array, origins: Origins) -> Columns | None:
        """Many records at once; None: one by one."""
        return None


class FieldTransform(ABC):
    """A `transform.protocol.Transform` for keys or values."""

    def __init__(self, side: Side) -> None:
        self._on_key = side == "key"
        self._change = lru_cache(_TYPES)(self._typed_or_why)

    @property
    def needs(self) -> RecordParts:
        """Keys where it works on keys."""
        return RecordParts(keys=True) if self._on_key else VALUES_ONLY

    @abstractmethod
    def tree(self, tree: object, origin: Origin) -> object:
        """The exact form for a record without a schema, changed; not in place. None, given or returned: a tombstone.

        Raises RecordFault.
        """

    @abstractmethod
    def typed(self, arrow: pa.DataType) -> TypedChange:
        """What is done to records of a type. Raises RecordFault when no record of that type can be changed."""

    def inferred(self, piece: InferredColumns, origins: Origins) -> Columns | None:
        """Records without a schema that were read as columns, many at once; None: one by one.

        Only rows are given; trees are changed by `tree` when somebody asks for one.
        """
        return None

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        pieces, rejected = self._changed(records, (records.keys or ()) if self._on_key else records.values)
        found = replace(records, keys=pieces) if self._on_key else replace(records, values=pieces)
        return found.reject(rejected)

    def _changed(self, records: DecodedRecords, mine: tuple[Piece, ...]) -> tuple[tuple[Piece, ...], dict[int, str]]:
        """What becomes of these keys or values; and by position why one cannot be changed."""
        work = _Work(self, records)
        pieces = (*(changed for piece in mine for changed in work.piece(piece)), *work.tombstones(mine))
        return pieces, work.rejected

    def change(self, arrow: pa.DataType) -> TypedChange:
        """`typed`, remembered. Raises RecordFault."""
        found = self._change(arrow)
        if isinstance(found, str):
            raise RecordFault(found)
        return found

    def _typed_or_why(self, arrow: pa.DataType) -> TypedChange | str:
        try:
            return self.typed(arrow)
        except RecordFault as error:
            return str(error)


class _Work:
    """One transform on the records of one batch. rejected: by position, why a record cannot be changed."""

    def __init__(self, transform: FieldTransform, records: DecodedRecords) -> None:
        self._transform, self._records = transform, records
        self.rejected: dict[int, str] = {}

    def piece(self, piece: Piece) -> Sequence[Piece]:
        """What becomes of a piece."""
        if isinstance(piece, SchemaColumns):
            return self._typed(piece)
        if isinstance(piece, Untyped):
            return self._trees(zip(piece.positions.to_pylist(), piece.trees, strict=True))
        return self._inferred(piece)

    def tombstones(self, pieces: Iterable[Piece]) -> Sequence[Piece]:
        """Records that were tombstones, and are none any more."""
        return self._trees((position, None) for position in self._records.absent_from(pieces).to_pylist())

    def _trees(self, trees: Iterable[tuple[int, object]]) -> Sequence[Untyped]:
        origins = Origins(self._records, self._records.positions)
        positions, changed = [], []
        for position, tree in trees:
            try:
                found = self._transform.tree(tree, origins.at(position))
            except RecordFault as error:
                self.rejected[position] = str(error)
                continue
            if found is not None:
                positions.append(position)
                changed.append(found)
        return (Untyped(pa.array(positions, pa.int64()), changed),) if changed else ()

    def _inferred(self, piece: InferredColumns) -> Sequence[Piece]:
        origins = Origins(self._records, piece.positions)
        found = self._transform.inferred(piece, origins)
        if found is None:
            return self.piece(as_trees(piece))
        change = self._transform.tree

        def tree(row: int) -> Tree:
            return cast("Tree", change(piece.tree(row), origins.of(row)))

        changed = InferredColumns(piece.positions, found.rows, tree, found.lists)
        alone = _rows(found.doubtful)
        left = np.delete(np.arange(len(found.rows)), np.union1d(alone, _rows(found.rows.is_null())))
        positions = piece.positions.to_numpy()[alone].tolist()
        others = self._trees((at, piece.tree(row)) for at, row in zip(positions, alone.tolist(), strict=True))
        return (rows_of(changed, left), *others) if len(left) else others

    def _typed(self, piece: SchemaColumns) -> Sequence[Piece]:
        try:
            change = self._transform.change(piece.rows.type)
        except RecordFault as error:
            self.rejected |= dict.fromkeys(piece.positions.to_pylist(), str(error))
            return ()
        found = change.columns(piece.rows, Origins(self._records, piece.positions))
        if found is None:
            return _valid(self._one_by_one(piece, change)[0])
        alone = _rows(found.doubtful)
        if not len(alone):
            return _valid(SchemaColumns(piece.positions, found.rows))
        which = pa.array(alone)
        lone, made = self._one_by_one(SchemaColumns(piece.positions.take(which), piece.rows.take(which)), change)
        kept = np.delete(np.arange(len(piece.positions)), alone)
        order = pa.array(np.argsort(np.concatenate([kept, alone[made]])))
        both = (
            pa.concat_arrays([one.take(pa.array(kept)), other])
            for one, other in ((piece.positions, lone.positions), (found.rows, lone.rows))
        )
        return _valid(SchemaColumns(*(array.take(order) for array in both)))

    def _one_by_one(self, piece: SchemaColumns, change: TypedChange) -> tuple[SchemaColumns, list[int]]:
        """The rows that could be changed, and which these are."""
        origins = Origins(self._records, piece.positions)
        made: list[int] = []
        changed = []
        for row, value in enumerate(to_plain(piece.rows)):
            try:
                changed.append(change.value(value, origins.of(row)))
                made.append(row)
            except RecordFault as error:
                self.rejected[piece.positions[row].as_py()] = str(error)
        positions = piece.positions.take(pa.array(made, pa.int64()))
        return SchemaColumns(positions, from_plain(changed, change.arrow)), made


def _rows(mask: pa.BooleanArray | None) -> np.ndarray:
    return np.array([], np.int64) if mask is None else np.flatnonzero(mask.to_numpy(zero_copy_only=False))


def _valid(piece: SchemaColumns) -> Sequence[SchemaColumns]:
    """The piece without null rows, which are tombstones."""
    if piece.rows.null_count:
        valid = piece.rows.is_valid()
        piece = SchemaColumns(piece.positions.filter(valid), piece.rows.filter(valid))
    return (piece,) if len(piece.positions) else ()


@dataclass(frozen=True)
class FieldChange:
    """What is done to one field. exact: to a plain value that is not null, raising RecordFault; column: to many.

    arrow: the field's type then.
    """

    arrow: pa.DataType
    exact: Callable[[object], object]
    column: Callable[[pa.Array], Found]


class FieldChanges(TypedChange):
    """Some fields of a struct changed, each by itself; null stays null. changes: by name, in the order of fields."""

    def __init__(self, arrow: pa.DataType, changes: Mapping[str, FieldChange]) -> None:
        new = {name: change.arrow for name, change in changes.items()}
        super().__init__(pa.struct([one.with_type(new.get(one.name, one.type)) for one in arrow]))
        self._changes = changes

    def value(self, value: object, origin: Origin) -> object:
        assert isinstance(value, dict)
        given = ((name, change, value[name]) for name, change in self._changes.items())
        return {**value, **{name: change.exact(old) for name, change, old in given if old is not None}}

    def columns(self, rows: pa.Array, origins: Origins) -> Columns:
        arrays, doubtful = columns_of(rows), None
        for name, change in self._changes.items():
            arrays[name], doubt = change.column(arrays[name])
            doubtful = either(doubtful, doubt)
        return Columns(records(list(self.arrow), list(arrays.values()), len(rows)), doubtful)


class FieldSelection(TypedChange):
    """Some fields of a struct, as they are. arrow: a struct of these."""

    def value(self, value: object, origin: Origin) -> object:
        assert isinstance(value, dict)
        return {one.name: value[one.name] for one in self.arrow}

    def columns(self, rows: pa.Array, origins: Origins) -> Columns:
        arrays = columns_of(rows)
        return Columns(records(list(self.arrow), [arrays[one.name] for one in self.arrow], len(rows)))


class WholeChange(TypedChange):
    """The whole key or value changed."""

    def __init__(self, change: FieldChange) -> None:
        super().__init__(change.arrow)
        self._change = change

    def value(self, value: object, origin: Origin) -> object:
        return self._change.exact(value)

    def columns(self, rows: pa.Array, origins: Origins) -> Columns:
        return Columns(*self._change.column(rows))


def changed_read(
    piece: InferredColumns, names: Collection[str], change: Callable[[str, pa.Array], Found]
) -> Columns | None:
    """Some fields of records without a schema changed, null where there is none; None: one by one."""
    if not piece.lists.isdisjoint(names):
        return None
    arrays, doubtful = columns_of(piece.rows), None
    for name in names:
        array = arrays[name] if name in arrays else pa.nulls(len(piece.rows))
        arrays[name], doubt = change(name, array)
        doubtful = either(doubtful, doubt)
    return Columns(read_as(arrays, len(piece.rows)), doubtful, piece.lists)
