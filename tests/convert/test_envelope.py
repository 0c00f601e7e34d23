"""Connect's JSON envelope: its types, its oddities, and that what is remembered of schemas changes no result."""

import base64
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from decimal import Decimal
from unittest.mock import patch

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.convert.decoded import Decoded, SchemaColumns, Untyped
from parquet_sink.convert.json import envelope
from parquet_sink.convert.json import envelope as envelope_frames
from parquet_sink.convert.json import fast as json_fast
from parquet_sink.convert.json.envelope import Frame, Frames, decoder
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.convert.typed_json import reader as json_typed
from parquet_sink.convert.typed_json.types import DATE, DECIMAL
from tests.convert.reader import json_reader  # noqa: F401
from tests.messages import assert_says
from tests.thorough import examples

SETTINGS = ConverterSettings(kind="json_envelope")
ORDER = {
    "type": "struct",
    "name": "shop.Order",
    "optional": False,
    "fields": [
        {"type": "int64", "optional": False, "field": "id"},
        {"type": "string", "optional": True, "field": "note"},
    ],
}


def enveloped(schema: object, payload: object) -> bytes:
    """As JsonConverter writes it."""
    return orjson.dumps({"schema": schema, "payload": payload})


def decode(*values: bytes, settings: ConverterSettings = SETTINGS) -> Decoded:
    """What a new decoder makes of some values."""
    return decoder(settings).decode(pa.array(values, pa.binary()))


def rows(decoded: Decoded) -> list[object]:
    """The rows of the only piece."""
    assert decoded.invalid == {}
    (piece,) = decoded.pieces
    assert isinstance(piece, SchemaColumns)
    piece.rows.validate(full=True)
    found: list[object] = piece.rows.to_pylist()
    return found


def reason(value: bytes) -> str:
    """Why a single value has no row."""
    decoded = decode(value)
    assert decoded.pieces == ()
    return decoded.invalid[0]


def field(field_name: str, type_: str, **more: object) -> dict[str, object]:
    """A field of a struct."""
    return {"field": field_name, "type": type_, **more}


ALL = {
    "type": "struct",
    "fields": [
        field("i8", "int8"),
        field("i16", "int16"),
        field("i32", "int32"),
        field("i64", "int64"),
        field("f32", "float"),
        field("f64", "double"),
        field("flag", "boolean"),
        field("text", "string"),
        field("raw", "bytes"),
        field("list", "array", items={"type": "int32", "optional": True}),
        field("map", "map", keys={"type": "string"}, values={"type": "int64"}, optional=True),
        field("pairs", "map", keys={"type": "int32"}, values={"type": "string"}, optional=True),
        field("inner", "struct", fields=[field("x", "int32", optional=True)], optional=True),
        field("price", "bytes", name="org.apache.kafka.connect.data.Decimal", parameters={"scale": "2"}, version=1),
        field("round", "bytes", name="org.apache.kafka.connect.data.Decimal", parameters={"scale": "-2"}),
        field("amount", "struct", name="io.debezium.data.VariableScaleDecimal", fields=[]),
        field("day", "int32", name="org.apache.kafka.connect.data.Date"),
        field("hour", "int32", name="org.apache.kafka.connect.data.Time"),
        field("at", "int64", name="org.apache.kafka.connect.data.Timestamp", doc="when"),
    ],
}
PAYLOAD = {
    "i8": 1,
    "i16": 2,
    "i32": 3,
    "i64": 4,
    "f32": 0.5,
    "f64": 0.25,
    "flag": True,
    "text": "ü",
    "raw": "aGk=",
    "list": [1, None],
    "map": {"a": 1},
    "pairs": [[1, "x"]],
    "inner": {"x": None},
    "price": base64.b64encode((1234).to_bytes(2, "big")).decode(),
    "round": base64.b64encode(b"\x05").decode(),
    "amount": {"scale": 2, "value": base64.b64encode((1234).to_bytes(2, "big")).decode()},
    "day": -1,
    "hour": 1,
    "at": 1700000000000,
}


