"""What columns a Protobuf message has, and what its values become: Confluent's ProtobufData."""

import datetime as dt
import math
from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import text_format

from parquet_sink.addons.formats.protobuf.columns import row
from parquet_sink.addons.formats.protobuf.compile import Compiled, compile_schema
from parquet_sink.addons.formats.protobuf.indexes import message_at
from parquet_sink.addons.formats.protobuf.plan import MAX_DEPTH, MAX_FIELDS, plan
from parquet_sink.addons.formats.protobuf.values import Plan, UnrepresentableValue
from parquet_sink.convert.invalid import InvalidValue, Unfit
from parquet_sink.convert.registry.registered import RegisteredSchema
from parquet_sink.convert.settings import ConverterSettings
from tests.messages import assert_says

DEFAULTS = ConverterSettings(kind="protobuf")
IMPORTS = "".join(
    f'import "{name}.proto"; '
    for name in (
        *("google/protobuf/timestamp", "google/protobuf/duration", "google/protobuf/any", "google/protobuf/empty"),
        *("google/protobuf/wrappers", "google/protobuf/struct", "google/type/date", "google/type/timeofday"),
        *("confluent/meta", "confluent/type/decimal"),
    )
)


@cache
def compiled(text: str) -> Compiled:
    """A compiled schema; one without a syntax is proto3 with all known files."""
    whole = text if text.startswith(("syntax", "edition")) else f'syntax = "proto3"; {IMPORTS} {text}'
    return compile_schema(RegisteredSchema(1, "PROTOBUF", whole))


def planned(text: str, **settings: Any) -> Plan:
    """The plan of the first message."""
    schema = compiled(text)
    return plan(schema, message_at(schema, (0,)), replace(DEFAULTS, **settings))


def types(text: str, **settings: Any) -> list[str]:
    """Names and types of the columns of the first message."""
    return [f"{field.name} {field.type}" for field in planned(text, **settings).shape.arrow]


def required(text: str, **settings: Any) -> list[str]:
    """Columns of the first message that are not optional."""
    return [field.name for field in planned(text, **settings).shape.arrow if not field.nullable]


def value(text: str, message: str, **settings: Any) -> Any:
    """What a message, in text format, becomes."""
    how = planned(text, **settings)
    parsed = text_format.Parse(message, how.message(), descriptor_pool=compiled(text).pool)
    shape = how.shape
    return pa.array([row(shape, how.message.FromString(parsed.SerializePartialToString()))], shape.arrow)[0].as_py()


def unfit(text: str, message: str, **settings: Any) -> str:
    """Why a message has no row."""
    with pytest.raises(Unfit) as error:
        value(text, message, **settings)
    return str(error.value)


def refused(text: str, **settings: Any) -> str:
    """Why a schema has no columns."""
    with pytest.raises(InvalidValue) as error:
        planned(text, **settings)
    return str(error.value)


SCALARS = """message M {
  int32 a = 1; sint32 b = 2; sfixed32 c = 3; uint32 d = 4; fixed32 e = 5; int64 f = 6; sint64 g = 7; sfixed64 h = 8;
  uint64 i = 9; fixed64 j = 10; float k = 11; double l = 12; bool m = 13; string n = 14; bytes o = 15; E p = 16;
  repeated int32 q = 17; map<string, int64> r = 18; N s = 19;
} enum E { ZERO = 0; ONE = 1; } message N { int32 x = 1; }"""


def test_types_of_scalars() -> None:
    """Unsigned integers become int64, enums strings, the rest what it is."""
    assert types(SCALARS) == [
        *("a int32", "b int32", "c int32", "d int64", "e int64", "f int64", "g int64", "h int64", "i int64", "j int64"),
        *("k float", "l double", "m bool", "n string", "o binary", "p string"),
        *("q list<item: int32>", "r map<string, int64>", "s struct<x: int32>"),
    ]


