"""A registered Avro schema to types: names, references, annotations, unions, and what is refused."""

import json

import pyarrow as pa
import pytest

from parquet_sink.addons.formats.avro.exact import Node
from parquet_sink.addons.formats.avro.schema import parse
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.registry.registered import Referenced, RegisteredSchema
from parquet_sink.convert.settings import ConverterSettings
from tests.messages import assert_says

CONNECT = "org.apache.kafka.connect.data"


def tree(schema: object, *references: object, **options: bool) -> Node:
    """A schema, parsed."""
    referenced = tuple(Referenced(f"r{at}", json.dumps(text)) for at, text in enumerate(references))
    registered = RegisteredSchema(7, "AVRO", json.dumps(schema), referenced)
    return parse(registered, ConverterSettings(kind="avro", **options))  # type: ignore[arg-type]


def arrow(schema: object, *references: object, **options: bool) -> pa.DataType:
    """The Arrow type of a schema."""
    return tree(schema, *references, **options).arrow


def record(name: str, *types: object, **more: object) -> dict[str, object]:
    """A record with the fields a, b, c and so on."""
    fields = [{"name": "abcdefgh"[at], "type": kind} for at, kind in enumerate(types)]
    return {"type": "record", "name": name, "fields": fields, **more}


def refused(schema: object, *references: object, **options: bool) -> str:
    """Why a schema is refused."""
    with pytest.raises(InvalidValue) as caught:
        tree(schema, *references, **options)
    assert_says(caught.value, "cannot be used")
    return str(caught.value)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("null", pa.null()),
        ("boolean", pa.bool_()),
        ("int", pa.int32()),
        ("long", pa.int64()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("string", pa.string()),
        ("bytes", pa.binary()),
        ({"type": "string"}, pa.string()),
        ({"type": {"type": "string"}}, pa.string()),
        ({"type": "fixed", "name": "F", "size": 4}, pa.binary()),
        ({"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"}, pa.binary()),
        ({"type": "string", "logicalType": "uuid"}, pa.string()),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.string()),
        ({"type": "int", "logicalType": "date"}, pa.date32()),
        ({"type": "int", "logicalType": "time-millis"}, pa.time32("ms")),
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.timestamp("ms", tz="UTC")),
        ({"type": "long", "logicalType": "time-micros"}, pa.int64()),
        ({"type": "long", "logicalType": "timestamp-micros"}, pa.int64()),
        ({"type": "long", "logicalType": "timestamp-nanos"}, pa.int64()),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, pa.int64()),
        ({"type": "int", "connect.type": "int8"}, pa.int32()),
        ({"type": "int", "connect.type": "int16"}, pa.int32()),
        ({"type": "int", "connect.name": f"{CONNECT}.Date", "connect.version": 1}, pa.date32()),
        ({"type": "int", "connect.name": f"{CONNECT}.Time"}, pa.time32("ms")),
        ({"type": "long", "connect.name": f"{CONNECT}.Timestamp"}, pa.timestamp("ms", tz="UTC")),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 5}, pa.decimal128(9, 5)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 38}, pa.decimal128(38, 0)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 39}, pa.decimal256(39, 0)),
        ({"type": "bytes", "logicalType": "decimal", "scale": 2}, pa.decimal256(64, 2)),
        (
            {"type": "fixed", "name": "F", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2},
            pa.decimal128(9, 2),
        ),
        (
            {"type": "bytes", "connect.name": f"{CONNECT}.Decimal", "connect.parameters": {"scale": "2"}},
            pa.decimal256(64, 2),
        ),
        (
            {
                "type": "bytes",
                "connect.name": f"{CONNECT}.Decimal",
                "connect.parameters": {"scale": "2", "connect.decimal.precision": "10"},
            },
            pa.decimal128(10, 2),
        ),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 6}, pa.decimal128(6, 6)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": -1}, pa.decimal128(6, 0)),
        (
            {
                "type": "bytes",
                "connect.name": f"{CONNECT}.Decimal",
                "connect.parameters": {"scale": "-2", "connect.decimal.precision": "10"},
            },
            pa.decimal128(12, 0),
        ),
        ({"type": "array", "items": ["null", "int"]}, pa.list_(pa.field("item", pa.int32(), True))),
        ({"type": "array", "items": "int"}, pa.list_(pa.field("item", pa.int32(), False))),
        ({"type": "map", "values": "long"}, pa.map_(pa.string(), pa.field("value", pa.int64(), False))),
    ],
)
def test_types_are_those_of_connect(schema: object, expected: pa.DataType) -> None:
    """Each Avro type has the Arrow type of what AvroData makes of it."""
    found = arrow(schema)
    assert found == expected
    assert str(found) == str(expected)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "logicalType": "date"}, pa.string()),
        ({"type": "long", "logicalType": "date"}, pa.int64()),
        ({"type": "int", "logicalType": "timestamp-millis"}, pa.int32()),
        ({"type": "int", "logicalType": "decimal", "precision": 5}, pa.int32()),
        ({"type": "int", "logicalType": 5}, pa.int32()),
        ({"type": "bytes", "logicalType": "decimal", "precision": 0}, pa.binary()),
        ({"type": "bytes", "logicalType": "decimal", "precision": "5"}, pa.binary()),
        ({"type": "long", "connect.name": f"{CONNECT}.Date"}, pa.int64()),
    ],
)
def test_a_logical_type_that_breaks_its_rules_is_ignored(schema: object, expected: pa.DataType) -> None:
    """On another base type, or with parameters that cannot be, the base type stays."""
    assert arrow(schema) == expected