def test_all_types_of_connect() -> None:
    """Every type and every logical type arrives as `convert.decoded` lists them."""
    decoded = decode(*[enveloped(ALL, PAYLOAD)] * 3)
    assert rows(decoded)[2] == {
        "i8": 1,
        "i16": 2,
        "i32": 3,
        "i64": 4,
        "f32": 0.5,
        "f64": 0.25,
        "flag": True,
        "text": "ü",
        "raw": b"hi",
        "list": [1, None],
        "map": [("a", 1)],
        "pairs": [(1, "x")],
        "inner": {"x": None},
        "price": Decimal("12.34"),
        "round": Decimal(500),
        "amount": "12.34",
        "day": date(1969, 12, 31),
        "hour": time(0, 0, 0, 1000),
        "at": datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
    }
    arrow = decoded.pieces[0].rows.type  # type: ignore[union-attr]
    assert [str(arrow.field(name).type) for name in ("i8", "price", "round", "amount", "hour", "at")] == [
        "int32",
        "decimal256(64, 2)",
        "decimal256(66, 0)",
        "string",
        "time32[ms]",
        "timestamp[ms, tz=UTC]",
    ]
    assert not arrow.field("text").nullable
    assert arrow.field("map").nullable


@pytest.mark.parametrize("count", [1, 300])
def test_members_in_both_orders_with_white_space(count: int) -> None:
    """The order of schema and payload, and white space anywhere, do not matter."""
    schema, spaced = orjson.dumps(ORDER), orjson.dumps(ORDER, option=orjson.OPT_INDENT_2)
    texts = [b'{"schema":%s,"payload":{"id":1}}', b' { "payload" : {"id":1} , "schema":\n%s}\n']
    values = [text % one for text in texts for one in (schema, spaced)]
    decoded = decode(*values * count)
    assert decoded.invalid == {}
    assert sum(len(piece.positions) for piece in decoded.pieces) == 4 * count
    for piece in decoded.pieces:
        assert isinstance(piece, SchemaColumns)
        assert set(map(str, piece.rows.to_pylist())) == {"{'id': 1, 'note': None}"}


@pytest.mark.parametrize("count", [1, 100])
def test_a_byte_order_mark_is_no_part_of_a_value(count: int) -> None:
    """Envelopes behind the mark of UTF-8 are read, beside others without."""
    value = enveloped(ALL, PAYLOAD)
    marked = rows(decode(*[b"\xef\xbb\xbf" + value, value] * count))
    assert marked == rows(decode(value)) * 2 * count


def test_alternating_schemas_keep_their_places() -> None:
    """Records of each schema are one piece, whose positions say where they stood."""
    other = {"type": "struct", "fields": [field("id", "int64"), field("more", "double")]}
    values = [enveloped(ORDER, {"id": n}) if n % 3 else enveloped(other, {"id": n, "more": 0.5}) for n in range(600)]
    first, second = decode(*values).pieces
    assert isinstance(first, SchemaColumns)
    assert isinstance(second, SchemaColumns)
    assert first.rows.field("id").to_pylist() == first.positions.to_pylist() == list(range(0, 600, 3))
    assert second.rows.field("id").to_pylist() == second.positions.to_pylist()
    assert len(first.rows) + len(second.rows) == 600


def test_more_schemas_than_are_grouped_at_once() -> None:
    """However many schemas a block has, each record is decoded by its own."""
    count = envelope._MOST_GROUPS + 80
    values = [
        enveloped({"type": "struct", "fields": [field(f"f{n % count}", "int64")]}, {f"f{n % count}": n})
        for n in range(2 * count)
    ]
    decoded = decode(*values)
    assert decoded.invalid == {}
    seen: dict[int, object] = {}
    for piece in decoded.pieces:
        assert isinstance(piece, SchemaColumns)
        seen.update(zip(piece.positions.to_pylist(), piece.rows.to_pylist(), strict=True))
    assert seen == {n: {f"f{n % count}": n} for n in range(2 * count)}


def test_what_is_remembered_is_bounded() -> None:
    """Frames beyond the number and the size are forgotten; one too long is never learned."""
    frames = Frames()
    for number in range(200):
        assert frames.learn(enveloped({"n": number}, {}), None) is not None
    assert frames.find(enveloped({"n": 0}, {})) is None
    assert frames.find(enveloped({"n": 199}, {})) is not None
    assert frames.learn(enveloped({"n": "x" * envelope_frames._LONGEST_FRAME}, {}), None) is None
    long = [enveloped({"n": n, "doc": "x" * (envelope_frames._LONGEST_FRAME - 100)}, {}) for n in range(20)]
    for value in long:
        frames.learn(value, None)
    kept = [frame.size for value in long if (frame := frames.find(value)) is not None]
    assert 2 <= len(kept) < len(long)
    assert sum(kept) <= envelope_frames._MOST_TEXT


