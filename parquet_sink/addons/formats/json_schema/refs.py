"""The documents of a registered JSON Schema, and what a `$ref` in them stands for.

Found are: the document itself (`#`), JSON pointers, `$id` and `id` anywhere, `$anchor`, and the references of the
registered schema by their names, each relative to where the `$ref` stands. Nothing is ever fetched.

The library `referencing` (0.37) does not serve: it reads ids and anchors as one draft of JSON Schema has them, and
under that draft's keywords alone. So it does not find `id` in a schema of draft 7, `$id` in one of draft 4, `$anchor`
before draft 2019, nor an id below `components`, all of which are found here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urljoin

import orjson

from parquet_sink.convert.invalid import InvalidValue, Path, show
from parquet_sink.convert.registry.registered import RegisteredSchema
from parquet_sink.convert.typed_json.types import (
    DATE,
    DECIMAL,
    TIME,
    TIMESTAMP,
    Kind,
    ScalarKind,
    ScalarName,
    decimal_kind,
)

_IDS = ("$id", "id")
_DEEPEST = 400
"""Levels of JSON down to which ids and anchors are found."""

_LONGEST_URI = 8_000
_SUBSCHEMAS_OF_DATA = ("default", "const", "enum", "examples", "example")


@dataclass(eq=False)
class Resource:
    """What a pointer or an anchor is relative to: a document, or a schema in it that has an id of its own."""

    uri: str
    tree: object
    path: Path
    anchors: dict[str, tuple[object, Path]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Place:
    """A schema, and where it stands. path: from its document, whose name comes first unless it is the first one."""

    tree: object
    resource: Resource
    path: Path

    @property
    def words(self) -> dict[str, Any]:
        """Its keywords; none of what is not an object."""
        return self.tree if isinstance(self.tree, dict) else {}

    def __str__(self) -> str:
        return f"the JSON Schema at {show(self.path)}" if self.path else "the JSON Schema"


class References:
    """All documents of one registered schema."""

    def __init__(self, schema: RegisteredSchema) -> None:
        """Raises InvalidValue when a text is not JSON."""
        self._by_uri: dict[str, Resource] = {}
        self._by_tree: dict[int, Resource] = {}
        main = self._add_document("", schema.text, ())
        self._main = Place(main.tree, main, ())
        for reference in schema.references:
            document = self._add_document(reference.name, reference.text, (reference.name,))
            self._by_uri.setdefault(_join(main.uri, reference.name), document)

    def root(self) -> Place:
        """The registered schema itself."""
        return self._main

    def below(self, place: Place, *steps: str | int) -> Place:
        """What stands under a schema; the steps exist."""
        tree, resource = place.tree, place.resource
        for step in steps:
            tree = tree[step]  # type: ignore[index]
            resource = self._by_tree.get(id(tree), resource)
        return Place(tree, resource, (*place.path, *steps))

    def resolve(self, reference: str, place: Place) -> Place:
        """What a `$ref` that stands at a place means. Raises InvalidValue."""
        uri, _, fragment = reference.partition("#")
        resource: Resource | None = place.resource
        if uri:
            resource = self._by_uri.get(_join(place.resource.uri, uri)) or self._by_uri.get(uri)
        found = None if resource is None else self._inside(resource, fragment)
        if found is None:
            raise InvalidValue(f"{place} refers to {show((reference,))}, which is not there")
        return found

    def _inside(self, resource: Resource, fragment: str) -> Place | None:
        place = Place(resource.tree, resource, resource.path)
        if not fragment:
            return place
        if not fragment.startswith("/"):
            tree, path = resource.anchors.get(fragment, (None, ()))
            return None if tree is None else Place(tree, self._by_tree.get(id(tree), resource), path)
        for token in fragment[1:].split("/"):
            step = _step(place.tree, unquote(token).replace("~1", "/").replace("~0", "~"))
            if step is None:
                return None
            place = self.below(place, step)
        return place

    def _add_document(self, name: str, text: str, path: Path) -> Resource:
        try:
            tree = orjson.loads(text)
        except orjson.JSONDecodeError:
            where = f"reference {show(path)} of the JSON Schema" if path else "the JSON Schema"
            raise InvalidValue(f"{where} is not JSON") from None
        uri = _id_of(tree)
        document = Resource(_join(name, uri or ""), tree, path)
        self._by_uri.setdefault(name, document)
        self._by_uri.setdefault(document.uri, document)
        self._by_tree[id(tree)] = document
        self._index(document)
        return document

    def _index(self, document: Resource) -> None:
        """Note every id and anchor below a document; paths are made on the way down, not kept for what waits."""
        waiting = [self._below(document.tree, document.path, document)]
        while waiting:
            found = next(waiting[-1], None)
            if found is None:
                waiting.pop()
            elif len(waiting) < _DEEPEST:
                waiting.append(self._below(*found))

    def _below(self, tree: object, path: Path, resource: Resource) -> Iterator[tuple[object, Path, Resource]]:
        """Note one schema; what may be schemas below it, with their paths and resources."""
        if isinstance(tree, dict):
            resource = self._note(tree, path, resource)
        for step, child in _children(tree):
            yield child, (*path, step), resource

    def _note(self, tree: dict[str, object], path: Path, resource: Resource) -> Resource:
        """Note the names of one schema; the resource that what is below it belongs to."""
        own = _id_of(tree)
        anchors = [name for name in (tree.get("$anchor"), _plain_name(tree)) if isinstance(name, str)]
        if own and tree is not resource.tree:
            resource = Resource(_join(resource.uri, own), tree, path)
            self._by_uri.setdefault(resource.uri, resource)
            self._by_tree[id(tree)] = resource
        for name in anchors:
            resource.anchors.setdefault(name, (tree, path))
        return resource


def _children(tree: object) -> Iterator[tuple[str | int, object]]:
    """What may be a schema below, less what is data for certain."""
    if isinstance(tree, list):
        yield from ((index, child) for index, child in enumerate(tree) if isinstance(child, dict | list))
    elif isinstance(tree, dict):
        for name, child in tree.items():
            if isinstance(child, dict | list) and not (name in _SUBSCHEMAS_OF_DATA and not isinstance(child, dict)):
                yield name, child


def _id_of(tree: object) -> str | None:
    """The id of a schema, without a fragment; None for none, and for an id that is a fragment alone."""
    if isinstance(tree, dict):
        for name in _IDS:
            found = tree.get(name)
            if isinstance(found, str):
                return found.partition("#")[0] or None
    return None


def _plain_name(tree: dict[str, object]) -> str | None:
    """The anchor that an id such as `#address` is (drafts 4 to 7)."""
    for name in _IDS:
        found = tree.get(name)
        if isinstance(found, str) and found.startswith("#") and len(found) > 1:
            return found[1:]
    return None


def _step(tree: object, token: str) -> str | int | None:
    """One token of a JSON pointer as a key or index that exists, else None."""
    if isinstance(tree, dict):
        return token if token in tree else None
    if isinstance(tree, list) and token.isascii() and token.isdigit() and len(token) < 10:
        return int(token) if int(token) < len(tree) else None
    return None


def _join(base: str, uri: str) -> str:
    """The URI, relative to a base; one of excessive length stands for itself."""
    if len(base) + len(uri) > _LONGEST_URI:
        return uri
    try:
        return urljoin(base, uri)
    except ValueError:
        return uri


UNIONS = ("oneOf", "anyOf")

_TYPES = ("boolean", "integer", "number", "string", "null", "object", "array")
_IMPLIED = {
    "object": ("properties", "additionalProperties", "required", "minProperties", "maxProperties", "patternProperties"),
    "array": ("items", "minItems", "maxItems", "uniqueItems", "prefixItems", "contains"),
    "string": ("minLength", "maxLength", "pattern"),
    "number": ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"),
}
_NUMBERS: tuple[ScalarName, ...] = ("int8", "int16", "int32", "int64", "float32", "float64", "bytes")
_LOGICAL: dict[object, ScalarName] = {DATE: "date", TIME: "time", TIMESTAMP: "timestamp"}


def without(tree: dict[str, object], words: Sequence[str]) -> dict[str, object]:
    """The schema less some keywords."""
    return {word: below for word, below in tree.items() if word not in words}


def own_type(tree: dict[str, object]) -> str | list[object] | None:
    """The type, or the list of types when there is more than one; where there is none, what other keywords imply.

    None: nothing says it. Draft 4 to 2020-12.
    """
    type_ = tree.get("type")
    if isinstance(type_, str):
        return type_
    if isinstance(type_, list) and type_:
        return type_ if len(type_) > 1 or not isinstance(type_[0], str) else type_[0]
    if "const" in tree or "enum" in tree:
        return None
    return next((name for name, words in _IMPLIED.items() if any(word in tree for word in words)), None)


def is_null(tree: object) -> bool:
    """Whether a schema allows null alone."""
    return isinstance(tree, dict) and tree.get("type") in ("null", ["null"])


def is_combined(tree: object) -> bool:
    """Whether a schema is several in one: the validator that Confluent uses puts those before others in a union."""
    if not isinstance(tree, dict) or "$ref" in tree:
        return False
    said = sum(word in tree for word in (*UNIONS, "allOf", "enum", "const", "not"))
    several = isinstance(tree.get("type"), list) or any(word in tree for word in (*UNIONS, "allOf"))
    return several or said + (own_type(without(tree, ("enum", "const"))) is not None) > 1


def logical_kind(place: Place, type_: str) -> Kind:
    """A type that holds nothing else, with what `title` and `connect.*` make of it. Raises InvalidValue."""
    tree = place.words
    if type_ not in _TYPES:
        raise InvalidValue(f"{place} has a type that JSON Schema does not know")
    title, connect_type = tree.get("title"), tree.get("connect.type")
    if title == DECIMAL and type_ in ("number", "integer", "string"):
        parameters = tree.get("connect.parameters")
        return decimal_kind(parameters if isinstance(parameters, dict) else {}, place.path)
    if type_ in ("boolean", "null"):
        return ScalarKind("boolean" if type_ == "boolean" else "null")
    if type_ == "string":
        return ScalarKind("bytes" if connect_type == "bytes" else "string")
    return _number_kind(place, type_, title, connect_type)


def _number_kind(place: Place, type_: str, title: object, connect_type: object) -> Kind:
    if connect_type is None:
        connect_type = "int64" if type_ == "integer" else "float64"
    name = next((number for number in _NUMBERS if number == connect_type), None)
    if name is None:
        raise InvalidValue(f"{place} has a connect.type that is none of a number")
    if title in _LOGICAL and name.startswith("int"):
        return ScalarKind(_LOGICAL[title])
    return ScalarKind(name)


def kind_of_values(place: Place) -> tuple[ScalarName, bool]:
    """The type that all values of an enum or const without a type have, and whether null is one of them."""
    values = [place.words["const"]] if "const" in place.words else place.words["enum"]
    if not isinstance(values, list):
        raise InvalidValue(f"{place} has an enum that is not a list")
    shapes = {type(value) for value in values} - {type(None)}
    names: tuple[tuple[set[type], ScalarName], ...] = (
        ({str}, "string"),
        ({bool}, "boolean"),
        ({int}, "int64"),
        ({int, float}, "float64"),
    )
    for allowed, name in names:
        if shapes and shapes <= allowed:
            return name, None in values
    if not shapes and values:
        return "null", True
    raise InvalidValue(f"{place} has values of more than one type, or none")
