"""Columns of texts that are dates in a usual form of their pattern, at once; all others are for `DateFormat.parse`."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.calendars import DAY_MS, gregorian_month

_WIDTHS: Final[Mapping[str, int]] = {"y": 4, "M": 2, "d": 2, "H": 2, "m": 2, "s": 2, "S": 3}
_MS: Final[Mapping[str, int]] = {"H": 3_600_000, "m": 60_000, "s": 1000, "S": 1}
_LEAST_YEAR: Final = 1583
"""Before, the calendar is another one."""

_SPECIAL: Final = frozenset(r"\.+*?()|[]{}^$")


def usual(tokens: Sequence[tuple[str, int]]) -> str | None:
    """A regular expression of texts that have each number in its full width, and nothing behind; None: there is none.

    tokens: of a `DateFormat`. Such a text is read alike, whether a number is bounded by its width or by what follows.
    """
    found, seen = "^", set()
    for text, count in tokens:
        if not count:
            if any(char.isdigit() or char == "E" for char in text):
                return None
            found += "".join(f"\\{char}" if char in _SPECIAL else char for char in text)
        elif count != _WIDTHS.get(text) or text in seen:
            return None
        else:
            seen.add(text)
            found += f"(?P<{text}>[0-9]{{{count}}})"
    return f"{found}$" if seen else None


def epoch_ms(texts: pa.StringArray, expression: str) -> pa.Int64Array:
    """Epoch milliseconds of each text; null where it is for `DateFormat.parse`, or null itself."""
    found = pc.extract_regex(texts, expression)
    parts = dict(zip((one.name for one in found.type), found.flatten(), strict=True))
    numbers = {name: pc.fill_null(part.cast(pa.int64()), 0).to_numpy() for name, part in parts.items()}
    year, month, day = (numbers.get(name, np.int64(default)) for name, default in (("y", 1970), ("M", 1), ("d", 1)))
    usable = (year >= _LEAST_YEAR) & (month >= 1) & (month <= 12)
    days = gregorian_month(np.where(usable, year, 1970), np.where(usable, month, 1)) + day - 1
    total = days * DAY_MS + sum(numbers[name] * size for name, size in _MS.items() if name in numbers)
    known = found.is_valid().to_numpy(zero_copy_only=False) & usable
    return pa.array(np.broadcast_to(total, known.shape), pa.int64(), mask=~known)


def part(epoch_ms: pa.Int64Array, *, of_day: bool) -> pa.Int32Array:
    """The day of each instant, or the milliseconds of its day; null also where a day is beyond 32 bits."""
    known = epoch_ms.is_valid().to_numpy(zero_copy_only=False)
    day, rest = np.divmod(pc.fill_null(epoch_ms, 0).to_numpy(), DAY_MS)
    if of_day:
        return pa.array(rest.astype(np.int32), mask=~known)
    return pa.array(day.astype(np.int32), mask=~(known & (day == day.astype(np.int32))))
