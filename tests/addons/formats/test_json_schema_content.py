"""Whatever a JSON Schema says, and wherever, nothing of a record is lost without a word."""

import re
from collections.abc import Iterator
from contextlib import nullcontext
from random import Random
from typing import Any
from unittest.mock import patch

import orjson
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.addons.formats.json_schema import decoder as decoders
from parquet_sink.convert.decoded import SchemaColumns
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.registry.registered import RegisteredSchema
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.convert.typed_json import reader as json_typed
from tests.thorough import examples

NAMES = ["a", "b", "c", "d"]
UNNAMED = ["x", "y"]
SHAPES = ["object"] * 8 + ["array"] * 3 + ["scalar"] * 6 + ["open", "map", "ref"]
BESIDE = ["oneOf", "anyOf", "allOf", "if", "dependentSchemas", "$ref"]
SCALARS: list[Any] = [{"type": name} for name in ("string", "integer", "number", "boolean", "null")]
SCALARS += [{"type": ["string", "null"]}, {"type": ["integer", "string"]}, {"const": "k"}, {"enum": ["k", "l"]}]
OPEN: list[Any] = [True, {}, {"type": "object"}, {"type": "array"}, {"title": "x"}, {"not": {}}, {"required": ["a"]}]
OPEN += [{"type": ["object", "array", "string"]}, {"type": "object", "properties": {}}, False]


def make_schema(chance: Random, depth: int) -> Any:
    """Make a schema, with what stands in it no deeper than a number of levels."""
    shape = chance.choice(SHAPES) if depth else "scalar"
    if shape == "scalar":
        return chance.choice(SCALARS)
    if shape == "open":
        return chance.choice(OPEN)
    if shape == "ref":
        return {"$ref": "#/$defs/object"}
    if shape == "map":
        return {"type": "object", "additionalProperties": make_schema(chance, depth - 1)}
    if shape == "array":
        return make_array(chance, depth)
    return make_object(chance, depth)


def make_array(chance: Random, depth: int) -> dict[str, Any]:
    """Make a schema of lists."""
    schema: dict[str, Any] = {"type": "array"}
    if chance.random() < 0.8:
        schema["items"] = make_schema(chance, depth - 1)
    if chance.random() < 0.2:
        schema["prefixItems"] = [make_schema(chance, depth - 1)]
    if chance.random() < 0.2:
        schema["allOf"] = [{"items": make_schema(chance, depth - 1)}]
    return schema


def make_object(chance: Random, depth: int) -> dict[str, Any]:
    """Make a schema of objects, with some of the keywords that say more about them."""
    names = chance.sample(NAMES, chance.randint(0, 3))
    schema: dict[str, Any] = {"properties": {name: make_schema(chance, depth - 1) for name in names}}
    if chance.random() < 0.5:
        schema["type"] = chance.choice(["object", "object", ["object", "null"], ["object", "string"]])
    if chance.random() < 0.2:
        schema["required"] = chance.sample(NAMES, 1)
    if chance.random() < 0.3:
        word = chance.choice(["additionalProperties", "unevaluatedProperties"])
        schema[word] = chance.choice([True, False, {}, make_schema(chance, depth - 1)])
    if chance.random() < 0.15:
        schema["patternProperties"] = {"^x": make_schema(chance, depth - 1)}
    for word in chance.sample(BESIDE, chance.choice([0, 0, 1, 1, 2])):
        schema |= make_beside(chance, depth, word)
    if chance.random() < 0.2:
        del schema["properties"]
    return schema


def make_beside(chance: Random, depth: int, word: str) -> dict[str, Any]:
    """Make further schemas that describe the same value."""
    if word == "if":
        return {step: make_schema(chance, depth - 1) for step in ("if", "then", "else")}
    if word == "dependentSchemas":
        return {word: {chance.choice(NAMES): make_schema(chance, depth - 1)}}
    if word == "$ref":
        return {word: "#/$defs/object"}
    return {word: [make_schema(chance, depth - 1) for _ in range(chance.randint(1, 3))]}


