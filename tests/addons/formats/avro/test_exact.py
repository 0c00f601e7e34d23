"""One Avro datum at a time: what each type gives, and why a datum is refused."""

import io
import json
import struct
from decimal import Decimal

import fastavro
import pytest

from parquet_sink.addons.formats.avro.exact import Exact
from parquet_sink.addons.formats.avro.schema import parse
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.registry.registered import RegisteredSchema
from parquet_sink.convert.settings import ConverterSettings
from tests.messages import assert_says


def exact(schema: object) -> Exact:
    """The decoder of a schema."""
    return Exact(parse(RegisteredSchema(1, "AVRO", json.dumps(schema)), ConverterSettings(kind="avro")))


def refused(schema: object, datum: bytes) -> str:
    """Why a datum is refused."""
    with pytest.raises(InvalidValue) as caught:
        exact(schema).value(datum)
    assert_says(caught.value, "Avro schema")
    return str(caught.value)


def record(*types: object) -> dict[str, object]:
    """A record with the fields a, b, c and so on."""
    return {
        "type": "record",
        "name": "R",
        "fields": [{"name": "abcdefgh"[at], "type": kind} for at, kind in enumerate(types)],
    }


def array(items: object) -> dict[str, object]:
    """An array."""
    return {"type": "array", "items": items}


EMPTY = {"type": "record", "name": "Empty", "fields": []}
ITEM = {"type": "record", "name": "Item", "fields": [{"name": "n", "type": "int"}]}
HUNDREDS = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": -2}
VARIABLE = {
    "type": "record",
    "name": "io.debezium.data.VariableScaleDecimal",
    "fields": [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}],
}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
TIME = {"type": "int", "logicalType": "time-millis"}
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}


@pytest.mark.parametrize(
    ("schema", "datum", "value"),
    [
        ("null", b"", None),
        ("boolean", b"\x01", True),
        ("int", b"\x01", -1),
        ("int", b"\xff\xff\xff\xff\x0f", -(2**31)),
        ("long", b"\xff" * 9 + b"\x01", -(2**63)),
        ("long", b"\xfe" + b"\xff" * 8 + b"\x01", 2**63 - 1),
        ("long", b"\x82\x80\x00", 1),
        ("float", struct.pack("<f", 1.5), 1.5),
        ("double", struct.pack("<d", -0.1), -0.1),
        ("string", b"\x06f\xc3\xbc", "fü"),
        ("bytes", b"\x04\x00\xff", b"\x00\xff"),
        ({"type": "fixed", "name": "F", "size": 2}, b"ab", b"ab"),
        (ENUM, b"\x02", "B"),
        (DECIMAL, b"\x04\xff\x85", Decimal("-1.23")),
        (HUNDREDS, b"\x02\x05", Decimal(500)),
        (VARIABLE, b"\x04\x04\xff\x85", "-1.23"),
        (VARIABLE, b"\x03\x02\x05", "500"),
        (VARIABLE, b"\x00\x02\x00", "0"),
        (VARIABLE, b"\x3c\x02\x05", "0.000000000000000000000000000005"),
        (VARIABLE, b"\xd0\x0f\x02\x05", "5E-1000"),
        (DECIMAL, b"\x08\x00\x00\x00\x7b", Decimal("1.23")),
        (TIME, b"\x00", 0),
        (array("int"), b"\x04\x02\x04\x00", [1, 2]),
        (array("int"), b"\x03\x04\x02\x04\x02\x06\x00", [1, 2, 3]),
        ({"type": "map", "values": "int"}, b"\x06\x02a\x02\x02b\x04\x02a\x06\x00", [("a", 3), ("b", 2)]),
        (["null", "int"], b"\x00", None),
        (["null", "int"], b"\x02\x04", 2),
        (["int"], b"\x00\x04", 2),
        (["int", "string"], b"\x02\x02x", {"string": "x"}),
        (record("int", EMPTY), b"\x02", {"a": 1, "b": {}}),
    ],
)
def test_values(schema: object, datum: bytes, value: object) -> None:
    """Each type gives its value."""
    assert exact(schema).value(datum) == value