def test_absent_fields_of_proto3_have_their_zero() -> None:
    """Scalars without presence are never null; an absent message is."""
    assert value(SCALARS, "") == {
        **dict.fromkeys("abcdefghij", 0),
        "k": 0.0,
        "l": 0.0,
        "m": False,
        "n": "",
        "o": b"",
        "p": "ZERO",
        "q": [],
        "r": [],
        "s": None,
    }


def test_extremes_of_scalars() -> None:
    """The largest and smallest numbers, infinities and NaN are kept."""
    text = f"a: {-(2**31)} d: {2**32 - 1} e: {2**32 - 1} f: {-(2**63)} i: {2**63 - 1} j: {2**63 - 1} k: -inf l: nan"
    found = value(SCALARS, text)
    assert [found[name] for name in "adefijk"] == [
        *(-(2**31), 2**32 - 1, 2**32 - 1, -(2**63), 2**63 - 1, 2**63 - 1, -math.inf),
    ]
    assert math.isnan(found["l"])


@pytest.mark.parametrize("name", ["i", "j"])
def test_unsigned_beyond_int64_is_invalid(name: str) -> None:
    """An unsigned integer that int64 cannot hold is invalid, not wrapped."""
    assert_says(unfit(SCALARS, f"{name}: {2**63}"), f"field {name}", "64 bits", "sign")


def test_enums() -> None:
    """An enum is its first name of the number, or Java's name for an unknown number; or the number."""
    text = "message M { E e = 1; } enum E { option allow_alias = true; A = 0; ONE = 1; UNO = 1; }"
    assert [value(text, f"e: {number}")["e"] for number in (0, 1, -7)] == ["A", "ONE", "UNKNOWN_ENUM_VALUE_E_-7"]
    assert value(text, "e: -7", int_for_enums=True) == {"e": -7}
    assert types(text, int_for_enums=True) == ["e int32"]


ONEOF = "message M { int32 a = 1; oneof pick { string b = 2; N c = 3; } oneof other { int32 d = 4; } int32 e = 5; } "
ONEOF += "message N { int32 x = 1; }"


def test_a_oneof_is_a_struct_of_optional_fields() -> None:
    """Oneofs come first, numbered; the field that is set is not null, even if it is zero."""
    assert types(ONEOF) == [
        *("pick_0 struct<b: string, c: struct<x: int32>>", "other_1 struct<d: int32>", "a int32", "e int32"),
    ]
    assert value(ONEOF, 'b: "" e: 2') == {"pick_0": {"b": "", "c": None}, "other_1": None, "a": 0, "e": 2}
    assert value(ONEOF, "c { x: 1 }")["pick_0"] == {"b": None, "c": {"x": 1}}


def test_oneofs_without_number_or_flattened() -> None:
    """The number is left out without generate.index.for.unions; flatten.unions puts the fields into the parent."""
    assert [name.split()[0] for name in types(ONEOF, index_for_unions=False)] == ["pick", "other", "a", "e"]
    assert [name.split()[0] for name in types(ONEOF, flatten_unions=True)] == ["b", "c", "d", "a", "e"]
    flat = {"b": None, "c": None, "d": 0, "a": 0, "e": 0}
    assert value(ONEOF, "d: 0", flatten_unions=True) == flat


def test_proto3_optional_is_null_when_absent() -> None:
    """A field with `optional` is null when absent, and is no oneof."""
    text = "message M { optional int32 a = 1; optional E e = 2; oneof o { int32 x = 3; } } enum E { A = 0; }"
    assert value(text, "") == {"o_0": None, "a": None, "e": None}
    assert value(text, "a: 0 e: A") == {"o_0": None, "a": 0, "e": "A"}


PROTO2 = """syntax = "proto2"; message M { optional int32 a = 1 [default = 7]; required string b = 2;
  repeated int32 c = 3; optional group G = 4 { optional int32 x = 1; } extensions 100 to 200; optional E e = 5; }
  enum E { X = 3; Y = 4; } extend M { optional int32 more = 100; }"""


