"""JSON Schema as Confluent's converter reads it: types, unions, references, limits, and the records themselves."""

import base64
from decimal import Decimal

import orjson
import pyarrow as pa
import pytest

from parquet_sink.addons.formats.json_schema.decoder import decoder
from parquet_sink.convert.decoded import Decoded, SchemaColumns, Untyped
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.registry.registered import Referenced, RegisteredSchema
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.convert.typed_json.types import DATE, DECIMAL, TIME, TIMESTAMP
from tests.messages import assert_says, saying

SETTINGS = ConverterSettings(kind="json_schema")
STRING, INTEGER, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}

MAY_BE_MISSING = ("is null", "only be missing", "value.converter.use.optional.for.nonrequired=true")


def registered(schema: object, **references: object) -> RegisteredSchema:
    """A schema as the registry gives it; references by name."""
    named = tuple(Referenced(name, orjson.dumps(tree).decode()) for name, tree in references.items())
    return RegisteredSchema(1, "JSON", orjson.dumps(schema).decode(), named)


def decode(
    schema: object, *values: object, settings: ConverterSettings = SETTINGS, references: dict[str, object] | None = None
) -> Decoded:
    """What a decoder makes of values, which are written as JSON."""
    made = decoder(registered(schema, **(references or {})), settings)
    return made.decode(pa.array([orjson.dumps(value) for value in values], pa.binary()))


def rows(decoded: Decoded) -> list[object]:
    """The rows of the only piece."""
    assert decoded.invalid == {}
    (piece,) = decoded.pieces
    assert isinstance(piece, SchemaColumns)
    piece.rows.validate(full=True)
    found: list[object] = piece.rows.to_pylist()
    return found


def column(schema: object, settings: ConverterSettings = SETTINGS, **references: object) -> str:
    """The Arrow type of the property `x`, which is required."""
    whole = {"type": "object", "properties": {"x": schema}, "required": ["x"], **definitions(schema)}
    made = decoder(registered(whole, **references), settings)
    arrow = made._reader.type.field("x")  # type: ignore[attr-defined]
    return f"{arrow.type}{'?' if arrow.nullable else ''}"


def definitions(schema: object) -> dict[str, object]:
    """Some definitions to refer to."""
    return {
        "definitions": {"text": STRING, "a": A, "both": {"oneOf": [NULL, INTEGER]}},
        "$defs": {"a/b": {"type": "boolean"}},
    }


