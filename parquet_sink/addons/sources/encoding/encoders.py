"""What writes keys, values and headers.

StringConverter, JsonConverter with and without schemas, ByteArrayConverter; for headers SimpleHeaderConverter, too.
"""

import base64
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyarrow import types

from parquet_sink.addons.sources.encoding import connect_json, jackson
from parquet_sink.addons.sources.encoding.faults import NotEncodable
from parquet_sink.addons.transforms.fields.java.numbers import of_float, of_float32
from parquet_sink.convert.calendars import chosen_text
from parquet_sink.convert.connect_values.settings import SimpleHeaderConverter
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.json.settings import JsonConverter
from parquet_sink.convert.plain.settings import ByteArrayConverter, StringConverter
from parquet_sink.convert.settings import Converter, Encoder


def encoder_for(settings: Converter) -> Encoder:
    """What writes as these settings say, of a converter that can."""
    write = settings.encoder()

    def encode(value: object, arrow: pa.DataType | None) -> bytes | None:
        try:
            return write(value, arrow)
        except InvalidValue as error:
            raise NotEncodable(str(error)) from None
        except RecursionError:
            raise NotEncodable("it has lists and objects in each other, too deeply to be written") from None

    return encode


def text(settings: StringConverter) -> Encoder:
    """Text as Java's `toString` has it."""
    encoding = settings.encoding
    return lambda value, arrow: None if value is None else text_of(value, arrow).encode(encoding, errors="replace")


def json(settings: JsonConverter) -> Encoder:
    """JSON, in an envelope with its schema where the settings ask for one."""
    return _enveloped if settings.schemas_enable else _json


def as_bytes(settings: ByteArrayConverter) -> Encoder:
    """Bytes as they are."""
    return _bytes


def simple(settings: SimpleHeaderConverter) -> Encoder:
    """Text of whatever a header is."""
    return _simple


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


def text_of(value: object, arrow: pa.DataType | None) -> str:
    """`Struct{a=1,b=x}` for a record with a schema, `{a=1, b=x}` for a map, `[1, 2]` for a list; else the value's own.

    Raises NotEncodable for bytes and dates, whose text in Java tells nothing or depends on the machine.
    """
    if arrow is not None and types.is_temporal(arrow) and value is not None:
        raise _no_text(value, arrow)
    if arrow is not None and types.is_struct(arrow) and isinstance(value, Mapping):
        fields = [(field, value.get(field.name)) for field in arrow]
        inner = ",".join(f"{field.name}={text_of(one, field.type)}" for field, one in fields if one is not None)
        return f"Struct{{{inner}}}"
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return of_float32(value) if arrow is not None and types.is_float32(arrow) else of_float(value)
        case str() | int():
            return _plain(value)
        case _:
            return _collected(value, arrow)


def _collected(value: Any, arrow: pa.DataType | None) -> str:
    if arrow is not None and types.is_map(arrow):
        pairs = value.items() if isinstance(value, Mapping) else value
        inner = ", ".join(f"{text_of(key, arrow.key_type)}={text_of(one, arrow.item_type)}" for key, one in pairs)
        return f"{{{inner}}}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{text_of(key, None)}={text_of(one, None)}' for key, one in value.items())}}}"
    if isinstance(value, list | tuple):
        inner_type = arrow.value_type if arrow is not None and types.is_list(arrow) else None
        return f"[{', '.join(text_of(one, inner_type) for one in value)}]"
    raise _no_text(value, arrow)


def _plain(value: str | int) -> str:
    try:
        return str(value)
    except ValueError:  # Python's limit, whose cost is quadratic
        raise NotEncodable("it has a whole number of too many digits") from None


def _no_text(value: object, arrow: pa.DataType | None) -> NotEncodable:
    return NotEncodable(f"StringConverter has no text for {arrow or type(value).__name__}")
