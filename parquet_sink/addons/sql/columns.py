"""The fields and metadata that a query's expressions look at, with the type that each record has by itself.

A record without a schema has its own types: a field that is null or not there has the type of NULL, a whole number is
a BIGINT, a fraction a DOUBLE. Records are then taken together where all their types agree, so that nothing depends on
which records happen to be in a batch.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.addons.sql import fields
from parquet_sink.addons.sql.parts import KEY, Input, Names
from parquet_sink.addons.sql.types import MILLISECONDS, fitted, type_of
from parquet_sink.convert.decoded import InferredColumns, Piece, SchemaColumns, Untyped
from parquet_sink.convert.invalid import InvalidValue, show
from parquet_sink.transform.records import DecodedRecords, Origins

Reasons = dict[int, str]
"""By row of a piece, why a query cannot be asked of its record."""

_NULL: Final = 0


class Types:
    """The types met in a piece, by number."""

    def __init__(self) -> None:
        self.found: list[pa.DataType] = [pa.null()]
        self._numbers: dict[pa.DataType, int] = {pa.null(): _NULL}

    def number(self, arrow: pa.DataType) -> int:
        """The type's."""
        if arrow not in self._numbers:
            self._numbers[arrow] = len(self.found)
            self.found.append(arrow)
        return self._numbers[arrow]


class Column:
    """One field of all records of a piece. kinds: for each the number of its type."""

    def __init__(self, kinds: np.ndarray, types: Types, take: Callable[[int, np.ndarray], pa.Array]) -> None:
        self.kinds, self._types, self._take = kinds, types, take

    def take(self, kind: int, rows: np.ndarray) -> pa.Array:
        """The values of some rows, which all have this type."""
        return pa.nulls(len(rows)) if kind == _NULL else self._take(kind, rows)


def alike(columns: Sequence[Column], rows: np.ndarray) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """The types of all columns that some rows share, and the places of these in `rows`, in order."""
    if not len(rows):
        return
    key = np.zeros(len(rows), np.int64)
    for column in columns:
        kinds = column.kinds[rows]
        if (kinds == kinds[0]).all():
            continue
        key = pa.array(key * (int(kinds.max()) + 1) + kinds).dictionary_encode().indices.to_numpy().astype(np.int64)
    for number in range(int(key.max()) + 1):
        which = np.flatnonzero(key == number)
        first = rows[which[0]]
        yield tuple(int(column.kinds[first]) for column in columns), which