ONE = "io.confluent.connect.json.OneOf.field."
HAS_A, HAS_B = {"required": ["a"]}, {"required": ["b"]}
A, B = {"properties": {"a": STRING}}, {"properties": {"b": INTEGER}}
SCALE = {"connect.parameters": {"scale": "2"}}
TYPES: list[tuple[object, str]] = [
    ({"type": "integer"}, "int64"),
    ({"type": "number"}, "double"),
    ({"type": "boolean"}, "bool"),
    ({"type": "string"}, "string"),
    ({"type": "null"}, "null?"),
    ({"type": ["string"]}, "string"),
    ({"type": ["null", "string"]}, "string?"),
    ({"type": ["string", "null"], "enum": ["a", None]}, "string?"),
    ({"type": "integer", "connect.type": "int8"}, "int32"),
    ({"type": "integer", "connect.type": "int16"}, "int32"),
    ({"type": "integer", "connect.type": "int32"}, "int32"),
    ({"type": "integer", "connect.type": "int64"}, "int64"),
    ({"type": "number", "connect.type": "float32"}, "float"),
    ({"type": "number", "connect.type": "float64"}, "double"),
    ({"type": "string", "connect.type": "bytes"}, "binary"),
    ({"type": "integer", "title": DATE, "connect.type": "int32"}, "date32[day]"),
    ({"type": "integer", "title": TIME, "connect.type": "int32"}, "time32[ms]"),
    ({"type": "integer", "title": TIMESTAMP, "connect.type": "int64"}, "timestamp[ms, tz=UTC]"),
    ({"type": "number", "title": DECIMAL, "connect.type": "bytes", **SCALE}, "decimal256(64, 2)"),
    (
        {"type": "number", "title": DECIMAL, "connect.parameters": {"scale": "2", "connect.decimal.precision": "9"}},
        "decimal128(9, 2)",
    ),
    ({"type": "string", "enum": ["a", "b"]}, "string"),
    ({"enum": ["a", "b"]}, "string"),
    ({"enum": ["a", None]}, "string?"),
    ({"enum": [1, 2]}, "int64"),
    ({"enum": [1, 2.5]}, "double"),
    ({"const": True}, "bool"),
    ({"const": "a"}, "string"),
    ({"type": "integer", "enum": [1, 2]}, "int64"),
    ({"type": "array", "items": STRING}, "list<item: string not null>"),
    ({"items": {"oneOf": [NULL, STRING]}}, "list<item: string>"),
    ({"type": "object", "properties": {"y": INTEGER}}, "struct<y: int64>"),
    ({"properties": {"y": INTEGER}, "required": ["y"]}, "struct<y: int64 not null>"),
    ({"type": "object", "connect.type": "map", "additionalProperties": INTEGER}, "map<string, int64>"),
    ({"type": "object", "additionalProperties": STRING}, "map<string, string>"),
    ({"type": "object", "additionalProperties": False}, "struct<>"),
    (
        {"type": "array", "connect.type": "map", "items": {"properties": {"key": INTEGER, "value": STRING}}},
        "map<int64, string>",
    ),
    ({"oneOf": [NULL, STRING]}, "string?"),
    ({"anyOf": [STRING, NULL]}, "string?"),
    ({"oneOf": [STRING]}, "string"),
    ({"oneOf": [INTEGER, STRING]}, f"struct<{ONE}0: int64, {ONE}1: string>"),
    (
        {"oneOf": [NULL, INTEGER, {"type": "string", "enum": ["a"]}]},
        f"struct<{ONE}0: string, {ONE}1: int64>?",
    ),
    ({"type": ["integer", "string"]}, f"struct<{ONE}0: int64, {ONE}1: string>"),
    ({"allOf": [{**A, **HAS_A}, B]}, "struct<a: string not null, b: int64>"),
    ({**A, "allOf": [{**B, **HAS_A}]}, "struct<a: string not null, b: int64>"),
    ({"allOf": [{"$ref": "#/definitions/text"}], "description": "x"}, "string"),
    ({"allOf": [{"type": "string"}, {"enum": ["a"]}]}, "string"),
    ({"allOf": [{"description": "x"}, {"oneOf": [NULL, STRING]}]}, "string?"),
    ({"type": "object", **A, "oneOf": [HAS_A, HAS_B]}, "struct<a: string>"),
    ({"$ref": "#/definitions/text"}, "string"),
    ({"$ref": "#/definitions/both"}, "int64?"),
    ({"$ref": "#/$defs/a~1b"}, "bool"),
    ({"$ref": "#/%24defs/a~1b"}, "bool"),
]  # fmt: skip


OPEN, MORE = {"type": "object"}, "additionalProperties: string"
CARD, CASH = {"properties": {"card": STRING}, "required": ["card"]}, {"properties": {"cash": INTEGER}}
PAID = "struct<a: string, card: string, cash: int64>"
WITHOUT_COLUMNS: list[tuple[object, str]] = [
    (True, "string?"),
    ({}, "string?"),
    ({"title": "x"}, "string?"),
    ({"not": {"type": "null"}}, "string?"),
    ({"allOf": [{}, {}]}, "string?"),
    (False, "null?"),
    (OPEN, "string"),
    ({"type": ["object", "null"]}, "string?"),
    ({**OPEN, "properties": {}}, "string"),
    ({**OPEN, "additionalProperties": True}, "string"),
    ({**OPEN, "additionalProperties": {}}, "string"),
    ({**OPEN, "additionalProperties": OPEN}, "string"),
    ({**OPEN, "patternProperties": {"^a": INTEGER}, "additionalProperties": False}, "string"),
    ({**OPEN, "oneOf": [HAS_A, HAS_B]}, "string"),
    ({"anyOf": [HAS_A, HAS_B]}, "string"),
    ({"oneOf": [STRING, {"not": {}}]}, f"struct<{ONE}0: string, {ONE}1: string>?"),
    ({"oneOf": [STRING, False]}, "string"),
    ({"type": "array"}, "string"),
    ({"type": "array", "items": True}, "string"),
    ({"type": "array", "items": OPEN}, "string"),
    ({"type": "array", "items": [STRING]}, "string"),
    ({"type": "array", "prefixItems": [STRING, INTEGER], "items": STRING}, "string"),
    ({**A, "additionalProperties": True}, f"struct<a: string, {MORE}>"),
    ({**A, "additionalProperties": INTEGER}, f"struct<a: string, {MORE}>"),
    ({**A, "unevaluatedProperties": {}}, f"struct<a: string, {MORE}>"),
    ({**A, "patternProperties": {"^x": INTEGER}}, f"struct<a: string, {MORE}>"),
    ({**A, "allOf": [{"additionalProperties": True}]}, f"struct<a: string, {MORE}>"),
]


