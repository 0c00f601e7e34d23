"""Where text is made unreadable: `connect.ems.obfuscation.fields`, in columns and in trees, before they are flattened.

A setting names a place by its dotted path, where the word `value` enters the items of a list and the values of a map
(`customer.name`, `players.value.name`, `tags.value`). When columns are flattened, it also names every place whose
flattened name equals its own: `customer_name`, `customer.name` and a field really named `customer.name` are one. That
may obfuscate more than was meant, and never less.

What is named must be text, or null, and what a dotted path leads through must be there to be entered; anything else is
invalid input, as in the Celonis connector.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.arrays import reinterpreted
from parquet_sink.convert.decoded import Float32, Int32, Tree
from parquet_sink.convert.invalid import InvalidValue, NotObfuscated
from parquet_sink.rows.obfuscation.methods import FreshSalt, TextObfuscator, fresh_uuid
from parquet_sink.rows.obfuscation.paths import ITEM, PathNode, PathTree
from parquet_sink.rows.schema.arrow_types import entries, spans
from parquet_sink.rows.settings import ObfuscationSettings

_MOST_TYPES = 64

_Rebuild = Callable[[pa.Array], pa.Array]


class FieldObfuscator:
    """Applies one connector's settings. Keep one for a topic: it remembers types and paths."""

    def __init__(
        self, settings: ObfuscationSettings, flat: bool, fresh_salt: FreshSalt = fresh_uuid, head: str = ""
    ) -> None:
        """flat: columns will be flattened. fresh_salt: see `TextObfuscator`. head: of paths that count without it."""
        self._settings, self._flat, self._fresh_salt = settings, flat, fresh_salt
        self._obfuscator = TextObfuscator(settings, fresh_salt)
        below = [path.removeprefix(head) for path in settings.fields if head and path.startswith(head)]
        self._places = PathTree(settings.fields, flat, {path: head + path for path in below})
        self._plans: dict[pa.DataType, _Rebuild | None] = {}
        self._inside: dict[str, FieldObfuscator] = {}

    def inside(self, name: str) -> "FieldObfuscator":
        """For the elements of the list `name` that records were exploded from: paths may lead through it, too."""
        if name not in self._inside:
            if len(self._inside) >= _MOST_TYPES:
                self._inside.clear()
            head = f"{name}.{ITEM}."
            is_led = any(path.startswith(head) for path in self._settings.fields)
            self._inside[name] = FieldObfuscator(self._settings, self._flat, self._fresh_salt, head) if is_led else self
        return self._inside[name]

    def rows(self, rows: pa.StructArray) -> pa.StructArray:
        """Typed records with the named text obfuscated; all else, types and nulls included, as it was.

        Raises NotObfuscated when the type has something named that is not text, or a path that cannot go on, whatever
        the values.
        """
        if rows.type not in self._plans:
            if len(self._plans) >= _MOST_TYPES:
                self._plans.clear()
            self._plans[rows.type] = self._rebuild(rows.type, self._places.root)
        rebuild = self._plans[rows.type]
        return rows if rebuild is None else rebuild(rows)

    def tree(self, tree: Tree) -> Tree:
        """A record without a schema, obfuscated; what needs no change is shared with `tree`, which stays as it is.

        Raises NotObfuscated for a value that is named and neither text nor null, or where a path cannot go on.
        """
        return self._object(tree, self._places.root)

    def columns(self, arrays: Mapping[str, pa.Array], *, lists_as_text: bool = False) -> dict[str, pa.Array] | None:
        """The columns that are named obfuscated, all others as they are.

        arrays: by name, as they were read, before flattening, because a flattened name does not tell whether an object
        is what is named. lists_as_text: text that begins with `[` comes from records that `tree` has passed, and may be
        a list's. None when something is for `tree` to judge, record by record: it may not stand where it stands.
        """
        found = dict(arrays)
        for name in arrays:
            place = self._places.step(self._places.root, name)
            if place is not None:
                try:
                    found[name] = self._column(found[name], place, lists_as_text)
                except InvalidValue:
                    return None
        return found

    def unmatched(self, columns: Sequence[pa.Field], *, exploded: bool = False) -> tuple[str, ...]:
        """The settings that name nothing in a topic's columns, in their order.

        A text column may be the JSON text of a list or a map: settings that enter it by `value` count as matched.
        exploded: records may be, so settings may begin with a list that no column tells of (see `inside`).
        """
        found = self._places.unmatched(columns)
        below = {path: path.partition(f".{ITEM}.")[2] for path in found} if exploded else {}
        strangers = PathTree([rest for rest in below.values() if rest], self._flat).unmatched(columns)
        return tuple(path for path in found if not below.get(path) or below[path] in strangers)

    def _rebuild(self, arrow: pa.DataType, place: PathNode) -> _Rebuild | None:
        """How to obfuscate an array of this type at this place; None: nothing to do. Raises NotObfuscated."""
        if pa.types.is_null(arrow):
            return None
        if place.hit:
            if not pa.types.is_string(arrow):
                raise NotObfuscated(self._places.why_not_text(place, _kind(arrow)))
            return self._obfuscator.array
        if pa.types.is_struct(arrow):
            return self._fields(arrow, place)
        if pa.types.is_list(arrow):
            return self._items(arrow.value_type, place, _with_items, "a list")
        if pa.types.is_map(arrow):
            return self._items(arrow.item_type, place, _with_map_values, "a map")
        if place.leads:
            raise NotObfuscated(self._places.why_dead_end(place, _kind(arrow)))
        return None

    def _fields(self, arrow: pa.StructType, place: PathNode) -> _Rebuild | None:
        changes = {}
        for index, field in enumerate(arrow):
            below = self._places.step(place, field.name)
            rebuild = self._rebuild(field.type, below) if below is not None else None
            if rebuild is not None:
                changes[index] = rebuild
        return partial(_with_fields, changes) if changes else None

    def _items(
        self, arrow: pa.DataType, place: PathNode, put: Callable[[_Rebuild, pa.Array], pa.Array], kind: str
    ) -> _Rebuild | None:
        if place.strays:
            raise NotObfuscated(self._places.why_dead_end(place, kind))
        below = self._places.step(place, ITEM)
        rebuild = self._rebuild(arrow, below) if below is not None else None
        return rebuild and partial(put, rebuild)

    def _column(self, array: pa.Array, place: PathNode, lists_as_text: bool) -> pa.Array:
        """As `_rebuild`, but by values: what is null is no matter."""
        if array.null_count == len(array):
            return array
        if not place.hit and pa.types.is_struct(array.type):
            return self._columns_below(array, place, lists_as_text) if array.type.num_fields else array
        if lists_as_text and not place.hit and not place.strays and _are_lists(array):
            return array
        rebuild = self._rebuild(array.type, place)
        return array if rebuild is None else rebuild(array)

    def _columns_below(self, rows: pa.StructArray, place: PathNode, lists_as_text: bool) -> pa.StructArray:
        children = rows.flatten()  # null where the struct is
        for index, field in enumerate(rows.type):
            below = self._places.step(place, field.name)
            if below is not None:
                children[index] = self._column(children[index], below, lists_as_text)
        return pa.StructArray.from_arrays(children, fields=list(rows.type), mask=_nulls(rows))

    def _object(self, tree: Tree, place: PathNode) -> Tree:
        result = tree
        for name, value in tree.items():
            below = self._places.step(place, name)
            if below is None or value is None:
                continue
            obfuscated = self._value(value, below)
            if obfuscated is not value:
                result = dict(tree) if result is tree else result
                result[name] = obfuscated
        return result

    def _value(self, value: object, place: PathNode) -> object:
        if place.hit:
            if not isinstance(value, str):
                raise NotObfuscated(self._places.why_not_text(place, _TREE_KINDS[type(value)]))
            return self._obfuscator.text(value)
        if isinstance(value, dict):
            return self._object(value, place)
        if isinstance(value, list) and not place.strays:
            below = self._places.step(place, ITEM)
            return value if below is None else [None if item is None else self._value(item, below) for item in value]
        if place.leads:
            raise NotObfuscated(self._places.why_dead_end(place, _TREE_KINDS[type(value)]))
        return value


