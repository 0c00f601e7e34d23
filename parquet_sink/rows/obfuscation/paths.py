"""Where `connect.ems.obfuscation.fields` leads in records, step by step, and what is wrong where it cannot.

How paths are written stands in `field_obfuscator`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType

import pyarrow as pa

from parquet_sink.config.key import ems
from parquet_sink.convert.invalid import show
from parquet_sink.rows.flatten.trees import SEPARATOR, column_name

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