def test_proto2() -> None:
    """Optional fields are null when absent, or have their default without optional.for.proto2; groups are left out."""
    assert types(PROTO2) == ["a int32", "b string", "c list<item: int32>", "e string"]
    message = 'b: "x" G { x: 1 } [more]: 3'
    assert value(PROTO2, message) == {"a": None, "b": "x", "c": [], "e": None}
    assert value(PROTO2, 'b: "x"', optional_for_proto2=False) == {"a": 7, "b": "x", "c": [], "e": "X"}
    assert planned(PROTO2).required


EDITION = """edition = "2023"; message M { int32 qty = 1 [default = 7]; string plain = 2;
  int32 implicit = 3 [features.field_presence = IMPLICIT]; int32 must = 4 [features.field_presence = LEGACY_REQUIRED];
  E open = 5; C closed = 6; N n = 7 [features.message_encoding = DELIMITED]; repeated C many = 8;
  map<string, C> m = 9; } message N { int32 x = 1; } enum E { A = 0; }
  enum C { option features.enum_type = CLOSED; P = 0; Q = 3; }"""


def test_editions_have_null_where_a_field_is_absent() -> None:
    """A field of an edition is null when absent, as its features give it presence; without presence it has its zero."""
    absent = {"qty": None, "plain": None, "implicit": 0, "must": 1, "open": None, "closed": None, "n": None}
    for settings in ({}, {"optional_for_proto2": False}, {"wrapper_for_nullables": True}):
        assert value(EDITION, "must: 1", **settings) == absent | {"many": [], "m": []}
    present = value(EDITION, 'must: 1 qty: 0 plain: "" open: A n { x: 4 }')
    assert present == absent | {"qty": 0, "plain": "", "open": "A", "n": {"x": 4}, "many": [], "m": []}
    assert required(EDITION, optional_for_nullables=True) == ["implicit", "must"]


CLOSED = """syntax = "proto2"; message M { optional C closed = 6; repeated C many = 8; map<string, C> m = 9; }
  enum C { P = 0; Q = 3; }"""


@pytest.mark.parametrize("text", [CLOSED, EDITION])
@pytest.mark.parametrize("int_for_enums", [True, False])
def test_a_closed_enum_has_no_unknown_numbers(text: str, int_for_enums: bool) -> None:
    """A number that a closed enum does not have is an unknown field: null, no item of a list, no entry of a map."""
    how = planned(text, int_for_enums=int_for_enums)
    data = b"\x20\x00\x30\x09" + b"\x40\x03\x40\x09" + b"\x4a\x05\x0a\x01a\x10\x09" + b"\x4a\x05\x0a\x01b\x10\x03"
    values = row(how.shape, how.message.FromString(data))
    assert isinstance(values, dict)
    known = 3 if int_for_enums else "Q"
    assert [values[name] for name in ("closed", "many", "m")] == [None, [known], [("b", known)]]


OPTIONALITY = """message M { int32 a = 1; optional int32 b = 2; N c = 3; repeated int32 d = 4; map<string, int32> e = 5;
  E f = 6; google.protobuf.Int32Value g = 7; oneof h { int32 i = 8; } } message N { int32 x = 1; } enum E { A = 0; }"""


def test_optionality() -> None:
    """All is optional by default; plain scalars are required with either way of marking what is nullable."""
    assert required(OPTIONALITY) == []
    assert required(OPTIONALITY, optional_for_nullables=True) == ["a"]
    assert required(OPTIONALITY, wrapper_for_nullables=True) == ["a"]
    map_type = planned(OPTIONALITY, optional_for_nullables=True).shape.arrow.field("e").type
    assert not map_type.item_field.nullable
    assert required(PROTO2, optional_for_nullables=True) == ["b"]
    assert required(PROTO2, wrapper_for_nullables=True, optional_for_proto2=False) == ["a", "b"]


