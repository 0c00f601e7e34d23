"""Decodes text to a value with a type, as Kafka Connect's `Values.parseString` finds it.

That is what SimpleHeaderConverter makes of headers, and InsertHeader of its literal:

    text                                        value
    null                                        null, of no type
    true, false                                 boolean
    12, 300, 70000, 1e10, 2.0                   int8, int16, int32 or int64, the smallest that holds it
    0.1, 1.5e300                                float32 where that is not infinite, else float64
    whole numbers beyond int64                  Decimal
    2024-01-31                                  Date
    12:30:00.000Z                               Time
    2024-01-31T12:30:00.000Z                    Timestamp
    [1, 300], {"a": 1}                          array, map; elements of kinds that do not mix have no type
    anything else                               string, as it stands

In arrays and maps text is quoted. What Arrow cannot hold (a Decimal of more than 64 digits, a Time beyond a day, more
than 100 levels) is a string as well, where Connect has a value.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Final, TypeAlias

import pyarrow as pa

from parquet_sink.convert import calendars
from parquet_sink.convert.calendars import DAY_MS
from parquet_sink.convert.connect_values.parser import JAVA_BLANKS, Entries, Found, JavaDate, Kind, NotHeld, Parser
from parquet_sink.convert.decoded import DEFAULT_PRECISION, Decoded, Piece, SchemaColumns, Untyped, decimal_type
from parquet_sink.convert.settings import Converter

Parsed: TypeAlias = pa.Scalar | dict[str, object] | list[object]
"""A scalar; or an object or a list without a type, as in `convert.decoded.Tree`."""

_ARROW: Final = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "time": pa.time32("ms"),
    "timestamp": pa.timestamp("ms", "UTC"),
}
_NO_NUMBER: Final = re.compile(r"\Z|[A-Za-z_/<(]")
_SMALL: Final = re.compile(r"-?[0-9]{1,2}")
_DELIMITER: Final = re.compile(r'[:,{}\[\]"]')
_WORDS: Final = ("null", "true", "false")
_INT8: Final = pa.int8()


def parse(text: str) -> Parsed:
    """The value of a text."""
    if _is_text(text):
        return pa.scalar(text, pa.string())
    if _SMALL.fullmatch(text):
        return pa.scalar(int(text), _INT8)
    try:
        parser = Parser(text)
        found = parser.parse(embedded=False, depth=0) if _DELIMITER.search(text) else parser.alone()
        return pa.scalar(None, pa.null()) if found is None else _to_parsed(found)
    except NotHeld:
        return pa.scalar(text, pa.string())


class SimpleHeaders:
    """SimpleHeaderConverter: values of UTF-8 text, what is not valid in it replaced as Java does. None is invalid."""

    def __init__(self, settings: Converter) -> None:
        """There are no settings."""

    def decode(self, values: pa.BinaryArray) -> Decoded:
        """As `convert.decoded.Decoder` says."""
        texts: list[tuple[int, str]] = []
        scalars: dict[pa.DataType, list[tuple[int, pa.Scalar]]] = {}
        trees: list[tuple[int, object]] = []
        for position, value in enumerate(values.to_pylist()):
            text = value.decode("utf-8", "replace")
            if _is_text(text):
                texts.append((position, text))
                continue
            found = parse(text)
            if not isinstance(found, pa.Scalar):
                trees.append((position, found))
            elif found.is_valid:
                scalars.setdefault(found.type, []).append((position, found))
        pieces: list[Piece] = []
        if texts:
            pieces.append(SchemaColumns(_positions(texts), pa.array([text for _, text in texts], pa.string())))
        for arrow, pairs in scalars.items():
            pieces.append(SchemaColumns(_positions(pairs), pa.array([scalar for _, scalar in pairs], arrow)))
        if trees:
            pieces.append(Untyped(_positions(trees), [tree for _, tree in trees]))
        return Decoded(tuple(pieces))


def _is_text(text: str) -> bool:
    """Whether a text is itself, as the first character shows of most."""
    return _NO_NUMBER.match(text) is not None and text.rstrip(JAVA_BLANKS) not in _WORDS


def _positions(pairs: Sequence[tuple[int, object]]) -> pa.Int64Array:
    return pa.array([position for position, _ in pairs], pa.int64())


def _to_parsed(found: Found) -> Parsed:
    """Raises NotHeld."""
    try:
        arrow = _arrow(found.kind)
        if arrow is not None:
            return pa.scalar(_plain(arrow, found.value), arrow)
    except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
        if not isinstance(found.kind, tuple):
            raise NotHeld from error
    tree = _tree(found.value)
    assert isinstance(tree, dict | list)
    return tree


def _tree(value: object) -> object:
    """Dates and decimals are text."""
    if isinstance(value, Entries):
        pairs = [(_tree(key), _tree(item)) for key, item in value]
        if all(isinstance(key, str) for key, _ in pairs):
            return dict(pairs)
        return [list(pair) for pair in pairs]
    if isinstance(value, list):
        return [_tree(one) for one in value]
    if isinstance(value, JavaDate):
        return calendars.text(value.kind, value.ms)
    return str(value) if isinstance(value, Decimal) else value


def _arrow(kind: Kind | None) -> pa.DataType | None:
    """None for what has no type, or holds something that has none."""
    if not isinstance(kind, tuple):
        return decimal_type(DEFAULT_PRECISION, 0) if kind == "decimal" else _ARROW.get(kind or "")
    below = [_arrow(one) for one in kind]
    if None in below:
        return None
    return pa.list_(below[0]) if len(below) == 1 else pa.map_(*below)


def _plain(arrow: pa.DataType, value: object) -> object:
    """What Arrow makes a scalar of. Raises NotHeld, and TypeError for what Connect holds under a type of others."""
    matches = _MATCHES.get(type(value))
    if matches is None or not matches(arrow):
        raise TypeError(f"{type(value).__name__} is no {arrow}")
    if isinstance(value, JavaDate):
        return _ticks(arrow, value.ms)
    if isinstance(value, Decimal) and (value.as_tuple().exponent or len(value.as_tuple().digits) > DEFAULT_PRECISION):
        raise NotHeld
    if isinstance(value, Entries):
        return [(_plain(arrow.key_type, key), _plain(arrow.item_type, item)) for key, item in value]
    if isinstance(value, list):
        return [_plain(arrow.value_type, one) for one in value]
    return value


_MATCHES: Final[Mapping[type, Callable[[pa.DataType], bool]]] = {
    Entries: pa.types.is_map,
    list: pa.types.is_list,
    JavaDate: pa.types.is_temporal,
    Decimal: pa.types.is_decimal,
    bool: pa.types.is_boolean,
    int: pa.types.is_integer,
    float: pa.types.is_floating,
    str: pa.types.is_string,
}


def _ticks(arrow: pa.DataType, ms: int) -> object:
    is_date = pa.types.is_date(arrow)
    if (is_date and ms % DAY_MS) or (pa.types.is_time(arrow) and not 0 <= ms < DAY_MS):
        raise NotHeld
    return ms // DAY_MS if is_date else ms
