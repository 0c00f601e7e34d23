"""Change events of one batch to rows, deletions and nothing: many at once where they are columns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.addons.transforms.debezium import event
from parquet_sink.addons.transforms.debezium.event import AFTER, BEFORE, DELETED, OP, SOURCE, Reference, Unwrapping
from parquet_sink.addons.transforms.debezium.left_out import LeftOut, Names
from parquet_sink.addons.transforms.fields.errors import field as field_text
from parquet_sink.addons.transforms.fields.errors import kind
from parquet_sink.convert.decoded import InferredColumns, Piece, SchemaColumns, Tree, Untyped
from parquet_sink.transform.fields.plain import columns_of, records
from parquet_sink.transform.headers import NULL, HeaderValue, of_tree
from parquet_sink.transform.protocol import RecordFault
from parquet_sink.transform.records import DecodedRecords, as_trees, rows_of

_Base: TypeAlias = dict[str, tuple[pa.Field, pa.Array]]
_COMPOUND: Final = (pa.types.is_struct, pa.types.is_map)
_CODED: Final = (pa.types.is_string, pa.types.is_integer)


@dataclass(frozen=True)
class _Block:
    """Events that are columns. positions: int64. tree: of records without a schema, one by its row; None: typed."""

    positions: np.ndarray
    rows: pa.StructArray
    tree: Callable[[int], Tree] | None

    def some(self, chosen: np.ndarray) -> "_Block":
        """Those of a mask."""
        if chosen.all():
            return self
        which = np.flatnonzero(chosen)
        tree = self.tree
        return _Block(
            self.positions[which],
            self.rows.take(pa.array(which)),
            None if tree is None else lambda row: tree(int(which[row])),
        )


class Work:
    """The events of one batch. taken: by `piece` and `tombstones`; then `done` gives the records."""

    def __init__(self, settings: Unwrapping, records: DecodedRecords) -> None:
        self._settings, self._records = settings, records
        self._left_out = LeftOut(records.headers, settings.drop_header, only_optional=settings.only_optional)
        self._pieces: list[Piece] = []
        self._dropped: list[int] = []
        self._rejected: dict[int, str] = {}
        self._topics: dict[int, str] = {}
        self._events: list[np.ndarray] = []
        self._headers: list[tuple[Reference, np.ndarray, list[HeaderValue]]] = []

    def piece(self, piece: Piece) -> None:
        """Decoded values of one kind."""
        if isinstance(piece, Untyped):
            self._trees(piece)
        elif isinstance(piece, InferredColumns):
            self._inferred(piece)
        elif _is_event_type(piece.rows.type):
            self._typed(_Block(piece.positions.to_numpy(), piece.rows, None))
        else:
            self._pieces.append(piece)

    def tombstones(self, positions: np.ndarray) -> None:
        """Records that had no value before."""
        if not self._settings.tombstones:
            self._dropped += positions.tolist()
            return
        for one in self._settings.headers:
            if one.field == OP:
                self._headers.append((one, positions, [pa.scalar("d")] * len(positions)))

    def done(self) -> DecodedRecords:
        """The records as they are now."""
        records, settings = self._records, self._settings
        keys, headers = records.keys, records.headers
        if settings.drop_from_key and keys is not None and self._events:
            chosen = np.zeros(len(records.batch), np.bool_)
            chosen[np.concatenate(self._events)] = True
            chosen[[*self._rejected, *self._dropped]] = False
            keys = tuple(self._left_out.from_keys(keys, chosen, self._rejected))
        if headers is not None:
            for one in settings.headers:
                for reference, positions, values in self._headers:
                    if reference is one:
                        headers = headers.with_each(one.new, positions, values)
        found = replace(records, values=tuple(self._pieces), keys=keys, headers=headers, topics=self._routed())
        return found.without(self._dropped).reject(self._rejected)

    def _routed(self) -> pa.StringArray | None:
        if not self._topics:
            return self._records.topics
        names = self._records.topics_now().to_pylist()
        for position, name in self._topics.items():
            names[position] = name
        return pa.array(names, pa.string())

    def _trees(self, piece: Untyped) -> None:
        """One by one."""
        positions: list[int] = []
        trees: list[object] = []
        headers: list[tuple[int, tuple[object, ...]]] = []
        for position, tree in zip(piece.positions.to_pylist(), piece.trees, strict=True):
            if not event.is_event(tree):
                positions.append(position)
                trees.append(tree)
                continue
            try:
                found = event.unwrapped(cast("Tree", tree), self._settings)
                if found is not None and self._settings.drop_header:
                    found = event.unwrapped(cast("Tree", tree), self._settings, self._left_out.of(position))
            except RecordFault as error:
                self._rejected[position] = str(error)
                continue
            if found is None:
                self._dropped.append(position)
                continue
            self._events.append(np.array([position]))
            headers.append((position, found.headers))
            if found.topic is not None:
                self._topics[position] = found.topic
            if found.value is not None:
                positions.append(position)
                trees.append(found.value)
        for number, one in enumerate(self._settings.headers):
            at = np.array([position for position, _ in headers], np.int64)
            self._headers.append((one, at, [of_tree(values[number]) for _, values in headers]))
        if trees:
            self._pieces.append(Untyped(pa.array(positions, pa.int64()), trees))

    def _inferred(self, piece: InferredColumns) -> None:
        """As columns where these tell all; else one by one."""
        arrow = piece.rows.type
        columns = {one.name: one.type for one in arrow}
        if not self._readable(columns, piece.lists):
            self._trees(as_trees(piece))
            return
        if not (pa.types.is_string(columns.get(OP, pa.null())) and pa.types.is_struct(columns.get(SOURCE, pa.null()))):
            self._pieces.append(piece)
            return
        arrays = columns_of(piece.rows)
        named = _valid(arrays[OP]) & _valid(arrays[SOURCE])
        state = np.zeros(len(piece.rows), np.bool_)
        for name in (AFTER, BEFORE):
            if name in arrays:
                state |= _valid(arrays[name])
        for rows, take in (
            (~named, self._pieces.append),
            (named & ~state, self._one_by_one),
            (named & state, self._read),
        ):
            which = np.flatnonzero(rows)
            if len(which):
                take(rows_of(piece, which))

    def _one_by_one(self, piece: Piece) -> None:
        assert isinstance(piece, InferredColumns)
        self._trees(as_trees(piece))

    def _read(self, piece: Piece) -> None:
        assert isinstance(piece, InferredColumns)
        self._block(_Block(piece.positions.to_numpy(), piece.rows, piece.tree))

    def _readable(self, columns: Mapping[str, pa.DataType], lists: frozenset[str]) -> bool:
        """Whether columns of these types tell all of the events among them."""
        settings = self._settings
        references = (*settings.fields, *settings.headers)
        asked = {OP, SOURCE, BEFORE, AFTER} | {name for one in references for name in (one.struct, one.field)}
        if not lists.isdisjoint(asked):
            return False
        states = [columns[name] for name in (BEFORE, AFTER) if name in columns and not pa.types.is_null(columns[name])]
        if not all(pa.types.is_struct(one) for one in states):
            return False
        new = [one.new for one in settings.fields] + [DELETED] * settings.rewrites
        if len(set(new)) < len(new) or any(one.get_field_index(name) >= 0 for one in states for name in new):
            return False
        routes = [one.field(settings.route).type for one in states if one.get_field_index(settings.route) >= 0]
        if settings.route and not all(pa.types.is_string(one) or pa.types.is_null(one) for one in routes):
            return False
        return all(_one_type(columns, one) for one in references)

    def _typed(self, block: _Block) -> None:
        arrow = block.rows.type
        for name in (AFTER, BEFORE):
            at = arrow.get_field_index(name)
            if at >= 0 and not (pa.types.is_struct(arrow.field(at).type) or pa.types.is_null(arrow.field(at).type)):
                self._reject(block.positions, event.no_row(name, kind(arrow.field(at).type)))
                return
        self._block(block)

    def _block(self, block: _Block) -> None:
        columns = columns_of(block.rows)
        nothing = np.zeros(len(block.rows), np.bool_)
        after, before = (_valid(columns[name]) if name in columns else nothing for name in (AFTER, BEFORE))
        kept = before & ~after if self._settings.deletes != "drop" else nothing
        self._dropped += block.positions[~after & ~kept].tolist()
        self._some(block.some(after), AFTER) if after.any() else None
        self._some(block.some(kept), BEFORE) if kept.any() else None

    def _some(self, block: _Block, side: str) -> None:
        """Events of rows that are there (AFTER) or gone (BEFORE)."""
        settings = self._settings
        columns = columns_of(block.rows)
        try:
            base = self._base(columns[side], side)
            topics = self._names(base, block)
            more = self._more(columns, block) if side == AFTER or settings.rewrites else {}
            headers = [(one, _of_event(columns, one, block.tree is None)) for one in settings.headers]
        except RecordFault as error:
            self._reject(block.positions, str(error))
            return
        for names, places in self._left_out.groups(block.positions, self._rejected):
            self._rows(block, places, names, base, more, side)
        self._topics |= {at: name for at, name in zip(block.positions.tolist(), topics, strict=True) if name}
        self._events.append(block.positions)
        for one, array in headers:
            if array is not None:
                self._headers.append((one, block.positions, _scalars(array)))

    def _base(self, state: pa.StructArray, side: str) -> _Base:
        arrays = columns_of(state)
        base = {one.name: (one, arrays[one.name]) for one in state.type}
        if not self._settings.rewrites:
            return base
        if DELETED in base:
            raise RecordFault(event.twice(DELETED, event.CURE_DELETED))
        text = pa.scalar("false" if side == AFTER else "true")
        return {**base, DELETED: (pa.field(DELETED, pa.string()), pa.repeat(text, len(state)))}

    def _names(self, base: _Base, block: _Block) -> list[str | None]:
        route = self._settings.route
        if not route or (route not in base and block.tree is not None):
            return [None] * len(block.positions)
        if route not in base:
            raise RecordFault(f"route.by.field names {field_text(route)}, which the row's schema has not")
        one, array = base[route]
        if not (pa.types.is_string(one.type) or pa.types.is_null(one.type)):
            raise RecordFault(event.no_name(route, kind(one.type)))
        return [name if name and name.strip() else None for name in array.to_pylist()]

    def _more(self, columns: Mapping[str, pa.Array], block: _Block) -> _Base:
        more: _Base = {}
        for one in self._settings.fields:
            array = _of_event(columns, one, block.tree is None)
            if array is None:
                continue
            if any(test(array.type) for test in _COMPOUND):
                raise RecordFault(event.is_object(one))
            if one.new in more:
                raise RecordFault(event.twice(one.new, event.CURE_FIELDS))
            more[one.new] = pa.field(one.new, array.type), array
        return more

    def _rows(self, block: _Block, places: np.ndarray, names: Names, base: _Base, more: _Base, side: str) -> None:
        """What becomes of those that leave out the same names: of a row before fields are added when it is gone."""
        settings, positions = self._settings, block.positions[places]
        if side == BEFORE and not settings.rewrites:
            return
        typed = block.tree is None
        kept = self._kept(base, names, typed)
        clash = next((name for name in more if name in (base if side == AFTER else kept)), None)
        if clash is not None:
            self._reject(positions, event.twice(clash, event.CURE_FIELDS))
            return
        found = {**kept, **(self._kept(more, names, typed) if side == AFTER else more)}
        rows = records([one for one, _ in found.values()], [array for _, array in found.values()], len(block.rows))
        at = pa.array(positions, pa.int64())
        if len(places) < len(rows):
            rows = rows.take(pa.array(places))
        whole = block.tree
        if whole is None:
            self._pieces.append(SchemaColumns(at, rows))
            return

        def tree(row: int) -> Tree:
            one = event.unwrapped(whole(int(places[row])), settings, names)
            assert one is not None
            assert one.value is not None
            return one.value

        self._pieces.append(InferredColumns(at, rows, tree))

    def _kept(self, fields: _Base, names: Names, typed: bool) -> _Base:
        if not names:
            return fields
        if typed:
            return {name: one for name, one in fields.items() if self._left_out.keeps(one[0], names)}
        return {name: one for name, one in fields.items() if name not in names}

    def _reject(self, positions: np.ndarray, reason: str) -> None:
        self._rejected |= dict.fromkeys(positions.tolist(), reason)


def _is_event_type(arrow: pa.DataType) -> bool:
    if not pa.types.is_struct(arrow) or max(map(arrow.get_field_index, (AFTER, BEFORE))) < 0:
        return False
    op, source = (arrow.get_field_index(name) for name in (OP, SOURCE))
    return bool(
        min(op, source) >= 0
        and pa.types.is_string(arrow.field(op).type)
        and pa.types.is_struct(arrow.field(source).type)
    )


def _valid(array: pa.Array) -> np.ndarray:
    found: np.ndarray = array.is_valid().to_numpy(zero_copy_only=False)
    return found


def _below(arrow: pa.DataType, name: str) -> pa.DataType | None:
    at = arrow.get_field_index(name) if pa.types.is_struct(arrow) else -1
    return arrow.field(at).type if at >= 0 else None


def _one_type(columns: Mapping[str, pa.DataType], reference: Reference) -> bool:
    """Whether a field of events without a schema is one column of values."""
    held = _below(columns.get(reference.struct, pa.null()), reference.field) if reference.struct else None
    found = {one for one in (held, columns.get(reference.field)) if one is not None and not pa.types.is_null(one)}
    return len(found) < 2 and not any(test(one) for test in _COMPOUND for one in found)


def _of_event(columns: Mapping[str, pa.Array], reference: Reference, typed: bool) -> pa.Array | None:
    """A field of each event; None: their schema has none. Raises RecordFault."""
    name, own = reference.field, columns.get(reference.field)
    if not reference.struct:
        return own if typed else _or_nulls(own, columns)
    held = columns.get(reference.struct)
    if typed and (held is None or not pa.types.is_struct(held.type)):
        raise RecordFault(f"{event.shown(reference)} is to be added, and the event's schema has no such object")
    inner = None if held is None or _below(held.type, name) is None else columns_of(held)[name]
    if typed:
        if inner is not None or own is None:
            return inner
        assert held is not None
        return pc.if_else(held.is_valid(), own, pa.scalar(None, own.type))
    usable = [one for one in (inner, own) if one is not None and not pa.types.is_null(one.type)]
    return pc.coalesce(*usable) if usable else _or_nulls(None, columns)


def _or_nulls(array: pa.Array | None, columns: Mapping[str, pa.Array]) -> pa.Array:
    return pa.nulls(len(columns[OP])) if array is None else array


def _scalars(array: pa.Array) -> list[HeaderValue]:
    if any(test(array.type) for test in _CODED):
        coded = array.dictionary_encode()
        values = [NULL, *coded.dictionary]
        return [values[at] for at in (pc.fill_null(pc.add(coded.indices, 1), 0)).to_pylist()]
    return [one if one.is_valid else NULL for one in array]