def test_optional_and_required() -> None:
    """A field is nullable exactly when its type is a union with null, on whichever side."""
    found = arrow(record("R", ["null", "int"], ["string", "null"], "long", "null"))
    assert [(field.type, field.nullable) for field in found] == [
        (pa.int32(), True),
        (pa.string(), True),
        (pa.int64(), False),
        (pa.null(), True),
    ]


BRANCHES = [
    "int",
    "string",
    "null",
    record("x.Rec", "long"),
    {"type": "enum", "name": "x.En", "symbols": ["A"]},
    {"type": "array", "items": "int"},
]


def test_a_union_is_a_struct_of_its_branches() -> None:
    """One optional field for each branch but null, named by type, records and enums by their simple name."""
    found = arrow(record("R", BRANCHES))
    field = found.field(0)
    assert field.nullable
    assert [branch.name for branch in field.type] == ["int", "string", "Rec", "En", "array"]
    assert all(branch.nullable for branch in field.type)
    assert not arrow(record("R", ["int", "string"])).field(0).nullable


def test_full_names_of_branches() -> None:
    """With enhanced.avro.schema.support the fields of records, enums and fixed have full names."""
    found = arrow(BRANCHES, enhanced_names=True)
    assert [branch.name for branch in found] == ["int", "string", "x.Rec", "x.En", "array"]


def test_generalized_names_of_branches() -> None:
    """With generalized.sum.type.support fields are numbered as the branches are, null counted."""
    found = arrow(BRANCHES, generalized_sum_types=True)
    assert [branch.name for branch in found] == [f"connect_union_field_{at}" for at in (0, 1, 3, 4, 5)]


def test_a_union_of_one() -> None:
    """It is its branch, or with flatten.singleton.unions=false a struct of one field."""
    assert arrow(record("R", ["int"])).field(0).type == pa.int32()
    assert not arrow(record("R", ["int"])).field(0).nullable
    assert arrow(record("R", ["int"]), flatten_singleton_unions=False).field(0).type == pa.struct([("int", pa.int32())])
    assert arrow(record("R", ["null"]), flatten_singleton_unions=False).field(0).type == pa.null()


