"""What a query makes of records without a schema.

They stay without one where all that the query computes can be in one: numbers, booleans, texts, lists and objects.
With a date, a timestamp, a decimal or bytes among it they get a schema, each that of its own fields.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.addons.sql import fields
from parquet_sink.addons.sql.columns import Columns, alike
from parquet_sink.addons.sql.computing import Results
from parquet_sink.addons.sql.fields import expanded, is_doubtful
from parquet_sink.addons.sql.parts import ComputedColumn, Item, KeptColumn, Names, Star
from parquet_sink.addons.sql.query import Query
from parquet_sink.addons.sql.typed import duplicate_column
from parquet_sink.addons.sql.types import fitted, is_plain, type_of
from parquet_sink.convert.decoded import InferredColumns, Piece, SchemaColumns, Tree, Untyped
from parquet_sink.convert.invalid import InvalidValue, show

UntypedPiece = Untyped | InferredColumns
_PLAIN = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class _Cell:
    """Stands for what an expression gives, where only the names of columns are asked for."""

    index: int


def made(
    query: Query, piece: UntypedPiece, columns: Columns, results: Results, failed: dict[int, str]
) -> Iterator[Piece]:
    """The rows; why a record has none goes to `failed`, by row of the piece."""
    if not all(is_plain(array.type) for array in results.arrays):
        make = _from_trees if any(isinstance(item, Star) for item in query.items) else _from_columns
        yield from make(query, piece, columns, results, failed)
        return
    results = _finite(query, results, failed)
    inferred = _inferred(query, piece, results) if isinstance(piece, InferredColumns) else None
    if inferred is not None:
        yield inferred
        return
    positions, trees = [], []
    every = piece.positions.to_numpy()
    cells = [array.to_pylist() for array in results.arrays]
    for at, row in enumerate(results.rows.tolist()):
        try:
            trees.append(_tree(query, _source(piece, row), [cell[at] for cell in cells]))
            positions.append(int(every[row]))
        except InvalidValue as error:
            failed[row] = str(error)
    if trees:
        yield Untyped(pa.array(positions, pa.int64()), trees)


def _source(piece: UntypedPiece, row: int) -> object:
    return piece.trees[row] if isinstance(piece, Untyped) else piece.tree(row)


def _tree(query: Query, tree: object, cells: Sequence[object]) -> Tree:
    """The exact form: one record, with what the expressions gave for it. Raises InvalidValue."""
    found: Tree = {}
    for item in query.items:
        if isinstance(item, Star):
            pairs = list(_star(item, tree, cells))
        elif isinstance(item, KeptColumn):
            pairs = [(item.name, fields.of_tree(tree, item.names))]
        else:
            pairs = [(item.name, cells[item.index])]
        for name, value in pairs:
            if name in found:
                raise InvalidValue(duplicate_column(name))
            found[name] = value
    return found


def _star(star: Star, tree: object, cells: Sequence[object]) -> Iterator[tuple[str, object]]:
    if not isinstance(tree, dict):
        raise InvalidValue("the value is not an object, and the query asks for all its fields")
    for name, source in expanded(star, list(tree)):
        yield name, tree[source] if isinstance(source, str) else cells[source.index]


def _finite(query: Query, results: Results, failed: dict[int, str]) -> Results:
    """Without records that have a number that is none, which only a schema permits."""
    bad: set[int] = set()
    for one, array in zip(query.computed, results.arrays, strict=True):
        if pa.types.is_floating(array.type):
            if not pc.all(pc.is_finite(array)).as_py() and len(array) > array.null_count:
                odd = pc.fill_null(pc.invert(pc.is_finite(array)), fill_value=False)
                rows = results.rows[odd.to_numpy(zero_copy_only=False)].tolist()
            else:
                rows = []
        elif pa.types.is_nested(array.type):
            rows = [results.rows[at] for at, value in enumerate(array.to_pylist()) if not _is_finite(value)]
        else:
            rows = []
        why = f"column {show((one.name,))} of the query is not a finite number, as a record without a schema must have"
        failed.update((int(row), why) for row in rows)
        bad.update(int(row) for row in rows)
    if not bad:
        return results
    kept = ~np.isin(results.rows, list(bad))
    return Results(results.rows[kept], [array.filter(pa.array(kept)) for array in results.arrays])


def _is_finite(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or isfinite(value)


def _inferred(query: Query, piece: InferredColumns, results: Results) -> InferredColumns | None:
    """All at once, as columns; None where they must be made one by one."""
    if query.unnests or any(pa.types.is_nested(array.type) for array in results.arrays):
        return None
    columns: list[tuple[str, pa.Array, bool]] = []
    for item in query.items:
        if isinstance(item, Star):
            if is_doubtful(item, piece.rows.type.names):
                return None
            columns += _all_columns(item, piece, results)
        elif isinstance(item, KeptColumn):
            kept = _kept(piece, item.names)
            if kept is None:
                return None
            columns.append((item.name, kept.take(pa.array(results.rows)), _is_list(piece, item.names)))
        else:
            columns.append((item.name, results.arrays[item.index], False))
    names = [name for name, _, _ in columns]
    if len(set(names)) < len(names) or not names:
        return None
    rows = results.rows
    structs = pa.StructArray.from_arrays([array for _, array, _ in columns], names=names)

    def tree(row: int) -> Tree:
        return _tree(query, piece.tree(int(rows[row])), [array[row].as_py() for array in results.arrays])

    lists = frozenset(name for name, _, is_list in columns if is_list)
    return InferredColumns(piece.positions.take(pa.array(rows)), structs, tree, lists)


def _all_columns(star: Star, piece: InferredColumns, results: Results) -> Iterator[tuple[str, pa.Array, bool]]:
    chosen = pa.array(results.rows)
    for name, source in expanded(star, piece.rows.type.names):
        if isinstance(source, str):
            yield name, piece.rows.field(source).take(chosen), source in piece.lists
        else:
            yield name, results.arrays[source.index], False


def _kept(piece: InferredColumns, names: Names) -> pa.Array | None:
    """The column at a path, None where a record may have something else there."""
    array = piece.rows
    if len(names) > 1 and _is_list(piece, names):
        return None
    for name in names:
        if not pa.types.is_struct(array.type):
            return pa.nulls(len(array)) if array.null_count == len(array) else None
        arrow = array.type
        found = [at for at in range(arrow.num_fields) if arrow.field(at).name.lower() == name.lower()]
        if len(found) > 1:
            return None
        if not found:
            return pa.nulls(len(array))
        array = pc.struct_field(array, found)
    return array


def _is_list(piece: InferredColumns, names: Names) -> bool:
    return any(name.lower() == names[0].lower() for name in piece.lists)


def _from_columns(
    query: Query, piece: UntypedPiece, columns: Columns, results: Results, failed: dict[int, str]
) -> Iterator[SchemaColumns]:
    """Records with a schema, of fields that the query names."""
    kept = {item: columns.kept(item.names) for item in query.items if isinstance(item, KeptColumn)}
    failed |= columns.bad
    places = np.flatnonzero(~np.isin(results.rows, list(columns.bad))) if columns.bad else np.arange(len(results.rows))
    rows = results.rows[places]
    for kinds, which in alike(list(kept.values()), rows):
        chosen = pa.array(places[which])
        found = {item: column.take(kind, rows[which]) for (item, column), kind in zip(kept.items(), kinds, strict=True)}
        arrays = [found[item] if isinstance(item, KeptColumn) else _cell(item, results, chosen) for item in query.items]
        names = [item.name for item in query.items if not isinstance(item, Star)]
        positions = piece.positions.take(pa.array(rows[which]))
        yield SchemaColumns(positions, pa.StructArray.from_arrays(arrays, names=names))


def _cell(item: Item, results: Results, chosen: pa.Array) -> pa.Array:
    assert isinstance(item, ComputedColumn)
    return results.arrays[item.index].take(chosen)


def _from_trees(
    query: Query, piece: UntypedPiece, columns: Columns, results: Results, failed: dict[int, str]
) -> Iterator[SchemaColumns]:
    """Records with a schema, each of its own fields in their order."""
    groups: dict[object, tuple[tuple[str, ...], list[int], list[list[object]]]] = {}
    ways = _Ways(query)
    for at, row in enumerate(results.rows.tolist()):
        try:
            names, values = ways.of(_source(piece, row))
            values = [_fitted(value) for value in values]
            key = (names, *map(_kind, values))
        except InvalidValue as error:
            failed[row] = str(error)
            continue
        _, places, found = groups.setdefault(key, (names, [], []))
        places.append(at)
        found.append(values)
    for names, places, found in groups.values():
        yield _of_one_schema(piece, results, names, np.array(places), found)


class _Ways:
    """From a record to names and values of its columns; where these are is found once for the same fields."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._cells = [_Cell(index) for index in range(len(query.computed))]
        self._flat = all(len(item.names) == 1 for item in query.items if isinstance(item, KeptColumn))
        self._known: dict[tuple[str, ...], tuple[tuple[str, ...], list[object]] | str] = {}

    def of(self, tree: object) -> tuple[tuple[str, ...], list[object]]:
        """Raises InvalidValue."""
        if not self._flat or not isinstance(tree, dict):
            made = _tree(self._query, tree, self._cells)
            return tuple(made), list(made.values())
        fields = tuple(tree)
        known = self._known.get(fields)
        if known is None:
            known = self._known[fields] = self._way(fields)
        if isinstance(known, str):
            raise InvalidValue(known)
        names, sources = known
        return names, [tree[one] if type(one) is str else one for one in sources]

    def _way(self, fields: tuple[str, ...]) -> tuple[tuple[str, ...], list[object]] | str:
        """Names of columns, and for each the field that it is, an expression, or nothing; or why there are none."""
        try:
            made = _tree(self._query, {name: name for name in fields}, self._cells)
        except InvalidValue as error:
            return str(error)
        return tuple(made), list(made.values())


def _fitted(value: object) -> object:
    return fitted(value, type_of(value)) if isinstance(value, list | dict) else value


def _kind(value: object) -> object:
    """Stands for a type: the same for values of the same."""
    kind = type(value)
    return value if kind is _Cell else type_of(value) if kind in (dict, list) or kind not in _PLAIN else kind


def _of_one_schema(
    piece: UntypedPiece, results: Results, names: Sequence[str], places: np.ndarray, found: Sequence[Sequence[object]]
) -> SchemaColumns:
    chosen, arrays = pa.array(places), []
    for first, values in zip(found[0], zip(*found, strict=True), strict=True):
        if isinstance(first, _Cell):
            arrays.append(results.arrays[first.index].take(chosen))
        else:
            arrays.append(pa.array(values, type_of(first)))
    positions = piece.positions.take(pa.array(results.rows[places]))
    return SchemaColumns(positions, pa.StructArray.from_arrays(arrays, names=list(names)))