def _are_lists(array: pa.Array) -> bool:
    """Whether all text may be the JSON text of lists."""
    return pa.types.is_string(array.type) and bool(pc.all(pc.starts_with(array, "[")).as_py())


_TREE_KINDS: Mapping[type, str] = {
    str: "text",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    Int32: "a number",
    Float32: "a number",
    dict: "an object",
    list: "a list",
    pa.Date32Scalar: "a date",
    pa.Time32Scalar: "a time",
    pa.TimestampScalar: "a timestamp",
}
_ARROW_KINDS: Sequence[tuple[Callable[[pa.DataType], bool], str]] = (
    (pa.types.is_string, "text"),
    (pa.types.is_boolean, "a boolean"),
    (pa.types.is_struct, "an object"),
    (pa.types.is_list, "a list"),
    (pa.types.is_map, "a map"),
    (pa.types.is_binary, "bytes"),
    (pa.types.is_timestamp, "a timestamp"),
    (pa.types.is_time, "a time"),
    (pa.types.is_date, "a date"),
)


def _kind(arrow: pa.DataType) -> str:
    return next((kind for is_kind, kind in _ARROW_KINDS if is_kind(arrow)), "a number")


def _with_fields(changes: Mapping[int, _Rebuild], rows: pa.StructArray) -> pa.StructArray:
    """The structs with some fields changed."""
    children = [rows.field(index) for index in range(rows.type.num_fields)]
    for index, rebuild in changes.items():
        children[index] = rebuild(children[index])
    return pa.StructArray.from_arrays(children, fields=list(rows.type), mask=_nulls(rows))


def _with_items(rebuild: _Rebuild, lists: pa.ListArray) -> pa.ListArray:
    """The lists with their items changed."""
    offsets, items = spans(lists)
    return pa.ListArray.from_arrays(offsets, rebuild(items), type=lists.type, mask=_nulls(lists))


def _with_map_values(rebuild: _Rebuild, maps: pa.MapArray) -> pa.MapArray:
    """The maps with their values changed."""
    offsets, pairs = spans(reinterpreted(maps, entries(maps.type)))
    keys, values = pairs.field(0), rebuild(pairs.field(1))
    return pa.MapArray.from_arrays(offsets, keys, values, type=maps.type, mask=_nulls(maps))


def _nulls(array: pa.Array) -> pa.BooleanArray | None:
    return array.is_null() if array.null_count else None