WRAPPERS = "message M { " + " ".join(
    f"google.protobuf.{kind}Value f{number} = {number};"
    for number, kind in enumerate(
        ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes"), start=1
    )
)
WRAPPERS += " repeated google.protobuf.StringValue texts = 20; }"


def test_wrappers_are_nullable_scalars() -> None:
    """A wrapper is the scalar that it holds, null when it is absent."""
    kinds = ["double", "float", "int64", "int64", "int32", "int64", "bool", "string", "binary"]
    expected = [*(f"f{number} {kind}" for number, kind in enumerate(kinds, start=1)), "texts list<item: string>"]
    assert types(WRAPPERS) == expected
    assert types(WRAPPERS, wrapper_for_raw_primitives=False, wrapper_for_nullables=True) == expected
    assert types(WRAPPERS, wrapper_for_raw_primitives=False)[7] == "f8 struct<value: string>"
    found = value(WRAPPERS, 'f4 {value: 9} f8 {} texts {value: "a"} texts {}')
    assert (found["f1"], found["f4"], found["f8"], found["texts"]) == (None, 9, "", ["a", ""])
    assert "beyond 64 bits" in unfit(WRAPPERS, f"f4 {{value: {2**63}}}")


def test_a_wrapper_as_a_record_is_its_scalar() -> None:
    """A record that is a wrapper is handed on as the scalar, unless wrapper.for.raw.primitives is off."""
    text = 'syntax = "proto3"; import public "google/protobuf/wrappers.proto";'
    assert planned(text).shape.arrow == pa.float64()
    assert types(text, wrapper_for_raw_primitives=False) == ["value double"]


def test_timestamps() -> None:
    """Timestamps are milliseconds, rounded down, before 1970 as well."""
    text = "message M { google.protobuf.Timestamp t = 1; }"
    assert types(text) == ["t timestamp[ms, tz=UTC]"]
    assert value(text, "") == {"t": None}
    assert value(text, "t {}")["t"] == dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    before = value(text, "t { seconds: -1 nanos: 999999999 }")["t"]
    assert before == dt.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=dt.UTC)
    last = value(text, "t { seconds: 253402300799 nanos: 999999999 }")["t"]
    assert last == dt.datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=dt.UTC)


@pytest.mark.parametrize("wrong", ["seconds: -62135596801", "seconds: 253402300800", "nanos: -1", "nanos: 1000000000"])
def test_timestamps_out_of_range_are_invalid(wrong: str) -> None:
    """Timestamps are of the years 1 to 9999, with nanoseconds of one second."""
    text = "message M { google.protobuf.Timestamp t = 1; }"
    assert_says(unfit(text, f"t {{ {wrong} }}"), "field t", "timestamp", "1 to 9999")


def test_dates() -> None:
    """Dates before 1970 and leap days are dates."""
    text = "message M { google.type.Date d = 1; }"
    for day in (dt.date(1904, 2, 29), dt.date(1, 1, 1), dt.date(9999, 12, 31)):
        assert value(text, f"d {{ year: {day.year} month: {day.month} day: {day.day} }}") == {"d": day}
    assert value(text, "") == {"d": None}


DATE_AND_TIME = "message M { google.type.Date d = 1; google.type.TimeOfDay t = 2; repeated google.type.Date ds = 3; }"


@pytest.mark.parametrize(
    "wrong",
    [
        *("year: 2023 month: 2 day: 29", "year: 2023 month: 13 day: 1", "month: 2 day: 30", "year: 2023 day: 1"),
        *("day: 3", "year: 10000", "year: -1", "month: -1", "year: 2023 month: 1 day: -1"),
    ],
)
def test_dates_that_are_in_no_calendar_are_invalid(wrong: str) -> None:
    """A day that its month does not have, or that is of no month, is invalid."""
    assert_says(unfit(DATE_AND_TIME, f"d {{ {wrong} }}"), "field d", "not a date", "1 to 9999")