@pytest.mark.parametrize(("schema", "arrow"), WITHOUT_COLUMNS)
def test_what_a_schema_leaves_open_is_text(schema: object, arrow: str) -> None:
    """Values, objects and lists without a schema for what is in them are JSON text, and so are further members."""
    assert column(schema) == arrow


COMBINED: list[tuple[object, str]] = [
    ({**A, "oneOf": [CARD, CASH]}, PAID),
    ({**A, "anyOf": [CARD, CASH]}, PAID),
    ({**A, "if": HAS_A, "then": CARD, "else": CASH}, PAID),
    ({**A, "dependentSchemas": {"a": CARD, "b": CASH}}, PAID),
    ({**A, "dependencies": {"a": CARD, "b": CASH, "c": ["a"]}}, PAID),
    ({**A, "allOf": [{"oneOf": [CARD, CASH]}]}, PAID),
    ({**A, "allOf": [{"if": HAS_A, "then": CARD}, {"if": HAS_B, "then": CASH}]}, PAID),
    ({"allOf": [A, {"anyOf": [CARD, CASH]}]}, PAID),
    ({"oneOf": [A], "anyOf": [CARD, CASH]}, PAID),
    ({"$ref": "#/definitions/a", "properties": {"card": STRING, "cash": INTEGER}}, PAID),
    ({"$ref": "#/definitions/a", "oneOf": [CARD, CASH]}, PAID),
    ({"$ref": "#/definitions/a", "description": "x"}, "struct<a: string>"),
    ({**A, "allOf": [CARD]}, "struct<a: string, card: string not null>"),
    ({**OPEN, "if": HAS_A, "then": CARD}, "struct<card: string>"),
    ({**OPEN, "oneOf": [CARD, CASH]}, f"struct<{ONE}0: struct<card: string not null>, {ONE}1: struct<cash: int64>>"),
    ({"type": ["object", "null"], **A, "anyOf": [CARD]}, "struct<a: string, card: string>?"),
    ({"allOf": [{"properties": {"p": A}}, {"properties": {"p": B}}]}, "struct<p: struct<a: string, b: int64>>"),
    ({"allOf": [{"properties": {"a": INTEGER}}, {"properties": {"a": {"minimum": 1}}}]}, "struct<a: int64>"),
    ({"allOf": [{"properties": {"a": {}}}, A]}, "struct<a: string>"),
    (
        {"allOf": [{"properties": {"l": {"items": A}}}, {"properties": {"l": {"items": B}}}]},
        "struct<l: list<item: struct<a: string, b: int64> not null>>",
    ),
    ({**A, "oneOf": [{"properties": {"a": {"const": "x"}, "b": INTEGER}}, HAS_A]}, "struct<a: string, b: int64>"),
    (
        {**A, "oneOf": [{"properties": {"v": INTEGER}}, {"properties": {"v": STRING}}]},
        f"struct<a: string, v: struct<{ONE}0: int64, {ONE}1: string>>",
    ),
    ({**B, "oneOf": [A, {"properties": {"a": {"const": "x"}}}]}, "struct<b: int64, a: string>"),
    ({**A, "oneOf": [{"properties": {"n": NULL}}, {"properties": {"n": INTEGER}}]}, "struct<a: string, n: int64>"),
    ({**A, "oneOf": [{"properties": {"n": NULL}}, HAS_A]}, "struct<a: string, n: null>"),
    ({**A, "oneOf": [{"properties": {"a": False, "b": INTEGER}}, HAS_A]}, "struct<a: string, b: int64>"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "arrow"), COMBINED)
def test_properties_are_columns_wherever_they_stand(schema: object, arrow: str) -> None:
    """All schemas that describe a value give it properties, and only those that always hold require them."""
    assert column(schema) == arrow


