"""Where text is made unreadable: `connect.ems.obfuscation.fields`, in columns and in trees, before they are flattened.

A setting names a place by its dotted path, where the word `value` enters the items of a list and the values of a map
(`customer.name`, `players.value.name`, `tags.value`). When columns are flattened, it also names every place whose
flattened name equals its own: `customer_name`, `customer.name` and a field really named `customer.name` are one. That
may obfuscate more than was meant, and never less.

What is named must be text, or null, and what a dotted path leads through must be there to be entered; anything else is
invalid input, as in the Celonis connector.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.config.key import ems
from parquet_sink.convert.arrays import reinterpreted
from parquet_sink.convert.decoded import Float32, Int32, LongFraction, Tree
from parquet_sink.convert.invalid import InvalidValue, NotObfuscated, show
from parquet_sink.rows.obfuscation.methods import FreshSalt, TextObfuscator, fresh_uuid
from parquet_sink.rows.schema.arrow_types import entries, spans
from parquet_sink.rows.schema.topic_columns import SEPARATOR, column_name
from parquet_sink.rows.settings import ObfuscationSettings

ITEM = "value"
"""The step into a list or a map."""

_SETTING = ems("obfuscation.fields")
_MOST_PLACES = 10_000


class PathNode:
    """A path that a setting names, or that leads to one.

    key: what tells it from other places, its flattened name or its dotted path. hit: a setting names it. leads: a
    dotted path leads through it. strays: one does so by another step than `value`.
    """

    __slots__ = ("below", "dotted", "hit", "key", "leads", "strays")

    def __init__(self, dotted: str, key: str, hit: bool, onward: AbstractSet[str] = frozenset()) -> None:
        """onward: the steps that dotted paths take from here."""
        self.dotted, self.key, self.hit = dotted, key, hit
        self.leads, self.strays = bool(onward), bool(onward - {ITEM})
        self.below: dict[str, PathNode | None] = {}


class PathTree:
    """The settings as something to walk along, step by step. What was found is kept, up to a bound."""

    def __init__(self, fields: Iterable[str], flat: bool, inside: Mapping[str, str] = MappingProxyType({})) -> None:
        """flat: columns will be flattened. inside: more of them, each with how it stands in the connector file."""
        self._key: Callable[[str], str] = column_name if flat else str
        self._separator = SEPARATOR if flat else "."
        self._settings = {field: self._key(field) for field in (*fields, *inside)}
        self._given = inside
        self._hits = frozenset(self._settings.values())
        self._onward = self._steps_onward()
        self._longest = max(map(len, self._settings), default=0)
        self._kept = 0
        self.root = PathNode("", "", hit=False)

    def step(self, place: PathNode, name: str) -> PathNode | None:
        """One step down; None where no setting names anything from there on."""
        try:
            return place.below[name]
        except KeyError:
            return self._step(place, name)

    def unmatched(self, columns: Iterable[pa.Field]) -> tuple[str, ...]:
        """See `FieldObfuscator.unmatched`."""
        matched: set[str] = set()
        for column in columns:
            self._match(column.type, self.step(self.root, column.name), matched)
        return tuple(field for field, key in self._settings.items() if key not in matched)

    def why_not_text(self, place: PathNode, kind: str) -> str:
        """The message for a place that is named and not text; kind: what it is, `a list`."""
        field = next(field for field, key in self._settings.items() if key == place.key)
        given = self._given.get(field, field)
        where = show((given,)) if field == place.dotted else f"{show((given,))} (field {show((place.dotted,))})"
        cures = {
            "a list": f"write {show((given,))}.{ITEM} for its items",
            "a map": f"write {show((given,))}.{ITEM} for its values",
            "an object": "name the fields in it",
        }
        return (
            f"{_SETTING}: {where} is {kind}, not text; {cures.get(kind, 'take it out, or let the producer write text')}"
        )

    def why_dead_end(self, place: PathNode, kind: str) -> str:
        """The message for a place that a path leads through and cannot; kind: what it is, `a list`."""
        enters = kind in ("a list", "a map")
        field, count = next(
            (field, count)
            for field, count, step in self._led()
            if self._key(".".join(field.split(".")[:count])) == place.key and not (enters and step == ITEM)
        )
        given = self._given.get(field, field)
        steps = given.split(".")
        at = len(steps) - len(field.split(".")) + count
        begin, rest = ".".join(steps[:at]), ".".join(steps[at:])
        leads = f"{_SETTING}: {show((given,))} leads through {show((begin,))}, {kind}"
        if enters:
            return f"{leads}; write {show((f'{begin}.{ITEM}.{rest}',))}"
        return f"{leads}, which has nothing below it; write {show((begin,))}, or take it out"

    def _led(self) -> Iterator[tuple[str, int, str]]:
        """Each setting, cut after some of its steps, with the step that follows."""
        for field in self._settings:
            steps = field.split(".")
            yield from ((field, count, steps[count]) for count in range(1, len(steps)))

    def _steps_onward(self) -> dict[str, set[str]]:
        """Which step comes next, by the key of what dotted paths lead through."""
        onward: dict[str, set[str]] = {}
        for field, count, step in self._led():
            onward.setdefault(self._key(".".join(field.split(".")[:count])), set()).add(step)
        return onward

    def _step(self, place: PathNode, name: str) -> PathNode | None:
        dotted = name if place is self.root else f"{place.dotted}.{name}"
        if len(dotted) > self._longest:
            return None
        if self._kept >= _MOST_PLACES:
            self.root.below.clear()
            self._kept = 0
        self._kept += 1
        key = self._key(dotted)
        hit = key in self._hits
        lives = hit or any(self._is_below(one, key) for one in self._hits)
        found = PathNode(dotted, key, hit, self._onward.get(key, frozenset())) if lives else None
        place.below[name] = found
        return found

    def _is_below(self, key: str, top: str) -> bool:
        return key.startswith(top + self._separator)

    def _match(self, arrow: pa.DataType, place: PathNode | None, matched: set[str]) -> None:
        if place is None:
            return
        if place.hit:
            matched.add(place.key)
        if pa.types.is_string(arrow):
            item = place.key + self._separator + ITEM
            matched |= {one for one in self._hits if one == item or self._is_below(one, item)}
        for name, below in _below(arrow):
            self._match(below, self.step(place, name), matched)


def _below(arrow: pa.DataType) -> Iterable[tuple[str, pa.DataType]]:
    if pa.types.is_struct(arrow):
        return [(field.name, field.type) for field in arrow]
    if pa.types.is_map(arrow):
        return [(ITEM, arrow.item_type)]
    return [(ITEM, arrow.value_type)] if pa.types.is_list(arrow) else []


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
        a list's. None when something is for `tree` to validate, record by record: it may not stand where it stands.
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
    LongFraction: "a number",
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
