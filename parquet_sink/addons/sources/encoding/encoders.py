"""What writes keys, values and headers.

StringConverter, JsonConverter with and without schemas, ByteArrayConverter; for headers SimpleHeaderConverter, too.
"""

import base64

import pyarrow as pa

from parquet_sink.addons.sources.encoding import connect_json, jackson
from parquet_sink.addons.sources.encoding.faults import NotEncodable
from parquet_sink.addons.sources.encoding.java_text import text_of
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
