"""Turns a registered JSON Schema into the type of its values.

Several schemas may describe one value: what stands beside `$ref`, below `allOf`, in the branches of unions, in
`if`/`then`/`else` and `dependentSchemas`. They become one struct with the properties of all; only those that hold for
every value make a property required. A union alone stays a union.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from parquet_sink.addons.formats.json_schema.keywords import (
    ADDITIONAL,
    find_saying_most,
    has_items,
    has_list,
    is_closed,
    names_members,
    required_names,
    says_open,
    says_scalar,
)
from parquet_sink.addons.formats.json_schema.refs import (
    UNIONS,
    Place,
    References,
    is_combined,
    is_null,
    kind_of_values,
    logical_kind,
    own_type,
    without,
)
from parquet_sink.addons.formats.json_schema.settings import JsonSchemaConverter
from parquet_sink.convert.invalid import InvalidValue, show
from parquet_sink.convert.typed_json.exact import to_default
from parquet_sink.convert.typed_json.types import (
    OTHERS,
    Field,
    Kind,
    Limits,
    ListKind,
    MapKind,
    ScalarKind,
    Slot,
    StructKind,
    TextKind,
    UnionKind,
)

MOST_VISITS = 20_000
_MOST_WEIGHT = 20 * MOST_VISITS
_PREFIX = "io.confluent.connect.json.OneOf.field."
_GENERALIZED_PREFIX = "connect_union_field_"
_KEY = Slot(ScalarKind("string"))
_ANYTHING = Slot(TextKind(), optional=True)
_CONDITIONS = ("if", "then", "else")
_DEPENDENT = ("dependentSchemas", "dependencies")
_COMBINING = (*UNIONS, "allOf", *_CONDITIONS, *_DEPENDENT, "$ref")


@dataclass(frozen=True)
class Part:
    """A schema of several that describe one value. certain: it holds for every value."""

    place: Place
    certain: bool = True


class Mapper:
    """Turns the places of one registered schema into slots. Every method raises InvalidValue."""

    def __init__(self, references: References, settings: JsonSchemaConverter) -> None:
        self._references = references
        self._settings = settings
        self._limits = Limits()
        self._visits = 0
        self._weight = 0
        self._open: list[object] = []

    def slot(self, place: Place, optional: bool = False) -> Slot:
        """Return the slot of any schema. optional: null is allowed whatever the schema says."""
        self._enter(place)
        try:
            return self._slot(place, optional)
        finally:
            self._open.pop()

    def _enter(self, place: Place) -> None:
        self._visit(place)
        self._limits.enter(place.path, len(self._open) + 1)
        if self._is_entered(place):
            raise InvalidValue(f"{place} contains itself: a recursive schema has no columns")
        self._open.append(place.tree)

    def _is_entered(self, place: Place) -> bool:
        """Return True if the slot of the schema at a place is being made."""
        return isinstance(place.tree, dict) and any(place.tree is tree for tree in self._open)

    def _visit(self, place: Place) -> None:
        """Count schemas looked at, and what is in them: a large one may be referred to many times."""
        self._visits += 1
        self._weight += _weight(place.tree)
        if self._visits > MOST_VISITS or self._weight > _MOST_WEIGHT:
            raise InvalidValue(f"{place} is too much: the schema refers to more than {MOST_VISITS:,} schemas")

    def _slot(self, place: Place, optional: bool) -> Slot:
        if isinstance(place.tree, bool):
            return _ANYTHING if place.tree else Slot(ScalarKind("null"), optional=True)
        if not isinstance(place.tree, dict):
            raise InvalidValue(f"{place} is neither an object nor true or false, so nothing says of what type it is")
        if not isinstance(place.tree.get("type", ""), str | list):
            raise InvalidValue(f"{place} has a type that JSON Schema does not know")
        subs = self._subs(place)
        if not subs:
            return _ANYTHING
        if len(subs) > 1:
            return self._combined(place, subs, optional)
        only = subs[0].place
        return self._single(only, optional) if only.path == place.path else self.slot(only, optional)

    def _target(self, place: Place) -> Place:
        """Return the place that the reference at a place refers to. Raise InvalidValue for a recursive schema."""
        reference = place.words["$ref"]
        target = self._references.resolve(reference, place)
        if self._is_entered(target):
            raise InvalidValue(f"{place} refers to itself by {show((reference,))}: a recursive schema has no columns")
        return target

    def _subs(self, place: Place) -> list[Part]:
        """Return the parts that describe a value together: what the schema itself says, its reference, unions.

        Beside a reference, and in conditions, only what has content counts: JSON Schema once ignored the former.
        """
        words = place.words
        own = replace(place, tree=without(words, _COMBINING))
        unions = [Part(replace(place, tree={union: words[union]})) for union in UNIONS if has_list(words, union)]
        referred = self._referred(place)
        says = own_type(own.words) is not None or "const" in own.words or "enum" in own.words
        beside = [*([Part(own)] if says else []), *unions, *self._each(place, "allOf")]
        if referred:
            beside = [part for part in beside if self._has_content(part.place)]
        return [*referred, *beside, *(part for part in self._conditions(place) if self._has_content(part.place))]

    def _referred(self, place: Place) -> list[Part]:
        if isinstance(place.words.get("$ref"), str):
            return [Part(self._target(place))]
        if "$recursiveRef" in place.words or "$dynamicRef" in place.words:
            raise InvalidValue(f"{place} has a reference that is resolved dynamically, which has no columns")
        return []

    def _each(self, place: Place, word: str) -> list[Part]:
        """Return the schemas in the list of a keyword; none where there is no list."""
        count = len(place.words[word]) if has_list(place.words, word) else 0
        return [Part(self._references.below(place, word, index), word == "allOf") for index in range(count)]

    def _conditions(self, place: Place) -> list[Part]:
        """Return the schemas that hold for some values."""
        words = place.words
        steps: list[tuple[str, ...]] = [(word,) for word in _CONDITIONS if word in words]
        for word in _DEPENDENT:
            given = words.get(word)
            steps += (
                [(word, name) for name in given if isinstance(given[name], dict)] if isinstance(given, dict) else []
            )
        return [Part(self._references.below(place, *step), certain=False) for step in steps]

    def _directly_below(self, place: Place) -> list[Part]:
        """Return all schemas that describe the same value as the one at a place."""
        unions = [part for union in UNIONS for part in self._each(place, union)]
        return [*self._referred(place), *self._each(place, "allOf"), *unions, *self._conditions(place)]

    def _parts(self, part: Part, seen: tuple[object, ...] = ()) -> Iterator[Part]:
        """Yield a schema, and all that describe the same value. seen: schemas around it."""
        self._visit(part.place)
        tree = part.place.tree
        if isinstance(tree, dict) and not any(tree is above for above in seen):
            yield part
            for below in self._directly_below(part.place):
                yield from self._parts(replace(below, certain=part.certain and below.certain), (*seen, tree))

    def _has_content(self, place: Place) -> bool:
        """Return True if a schema says, anywhere, what is in an object or a list."""
        return any(names_members(part.place.words) or has_items(part.place.words) for part in self._parts(Part(place)))

    def _single(self, place: Place, optional: bool) -> Slot:
        """Return the slot of a part of a schema as `_subs` gives it, not of one that stands elsewhere."""
        for union in UNIONS:
            if union in place.words:
                return self._union([part.place for part in self._each(place, union)], optional)
        type_ = own_type(place.words)
        if isinstance(type_, list):
            rest = without(place.words, ("default", "enum", "const"))
            return self._union([replace(place, tree={**rest, "type": name}) for name in type_], optional)
        return self._plain(place, type_, optional)

    def _plain(self, place: Place, type_: str | None, optional: bool) -> Slot:
        """Anything but a union: its kind, and its default."""
        if type_ is None:
            name, may_be_null = kind_of_values(place)
            kind: Kind = ScalarKind(name)
            optional = optional or may_be_null
        elif type_ == "object":
            kind = self._object(place, [Part(place)])
        elif type_ == "array":
            kind = self._array(place)
        else:
            kind = logical_kind(place, type_)
        default = place.words.get("default")
        value = None if default is None else to_default(kind, default, place.path)
        if value is not None:
            self._limits.add_default(value)
        return Slot(kind, optional or kind == ScalarKind("null"), value)

    def _union(self, branches: list[Place], optional: bool) -> Slot:
        """Null and one other: that one, optional. More: a struct with a field for each."""
        others = [branch for branch in branches if not is_null(branch.tree) and branch.tree is not False]
        nullable = any(is_null(branch.tree) for branch in branches)
        if not others:
            return Slot(ScalarKind("null"), optional=True)
        if len(others) == 1 and (len(others) < len(branches) or self._settings.flatten_singleton_unions):
            return self.slot(others[0], optional or nullable)
        ordered = sorted(others, key=lambda branch: not is_combined(branch.tree))
        return self._union_of([self.slot(branch, optional=True) for branch in ordered], optional or nullable)

    def _union_of(self, slots: list[Slot], optional: bool) -> Slot:
        """Return JSON text for a union whose branches are all JSON text."""
        texts = {slot.kind for slot in slots if isinstance(slot.kind, TextKind)}
        if all(slot.kind in texts for slot in slots):
            return Slot(texts.pop(), optional) if len(texts) == 1 and texts != {TextKind()} else _ANYTHING
        optional = optional or TextKind() in texts
        self._limits.add_fields(len(slots))
        prefix = _GENERALIZED_PREFIX if self._settings.generalized_sum_types else _PREFIX
        return Slot(UnionKind(tuple(Field(f"{prefix}{index}", slot) for index, slot in enumerate(slots))), optional)

    def _combined(self, place: Place, subs: list[Part], optional: bool) -> Slot:
        """Return the slot of a value that several schemas describe."""
        content = [sub for sub in subs if self._has_content(sub.place)]
        typed = [sub for sub in subs if sub.certain and says_scalar(sub.place.words)]
        if not content or (typed and not any(sub.certain for sub in content)):
            return self._saying_most(subs, optional)
        parts = [below for sub in subs for below in self._parts(sub)]
        named = any(part.certain and part.place.words.get("properties") for part in parts)
        if len(content) == 1 and not named and (content[0].certain or len(subs) == 1):
            return self.slot(content[0].place, optional)
        if any(names_members(part.place.words) for part in parts):
            return Slot(self._object(place, parts), optional or _may_be_null(parts))
        return Slot(self._list_of(place, [part for part in parts if has_items(part.place.words)]), optional)

    def _saying_most(self, subs: list[Part], optional: bool) -> Slot:
        """The part that says most of a value without known content, in JsonSchemaData's order; else what any allows."""
        place = find_saying_most([sub.place for sub in subs if sub.certain])
        if place is not None:
            return self.slot(place, optional)
        slots = [self.slot(sub.place, optional=True) for sub in subs if not sub.certain]
        kinds = {slot.kind: slot for slot in slots}
        if not slots or TextKind() in kinds:
            return _ANYTHING
        nothing = kinds.pop(ScalarKind("null"), None)
        optional = optional or nothing is not None
        alternatives = list(kinds.values())
        if nothing is not None and not alternatives:
            return nothing
        return (
            replace(alternatives[0], optional=optional) if len(kinds) == 1 else self._union_of(alternatives, optional)
        )

    def _properties(self, place: Place) -> dict[str, Place]:
        names = place.words.get("properties")
        found = names if isinstance(names, dict) else ()
        return {name: self._references.below(place, "properties", name) for name in found}

    def _object(self, place: Place, parts: list[Part]) -> Kind:
        """Return a struct of the properties of all parts; without any a map, or JSON text."""
        speaking = [part.place for part in parts if names_members(part.place.words)]
        if len(parts) == 1 and place.words.get("connect.type") == "map":
            return self._map(place)
        properties: dict[str, list[Part]] = {}
        for part in sorted(parts, key=lambda part: not part.certain):
            for name, below in self._properties(part.place).items():
                properties.setdefault(name, []).append(Part(below, part.certain))
        if properties:
            required = {name for part in parts if part.certain for name in required_names(part.place.words)}
            return self._struct(place, properties, required, is_open=self._is_open(parts))
        words = speaking[0].words if len(speaking) == 1 else {}
        if isinstance(words.get(ADDITIONAL), dict) and words[ADDITIONAL] and not words.get("patternProperties"):
            return self._map(speaking[0])
        closed = any(is_closed(part.place.words) for part in parts if part.certain)
        return StructKind(()) if closed and not speaking else TextKind("object")

    def _map(self, place: Place) -> Kind:
        if not isinstance(place.words.get(ADDITIONAL), dict):
            raise InvalidValue(f"{place} is a map, and has no schema for its values in {ADDITIONAL}")
        value = self.slot(self._references.below(place, ADDITIONAL))
        return TextKind("object") if isinstance(value.kind, TextKind) else MapKind(_KEY, value, "object")

    def _is_open(self, parts: list[Part]) -> bool:
        """Return True if members that no property names have a column: a schema says so, or the settings."""
        if any(says_open(part.place.words) for part in parts):
            return True
        closed = any(is_closed(part.place.words) for part in parts if part.certain)
        return self._settings.preserve_additional and not closed

    def _struct(self, place: Place, properties: dict[str, list[Part]], required: set[str], *, is_open: bool) -> Kind:
        """In the order of `connect.index`, or of appearance."""
        self._limits.add_fields(len(properties) + is_open)
        if "" in properties:
            raise InvalidValue(f"{place} has a property with an empty name")
        if is_open and ADDITIONAL in properties:
            raise InvalidValue(
                f"{place} has a property {ADDITIONAL}, and permits properties that it does not name, whose column has "
                "this name"
            )
        names = _ordered({name: parts[0].place for name, parts in properties.items()})
        fields = [Field(name, self._property(properties[name], name in required)) for name in names]
        return StructKind((*fields, Field(ADDITIONAL, Slot(OTHERS, optional=True))) if is_open else tuple(fields))

    def _property(self, parts: list[Part], required: bool) -> Slot:
        """A property that is not required may be missing; whether it may be null too is a setting, as Confluent's."""
        slot = self._merged(parts, optional=self._settings.optional_for_nonrequired and not required)
        return Slot(slot.kind, slot.optional, slot.default, may_be_absent=not required)

    def _merged(self, parts: list[Part], optional: bool) -> Slot:
        """Return the slot of what several schemas describe, less those that say nothing of it."""
        if len(parts) > 1:
            parts = [part for part in parts if part.place.words and self._subs(part.place)] or parts[:1]
        if len(parts) == 1:
            return self.slot(parts[0].place, optional)
        together = replace(parts[0].place, tree={"allOf": [part.place.tree for part in parts]})
        self._enter(together)
        try:
            return self._combined(together, parts, optional)
        finally:
            self._open.pop()

    def _array(self, place: Place) -> Kind:
        """A list, or the map that it stands for; JSON text without one schema that has columns for all items."""
        if place.words.get("connect.type") != "map":
            return self._list_of(place, [Part(place)])
        if not isinstance(place.words.get("items"), dict):
            raise InvalidValue(f"{place} is a map, and has no schema for its entries in items")
        items = self._references.below(place, "items")
        properties = items.words.get("properties")
        if not isinstance(properties, dict) or not {"key", "value"} <= properties.keys():
            raise InvalidValue(f"{place} is a map, and its items have no properties key and value")
        key = self.slot(self._references.below(items, "properties", "key"))
        return MapKind(key, self.slot(self._references.below(items, "properties", "value")), "entries")

    def _list_of(self, place: Place, parts: list[Part]) -> Kind:
        """Return a list whose items all parts describe."""
        words = [part.place.words for part in parts]
        if not all(isinstance(tree.get("items"), dict) and "prefixItems" not in tree for tree in words):
            return TextKind("list")
        if any(tree.get("connect.type") == "map" for tree in words) and len(words) > 1:
            raise InvalidValue(f"{place} is a map, and several schemas describe its entries")
        items = self._merged([Part(self._references.below(part.place, "items"), part.certain) for part in parts], False)
        return TextKind("list") if isinstance(items.kind, TextKind) else ListKind(items)


def _weight(tree: object) -> int:
    """How much there is to look at in a schema: its keywords, what is directly in them, and steps of its reference."""
    if not isinstance(tree, dict):
        return 1
    reference = tree.get("$ref")
    steps = reference.count("/") if isinstance(reference, str) else 0
    return len(tree) + steps + sum(len(below) for below in tree.values() if isinstance(below, dict | list))


def _may_be_null(parts: list[Part]) -> bool:
    """Return True if a list of types has null, and no part that always holds forbids it."""
    types = [part.place.words["type"] for part in parts if part.certain and "type" in part.place.words]
    return bool(types) and all(isinstance(given, list) and "null" in given for given in types)


def _ordered(properties: dict[str, Place]) -> list[str]:
    def index(position: int, name: str) -> int:
        given = properties[name].words.get("connect.index")
        return given if type(given) is int else position

    numbered = [(index(position, name), position, name) for position, name in enumerate(properties)]
    return [name for _, _, name in sorted(numbered)]
