"""Converters of keys and values, against what Kafka Connect writes."""

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.sources.encoding.encoders import encoder_for
from parquet_sink.sources.encoding.faults import NotEncodable

RECORD = pa.struct([pa.field("line", pa.string(), nullable=False), pa.field("at", pa.timestamp("ms", "UTC"))])
AT = datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=UTC)


def test_text_with_a_schema_is_the_quick_starts_envelope() -> None:
    """JsonConverter with schemas writes a line as the console consumer of Kafka's quick start shows it."""
    encode = encoder_for(ConverterSettings("json_envelope"))
    assert encode("foo", pa.string()) == b'{"schema":{"type":"string","optional":false},"payload":"foo"}'


def test_text_without_schemas_is_quoted() -> None:
    """JsonConverter without schemas writes JSON text, with Jackson's escapes."""
    encode = encoder_for(ConverterSettings("json"))
    assert encode('a"\\\t\x1b\x7fä/', pa.string()) == '"a\\"\\\\\\t\\u001B\x7fä/"'.encode()


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
        (b"\x00\xff", pa.binary(), b'"AP8="'),
        (Decimal("-1.28"), pa.decimal128(5, 2), b'"gA=="'),
        ([1, None], pa.list_(pa.int64()), b"[1,null]"),
        ([("a", 1)], pa.map_(pa.string(), pa.int32()), b'{"a":1}'),
        ([(2, True)], pa.map_(pa.int32(), pa.bool_()), b"[[2,true]]"),
        ({"b": [1, {"c": None}]}, None, b'{"b":[1,{"c":null}]}'),
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
    ],
)
def test_what_cannot_be_written_is_told(kind: str, value: object, arrow: pa.DataType | None) -> None:
    """A value that a converter has no bytes for raises NotEncodable."""
    with pytest.raises(NotEncodable):
        encoder_for(ConverterSettings(kind))(value, arrow)  # type: ignore[arg-type]