class Columns:
    """What a query looks at in the records of one piece. bad: rows that it cannot be asked of."""

    def __init__(self, records: DecodedRecords, piece: Piece, inputs: Sequence[Input], names: frozenset[str]) -> None:
        """names: fields that objects have, if only as null, where they are used as a whole."""
        self.types, self.bad = Types(), Reasons()
        self._records, self._piece, self._names = records, piece, names
        self._count = len(piece.positions)
        self._trees: Mapping[int, object] = _Kept(piece)
        self._metadata = frozenset(one.source for one in inputs if one.source)
        self._check_metadata()
        self.columns = [self._column(one) for one in inputs]

    def groups(self) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
        """The rows that share the types of all columns: those types, and the rows, in order."""
        rows = np.arange(self._count)
        if self.bad:
            rows = np.delete(rows, list(self.bad))
        for kinds, which in alike(self.columns, rows):
            yield kinds, rows[which]

    def kept(self, names: Names) -> Column:
        """A field of the records, as it is."""
        self._names = frozenset()
        return self._column(Input("", "", names))

    def _column(self, one: Input) -> Column:
        if one.source == KEY:
            return self._key(one.names)
        if one.source:
            return self._whole(_metadata(Origins(self._records, self._piece.positions), one.source))
        if isinstance(self._piece, SchemaColumns):
            try:
                return self._whole(fields.taken(self._piece.rows, fields.of_type(self._piece.rows.type, one.names)))
            except InvalidValue as error:
                self.bad |= dict.fromkeys(range(self._count), str(error))
                return self._whole(pa.nulls(self._count))
        found = None if isinstance(self._piece, Untyped) else self._inferred(self._piece, one.names)
        return self._of_trees(one.names) if found is None else found

    def _whole(self, array: pa.Array) -> Column:
        """A column that has one type."""
        kinds = np.full(self._count, self.types.number(array.type))
        return Column(kinds, self.types, lambda _, rows: _some(array, rows))

    def _of_trees(self, names: Names) -> Column:
        kinds = np.zeros(self._count, np.int64)
        values: list[object] = [None] * self._count
        for row in range(self._count):
            self._put(row, self._trees[row], names, kinds, values)
        return self._of_values(kinds, values)

    def _put(self, row: int, tree: object, names: Names, kinds: np.ndarray, values: list[object]) -> None:
        """The value at a path of a tree, and its type."""
        try:
            found = fields.of_tree(tree, names)
            if found is not None and found != {}:
                arrow = type_of(found, self._names)
                values[row] = fitted(found, arrow)
                kinds[row] = self.types.number(arrow)
        except InvalidValue as error:
            self.bad[row] = _about(names, error)

    def _of_values(self, kinds: np.ndarray, values: Sequence[object]) -> Column:
        def take(kind: int, rows: np.ndarray) -> pa.Array:
            return pa.array([values[row] for row in rows.tolist()], self.types.found[kind])

        return Column(kinds, self.types, take)

    def _inferred(self, piece: InferredColumns, names: Names) -> Column | None:
        """None where the columns do not tell the types; then the trees do."""
        array = _scalar(piece, names)
        if array is None:
            return None
        kinds = np.zeros(self._count, np.int64)
        if array.null_count < len(array):
            valid = array.is_valid().to_numpy(zero_copy_only=False)
            kinds[valid] = self.types.number(array.type)
        if not pa.types.is_floating(array.type):
            return Column(kinds, self.types, lambda _, rows: _some(array, rows))
        whole = self.types.number(pa.int64())
        for row in np.flatnonzero(pc.equal(array, pc.trunc(array)).fill_null(False).to_numpy(zero_copy_only=False)):
            if type(fields.of_tree(self._trees[int(row)], names)) is int:
                kinds[row] = whole
        return Column(kinds, self.types, lambda kind, rows: _numbers(array, rows, whole=kind == whole))

    def _key(self, names: Names) -> Column:
        positions = self._piece.positions.to_numpy()
        kinds = np.zeros(self._count, np.int64)
        values: list[object] = [None] * self._count
        arrays: dict[int, tuple[np.ndarray, list[pa.Array]]] = {}
        for piece in self._records.keys or ():
            own = piece.positions.to_numpy()
            at = np.minimum(np.searchsorted(own, positions), len(own) - 1)
            rows = np.flatnonzero(own[at] == positions)
            if isinstance(piece, SchemaColumns):
                self._typed_key(piece, names, rows, at[rows], kinds, arrays)
                continue
            trees = _Kept(piece)
            for row in rows.tolist():
                self._put(row, trees[int(at[row])], names, kinds, values)
        untyped = self._of_values(kinds, values)
        whole = {kind: (where, pa.concat_arrays(found)) for kind, (where, found) in arrays.items()}

        def take(kind: int, rows: np.ndarray) -> pa.Array:
            if kind not in whole:
                return untyped.take(kind, rows)
            where, array = whole[kind]
            return _some(array, where[rows])

        return Column(kinds, self.types, take)

    def _typed_key(
        self,
        piece: SchemaColumns,
        names: Names,
        rows: np.ndarray,
        at: np.ndarray,
        kinds: np.ndarray,
        arrays: dict[int, tuple[np.ndarray, list[pa.Array]]],
    ) -> None:
        try:
            array = fields.taken(piece.rows, fields.of_type(piece.rows.type, names)).take(pa.array(at))
        except InvalidValue as error:
            self.bad |= dict.fromkeys(rows.tolist(), f"_key: {error}")
            return
        kind = self.types.number(array.type)
        where, found = arrays.setdefault(kind, (np.zeros(self._count, np.int64), []))
        where[rows] = np.arange(len(rows)) + sum(map(len, found))
        found.append(array)
        kinds[rows] = kind

    def _check_metadata(self) -> None:
        """A record may not have a field by the name of a metadata column that the query asks for."""
        for name in self._metadata:
            reason = (
                f"field {name} has the name of a column that the query sees of each record; rename the field before, "
                "by ReplaceField"
            )
            if isinstance(self._piece, Untyped):
                rows = [row for row in range(self._count) if _has(self._trees[row], name)]
            else:
                rows = _rows_with(self._piece.rows, name, typed=isinstance(self._piece, SchemaColumns))
            self.bad |= dict.fromkeys(rows, reason)


