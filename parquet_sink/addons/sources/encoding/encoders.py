"""What writes keys, values and headers.

StringConverter, JsonConverter with and without schemas, ByteArrayConverter; for headers SimpleHeaderConverter, too.
"""

import base64
from collections.abc import Callable
from typing import Final

import pyarrow as pa

from parquet_sink.addons.sources.encoding import connect_json, jackson
from parquet_sink.addons.sources.encoding.faults import NotEncodable
from parquet_sink.addons.sources.encoding.java_text import text_of
from parquet_sink.convert.java_dates import chosen_text
from parquet_sink.convert.settings import ConverterKind, ConverterSettings

Encoder = Callable[[object, pa.DataType | None], bytes | None]
"""A value and its type, which stands for its schema; None: without one. Raises NotEncodable."""

WRITING: Final[tuple[ConverterKind, ...]] = ("json", "json_envelope", "string", "bytes")
"""Kinds of converters that can write."""
WRITING_HEADERS: Final[tuple[ConverterKind, ...]] = (*WRITING, "simple_header")


def encoder_for(settings: ConverterSettings) -> Encoder:
    """What writes as these settings say; their kind is one of `WRITING_HEADERS`."""
    write = _writer(settings)

    def encode(value: object, arrow: pa.DataType | None) -> bytes | None:
        try:
            return write(value, arrow)
        except RecursionError:
            raise NotEncodable("it has lists and objects in each other, too deeply to be written") from None

    return encode


def _writer(settings: ConverterSettings) -> Encoder:
    if settings.kind == "string":
        return lambda value, arrow: None if value is None else _text(value, arrow, settings.encoding)
    return {"json": _json, "json_envelope": _enveloped, "bytes": _bytes, "simple_header": _simple}[settings.kind]


def _text(value: object, arrow: pa.DataType | None, encoding: str) -> bytes:
    return text_of(value, arrow).encode(encoding, errors="replace")


def _json(value: object, arrow: pa.DataType | None) -> bytes | None:
    if value is None:
        return None
    return _payload(value, arrow).encode()


def _enveloped(value: object, arrow: pa.DataType | None) -> bytes | None:
    if value is None and arrow is None:
        return None
    schema = "null" if arrow is None else connect_json.schema(arrow)
    return f'{{"schema":{schema},"payload":{_payload(value, arrow)}}}'.encode()


def _payload(value: object, arrow: pa.DataType | None) -> str:
    return jackson.dumped(value) if arrow is None else connect_json.payload(value, arrow)


def _bytes(value: object, arrow: pa.DataType | None) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    raise NotEncodable(f"ByteArrayConverter writes bytes, and this is {arrow or type(value).__name__}")


def _simple(value: object, arrow: pa.DataType | None) -> bytes | None:
    """As Connect's `Values.convertToString`: text as it is, but quoted within lists and objects; bytes in Base64.

    Dates and times are in the form of ISO 8601 that the value itself chooses.
    """
    if value is None:
        return None
    if isinstance(value, bytes):
        return base64.b64encode(value)
    if isinstance(value, dict | list):
        return _payload(value, arrow).encode()
    if arrow is not None and pa.types.is_temporal(arrow):
        return chosen_text(connect_json.epoch_ms(value, arrow)).encode()
    return text_of(value, arrow).encode(errors="replace")