@pytest.mark.parametrize(
    ("schema", "datum", "why"),
    [
        (record("int", "long"), b"\x02", ("field b", "cut off")),
        (record("int"), b"", ("field a", "cut off")),
        (record("int"), b"\x80", ("field a", "cut off")),
        (record("double"), b"\x00" * 7, ("field a", "cut off")),
        (record("string"), b"\x06ab", ("field a", "cut off")),
        ("string", b"\x06ab", ("the datum", "cut off")),
        (record({"type": "fixed", "name": "F", "size": 3}), b"ab", ("field a", "cut off")),
        (record("int"), b"\x02\x00\x00", ("2 bytes more",)),
        ("null", b"\x00", ("1 byte more",)),
        (record("int"), b"\x80\x80\x80\x80\x10", ("field a", "integer", "32 bits")),
        (record("long"), b"\xff" * 10 + b"\x01", ("field a", "integer", "more than 10 bytes")),
        (record("long"), b"\xff" * 9 + b"\x02", ("field a", "integer", "64 bits")),
        (record("boolean"), b"\x02", ("field a", "boolean", "neither 0 nor 1")),
        (record("string"), b"\x04\xc3\x28", ("field a", "text", "not UTF-8")),
        (record("string"), b"\x06\xed\xa0\x80", ("field a", "text", "not UTF-8")),
        (record("string"), b"\x01", ("field a", "negative length")),
        (record("bytes"), b"\xfe" + b"\xff" * 8 + b"\x01", ("field a", "cut off")),
        (record(ENUM), b"\x04", ("field a", "symbol", "does not have")),
        (record(ENUM), b"\x01", ("field a", "symbol", "does not have")),
        (record(["null", "int"]), b"\x04", ("field a", "branch", "does not have")),
        (record(["null", "int"]), b"\x01", ("field a", "branch", "does not have")),
        (record(DECIMAL), b"\x04\x27\x10", ("field a", "decimal", "more than 4 digits")),
        (record(DECIMAL), b"\x04\xd8\xf0", ("field a", "decimal", "more than 4 digits")),
        (record(DECIMAL), b"\x00", ("field a", "decimal", "no bytes")),
        (record(VARIABLE), b"\x00\x00", ("field a", "decimal", "no bytes")),
        (record(TIME), b"\x01", ("field a", "time", "within a day")),
        (record(TIME), b"\x80\xf0\xb2\x52", ("field a", "time", "within a day")),
        (record(array("string")), b"\x04\x02x\x04x", ("field a[1]", "cut off")),
        (record(array(ITEM)), b"\x02", ("field a", "more items", "bytes")),
        (record(array("int")), b"\x02\x02", ("field a", "cut off")),
        (record(array("int")), b"\xff" * 9 + b"\x01", ("field a", "cut off")),
        (record({"type": "map", "values": "string"}), b"\x02\x02k\x04x", ("field a[0].value", "cut off")),
        (record({"type": "map", "values": "string"}), b"\x02\x02\xff\x00\x00", ("field a[0].key", "text", "not UTF-8")),
    ],
)
def test_what_is_refused(schema: object, datum: bytes, why: tuple[str, ...]) -> None:
    """A datum that is not of the schema is refused with what is wrong, and where."""
    assert_says(refused(schema, datum), *why)


def test_decimals_and_times_at_their_limits() -> None:
    """The largest decimal of the precision and the last millisecond of a day are accepted."""
    assert exact(DECIMAL).value(b"\x04\x27\x0f") == Decimal("99.99")
    assert exact(DECIMAL).value(b"\x04\xd8\xf1") == Decimal("-99.99")
    assert exact(TIME).value(b"\xfe\xef\xb2\x52") == 86_399_999


@pytest.mark.parametrize("items", ["null", EMPTY])
def test_items_without_bytes_are_bounded(items: object) -> None:
    """An array of items that take no bytes may have 1,000 of them and 16 more for each byte of the datum."""
    many = exact(record(array(items))).value(b"\xd0\x0f\x00")  # 1,000
    assert isinstance(many, dict)
    assert len(many["a"]) == 1_000
    for count in (b"\x80\x7d", b"\xfe" + b"\xff" * 8 + b"\x01", b"\xff" * 9 + b"\x01\x00"):
        assert_says(refused(record(array(items)), count + b"\0"), "field a", "more items", "record of its size")


