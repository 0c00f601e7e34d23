"""What single keywords of a JSON Schema say."""

from collections.abc import Sequence

from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.json_schema.refs import Place
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


def only(tree: dict[str, object], word: str) -> dict[str, object]:
    """One keyword of the schema."""
    return {word: tree[word]}


def own_type(tree: dict[str, object]) -> str | list[object] | None:
    """The type, or the list of types when there is more than one; where there is none, what other keywords imply.

    None: nothing tells. Draft 4 to 2020-12.
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
    tree = place.tree
    assert isinstance(tree, dict)
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
        name: ScalarName = "int64" if type_ == "integer" else "float64"
    elif connect_type in _NUMBERS:
        name = next(number for number in _NUMBERS if number == connect_type)
    else:
        raise InvalidValue(f"{place} has a connect.type that is none of a number")
    if title in _LOGICAL and name.startswith("int"):
        return ScalarKind(_LOGICAL[title])
    return ScalarKind(name)


def kind_of_values(place: Place) -> tuple[ScalarName, bool]:
    """The type that all values of an enum or const without a type have, and whether null is one of them."""
    tree = place.tree
    assert isinstance(tree, dict)
    values = [tree["const"]] if "const" in tree else tree["enum"]
    if not isinstance(values, list):
        raise InvalidValue(f"{place} has an enum that is no list")
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