def find_schemas(schema: Any, definitions: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all schemas that describe the same value."""
    if not isinstance(schema, dict):
        return []
    below = [schema[word] for word in ("if", "then", "else") if word in schema]
    below += [branch for word in ("oneOf", "anyOf", "allOf") for branch in schema.get(word, ())]
    below += schema.get("dependentSchemas", {}).values()
    below += [definitions["object"]] if "$ref" in schema else []
    return [schema, *(found for branch in below for found in find_schemas(branch, definitions))]


class Documents:
    """Documents that fit a schema for the most part; each text and number in them is there once."""

    def __init__(self, chance: Random, definitions: dict[str, Any]) -> None:
        self._chance, self._definitions, self._count = chance, definitions, 1000

    def make(self, schema: Any, depth: int = 6) -> Any:
        """Make a value."""
        chance, schemas = self._chance, find_schemas(schema, self._definitions)
        types = [
            name
            for described in schemas
            for name in ([described["type"]] if isinstance(described.get("type"), str) else described.get("type", ()))
        ]
        if any("properties" in described for described in schemas):
            types += ["object", "object"]
        if not types or depth == 0:
            values = [described["const"] for described in schemas if "const" in described]
            values += [value for described in schemas for value in described.get("enum", ())]
            if values:
                return chance.choice(values)
            types = ["string"] if depth == 0 else ["string", "integer", "object", "array", "number"]
        if chance.random() < 0.03:
            types = ["string", "integer", "object", "array", "null", "boolean"]
        chosen = chance.choice(types)
        if chosen == "object":
            return self._make_object(schemas, depth)
        if chosen == "array":
            items = [described["items"] for described in schemas if "items" in described] or [True]
            return [self.make(chance.choice(items), depth - 1) for _ in range(chance.randint(0, 3))]
        self._count += 1
        return {"string": f"v{self._count}", "integer": self._count, "number": self._count + 0.5, "null": None}.get(
            chosen, True
        )

    def _make_object(self, schemas: list[dict[str, Any]], depth: int) -> dict[str, Any]:
        chance = self._chance
        members: dict[str, Any] = {}
        for described in schemas:
            for name, below in described.get("properties", {}).items():
                if chance.random() < 0.6:
                    members[name] = self.make(below, depth - 1)
        for name in UNNAMED:
            if chance.random() < 0.25:
                given = [
                    described["additionalProperties"] for described in schemas if "additionalProperties" in described
                ]
                members.setdefault(name, self.make(chance.choice(given or [True]), depth - 1))
        return members


def find_leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each text and number of a value, with the names around it."""
    if isinstance(value, dict):
        for name, below in value.items():
            yield from find_leaves(below, (*path, name))
    elif isinstance(value, list | tuple):
        for below in value:
            yield from find_leaves(below, path)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield path, value


def find_kept(value: Any) -> Iterator[Any]:
    """Yield each text and number of what was decoded; those of JSON text, too."""
    for _, leaf in find_leaves(value):
        yield leaf
        if isinstance(leaf, str) and re.match(r'[{\["0-9]', leaf):
            yield from find_kept(orjson.loads(leaf))


def is_within(left_out: str, path: tuple[str, ...]) -> bool:
    """Return True if a value stands in a field that is left out; keys of maps are in its path alone."""
    steps = iter(path)
    return all(name in steps for name in left_out.split("."))


def decode(schema: Any, values: list[Any], keeping: bool, eagerly: bool) -> tuple[list[Any], set[int], list[str]]:
    """Decode values one by one after each other; rows, which are invalid, and the fields that a warning names."""
    given = ConverterSettings(kind="json_schema", preserve_additional=keeping)
    made = decoders.decoder(RegisteredSchema(1, "JSON", orjson.dumps(schema).decode()), given)
    small = patch.multiple(json_typed, FEWEST=1, SMALLEST=1, ONE_IN=1) if eagerly else nullcontext()
    with small, patch.object(decoders, "_SHOWN", 1000), patch.object(decoders._LOG, "warning") as warn:
        decoded = made.decode(pa.array(list(map(orjson.dumps, values)), pa.binary()))
    rows: list[Any] = [None] * len(values)
    for piece in decoded.pieces:
        found = piece.rows.to_pylist() if isinstance(piece, SchemaColumns) else piece.trees  # type: ignore[union-attr]
        for position, row in zip(piece.positions.to_pylist(), found, strict=True):
            rows[position] = row
    return rows, set(decoded.invalid), [name for call in warn.call_args_list for name in call.args[2].split(", ")]


def says_closed(schema: Any) -> bool:
    """Return True if an object may be forbidden members that it does not name."""
    return b'Properties":false' in orjson.dumps(schema)


@settings(max_examples=examples(400), deadline=None)
@given(st.randoms(use_true_random=False), st.booleans(), st.booleans())
def test_every_value_is_kept_or_its_loss_is_told(chance: Random, keeping: bool, eagerly: bool) -> None:
    """Each text and number is in a column or in JSON text, or its record is invalid, or a warning names its field."""
    definitions = {"object": make_object(chance, 1) | {"type": "object"}}
    definitions["object"].pop("$ref", None)
    schema = make_object(chance, 3)
    documents = Documents(chance, definitions)
    values = [documents.make(schema) for _ in range(4)]
    try:
        rows, invalid, left_out = decode({**schema, "$defs": definitions}, values, keeping, eagerly)
    except InvalidValue:
        return
    assert not (keeping and left_out) or says_closed([schema, definitions])
    assert {name.rpartition(".")[2] for name in left_out} <= {*UNNAMED}
    for position, (value, row) in enumerate(zip(values, rows, strict=True)):
        kept = set(find_kept(row))
        for path, leaf in find_leaves(value):
            is_told = position in invalid or any(is_within(name, path) for name in left_out)
            assert leaf in kept or is_told, (path, leaf)