@pytest.mark.parametrize(("schema", "arrow"), TYPES)
def test_types(schema: object, arrow: str) -> None:
    """Each construct becomes the column that JsonSchemaData makes of it; `?`: nullable."""
    assert column(schema) == arrow


def test_generalized_unions() -> None:
    """With generalized.sum.type.support the fields of a union have other names."""
    settings = ConverterSettings(kind="json_schema", generalized_sum_types=True)
    assert (
        column({"oneOf": [INTEGER, STRING]}, settings)
        == "struct<connect_union_field_0: int64, connect_union_field_1: string>"
    )


def test_singleton_unions_may_stay() -> None:
    """With flatten.singleton.unions=false a union of one stays a struct."""
    settings = ConverterSettings(kind="json_schema", flatten_singleton_unions=False)
    assert column({"oneOf": [STRING]}, settings) == "struct<io.confluent.connect.json.OneOf.field.0: string>"
    assert column({"oneOf": [STRING, NULL]}, settings) == "string?"


RECURSIVE = ("refers to itself", "recursive schema", "no columns")
REFUSED: list[tuple[object, str, tuple[str, ...]]] = [
    (1, "", ("neither an object nor true or false", "what type")),
    ({"type": "date"}, "", ("a type", "JSON Schema does not know")),
    ({"type": "integer", "connect.type": "uuid"}, "", ("connect.type", "none of a number")),
    ({"enum": [1, "a"]}, "", ("values", "more than one type")),
    ({"enum": {}}, "", ("enum", "not a list")),
    ({"type": "object", "connect.type": "map"}, "", ("is a map", "no schema", "additionalProperties")),
    (
        {"type": "array", "connect.type": "map", "items": {"type": "object"}},
        "",
        ("is a map", "items", "no properties key and value"),
    ),
    ({"type": "array", "connect.type": "map"}, "", ("is a map", "no schema", "items")),
    ({"type": "object", "properties": {"": STRING}}, "", ("property", "empty name")),
    (
        {**A, "properties": {"additionalProperties": STRING}, "additionalProperties": True},
        "",
        ("property", "this name"),
    ),
    ({"$ref": "#/definitions/none"}, "", ("#/definitions/none", "not there")),
    ({"$ref": "http://[bad"}, "", ("http://[bad", "not there")),
    ({"$ref": "#"}, "", ("by #:", *RECURSIVE)),
    ({"type": "array", "items": {"$ref": "#/properties/x"}}, ".items", ("by #/properties/x", *RECURSIVE)),
    ({"allOf": [{"$ref": "#/properties/x"}, STRING]}, ".allOf[0]", ("by #/properties/x", *RECURSIVE)),
    ({"$recursiveRef": "#"}, "", ("reference", "dynamically", "no columns")),
    ({"type": "string", "default": 1}, "", ("default", "does not fit", "a number", "should be text")),
    ({"type": "number", "title": DECIMAL}, "", ("needs a scale", "-76 to 76", "decimal")),
]


@pytest.mark.parametrize(("schema", "below", "reason"), REFUSED)
def test_schemas_without_columns(schema: object, below: str, reason: tuple[str, ...]) -> None:
    """What cannot become columns is refused with its place in the schema."""
    with pytest.raises(InvalidValue, match=saying(f"at properties.x{below} ", *reason)):
        column(schema)


def test_recursion_is_refused_by_name() -> None:
    """A schema that comes back to itself by way of others is refused, and the reference named."""
    person = {"type": "object", "properties": {"friend": {"$ref": "#/definitions/friend"}}}
    schema = {
        "$ref": "#/definitions/person",
        "definitions": {"person": person, "friend": {"$ref": "#/definitions/person"}},
    }
    with pytest.raises(InvalidValue, match=saying("definitions.friend ", "refers to itself", "#/definitions/person")):
        decode(schema)


def test_texts_that_are_no_json() -> None:
    """A schema, or one that it refers to, that is not JSON is refused."""
    with pytest.raises(InvalidValue, match="^the JSON Schema.*not JSON"):
        decoder(RegisteredSchema(1, "JSON", "{"), SETTINGS)
    with pytest.raises(InvalidValue, match=saying("reference a.json", "not JSON")):
        decoder(RegisteredSchema(1, "JSON", "{}", (Referenced("a.json", ""),)), SETTINGS)


