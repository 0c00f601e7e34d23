"""Values that no record without a schema may hold, and that a class of a user's left in one.

Nobody looks for them while records become rows: only when that failed.
"""

from typing import Final

import pyarrow as pa

from parquet_sink.convert.decoded import Float32, Int32
from parquet_sink.convert.invalid import Path, show
from parquet_sink.convert.json.exact import INT64_MAX, INT64_MIN, walk

MAY_HOLD: Final = (
    "a record without a schema holds text, whole numbers of 64 bits, fractions, booleans, None, lists, objects, and "
    "dates, times and timestamps as Arrow scalars"
)
_PLAIN: Final = frozenset({type(None), bool, float, Int32, Float32, dict, list})
_SCALARS: Final = frozenset({pa.date32(), pa.time32("ms"), pa.timestamp("ms", "UTC")})
_DEEPEST: Final = 1_000
"""Levels after which a value is taken for one that holds itself."""


def first_wrong(tree: object, whole: str) -> str | None:
    """The first value that may not be in a record, and where: `a Decimal in field amount`. whole: `key` or `value`."""
    if (what := _wrong(tree)) is not None or not isinstance(tree, dict | list):
        return None if what is None else f"{what} as the whole {whole}"
    for path, value in walk(tree):
        if len(path) > _DEEPEST:
            return f"more than {_DEEPEST:,} levels {_where(path[:1], whole)}"
        if (what := _wrong(value)) is not None:
            return f"{what} {_where(path, whole)}"
    return None


def _where(path: Path, whole: str) -> str:
    return f"in field {show(path)}{'' if whole == 'value' else f' of the {whole}'}"


def _wrong(value: object) -> str | None:
    """What is wrong with a value by itself; None for nothing."""
    kind = type(value)
    if kind in _PLAIN:
        return _wrong_name(value) if isinstance(value, dict) else None
    if isinstance(value, int) and kind is int:
        return None if INT64_MIN <= value <= INT64_MAX else "a whole number of more than 64 bits"
    if isinstance(value, str) and kind is str:
        return None if _is_unicode(value) else "text that is no valid Unicode"
    if isinstance(value, pa.Scalar):
        return None if value.type in _SCALARS else f"an Arrow scalar of type {value.type}"
    hint = ", which must be an Arrow scalar," if kind.__module__ == "datetime" else ""
    return f"{_named(value)}{hint}"


def _wrong_name(value: dict[object, object]) -> str | None:
    found = next((name for name in value if type(name) is not str or not _is_unicode(name)), None)
    if found is None:
        return None
    return f"an object with {_named(found) if type(found) is not str else 'no valid Unicode'} as a name"


def _named(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