def test_names_are_found_in_their_namespace() -> None:
    """A name without dots is looked for in the namespace around it, then without one; aliases are accepted."""
    fixed = {"type": "fixed", "name": "F", "size": 1, "aliases": ["G"]}
    inner = record("Inner", fixed, "F", "x.F", "Plain", namespace="x")
    outer = {"type": "enum", "name": "Plain", "symbols": []}
    found = arrow(record("Outer", outer, inner, "x.Inner", {"type": "x.F"}))
    assert [field.type for field in found.field("b").type] == [pa.binary()] * 3 + [pa.string()]
    assert found.field("c").type == found.field("b").type
    assert found.field("d").type == pa.binary()
    dotted = arrow(record("a.b.Outer", {"type": "fixed", "name": "F", "size": 1}, "a.b.F", "F"))
    assert [field.type for field in dotted] == [pa.binary()] * 3


def test_references_define_names() -> None:
    """Types of referenced schemas can be named, also by one another, and the same text may come twice."""
    address = record("com.shop.Address", "string")
    customer = record("com.shop.Customer", "Address")
    found = arrow(record("com.shop.Order", "Customer", ["null", "com.shop.Address"]), address, customer, address)
    assert found.field("a").type == pa.struct(
        [pa.field("a", pa.struct([pa.field("a", pa.string(), False)]), nullable=False)]
    )
    assert found.field("b").type == pa.struct([pa.field("a", pa.string(), nullable=False)])


@pytest.mark.parametrize("first", ["key", "value"])
def test_arrays_of_map_entries_are_maps(first: str) -> None:
    """What AvroData writes for maps whose keys are not text is a map again, by name or by property."""
    fields = [{"name": "key", "type": "int"}, {"name": "value", "type": ["null", "string"]}]
    fields = fields if first == "key" else fields[::-1]
    by_name = {"type": "record", "name": "MapEntry", "namespace": "io.confluent.connect.avro", "fields": fields}
    by_property = {"type": "record", "name": "Mine", "connect.internal.type": "MapEntry", "fields": fields}
    expected = pa.map_(pa.int32(), pa.field("value", pa.string(), nullable=True))
    assert arrow({"type": "array", "items": by_name}) == expected
    assert arrow({"type": "array", "items": by_property}) == expected
    assert_says(refused({"type": "array", "items": {**by_name, "fields": fields[:1]}}), "other fields", "key and value")


def test_a_type_that_contains_itself_is_refused_by_name() -> None:
    """Recursive records have no columns; the message says which, and where."""
    text = record("x.Tree", "int", ["null", "Tree"])
    assert_says(refused(text), "field b", "x.Tree", "contains itself")
    nested = record("A", record("B", {"type": "array", "items": "A"}))
    assert_says(refused(nested), "field a.a", "type A", "contains itself")


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (record("R", "Missing"), ("field a", "unknown type", "Missing")),
        ({"type": "map"}, ("no values",)),
        ({"type": "array"}, ("no items",)),
        ({"name": "x"}, ("no type",)),
        (5, ("no type",)),
        (None, ("no type",)),
        (record("R", []), ("field a", "union", "without branches")),
        (record("R", ["int", ["null", "string"]]), ("field a", "inside a union")),
        (record("R", ["int", {"type": ["null", "string"]}]), ("field a", "inside a union")),
        (json.loads("[" * 500 + "]" * 500), ("inside a union",)),
        (record("R", ["int", "int"]), ("field a", "two branches", "one type")),
        (record("R", ["null", "null"]), ("field a", "two branches", "one type")),
        ({"type": "record", "name": "R"}, ("record", "without", "fields")),
        ({"type": "record", "name": "R", "fields": [{"type": "int"}]}, ("field without a name",)),
        ({"type": "record", "name": "R", "fields": [{"name": "a"}]}, ("no type",)),
        ({"type": "record", "name": "R", "fields": [{"name": "", "type": "int"}]}, ("field without a name",)),
        ({"type": "record", "fields": []}, ("record without a name",)),
        ({"type": "fixed", "name": "F"}, ("fixed without a size",)),
        ({"type": "fixed", "name": "F", "size": -1}, ("fixed without a size",)),
        ({"type": "enum", "name": "E"}, ("enum", "without", "symbols")),
        ({"type": "enum", "name": "E", "symbols": ["x" * 256]}, ("enum", "symbol", "more than 255 bytes")),
        (record("R", record("R", "int")), ("field a", "type R", "twice")),
        (record("int", "int"), ("type int", "twice")),
        ({"type": "bytes", "logicalType": "decimal", "precision": 77}, ("decimal", "precision 77", "more than 76")),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": -77},
            ("decimal", "scale -77", "more than 76"),
        ),
        ({"type": "bytes", "connect.name": f"{CONNECT}.Decimal"}, ("Connect decimal", "without a scale")),
        (
            {"type": "bytes", "connect.name": f"{CONNECT}.Decimal", "connect.parameters": {"scale": "two"}},
            ("Connect decimal", "scale or precision", "no whole number"),
        ),
    ],
)
def test_what_is_refused(schema: object, why: tuple[str, ...]) -> None:
    """A schema that cannot be used is refused with what is wrong in it, and where."""
    assert_says(refused(schema), *why)


