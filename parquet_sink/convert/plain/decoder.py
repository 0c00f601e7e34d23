"""Decodes values without structure: text, bytes, and the numbers that Connect's serializers write.

    kind                           a value                                          Arrow
    string                         text in the configured encoding                  string
    bytes                          anything                                         binary
    boolean                        one byte, 0 or 1                                 bool
    short, integer                 2 or 4 bytes, big-endian, two's complement       int32
    long                           8 bytes, likewise                                int64
    float, double                  4 or 8 bytes, big-endian, IEEE 754               float32, float64

As Connect's StringConverter, ByteArrayConverter, BooleanConverter, ShortConverter and so on have them, with one
difference: text that is not valid in its encoding is invalid, where Java puts replacement characters into it.

CPU per value, one core: text of 17 bytes in UTF-8 0.01 µs, where one of many is bad, and for those that are not ASCII,
or in other encodings, 0.2; numbers 0.06.
"""

import codecs
import struct
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.arrays import are_utf8
from parquet_sink.convert.decoded import Decoded, SchemaColumns, one_by_one
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.plain.settings import StringConverter
from parquet_sink.convert.settings import Converter
from parquet_sink.errors import InvalidConfiguration

_FIXED: Mapping[str, tuple[str, pa.DataType]] = {
    "boolean": ("?", pa.bool_()),
    "short": ("h", pa.int32()),
    "integer": ("i", pa.int32()),
    "long": ("q", pa.int64()),
    "float": ("f", pa.float32()),
    "double": ("d", pa.float64()),
}
"""Of numbers of a fixed size the code in the module struct."""

_BOOLEANS = pa.array([b"\x00", b"\x01"])

_UTF_8 = "utf-8"
_JAVA_BIG_ENDIAN = {
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
}
"""What Java reads as big-endian unless it begins with one of these marks; Python takes the machine's order."""


class Bytes:
    """Of ByteArrayConverter."""

    def __init__(self, settings: Converter) -> None:
        pass

    def decode(self, values: pa.BinaryArray) -> Decoded:
        return _decoded(values, {})


class Texts:
    """Of StringConverter. Raises InvalidConfiguration for an encoding that is not known."""

    def __init__(self, settings: StringConverter) -> None:
        encoding = settings.encoding
        try:
            "".encode(encoding)
        except (LookupError, ValueError):
            raise InvalidConfiguration((f"{encoding!r} is not the name of a text encoding",)) from None
        self._encoding, self._codec = encoding, codecs.lookup(encoding).name

    def decode(self, values: pa.BinaryArray) -> Decoded:
        if self._codec != _UTF_8:
            _, texts, invalid = one_by_one(values, self._utf_8)
            return _decoded(pa.array(texts, pa.binary()).cast(pa.string()), invalid)
        try:
            return _decoded(values.cast(pa.string()), {})
        except pa.ArrowInvalid:
            fine = are_utf8(values)
        bad = np.flatnonzero(~fine)
        _, _, wrong = one_by_one(values.take(pa.array(bad)), self._utf_8)
        invalid = dict(zip(bad.tolist(), wrong.values(), strict=True))
        return _decoded(values.filter(pa.array(fine)).cast(pa.string()), invalid)

    def _utf_8(self, value: bytes) -> bytes:
        codec = self._codec
        marks = _JAVA_BIG_ENDIAN.get(codec)
        if marks is not None and not value.startswith(marks):
            codec += "-be"
        try:
            return value.decode(codec).encode()
        except UnicodeError as error:
            raise InvalidValue(self._why(error)) from None

    def _why(self, error: UnicodeError) -> str:
        where = f" (byte {error.start + 1})" if isinstance(error, UnicodeDecodeError) else ""
        return f"the value is not {self._encoding} text{where}, which value.converter.converter.encoding asks for"


class Numbers:
    """Of the converters of numbers in the table above."""

    def __init__(self, settings: Converter) -> None:
        self._converter = type(settings).__name__
        self._code, self._arrow = _FIXED[settings.word]
        self._size = struct.calcsize(f">{self._code}")

    def decode(self, values: pa.BinaryArray) -> Decoded:
        fits = pc.equal(pc.binary_length(values), self._size)
        if pa.types.is_boolean(self._arrow):
            fits = pc.is_in(values, _BOOLEANS)
        bad = pc.indices_nonzero(pc.invert(fits)).to_pylist()
        invalid = {position: self._why(values[position].as_py()) for position in bad}
        good = (values.filter(fits) if bad else values).to_pylist()
        numbers = struct.unpack(f">{len(good)}{self._code}", b"".join(good))
        return _decoded(pa.array(numbers, self._arrow), invalid)

    def _why(self, value: bytes) -> str:
        size = len(value)
        if size == self._size:
            return f"the value's byte is neither 0 nor 1, as value.converter={self._converter} asks for"
        held = f"{size:,} {'byte' if size == 1 else 'bytes'}"
        return f"the value has {held}, and value.converter={self._converter} asks for {self._size}"


def _decoded(rows: pa.Array, invalid: Mapping[int, str]) -> Decoded:
    """rows: those of all positions that are not in `invalid`, in order."""
    positions = np.delete(np.arange(len(rows) + len(invalid)), list(invalid))
    piece = SchemaColumns(pa.array(positions, pa.int64()), rows)
    return Decoded((piece,) if len(rows) else (), invalid)