def test_defaults_replace_null_unless_told_not_to() -> None:
    """Null and missing are the default, optional or not; with replace.null.with.default=false they are null."""
    schema = {
        "type": "struct",
        "fields": [field("a", "int32", optional=True, default=7), field("b", "int32", default=8)],
    }
    values = [enveloped(schema, {"a": None, "b": 1}), enveloped(schema, {})]
    assert rows(decode(*values)) == [{"a": 7, "b": 1}, {"a": 7, "b": 8}]
    strict = decode(*values, settings=ConverterSettings(kind="json_envelope", replace_null_with_default=False))
    assert strict.pieces[0].rows.to_pylist() == [{"a": None, "b": 1}]  # type: ignore[union-attr]
    assert strict.invalid.keys() == {1}
    assert_says(strict.invalid[1], "field b", "missing", "required")


def test_default_of_the_record() -> None:
    """A null payload is the schema's default, else null where it may be, which is a tombstone, else invalid."""
    assert rows(decode(enveloped({**ORDER, "default": {"id": 5}}, None))) == [{"id": 5, "note": None}]
    assert decode(enveloped({**ORDER, "optional": True}, None)) == Decoded()
    assert_says(reason(enveloped(ORDER, None)), "the value", "null", "required")


def test_without_a_schema_objects_are_trees() -> None:
    """`"schema": null` with an object is JSON without a schema, read by its rules."""
    values = [b'{"schema":null,"payload":{"a":%d,"b":[1]}}' % number for number in range(5)]
    values[2] = b'{"schema":null,"payload":{"a":{"b":9223372036854775808}}}'
    values[3] = b'{"payload": {} , "schema": null}'
    decoded = decode(*values)
    (piece,) = decoded.pieces
    assert isinstance(piece, Untyped)
    assert piece.positions.to_pylist() == [0, 1, 4]
    assert list(piece.trees) == [{"a": number, "b": [1]} for number in (0, 1, 4)]
    assert decoded.invalid.keys() == {2, 3}
    assert_says(decoded.invalid[2], "field a.b ", "integer", "64 bits")
    assert_says(decoded.invalid[3], "empty JSON object")


def test_without_a_schema_single_values_are_columns() -> None:
    """Text, numbers and booleans without a schema have a column type of their own, lists are text, null is nothing."""
    decoded = decode(
        *[b'{"schema":null,"payload":%s}' % text for text in (b'"x"', b"1", b"1.5", b"true", b"[1, 2]", b"null")]
    )
    found = {
        at: row
        for piece in decoded.pieces
        for at, row in zip(piece.positions.to_pylist(), piece.rows.to_pylist(), strict=True)
    }  # type: ignore[union-attr]
    assert found == {0: "x", 1: 1, 2: 1.5, 3: True, 4: "[1,2]"}
    assert_says(reason(b'{"schema":null,"payload":18446744073709551616}'), "field payload ", "integer", "64 bits")


@pytest.mark.parametrize("payload", [5, "x", [1, 2], {"a": 1}])
def test_records_that_are_no_struct(payload: object) -> None:
    """A schema of a single value, a list or a map gives a column of that type."""
    schemas = {int: {"type": "int8"}, str: {"type": "string"}, list: {"type": "array", "items": {"type": "int8"}}}
    schemas[dict] = {"type": "map", "keys": {"type": "string"}, "values": {"type": "int8"}}
    found = rows(decode(*[enveloped(schemas[type(payload)], payload)] * 100))
    assert found == [list(payload.items()) if isinstance(payload, dict) else payload] * 100


WRONG_DEFAULT = ("default", "does not fit", "is text", "whole number (int8)")


@pytest.mark.parametrize(
    "value",
    [
        b"null",
        b"1",
        b"[]",
        b"{}",
        b'{"schema":null}',
        b'{"payload":{}}',
        b'{"schema":null,"payload":{},"more":1}',
        b'{"id":1}',
    ],
)
def test_what_is_no_envelope(value: bytes) -> None:
    """Exactly schema and payload are demanded, as by JsonConverter."""
    assert_says(reason(value), "not an envelope", '"schema"', '"payload"', "nothing else")