ADDRESS = {
    "$id": "https://shop.example/address.json",
    "type": "object",
    "properties": {"zip": {"$ref": "#/definitions/zip"}},
    "definitions": {"zip": STRING, "no": INTEGER},
}


@pytest.mark.parametrize(
    ("reference", "arrow"),
    [
        ("address.json", "struct<zip: string>"),
        ("address.json#/definitions/no", "int64"),
        ("https://shop.example/address.json", "struct<zip: string>"),
        ("https://shop.example/address.json#/definitions/zip", "string"),
    ],
)
def test_references_of_the_registry(reference: str, arrow: str) -> None:
    """A referenced schema is found by its name and by its id, and its own pointers are its own."""
    assert column({"$ref": reference}, **{"address.json": ADDRESS}) == arrow


def test_references_relative_to_ids() -> None:
    """Relative references start from the nearest id; ids and anchors anywhere are found, in old and new spelling."""
    schema = {
        "$id": "https://shop.example/order.json",
        "type": "object",
        "properties": {
            "a": {"$ref": "address.json"},
            "b": {"$ref": "item.json#/definitions/number"},
            "c": {"$ref": "#anchor"},
            "d": {"$ref": "#old"},
            "e": {"$ref": "item.json#inner"},
        },
        "definitions": {
            "item": {
                "$id": "item.json",
                "definitions": {"number": {"$ref": "#/definitions/real"}, "real": {"type": "number"}},
                "properties": {"q": {"$anchor": "inner", "type": "boolean"}},
            },
            "x": {"$anchor": "anchor", "type": "string"},
            "y": {"id": "#old", "type": "integer"},
        },
    }
    made = decoder(registered(schema, **{"address.json": ADDRESS}), SETTINGS)
    arrow = made._reader.type  # type: ignore[attr-defined]
    kinds = [f"{one.name} {one.type}" for one in arrow]
    assert kinds == ["a struct<zip: string>", "b double", "c string", "d int64", "e bool"]


def test_order_of_fields() -> None:
    """Fields stand by connect.index, else as they appear; clashing numbers lose no field."""
    properties = {
        name: {**STRING, **({} if at is None else {"connect.index": at})}
        for name, at in (("a", 2), ("b", 0), ("c", 0), ("d", None))
    }
    (row,) = rows(decode({"type": "object", "properties": properties}, {}))
    assert isinstance(row, dict)
    assert list(row) == ["b", "c", "a", "d"]


SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "id": {"type": "integer", "connect.index": 0},
        "price": {"type": "number", "title": DECIMAL, "connect.parameters": {"scale": "2"}, "connect.type": "bytes"},
        "note": {"oneOf": [NULL, STRING]},
        "state": {"type": "string", "default": "new"},
        "tags": {"type": "array", "items": STRING},
    },
    "required": ["id"],
}


def test_records() -> None:
    """Missing properties are null or their default, others than the schema's are dropped, and types are checked."""
    price = base64.b64encode((1234).to_bytes(2, "big")).decode()
    good = {"id": 1, "price": price, "note": None, "tags": ["a"], "more": {"x": 1}}
    decoded = decode(
        SCHEMA, *[good] * 100, {"id": 2, "price": 12.5, "state": "done"}, {"id": "x"}, {"note": "y"}, [], None
    )
    assert decoded.invalid.keys() == {101, 102, 103, 104}
    assert_says(decoded.invalid[101], "field id", "is text", "whole number (int64)")
    assert_says(decoded.invalid[102], "field id", "missing", "required")
    assert_says(decoded.invalid[103], "the value", "is a list", "an object")
    assert_says(decoded.invalid[104], "the value", "is null", "required")
    (piece,) = decoded.pieces
    assert isinstance(piece, SchemaColumns)
    found = piece.rows.to_pylist()
    assert found[99] == {"id": 1, "price": Decimal("12.34"), "note": None, "state": "new", "tags": ["a"]}
    assert found[100] == {"id": 2, "price": Decimal("12.50"), "note": None, "state": "done", "tags": None}