def test_two_fields_of_one_name() -> None:
    """They are refused with the name."""
    fields = [{"name": "a", "type": "int"}, {"name": "a", "type": "int"}]
    assert_says(refused({"type": "record", "name": "R", "fields": fields}), "field a", "two fields", "name")


def test_two_branches_of_one_simple_name() -> None:
    """They are refused unless full names are kept."""
    union = [record("x.R", "int"), record("y.R", "int")]
    assert_says(refused(union), "two branches", "one name", "enhanced.avro.schema.support")
    assert [branch.name for branch in arrow(union, enhanced_names=True)] == ["x.R", "y.R"]


@pytest.mark.parametrize("text", ["", "{", "string", "[" * 5_000, '{"type": NaN}'])
def test_text_that_is_not_json(text: str) -> None:
    """It is refused with the position."""
    with pytest.raises(InvalidValue, match=r"not JSON.*position \d+"):
        parse(RegisteredSchema(7, "AVRO", text), ConverterSettings(kind="avro"))


def chain(levels: int) -> dict[str, object]:
    """Records in records, each optional."""
    schema = record("R0", "int")
    for level in range(1, levels):
        schema = record(f"R{level}", ["null", schema])
    return schema


def test_depth() -> None:
    """A hundred levels are accepted, one more is not, however they are described."""
    assert tree(chain(100)).depth == 100
    assert "deeper than 100 levels" in refused(chain(101))
    assert "deeper than 100 levels" in refused(chain(150))
    named = [record("N0", "int")] + [record(f"N{at}", f"N{at - 1}") for at in range(1, 101)]
    assert "deeper than 100 levels" in refused("N100", *named)
    wrapped: object = "int"
    for _ in range(300):
        wrapped = {"type": wrapped}
    assert "deeper than 100 levels" in refused(wrapped)


def test_number_of_columns() -> None:
    """2,500 leaf columns are accepted, one more is not; types that double themselves cost no time."""
    fields = [{"name": f"f{at}", "type": "int"} for at in range(2_500)]
    schema = {"type": "record", "name": "R", "fields": fields}
    assert tree(schema).leaves == 2_500
    fields.append({"name": "more", "type": {"type": "array", "items": "int"}})
    assert "more than 2500 columns" in refused(schema)
    doubled = [record("D0")] + [record(f"D{at}", f"D{at - 1}", f"D{at - 1}") for at in range(1, 60)]
    assert "more than 2500 columns" in refused("D59", *doubled)


def test_control_characters_in_names_are_escaped() -> None:
    """A name from a schema cannot break a log line, and a long one is cut."""
    assert "\n" not in refused(record("R", "a\nb"))
    assert len(refused(record("R", "x" * 5_000))) < 300