def test_a_date_of_zeros_is_null() -> None:
    """A date that says nothing is null, in lists, too."""
    assert value(DATE_AND_TIME, "d {} ds {}") == {"d": None, "t": None, "ds": [None]}


@pytest.mark.parametrize("parts", [(2023, 1, 0), (2023, 0, 0), (0, 2, 29), (0, 3, 0)])
def test_dates_without_a_part_have_none_in_a_date_column(parts: tuple[int, int, int]) -> None:
    """A date without year, month or day is named, and becomes a struct where its field is planned as one."""
    given = dict(zip(("year", "month", "day"), parts, strict=True))
    how = planned(DATE_AND_TIME)
    message = how.message()
    for name, part in given.items():
        setattr(message.d, name, part)
    with pytest.raises(UnrepresentableValue) as error:
        row(how.shape, message)
    assert error.value.field == "M.d"
    schema = compiled(DATE_AND_TIME)
    as_parts = plan(schema, message_at(schema, (0,)), DEFAULTS, frozenset({"M.d"}))
    assert str(as_parts.shape.arrow.field("d").type) == "struct<year: int32, month: int32, day: int32>"
    assert row(as_parts.shape, message) == {"d": given, "t": None, "ds": []}


def test_times() -> None:
    """A time of day is milliseconds since midnight; 24:00 and leap seconds have no place in such a column."""
    last = "t { hours: 23 minutes: 59 seconds: 59 nanos: 999999999 }"
    assert value(DATE_AND_TIME, last)["t"] == dt.time(23, 59, 59, 999000)
    assert value(DATE_AND_TIME, "t {}")["t"] == dt.time(0)
    for wrong in ("hours: 25", "hours: 24 nanos: 1", "minutes: 60", "seconds: 61", "nanos: -1"):
        assert_says(unfit(DATE_AND_TIME, f"t {{ {wrong} }}"), "field t", "time of day")
    for whole, said in (("hours: 24", "24:00"), ("hours: 23 seconds: 60", "leap second")):
        with pytest.raises(UnrepresentableValue, match=said):
            value(DATE_AND_TIME, f"t {{ {whole} }}")


OBJECTS = """message M { google.protobuf.Struct s = 1; google.protobuf.Value v = 2; google.protobuf.ListValue l = 3;
  repeated google.protobuf.Value vs = 4; map<string, google.protobuf.Value> m = 5; }"""


def test_objects_without_a_type_are_their_json_text() -> None:
    """Struct, Value and ListValue are text with all digits of a double and sorted keys; null is null."""
    assert types(OBJECTS) == ["s string", "v string", "l string", "vs list<item: string>", "m map<string, string>"]
    assert value(OBJECTS, "") == {"s": None, "v": None, "l": None, "vs": [], "m": []}
    empty = value(
        OBJECTS,
        's {} v {} l {} vs {} vs { string_value: "x" } m { key: "k" value { bool_value: true } }',
    )
    assert empty == {"s": "{}", "v": None, "l": "[]", "vs": [None, '"x"'], "m": [("k", "true")]}
    deep = """s { fields { key: "z" value { number_value: 0.1 } } fields { key: "a" value { list_value {
      values { number_value: 9007199254740993 } values { null_value: NULL_VALUE } values { number_value: nan }
      values { struct_value { fields { key: "\\"ß" value { string_value: "\\n" } } } } values {} } } } }
      v { number_value: 1.7976931348623157e+308 }"""
    found = value(OBJECTS, deep)
    assert found["s"] == r'{"a":[9007199254740992.0,null,"NaN",{"\"ß":"\n"},null],"z":0.1}'
    assert float(found["v"]) == 1.7976931348623157e308


def decimals(params: str) -> str:
    """A schema with a decimal whose field has parameters."""
    return f"message M {{ confluent.type.Decimal d = 1 [(confluent.field_meta) = {{params: [{params}]}}]; }}"