@pytest.mark.parametrize("count", [1, 200])
def test_null_where_a_property_may_only_be_missing(count: int) -> None:
    """A property that is not required may be left out; null it may be with use.optional.for.nonrequired alone."""
    schema = {"type": "object", "properties": {"a": INTEGER, "b": STRING}, "required": ["a"]}
    values = [{"a": 1}, {"a": 1, "b": None}] * count
    found = decode(schema, *values)
    assert set(found.invalid) == set(range(1, 2 * count, 2))
    (why,) = set(found.invalid.values())
    assert_says(why, "field b ", *MAY_BE_MISSING)
    lenient = ConverterSettings(kind="json_schema", optional_for_nonrequired=True)
    assert rows(decode(schema, *values, settings=lenient)) == [{"a": 1, "b": None}] * 2 * count


def test_unions_in_records() -> None:
    """A value goes to the first branch that it fits; one that fits none is invalid."""
    schema = {
        "type": "object",
        "properties": {"x": {"oneOf": [STRING, {"type": "number"}, INTEGER]}},
        "required": ["x"],
    }
    decoded = decode(schema, {"x": "a"}, {"x": 1}, {"x": 1.5}, {"x": True})
    assert decoded.invalid.keys() == {3}
    assert_says(decoded.invalid[3], "field x", "a boolean", "fits none")
    assert [row["x"] for row in decoded.pieces[0].rows.to_pylist()] == [  # type: ignore[union-attr]
        {f"{ONE}0": text, f"{ONE}1": number, f"{ONE}2": None}
        for text, number in (("a", None), (None, 1.0), (None, 1.5))
    ]


def test_open_content_is_json_text() -> None:
    """What the schema leaves open is kept as JSON text with all digits, and so are members that no property names."""
    schema = {
        "type": "object",
        "properties": {"id": INTEGER, "attrs": OPEN, "tags": {"type": "array", "items": OPEN}, "any": True},
        "additionalProperties": {"type": "number"},
        "required": ["id", "attrs"],
    }
    text = b'{"id":1,"attrs":{"colour":"red","n":1.10},"tags":[{"k":18446744073709551616}],"x":0.30000000000000004001}'
    decoded = decoder(registered(schema), SETTINGS).decode(pa.array([text, b'{"id":2,"attrs":{},"any":"a"}']))
    full = {"id": 1, "attrs": '{"colour":"red","n":1.10}', "tags": '[{"k":18446744073709551616}]', "any": None}
    assert rows(decoded) == [
        {**full, "additionalProperties": '{"x":0.30000000000000004001}'},
        {"id": 2, "attrs": "{}", "tags": None, "any": '"a"', "additionalProperties": None},
    ]
    refused = decode(schema, {"id": 1, "attrs": []}, {"id": 1, "attrs": None})
    assert_says(refused.invalid[0], "field attrs", "is a list", "should be an object")
    assert_says(refused.invalid[1], "field attrs", "is null", "required")


@pytest.mark.parametrize("schema", [True, {}, OPEN, {"type": ["object", "null"], "additionalProperties": True}])
def test_a_record_of_an_open_schema_is_read_without_a_schema(schema: object) -> None:
    """A schema that says nothing of the record's content gives what JSON without a schema does."""
    decoded = decode(schema, {"a": 1, "b": {"c": [1.5]}}, {"d": "x"})
    assert decoded.invalid == {}
    (piece,) = decoded.pieces
    assert isinstance(piece, Untyped)
    assert piece.trees == [{"a": 1, "b": {"c": [1.5]}}, {"d": "x"}]
    if schema == OPEN:
        refused = decode(schema, [1], None)
        assert_says(refused.invalid[0], "the value", "is a list", "should be an object")
        assert_says(refused.invalid[1], "the value", "is null", "required")
    else:
        assert decode(schema, None) == Decoded()


LEAVING_OUT = "does not name these fields"


@pytest.mark.parametrize("count", [1, 200])
def test_fields_that_are_left_out_are_warned_of_once(count: int, caplog: pytest.LogCaptureFixture) -> None:
    """Fields that the schema does not name are left out; one warning names them, and the key that keeps them."""
    schema = {"type": "object", "properties": {"a": INTEGER, "p": {"type": "object", "properties": {"b": INTEGER}}}}
    made = decoder(registered(schema), SETTINGS)
    plain = [b'{"a":1,"p":{"b":2}}'] * count
    made.decode(pa.array(plain, pa.binary()))
    assert caplog.messages == []
    for _ in range(2):
        assert rows(made.decode(pa.array([*plain, b'{"a":1,"x":1,"p":{"b":2,"y":3}}']))) == [
            {"a": 1, "p": {"b": 2}}
        ] * (count + 1)
    (message,) = caplog.messages
    assert_says(message, "schema id 1", LEAVING_OUT, "x, p.y", "value.converter.preserve.additional.properties=true")


