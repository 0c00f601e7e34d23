"""Text to a value with a type, as Kafka Connect's `Values.parseString` finds it.

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
from decimal import Decimal
from typing import Final, TypeAlias

import pyarrow as pa

from parquet_sink.convert import java_dates
from parquet_sink.convert.connect_values.kinds import Entries, Found, JavaDate, Kind, NotHeld
from parquet_sink.convert.connect_values.parser import Parser
from parquet_sink.convert.decoded import DEFAULT_PRECISION, Decoded, Decoder, Piece, Trees, Typed, decimal_type
from parquet_sink.convert.java_dates import DAY_MS

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
_NOT_SPECIAL: Final = re.compile(r"[A-Za-z_/<(]")


def parse(text: str) -> Parsed:
    """The value of a text."""
    if not text or (_NOT_SPECIAL.match(text) and text[0] not in "tfn"):
        return pa.scalar(text, pa.string())
    try:
        found = Parser(text).parse(embedded=False, depth=0)
        return pa.scalar(None, pa.null()) if found is None else _to_parsed(found)
    except NotHeld:
        return pa.scalar(text, pa.string())


def decoder() -> Decoder:
    """SimpleHeaderConverter: values of UTF-8 text, what is not valid in it replaced as Java does. None is invalid."""
    return _SimpleHeaders()


class _SimpleHeaders:
    def decode(self, values: pa.BinaryArray) -> Decoded:
        """As `convert.decoded.Decoder` says."""
        scalars: dict[pa.DataType, list[tuple[int, pa.Scalar]]] = {}
        trees: list[tuple[int, object]] = []
        for position, value in enumerate(values.to_pylist()):
            found = parse(value.decode("utf-8", "replace"))
            if not isinstance(found, pa.Scalar):
                trees.append((position, found))
            elif found.is_valid:
                scalars.setdefault(found.type, []).append((position, found))
        pieces: list[Piece] = []
        for arrow, pairs in scalars.items():
            rows = pa.array([scalar for _, scalar in pairs], arrow)
            pieces.append(Typed(pa.array([at for at, _ in pairs], pa.int64()), rows))
        if trees:
            pieces.append(Trees(pa.array([at for at, _ in trees], pa.int64()), [tree for _, tree in trees]))
        return Decoded(tuple(pieces))


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
        return java_dates.text(value.kind, value.ms)
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
    """What Arrow makes a scalar of. Raises NotHeld."""
    if isinstance(value, JavaDate):
        return _ticks(arrow, value.ms)
    if isinstance(value, Decimal):
        if value.as_tuple().exponent != 0 or len(value.as_tuple().digits) > DEFAULT_PRECISION:
            raise NotHeld
        return value
    if pa.types.is_list(arrow):
        return [_plain(arrow.value_type, one) for one in value]  # type: ignore[attr-defined]
    if pa.types.is_map(arrow):
        entries: list[tuple[object, object]] = value  # type: ignore[assignment]
        return [(_plain(arrow.key_type, key), _plain(arrow.item_type, item)) for key, item in entries]
    return value


def _ticks(arrow: pa.DataType, ms: int) -> object:
    is_date = pa.types.is_date(arrow)
    if (is_date and ms % DAY_MS) or (pa.types.is_time(arrow) and not 0 <= ms < DAY_MS):
        raise NotHeld
    return ms // DAY_MS if is_date else ms