def decimal(value: str, scale: int) -> str:
    """A record of it, in text format; a value is bytes with escapes."""
    return f'd {{ value: "{value}" scale: {scale} }}'


def test_decimals() -> None:
    """A decimal has the precision and scale of its field, 64 and 0 without; smaller scales are brought to it."""
    text = decimals('{key: "precision", value: "9"}, {key: "scale", value: "2"}')
    assert types(text) == ["d decimal128(9, 2)"]
    without = "message M { confluent.type.Decimal d = 1; }"
    assert types(without) == ["d decimal256(64, 0)"]
    assert types(decimals('{key: "precision", value: "nine"}')) == ["d decimal256(64, 0)"]
    with_precision = r'd { value: "\xcf\xc7" scale: 2 precision: 5 }'
    assert value(text, with_precision) == {"d": Decimal("-123.45")}
    assert value(text, decimal(r"\x05", 1)) == {"d": Decimal("0.50")}
    assert value(text, decimal(r"\x05", -1)) == {"d": Decimal("50.00")}
    assert value(text, decimal(r"\x64", 4)) == {"d": Decimal("0.01")}
    assert value(text, decimal(r"\x00", -2_000_000_000)) == {"d": Decimal("0.00")}
    assert value(text, "") == {"d": None}
    hundreds = decimals('{key: "precision", value: "9"}, {key: "scale", value: "-2"}')
    assert types(hundreds) == ["d decimal128(11, 0)"]
    assert value(hundreds, decimal(r"\x05", -2)) == {"d": Decimal(500)}
    tenths = decimals('{key: "precision", value: "9"}, {key: "scale", value: "10"}')
    assert types(tenths) == ["d decimal128(10, 10)"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("scale: 2", "without digits"),
        (r'value: "\x05" scale: 3', "scale is not"),
        (r'value: "\x05" scale: 2147483647', "scale is not"),
        (r'value: "\x05" scale: -2147483648', "scale is not"),
        (r'value: "\x7f\xff\xff\xff" scale: 2', "more than 9 digits"),
        (r'value: "\x7f" scale: 2 precision: 2', "its own precision"),
        (f'value: "{"a" * 65}" scale: 2', "too many digits"),
    ],
)
def test_decimals_that_do_not_fit_are_invalid(wrong: str, said: str) -> None:
    """A decimal that would lose digits is invalid."""
    text = decimals('{key: "precision", value: "9"}, {key: "scale", value: "2"}')
    assert_says(unfit(text, f"d {{ {wrong} }}"), "field d", said)


@pytest.mark.parametrize("params", [("77", "2"), ("9", "77"), ("0", "0"), ("9", "-77")])
def test_decimals_beyond_files_are_refused(params: tuple[str, str]) -> None:
    """A precision or scale that no file can hold is refused by name."""
    text = decimals('{{key: "precision", value: "{}"}}, {{key: "scale", value: "{}"}}'.format(*params))
    assert_says(refused(text), "decimal", f"precision {params[0]}", f"scale {params[1]}", "beyond what files")


def test_other_known_types_are_structs() -> None:
    """Duration, Any and Empty are structs of their fields."""
    text = "message M { google.protobuf.Duration d = 1; google.protobuf.Any a = 2; google.protobuf.Empty e = 3; }"
    assert types(text) == [
        *("d struct<seconds: int64, nanos: int32>", "a struct<type_url: string, value: binary>", "e struct<>"),
    ]
    message = "d { seconds: 1 } e {}"
    assert value(text, message) == {"d": {"seconds": 1, "nanos": 0}, "a": None, "e": {}}


def test_maps() -> None:
    """Maps are sorted by key; of equal keys the last one counts; absent values are the default."""
    text = "message M { map<int32, N> m = 1; } message N { int32 x = 1; }"
    assert types(text) == ["m map<int32, struct<x: int32>>"]
    message = "m { key: 5 } m { key: -1 value { x: 1 } } m { key: 5 value { x: 2 } }"
    assert value(text, message) == {"m": [(-1, {"x": 1}), (5, {"x": 2})]}


