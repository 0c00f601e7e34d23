"""Text, bytes and numbers as Connect's serializers write them."""

import math
import struct

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.convert.decoded import Decoded, SchemaColumns
from parquet_sink.convert.decoders import decoder_for as decoder
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.errors import InvalidConfiguration
from tests.messages import assert_says, saying
from tests.thorough import examples


def decode(kind: str, *values: bytes, encoding: str = "UTF-8") -> Decoded:
    """What becomes of the values; the array is a slice, as parts of a block are."""
    padded = pa.array([b"\xff", *values, b"\xff"], pa.binary()).slice(1, len(values))
    return decoder(ConverterSettings(kind, **({"encoding": encoding} if kind == "string" else {}))).decode(padded)


def rows(decoded: Decoded) -> dict[int, object]:
    """The rows by position, after a look at the contract."""
    if not decoded.pieces:
        return {}
    (piece,) = decoded.pieces
    assert isinstance(piece, SchemaColumns)
    piece.rows.validate(full=True)
    assert piece.rows.null_count == 0
    assert piece.positions.type == pa.int64()
    positions = piece.positions.to_pylist()
    assert not set(positions) & set(decoded.invalid)
    return dict(zip(positions, piece.rows.to_pylist(), strict=True))


def strict(value: bytes, encoding: str) -> str | None:
    """The text, None when it is not valid."""
    try:
        return value.decode(encoding)
    except UnicodeDecodeError:
        return None


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(st.binary(max_size=6) | st.text().map(str.encode)),
    st.sampled_from([("UTF-8", "utf-8"), ("utf8", "utf-8"), ("US-ASCII", "ascii"), ("ISO-8859-1", "latin-1")]),
)
def test_text(values: list[bytes], encoding: tuple[str, str]) -> None:
    """Each value is its text, or invalid by itself; the others are as they would be without it."""
    decoded = decode("string", *values, encoding=encoding[0])
    texts = {position: strict(value, encoding[1]) for position, value in enumerate(values)}
    assert rows(decoded) == {position: text for position, text in texts.items() if text is not None}
    assert set(decoded.invalid) == {position for position, text in texts.items() if text is None}


TEXTS = [
    ("UTF-8", b"", ""),
    ("UTF-8", b"\xef\xbb\xbfa\x00", "\ufeffa\x00"),
    ("UTF-16", b"\x00a", "a"),
    ("UTF-16", b"\xfe\xff\x00a", "a"),
    ("UTF-16", b"\xff\xfea\x00", "a"),
    ("UTF-16", b"", ""),
    ("UTF-16LE", b"a\x00", "a"),
    ("UTF-32", b"\x00\x00\x00a", "a"),
    ("UTF-32", b"\x00\x00\xfe\xff\x00\x00\x00a", "a"),
    ("windows-1252", b"\x80", "€"),
    ("Cp1252", b"\x80", "€"),
    ("Shift_JIS", b"\x83\x41", "ア"),
]


@pytest.mark.parametrize(("encoding", "value", "text"), TEXTS)
def test_encodings(encoding: str, value: bytes, text: str) -> None:
    """Encodings have Java's names and Java's byte order: big-endian unless a mark says otherwise."""
    decoded = decode("string", value, encoding=encoding)
    assert rows(decoded) == {0: text}
    assert decoded.pieces[0].rows.type == pa.string()  # type: ignore[union-attr]


BAD_TEXTS = [
    ("UTF-8", b"abc\xff", "byte 4"),
    ("UTF-8", b"\xed\xa0\x80", "byte 1"),
    ("UTF-8", b"\xc0\x80", "byte 1"),
    ("US-ASCII", "ä".encode(), "byte 1"),
    ("UTF-16", b"\x00a\x00", "byte 3"),
    ("UTF-16", b"\xd8\x00\x00a", "byte 1"),
    ("UTF-7", b"+2AA-", "text"),
]


