"""Text to numbers, as Java's BigDecimal reads them and Connect chooses their type."""

import re
from decimal import Decimal, InvalidOperation
from typing import Final

import numpy as np

from parquet_sink.convert.connect_values.kinds import Found

_NUMBER: Final = re.compile(r"[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?")
_PLAIN: Final = re.compile(r"[+-]?[0-9]{1,18}")
_MOST_SCALE: Final = 2**31 - 1
_INTEGERS: Final = (("int8", 2**7), ("int16", 2**15), ("int32", 2**31), ("int64", 2**63))


def number(token: str) -> Found | None:
    """None when Java's BigDecimal does not read it."""
    if _NUMBER.fullmatch(token) is None or max(token) > "\uffff":
        return None
    if _PLAIN.fullmatch(token):
        return _integer(int(token))
    try:
        found = Decimal(token)
    except InvalidOperation:  # an exponent beyond what Decimal holds
        return None
    exponent = found.as_tuple().exponent
    return _fraction(found, exponent) if isinstance(exponent, int) and abs(exponent) <= _MOST_SCALE else None


def _fraction(found: Decimal, exponent: int) -> Found:
    """Whatever it looks like: a whole number as such, else the narrowest type of fractions, else a decimal."""
    if (whole := _whole(found)) is not None:
        return _integer(whole)
    if exponent:
        for name, value in (("float32", _float32(found)), ("float64", float(found))):
            if abs(value) != np.inf:
                return Found(name, value)
    return Found("decimal", found)


def _integer(whole: int) -> Found:
    return Found(next(name for name, limit in _INTEGERS if -limit <= whole < limit), whole)


def _whole(number: Decimal) -> int | None:
    """A whole number within int64 as such, whatever it looks like."""
    if not number:
        return 0
    if not 0 <= number.adjusted() <= 19 or number != number.to_integral_value():
        return None
    whole = int(number)
    return whole if -(2**63) <= whole < 2**63 else None


def _float32(number: Decimal) -> float:
    """The nearest float32. By way of a float64 it may be rounded twice: where that stands halfway between two."""
    wide = float(number)
    with np.errstate(over="ignore"):
        near = np.float32(wide)
        if float(near) == wide or Decimal(wide) == number:
            return float(near)
        other = np.nextafter(near, np.float32(np.copysign(np.inf, wide - float(near))))
    is_halfway = abs(wide) == _OVERFLOWS if np.isinf(near) else float(near) + float(other) == 2 * wide
    if is_halfway and (number > Decimal(wide)) != (near > other):
        return float(other)
    return float(near)


_OVERFLOWS: Final = 2.0**128 - 2.0**103
"""Halfway from the largest float32 to what would be the next."""