def test_what_is_no_json() -> None:
    """Syntax errors name their position in the whole value, also inside a payload of a known schema."""
    good = enveloped(ORDER, {"id": 1})
    bad = good.replace(b'"id":1', b'"id":01')
    decoded = decode(good, bad, good)
    assert list(decoded.invalid) == [1]
    assert_says(decoded.invalid[1], "not JSON", f"position {bad.index(b'01') + 1})")
    assert_says(reason(b"\x1f\x8b\x08\x00"), "not JSON", "gzip data")
    assert_says(reason(b""), "is empty", "not JSON")


@pytest.mark.parametrize(
    ("schema", "place", "said"),
    [
        ("x", "at schema ", ("not an object",)),
        ({}, "at schema ", ("no type",)),
        ({"type": "uuid"}, "at schema ", ("a type", "Connect does not know")),
        ({"type": "array"}, "at schema ", ("no items",)),
        ({"type": "map", "keys": {"type": "string"}}, "at schema ", ("no values",)),
        ({"type": "struct"}, "at schema ", ("no list of fields",)),
        ({"type": "struct", "fields": [{"type": "int8"}]}, "at schema.fields[0] ", ("no field name",)),
        ({"type": "struct", "fields": [field("", "int8")]}, "at schema.fields[0] ", ("no field name",)),
        ({"type": "struct", "fields": [field("a", "int8")] * 2}, "at schema.fields[1] ", ("name", "another field")),
        (
            {"type": "struct", "fields": [field("a", "array", items={"type": "x"})]},
            "at schema.fields[0].items ",
            ("a type", "Connect does not know"),
        ),
        ({"type": "int8", "parameters": {"a": 1}}, "at schema ", ("parameters", "not text")),
        ({"type": "int8", "default": "x"}, "at schema ", WRONG_DEFAULT),
        ({"type": "string", "name": DECIMAL}, "at schema ", ("Decimal", "must be bytes")),
        ({"type": "int64", "name": DATE}, "at schema ", ("Date", "must be int32")),
        ({"type": "bytes", "name": DECIMAL}, "at schema ", ("needs a scale", "-76 to 76", "decimal")),
        (
            {"type": "struct", "fields": [field(f"f{n}", "int8") for n in range(2501)]},
            "the schema",
            ("more than 2,500 fields",),
        ),
    ],
)
def test_what_is_no_schema(schema: object, place: str, said: tuple[str, ...]) -> None:
    """A schema that Connect would not take is named by its place, each time it comes."""
    value = enveloped(schema, {})
    decoded = decode(value, value)
    assert_says(decoded.invalid[0], place, *said)
    assert decoded.invalid == {0: decoded.invalid[0], 1: decoded.invalid[0]}


def test_schemas_that_are_too_deep() -> None:
    """100 levels are enough for a schema; a text nested deeper than JSON parsers follow is refused as well."""
    schema: dict[str, object] = {"type": "int8"}
    for _ in range(99):
        schema = {"type": "array", "items": schema}
    assert decode(enveloped(schema, [])).invalid == {}
    assert_says(reason(enveloped({"type": "array", "items": schema}, [])), "the schema", "deeper than 100 levels")
    for depth in (500, 1000, 1020, 100_000):
        value = b'{"schema":null,"payload":{"a":' + b"[" * depth + b"]" * depth + b"}}"
        assert decode(value).pieces == ()
        assert len(decode(value, value).invalid) == 2


def test_a_payload_cannot_smuggle_members() -> None:
    """Text between a known beginning and end that is not a single value counts as a whole: the last member counts."""
    good = enveloped(ORDER, {"id": 1})
    other = orjson.dumps({"type": "struct", "fields": [field("x", "int8")]})
    sly = good[: -len(b'{"id":1}}')] + b'{"id":1},"schema":' + other + b',"payload":{"x":2}}'
    decoded = decode(*[good] * 100, sly)
    assert [piece.rows.to_pylist()[-1] for piece in decoded.pieces] == [{"id": 1, "note": None}, {"x": 2}]  # type: ignore[union-attr]


# --- what is remembered and what is fast changes nothing


@contextmanager
def eager() -> Iterator[None]:
    """The fast path is tried on the smallest groups."""
    with patch.object(json_typed, "FEWEST", 1), patch.object(json_typed, "SMALLEST", 1):
        yield


