"""Converters of keys and values, against what Kafka Connect writes."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.addons.sources.encoding.encoders import encoder_for
from parquet_sink.addons.sources.encoding.faults import NotEncodable
from parquet_sink.convert.settings import ConverterSettings

RECORD = pa.struct([pa.field("line", pa.string(), nullable=False), pa.field("at", pa.timestamp("ms", "UTC"))])
DEEP: object = None
for _ in range(5_000):
    DEEP = [{"a": DEEP}]
LONG = "123456789012345678901234567890123456789012.34"
AT = datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=UTC)


def test_text_with_a_schema_is_the_quick_starts_envelope() -> None:
    """JsonConverter with schemas writes a line as the console consumer of Kafka's quick start shows it."""
    encode = encoder_for(ConverterSettings("json_envelope"))
    assert encode("foo", pa.string()) == b'{"schema":{"type":"string","optional":false},"payload":"foo"}'


def test_text_without_schemas_is_quoted() -> None:
    """JsonConverter without schemas writes JSON text, with Jackson's escapes."""
    encode = encoder_for(ConverterSettings("json"))
    assert encode('a"\\\t\x1b\x7fä/', pa.string()) == '"a\\"\\\\\\t\\u001B\x7fä/"'.encode()


PARTS = st.one_of(st.sampled_from(["\\", r"\u001f", r"\u000a", '"', "\x1f", "\x00", "😀"]), st.characters())


@given(st.lists(PARTS).map("".join))
def test_text_is_read_as_it_was(text: str) -> None:
    """What is written is JSON whose string is the text, whatever looks like an escape in it."""
    for arrow in (pa.string(), None):
        written = encoder_for(ConverterSettings("json"))(text, arrow)
        assert written is not None
        assert json.loads(written) == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (r"\u001f \\u000a", rb'"\\u001f \\\\u000a"'),
        ("\x1f\x7f\x80\u2028", b'"\\u001F' + "\x7f\x80\u2028".encode() + b'"'),
        ("a\U0001f600", rb'"a\uD83D\uDE00"'),
        ("\ud83d x \ude00", rb'"\uD83D x \uDE00"'),
        ('"/\b\f\n\r\t', rb'"\"/\b\f\n\r\t"'),
    ],
)
def test_text_is_escaped_as_kafka_connect_does(text: str, written: bytes) -> None:
    """What Connect's JsonConverter of Kafka 4.1.2 (Jackson 2.19.4) was seen to write of texts and of names."""
    encode = encoder_for(ConverterSettings("json"))
    assert encode(text, pa.string()) == written
    assert encode({text: None}, None) == b"{" + written + b":null}"


def test_a_record_has_its_schema_in_connects_order() -> None:
    """A struct's envelope has type, fields, optional, name, version, then the field's name."""
    encode = encoder_for(ConverterSettings("json_envelope"))
    assert encode({"line": "a", "at": AT}, RECORD) == (
        b'{"schema":{"type":"struct","fields":[{"type":"string","optional":false,"field":"line"},{"type":"int64",'
        b'"optional":true,"name":"org.apache.kafka.connect.data.Timestamp","version":1,"field":"at"}],'
        b'"optional":false},"payload":{"line":"a","at":1767323045006}}'
    )


@pytest.mark.parametrize(
    ("value", "arrow", "written"),
    [
        (1e7, pa.float64(), b"1.0E7"),
        (float("nan"), None, b'"NaN"'),
        (float("nan"), pa.float32(), b'"NaN"'),
        (float("inf"), pa.float32(), b'"Infinity"'),
        ([float("-inf")], pa.list_(pa.float32()), b'["-Infinity"]'),
        (0.1, pa.float32(), b"0.1"),
        (b"\x00\xff", pa.binary(), b'"AP8="'),
        (Decimal("-1.28"), pa.decimal128(5, 2), b'"gA=="'),
        (Decimal(LONG), pa.decimal256(60, 2), b'"AI24sIP3vY/gXdt+VfLYfpav8g=="'),
        (Decimal("1E+2"), pa.decimal128(5, 2), b'"JxA="'),
        (-62_135_596_800_001, pa.timestamp("ms", "UTC"), b"-62135596800001"),
        ([1, None], pa.list_(pa.int64()), b"[1,null]"),
        ([("a", 1)], pa.map_(pa.string(), pa.int32()), b'{"a":1}'),
        ([(2, True)], pa.map_(pa.int32(), pa.bool_()), b"[[2,true]]"),
        ({"b": [1, {"c": None}]}, None, b'{"b":[1,{"c":null}]}'),
        ({1: 2, "a": True}, None, b'[[1,2],["a",true]]'),
    ],
)
def test_values_of_all_types(value: object, arrow: pa.DataType | None, written: bytes) -> None:
    """JsonConverter writes numbers as Java does, bytes and decimals as Base64, maps by the type of their keys."""
    assert encoder_for(ConverterSettings("json"))(value, arrow) == written


@pytest.mark.parametrize("kind", ["json", "json_envelope", "string", "bytes"])
def test_nothing_without_a_schema_is_nothing(kind: str) -> None:
    """The key of a line, null without a schema, is null for every converter."""
    assert encoder_for(ConverterSettings(kind))(None, None) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "arrow", "written"),
    [
        ("ä", pa.string(), "ä"),
        ({"line": "a", "at": None}, RECORD, "Struct{line=a}"),
        ({"a": 1, "b": [True, 0.5]}, None, "{a=1, b=[true, 0.5]}"),
        (1e7, pa.float64(), "1.0E7"),
        ({-0.0: 1, 1e7: 2, True: 3, None: 4}, None, "{-0.0=1, 1.0E7=2, true=3, null=4}"),
    ],
)
def test_text_is_javas(value: object, arrow: pa.DataType | None, written: str) -> None:
    """StringConverter writes what `toString` gives in Java."""
    assert encoder_for(ConverterSettings("string"))(value, arrow) == written.encode()


def test_text_may_have_another_encoding() -> None:
    """`converter.encoding` is the encoding of the bytes."""
    assert encoder_for(ConverterSettings("string", encoding="ISO-8859-1"))("ä", pa.string()) == b"\xe4"


@pytest.mark.parametrize(
    ("kind", "value", "arrow"),
    [
        ("bytes", "text", pa.string()),
        ("json", object(), None),
        ("json", "text", pa.struct([("a", pa.int64())])),
        ("json_envelope", 1, pa.uint8()),
        ("string", b"bytes", pa.binary()),
        ("string", 0, pa.timestamp("ms", "UTC")),
        ("json", Decimal("1.234"), pa.decimal128(5, 2)),
        ("json", Decimal("NaN"), pa.decimal128(5, 2)),
        ("json", Decimal("1E+999999"), pa.decimal128(5, 2)),
        ("json", 2**63, None),
        ("json", -(10**5_000), None),
        ("string", 10**5_000, None),
        ("json", DEEP, None),
        ("json_envelope", DEEP, None),
        ("string", DEEP, None),
        ("simple_header", DEEP, None),
    ],
    ids=range(16),
)
def test_what_cannot_be_written_is_told(kind: str, value: object, arrow: pa.DataType | None) -> None:
    """A value that a converter has no bytes for raises NotEncodable."""
    with pytest.raises(NotEncodable):
        encoder_for(ConverterSettings(kind))(value, arrow)  # type: ignore[arg-type]