def test_absent_wide_records_are_bounded() -> None:
    """A null costs a byte, and in columns as much as the record that is not there: such items are counted, too."""
    fields = [{"name": f"f{at}", "type": "double"} for at in range(500)]
    wide = {"type": "record", "name": "Wide", "fields": fields}
    assert exact(array(["null", wide])).value(b"\x02\x00\x00") == [None]
    assert "a record of its size" in refused(array(["null", wide]), b"\x06\x00\x00\x00\x00")


def test_blocks_that_announce_what_is_not_there() -> None:
    """They are refused before anything is read, at any depth."""
    nested: object = "null"
    for _ in range(50):
        nested = array(nested)
    huge = b"\xfe" + b"\xff" * 8 + b"\x01"
    assert "more items" in refused(nested, b"\x02" * 49 + huge)
    assert "more items" in refused(array("int"), huge + b"\x00" * 1_000)


@pytest.mark.parametrize("key", ["int", "long", "boolean", "bytes", "string"])
def test_map_entries_with_keys_of_any_type(key: str) -> None:
    """Entries become pairs; of equal keys the last one counts."""
    schema = entries(key)
    one, two = {"string": (b"\x02a", b"\x02b"), "bytes": (b"\x02a", b"\x02b")}.get(key, (b"\x00", b"\x01"))
    found = exact(schema).value(b"\x06" + one + b"\x02" + two + b"\x04" + one + b"\x06" + b"\x00")
    assert isinstance(found, list)
    assert [value for _, value in found] == [3, 2]


def entries(key: object) -> dict[str, object]:
    """What AvroData writes for a map with such keys."""
    fields = [{"name": "key", "type": key}, {"name": "value", "type": "int"}]
    return array({"type": "record", "name": "io.confluent.connect.avro.MapEntry", "fields": fields})


def test_map_entries_with_records_as_keys() -> None:
    """Keys that are records are compared by their values."""
    schema = entries({**record("double"), "name": "Key"})
    zero, minus, nan = (struct.pack("<d", number) for number in (0.0, -0.0, float("nan")))
    datum = b"\x0a" + zero + b"\x00" + minus + b"\x02" + zero + b"\x04" + nan + b"\x06" + nan + b"\x08" + b"\x00"
    found = exact(schema).value(datum)
    assert isinstance(found, list)
    assert [value for _, value in found] == [2, 1, 4]


def test_map_entries_need_keys() -> None:
    """A null key is refused."""
    assert_says(refused(record(entries(["null", "int"])), b"\x02\x00\x02\x00"), "field a[0]", "no key")


def test_a_hundred_levels() -> None:
    """The deepest schema that is accepted is also read."""
    schema: dict[str, object] = {**record("int"), "name": "R0"}
    for level in range(1, 100):
        schema = {"type": "record", "name": f"R{level}", "fields": [{"name": "n", "type": ["null", schema]}]}
    found = exact(schema).value(b"\x02" * 99 + b"\x0e")
    for _ in range(99):
        assert isinstance(found, dict)
        found = found["n"]
    assert found == {"a": 7}


def test_values_of_fastavro() -> None:
    """A datum of fastavro's writer reads the same here and with fastavro's reader."""
    schema = record("long", ["null", "string"], {"type": "map", "values": array("double")}, "bytes")
    value = {"a": 2**40, "b": "für", "c": {"x": [1.0, 2.5], "y": []}, "d": b"\x00"}
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    found = exact(schema).value(out.getvalue())
    assert isinstance(found, dict)
    assert {**found, "c": dict(found["c"])} == value
    assert fastavro.schemaless_reader(io.BytesIO(out.getvalue()), fastavro.parse_schema(schema), None) == value


def test_reasons_hold_no_content() -> None:
    """What a record holds is not in the reason."""
    assert "secret" not in refused(record("string", "boolean"), b"\x0csecret\x07")