def test_entries_written_as_messages_are_maps() -> None:
    """A repeated message named ...Entry with key and value is a map, as in ProtobufData."""
    text = "message M { repeated TagEntry t = 1; message TagEntry { string key = 1; N value = 2; } } "
    text += "message N { int32 x = 1; }"
    assert types(text) == ["t map<string, struct<x: int32>>"]
    message = 't { key: "b" } t { key: "a" value { x: 2 } } t { key: "b" value { x: 3 } }'
    assert value(text, message) == {"t": [("a", {"x": 2}), ("b", {"x": 3})]}


@pytest.mark.parametrize(
    "fields", ["bytes key = 1; int32 value = 2;", "string key = 1;", "string key = 1; int32 v = 2;"]
)
def test_other_entries_are_lists(fields: str) -> None:
    """Without `key` and `value`, or with a key that no map of Protobuf has, it is a list."""
    text = f"message M {{ repeated TagEntry t = 1; }} message TagEntry {{ {fields} }}"
    assert types(text)[0].startswith("t list<")


@pytest.mark.parametrize(
    ("text", "name", "field"),
    [
        ("message M { N n = 1; } message N { repeated M ms = 1; }", "M", "n.ms"),
        ("message M { map<string, M> ms = 1; }", "M", "ms.value"),
        ("message M { oneof o { M m = 1; } }", "M", "m"),
        ("message M { repeated AEntry a = 1; } message AEntry { string key = 1; AEntry value = 2; }", "AEntry", "a."),
    ],
)
def test_recursive_messages_are_refused_by_name(text: str, name: str, field: str) -> None:
    """A message that contains itself, however, is refused and named."""
    assert_says(refused(text), f"message {name} ", "recursive", f"field {field}")


def test_clashes_are_refused() -> None:
    """A oneof's numbered name that is a field's name, too, is refused."""
    text = "message M { oneof a { int32 b = 1; } int32 a_0 = 2; }"
    assert_says(refused(text), "both", "oneof", "field", "a_0")


def chain(levels: int) -> str:
    """Messages, each in the one before."""
    below = " ".join(f"message M{at} {{ M{at + 1} m = 1; }}" for at in range(levels - 1))
    return f"{below} message M{levels - 1} {{ int32 x = 1; }}"


def test_depth_is_bounded() -> None:
    """As many levels as the library reads are planned, more are refused."""
    deep = planned(chain(MAX_DEPTH))
    assert row(deep.shape, deep.message.FromString(b"")) == {"m": None}
    assert "deeper than 100 levels" in refused(chain(MAX_DEPTH + 1))


def test_width_is_bounded() -> None:
    """Messages that hold the next one twice are refused before they become endless columns."""
    below = " ".join(f"message M{at} {{ M{at + 1} a = 1; M{at + 1} b = 2; }}" for at in range(30))
    text = f"{below} message M30 {{ int32 x = 1; }}"
    assert f"more than {MAX_FIELDS:,} fields" in refused(text)


def test_defaults_are_bounded() -> None:
    """A schema cannot make long texts out of empty records."""
    long = "x" * 50_001
    default = f'syntax = "proto2"; message M {{ optional string a = 1 [default="{long}"]; }}'
    enum = f"message M {{ E e = 1; }} enum E {{ {long} = 0; }}"
    for text in (default, enum):
        assert "defaults and enum names" in refused(text)


@pytest.mark.parametrize("name", ["Clear", "HasField", "DESCRIPTOR", "class", "_x", "SerializeToString"])
def test_fields_may_have_any_name(name: str) -> None:
    """A field whose name means something in Python is a field like others."""
    how = planned(f"message M {{ int32 {name} = 1; }}")
    assert row(how.shape, how.message.FromString(b"\x08\x05")) == {name: 5}