@contextmanager
def exact_only() -> Iterator[None]:
    """Neither frames nor the fast path."""
    with (
        patch.object(json_fast, "attempt", lambda values, schema, unexpected="error": ""),
        patch.object(Frames, "learn", lambda self, value, reader: None),
    ):
        yield


def outcome(decoded: Decoded, count: int) -> list[object]:
    """What became of each value."""
    seen: list[object] = [None] * count
    for piece in decoded.pieces:
        below: Sequence[object] = piece.rows.to_pylist() if isinstance(piece, SchemaColumns) else piece.trees
        kind = str(piece.rows.type) if isinstance(piece, SchemaColumns) else "tree"
        assert sorted(piece.positions.to_pylist()) == piece.positions.to_pylist()
        for position, row in zip(piece.positions.to_pylist(), below, strict=True):
            assert seen[position] is None
            seen[position] = (kind, repr(row))
    for position, why in decoded.invalid.items():
        assert seen[position] is None
        seen[position] = why
    return seen


@given(
    st.lists(st.text("ab", max_size=6).map(str.encode), max_size=8),
    st.text("ab", min_size=1, max_size=3).map(str.encode),
    st.text("ab", min_size=1, max_size=3).map(str.encode),
    st.booleans(),
)
def test_payloads_are_what_is_between(texts: list[bytes], prefix: bytes, suffix: bytes, sliced: bool) -> None:
    """A value whose end is a part of its beginning has no payload."""
    array = pa.array([b"a", *texts, b"b"] if sliced else texts, pa.binary()).slice(int(sliced), len(texts))
    fit, payloads = Frame(prefix, suffix, None).payloads(array)
    framed = [one.startswith(prefix) and one[len(prefix) :].endswith(suffix) for one in texts]
    assert fit.to_pylist() == framed
    between = [one[len(prefix) : len(one) - len(suffix)] for one, fits in zip(texts, framed, strict=True) if fits]
    assert payloads.to_pylist() == between


SCHEMAS = [
    orjson.dumps(ORDER),
    orjson.dumps(ORDER, option=orjson.OPT_INDENT_2),
    orjson.dumps({**ORDER, "optional": True}),
    orjson.dumps({"type": "struct", "fields": [field("id", "int32", default=4), field("d", "double", optional=True)]}),
    b"null",
    b'{"type":"int8"}',
    b'{"type":"wrong"}',
    b'{"type":"struct","fields":[]}',
]
PAYLOADS = [b'{"id":%d}' % number for number in (1, 2, 3, 2**40)]
PAYLOADS += [b'{"id":1,"note":"x"}', b' {"note":null,"id":5}\n', b'{"id":"x"}', b"{}", b"null", b"7", b'"x"', b"[1]"]
PAYLOADS += [b'{"id":1,"d":-0}', b'{"id":1}{"id":2}', b'{"id":1},"schema":null,"payload":{"id":2}', b"", b'{"id":1}}']
PAYLOADS += [b'{"id":1},"more":1', b'{"id":1,"note":"\xff"}', b'{"id":1,"note":"\\ud800"}', b'{"id":1,"z":NaN}', b"{"]
LAYOUTS = [b'{"schema":%s,"payload":%s}'] * 4
LAYOUTS += [
    b'{"schema": %s, "payload": %s}\n',
    b'{"sch\\u0065ma":%s,"payload":%s}',
    b'{"schema":%s,"payload":%s,"x":1}',
]


@st.composite
def values(draw: st.DrawFn) -> bytes:
    """One value, usually an envelope."""
    schema = draw(st.sampled_from(SCHEMAS[:1] * 8 + SCHEMAS))
    payload = draw(st.sampled_from(PAYLOADS[:6] * 4 + PAYLOADS))
    if draw(st.integers(0, 4)) == 0:
        return b'{"payload":%s,"schema":%s}' % (payload, schema)
    return draw(st.sampled_from(LAYOUTS)) % (schema, payload)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(values(), max_size=14), st.integers(1, 14))
def test_fast_equals_exact(texts: list[bytes], size: int) -> None:
    """Whatever the values and their cut into blocks, one decoder for all gives what each value gives alone."""
    with eager():
        one = decoder(SETTINGS)
        fast: list[object] = []
        for start in range(0, len(texts), size):
            block = texts[start : start + size]
            fast += outcome(one.decode(pa.array(block, pa.binary())), len(block))
    with exact_only():
        exact = [outcome(decode(text), 1)[0] for text in texts]
    assert fast == exact