@pytest.mark.parametrize(("encoding", "value", "place"), BAD_TEXTS)
def test_text_that_is_none(encoding: str, value: bytes, place: str) -> None:
    """What is not valid in its encoding is invalid, where it stops being so; never replaced."""
    decoded = decode("string", b"", value, b"", encoding=encoding)
    assert_says(decoded.invalid[1], f"not {encoding} text", place, "value.converter.converter.encoding")
    assert rows(decoded) == {0: "", 2: ""}


@pytest.mark.parametrize("encoding", ["klingon", "zlib", "", "a\x00b"])
def test_encodings_that_are_not_known(encoding: str) -> None:
    """An encoding that is not known, or is none of text, is a matter of the configuration."""
    with pytest.raises(InvalidConfiguration, match=saying("not the name", "text encoding")):
        decoder(ConverterSettings("string", encoding=encoding))


@given(st.lists(st.binary()))
def test_bytes(values: list[bytes]) -> None:
    """Bytes are what they are."""
    decoded = decode("bytes", *values)
    assert rows(decoded) == dict(enumerate(values))
    assert not decoded.invalid


NUMBERS: list[tuple[str, str, str, pa.DataType]] = [
    ("short", "ShortConverter", ">h", pa.int32()),
    ("integer", "IntegerConverter", ">i", pa.int32()),
    ("long", "LongConverter", ">q", pa.int64()),
    ("float", "FloatConverter", ">f", pa.float32()),
    ("double", "DoubleConverter", ">d", pa.float64()),
]


@pytest.mark.parametrize(("kind", "converter", "code", "arrow"), NUMBERS)
@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_numbers(kind: str, converter: str, code: str, arrow: pa.DataType, data: st.DataObject) -> None:
    """Numbers are big-endian and of one size; a value of another size is invalid by itself."""
    size = struct.calcsize(code)
    values = data.draw(st.lists(st.binary(min_size=size, max_size=size) | st.binary(max_size=9)))
    decoded = decode(kind, *values)
    found = rows(decoded)
    for position, value in enumerate(values):
        if len(value) == size:
            (number,) = struct.unpack(code, value)
            assert found.pop(position) == number or math.isnan(number)
        else:
            bytes_ = "1 byte," if len(value) == 1 else f"{len(value)} bytes"
            assert_says(decoded.invalid[position], bytes_, f"value.converter={converter}", f"asks for {size}")
    assert not found
    assert all(piece.rows.type == arrow for piece in decoded.pieces if isinstance(piece, SchemaColumns))


def test_edges_of_numbers() -> None:
    """Signs, the largest and what is not finite."""
    assert rows(decode("short", b"\xff\xfe", b"\x7f\xff")) == {0: -2, 1: 32767}
    assert rows(decode("long", b"\x80" + bytes(7))) == {0: -(2**63)}
    assert rows(decode("double", b"\x7f\xf0" + bytes(6))) == {0: math.inf}
    (nan,) = rows(decode("float", b"\x7f\xc0\x00\x00")).values()
    assert isinstance(nan, float)
    assert math.isnan(nan)


def test_booleans() -> None:
    """One byte, 0 or 1; anything else is invalid."""
    decoded = decode("boolean", b"\x00", b"\x01", b"\x02", b"", b"\x00\x01")
    assert rows(decoded) == {0: False, 1: True}
    assert decoded.invalid.keys() == {2, 3, 4}
    assert_says(decoded.invalid[2], "neither 0 nor 1", "value.converter=BooleanConverter")
    assert_says(decoded.invalid[3], "0 bytes", "value.converter=BooleanConverter", "asks for 1")
    assert_says(decoded.invalid[4], "2 bytes", "value.converter=BooleanConverter", "asks for 1")


@pytest.mark.parametrize("kind", ["string", "bytes", "boolean", "long"])
def test_nothing(kind: str) -> None:
    """No values give nothing, and nothing but invalid values no piece."""
    assert decode(kind) == Decoded()
    assert decode("long", b"").pieces == ()