def test_fields_are_looked_for_only_where_some_may_be_left_out() -> None:
    """Decimals that are written as numbers make the fast reader ignore fields in their first block alone."""
    price = {"type": "number", "title": DECIMAL, "connect.parameters": {"scale": "2"}}
    made = decoder(registered({"type": "object", "properties": {"price": price}}), SETTINGS)
    values = pa.array([b'{"price":1.25}'] * 100, pa.binary())
    ignores = []
    for _ in range(3):
        assert len(rows(made.decode(values))) == 100
        ignores.append(made._reader.ignores)  # type: ignore[attr-defined]
    assert ignores == [True, False, False]


@pytest.mark.parametrize("count", [1, 200])
def test_fields_that_the_schema_does_not_name_may_be_kept(count: int, caplog: pytest.LogCaptureFixture) -> None:
    """With preserve.additional.properties=true they are JSON text, unless the schema forbids them."""
    keeping = ConverterSettings(kind="json_schema", preserve_additional=True)
    closed = {"type": "object", "properties": {"b": INTEGER}, "additionalProperties": False}
    schema = {"type": "object", "properties": {"a": INTEGER, "p": closed}}
    found = rows(decode(schema, *[{"a": 1}] * count, {"a": 1, "x": [1], "p": {"b": 2, "y": 3}}, settings=keeping))
    assert found[:-1] == [{"a": 1, "p": None, "additionalProperties": None}] * count
    assert found[-1] == {"a": 1, "p": {"b": 2}, "additionalProperties": '{"x":[1]}'}
    (message,) = caplog.messages
    assert_says(message, LEAVING_OUT, "left out: p.y;")


def test_combined_schemas_in_records() -> None:
    """Each branch's fields are kept beside the schema's own, and none is required that only some records have."""
    schema = {**A, **HAS_A, "oneOf": [CARD, CASH]}
    assert rows(decode(schema, {"a": "x", "card": "c"}, {"a": "y", "cash": 5})) == [
        {"a": "x", "card": "c", "cash": None},
        {"a": "y", "card": None, "cash": 5},
    ]


def test_schemas_that_contain_themselves_by_merging_are_refused() -> None:
    """Recursion by way of schemas that are put together ends in a refusal, too."""
    person = {"properties": {"friend": {"$ref": "#/definitions/person", "properties": {"since": INTEGER}}}}
    with pytest.raises(InvalidValue, match=saying("itself", "recursive schema")):
        decode({"$ref": "#/definitions/person", "properties": {"a": STRING}, "definitions": {"person": person}})


def test_tombstones_and_single_values() -> None:
    """A schema that allows null makes null a tombstone; one that is not an object gives a column of its type."""
    assert decode({"oneOf": [NULL, SCHEMA]}, None) == Decoded()
    assert rows(decode({"type": "array", "items": INTEGER}, [1], [2, 3])) == [[1], [2, 3]]
    assert rows(decode(STRING, "a")) == ["a"]


def test_schemas_are_bounded() -> None:
    """Depth, fields, and references that multiply each other end in a refusal, quickly."""
    deep: dict[str, object] = STRING
    for _ in range(100):
        deep = {"type": "array", "items": deep}
    with pytest.raises(InvalidValue, match="deeper than 100 levels"):
        decode(deep)
    with pytest.raises(InvalidValue, match="more than 2,500 fields"):
        decode({"type": "object", "properties": {f"f{n}": STRING for n in range(2501)}})
    for word, message in (("properties", "more than 2,500 fields"), ("allOf", "more than 20,000 schemas")):
        names = {f"d{n}": multiplied(word, f"#/definitions/d{n + 1}") for n in range(40)}
        with pytest.raises(InvalidValue, match=message):
            decode({"$ref": "#/definitions/d0", "definitions": {**names, "d40": STRING}})


def multiplied(word: str, reference: str) -> dict[str, object]:
    """A schema that refers to the next one twice."""
    twice = [{"$ref": reference}, {"$ref": reference}]
    return {"properties": dict(zip("ab", twice, strict=True))} if word == "properties" else {"allOf": twice}
