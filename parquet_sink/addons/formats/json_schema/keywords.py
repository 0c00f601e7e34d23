"""What the keywords of a JSON Schema say about the content of a value."""

from collections.abc import Callable
from typing import Any

from parquet_sink.addons.formats.json_schema.refs import UNIONS, Place, own_type

ADDITIONAL = "additionalProperties"
"""The keyword, and the field of a struct for members that the schema does not name."""


def has_list(tree: dict[str, object], word: str) -> bool:
    """Return True if a keyword has a list that is not empty."""
    found = tree.get(word)
    return isinstance(found, list) and bool(found)


def says_open(words: dict[str, Any]) -> bool:
    """Return True if a schema permits members that it does not name, and says so."""
    said = (words.get(ADDITIONAL), words.get("unevaluatedProperties"))
    return any(below is True or isinstance(below, dict) for below in said) or bool(words.get("patternProperties"))


def is_closed(words: dict[str, Any]) -> bool:
    """Return True if a schema permits no members that it does not name."""
    return words.get(ADDITIONAL) is False or words.get("unevaluatedProperties") is False


def names_members(words: dict[str, Any]) -> bool:
    """Return True if a schema says what is in an object."""
    return bool(words.get("properties")) or says_open(words)


def has_items(words: dict[str, Any]) -> bool:
    """Return True if a schema says what is in a list."""
    return any(words.get(word) not in (None, False, True) for word in ("items", "prefixItems"))


def says_scalar(words: dict[str, Any]) -> bool:
    """Return True if a schema says of what type a value is, and permits no object and no list."""
    type_ = own_type(words)
    types = type_ if isinstance(type_, list) else [type_]
    return "object" not in types and "array" not in types and (type_ is not None or "const" in words or "enum" in words)


def required_names(tree: dict[str, object]) -> set[str]:
    """Return the names of the members that must be there."""
    found = tree.get("required")
    return {name for name in found if isinstance(name, str)} if isinstance(found, list) else set()


_SAYING_MOST: tuple[Callable[[dict[str, Any]], bool], ...] = (
    lambda words: words.get("type") in ("object", "array"),
    lambda words: any(has_list(words, union) for union in UNIONS) or isinstance(words.get("type"), list),
    lambda words: "$ref" not in words and own_type(words) is not None,
    lambda words: "const" in words or "enum" in words,
    lambda words: "$ref" in words or "allOf" in words,
)
"""Objects and lists without known content, then JsonSchemaData's order: a union, a type, values, anything else."""


def find_saying_most(places: list[Place]) -> Place | None:
    """Return the one of several schemas without known content that says most, in JsonSchemaData's order; None: none."""
    return next((place for says in _SAYING_MOST for place in places if says(place.words)), None)
