"""The text that Java has for a value (`toString`), which StringConverter and SimpleHeaderConverter write."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyarrow import types

from parquet_sink.addons.sources.encoding.faults import NotEncodable
from parquet_sink.transform.fields.java.numbers import of_float, of_float32


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