class _Kept(Mapping[int, object]):
    """The trees of a piece by row, each made once."""

    def __init__(self, piece: Piece) -> None:
        self._piece = piece
        self._made: dict[int, object] = {}

    def __getitem__(self, row: int) -> object:
        piece = self._piece
        if isinstance(piece, Untyped):
            return piece.trees[row]
        assert isinstance(piece, InferredColumns)
        if row not in self._made:
            self._made[row] = piece.tree(row)
        return self._made[row]

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __len__(self) -> int:
        return len(self._piece.positions)


def _scalar(piece: InferredColumns, names: Names) -> pa.Array | None:
    """A column without lists and objects at a path of records read as columns; None where there is none for sure."""
    array, arrow = piece.rows, piece.rows.type
    if any(name.lower() == names[0].lower() for name in piece.lists):
        return None
    for name in names:
        if not pa.types.is_struct(arrow):
            return pa.nulls(len(array)) if array.null_count == len(array) else None
        found = [one for one in range(arrow.num_fields) if arrow.field(one).name.lower() == name.lower()]
        if len(found) > 1:
            return None
        if not found:
            return pa.nulls(len(array))
        array = pc.struct_field(array, found)
        arrow = array.type
    return None if pa.types.is_struct(arrow) else array


def _metadata(origins: Origins, source: str) -> pa.Array:
    if source == "_topic":
        return origins.topics
    if source == "_partition":
        return pa.repeat(pa.scalar(origins.partition, pa.int32()), len(origins))
    return origins.offsets if source == "_offset" else origins.timestamps.cast(MILLISECONDS)


def _some(array: pa.Array, rows: np.ndarray) -> pa.Array:
    """Rows of an array, in order; a row may come several times."""
    if len(rows) == len(array) and bool((rows == np.arange(len(rows))).all()):
        return array
    return array.take(pa.array(rows))


def _numbers(array: pa.Array, rows: np.ndarray, *, whole: bool) -> pa.Array:
    found = _some(array, rows)
    return found.cast(pa.int64()) if whole else found


def _has(tree: object, name: str) -> bool:
    return isinstance(tree, dict) and any(key.lower() == name and tree[key] is not None for key in tree)


def _rows_with(rows: pa.Array, name: str, *, typed: bool) -> list[int]:
    """Rows that have a field, whatever its case."""
    arrow = rows.type
    count = arrow.num_fields if pa.types.is_struct(arrow) else 0
    found = [at for at in range(count) if arrow.field(at).name.lower() == name]
    if found and typed:
        return list(range(len(rows)))
    return [row for at in found for row in pc.indices_nonzero(pc.struct_field(rows, [at]).is_valid()).to_pylist()]


def _about(names: Names, error: InvalidValue) -> str:
    text = str(error)
    return text if "the query asks" in text or "of the query" in text else f"field {show(names) or KEY}: {text}"
