"""Java's numbers: narrowing conversions, numbers read from texts, and how they are printed."""

import math
import re
import unicodedata
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Final

import numpy as np

_INTEGER: Final = re.compile(r"([+-]?)(\d++)")
_BLANKS: Final = "".join(map(chr, range(33)))
_FLOAT: Final = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<nan>NaN)|(?P<inf>Infinity)"
    r"|(?P<digits>(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)[fFdD]?"
    r"|0[xX](?P<whole>[0-9a-fA-F]*+)(?:\.(?P<part>[0-9a-fA-F]*+))?[pP](?P<power>[+-]?[0-9]++)[fFdD]?)"
)
_DECIMAL: Final = re.compile(r"[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d{1,10})?")
_PLAIN_FROM: Final = -3
_PLAIN_TO: Final = 7
_MOST_POWER: Final = 100_000
_MOST_DIGITS: Final = 10_000
"""Of a number that is written in base 16."""
_SIGNIFICANT: Final = 40
"""More digits than any whole number of Java has, and far fewer than Python's limit on texts."""


class NoNumber(ValueError):
    """A text is not the number that is asked for."""


def wrapped(number: int, bits: int) -> int:
    """A whole number as so many bits hold it: the lowest ones, silently."""
    half = 1 << (bits - 1)
    return (number + half) % (1 << bits) - half


def truncated(number: float, bits: int) -> int:
    """A fraction as a whole number of 32 or 64 bits: cut towards zero, NaN is 0, what is beyond is the limit."""
    if math.isnan(number):
        return 0
    half = 1 << (bits - 1)
    if not -half <= number < half:
        return -half if number < 0 else half - 1
    return int(number)


def to_float32(number: float) -> float:
    """The nearest float of 32 bits; of a whole number it is the nearest, too, rounded once."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float((np.int64(number) if isinstance(number, int) else np.float64(number)).astype(np.float32))


def parse_integer(text: str, bits: int) -> int:
    """`Integer.parseInt` and its like. Raises NoNumber."""
    if max(text, default="") > "\uffff":  # Java looks at halves of such characters, which are no digits
        raise NoNumber
    number = saturated(text)
    if number != wrapped(number, bits):
        raise NoNumber
    return number


def saturated(text: str) -> int:
    """A whole number of any length, in linear time: its value, or one of its sign far beyond 64 bits.

    Raises NoNumber for a text that is none.
    """
    found = _INTEGER.fullmatch(text)
    if found is None:
        raise NoNumber
    sign, digits = found.groups()
    if any(map(unicodedata.digit, digits[:-_SIGNIFICANT])):
        digits = "9" * _SIGNIFICANT
    return int(sign + digits[-_SIGNIFICANT:])


def parse_float(text: str) -> float:
    """`Double.parseDouble`. Raises NoNumber."""
    return _parse(text)[0]


def parse_float32(text: str) -> float:
    """`Float.parseFloat`: the nearest float of 32 bits, not the nearest to the nearest of 64. Raises NoNumber."""
    number, exact = _parse(text)
    near = to_float32(number)
    if exact is None or not math.isfinite(number) or number in (near, exact):
        return near
    # Only a text just beside the middle of two floats may have been rounded onto it first.
    away = np.float32(near)
    other = float(np.nextafter(away, np.float32(math.inf if number > near else -math.inf)))
    near, other = (math.copysign(_BEYOND, one) if math.isinf(one) else one for one in (near, other))
    if (near + other) / 2 == number:
        near = max(near, other) if exact > number else min(near, other)
    return to_float32(near)


def parse_decimal(text: str) -> Decimal:
    """`new BigDecimal`. Raises NoNumber."""
    if _DECIMAL.fullmatch(text) is None:
        raise NoNumber
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise NoNumber from None
    return number or abs(number)  # it has no zero with a sign


def decimal_as_int64(number: Decimal) -> int:
    """`BigDecimal.longValue`: cut towards zero, the lowest 64 bits."""
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    if exponent <= -len(digits) or exponent >= 64:  # ten to the 64th has no bit among the lowest 64
        return 0
    return wrapped(int(number), 64)


_BEYOND: Final = 2.0**128
"""What would be the next float of 32 bits behind the largest."""


def _parse(text: str) -> tuple[float, Decimal | Fraction | None]:
    """The nearest double, and exactly what is written, where that is a number of a sensible size."""
    found = _FLOAT.fullmatch(text.strip(_BLANKS))
    if found is None:
        raise NoNumber
    sign = -1.0 if found["sign"] == "-" else 1.0
    if found["nan"] or found["inf"]:
        return (math.nan if found["nan"] else sign * math.inf), None
    if found["power"] is not None:
        return _hexadecimal(found["whole"], found["part"] or "", saturated(found["power"]), sign)
    number = sign * float(found["digits"])
    return number, None if number == 0 or math.isinf(number) else Decimal(found["sign"] + found["digits"])


def _hexadecimal(whole: str, part: str, power: int, sign: float) -> tuple[float, Fraction | None]:
    digits = whole + part
    if not digits or len(digits) > _MOST_DIGITS:
        raise NoNumber
    number = int(digits, 16)
    if not number or abs(power) > _MOST_POWER:
        return sign * (0.0 if not number or power < 0 else math.inf), None
    exact = Fraction(number) * Fraction(2) ** (power - 4 * len(part))
    try:
        return sign * float(exact), Fraction(int(sign)) * exact
    except OverflowError:
        return sign * math.inf, None


def of_float(number: float) -> str:
    """`Double.toString`, of Java 19 or newer: the shortest digits that tell the number from its neighbours."""
    return _printed(number, repr(number), lambda text: float(text) == number)


def of_float32(number: float) -> str:
    """`Float.toString`: of a number that 32 bits hold, the shortest digits that tell it from its neighbours there."""
    if not math.isfinite(number):
        return _odd(number)
    narrow = np.float32(number)
    shortest = np.format_float_scientific(narrow, unique=True, trim="-")
    return _printed(number, shortest, lambda text: np.float32(text) == narrow)


def _printed(number: float, shortest: str, same: Callable[[str], bool]) -> str:
    if not math.isfinite(number):
        return _odd(number)
    if number == 0:
        return "-0.0" if math.copysign(1, number) < 0 else "0.0"
    digits, exponent = _parts(shortest)
    if len(digits) == 1 and same(nearer := f"{number:.1e}"):  # of one digit or two it takes what is nearest
        digits, exponent = _parts(nearer)
    sign = "-" if number < 0 else ""
    if _PLAIN_FROM <= exponent < _PLAIN_TO:
        return sign + _plain(digits, exponent)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _parts(text: str) -> tuple[str, int]:
    """Digits without zeros around, and the power of ten of the first one."""
    mantissa, _, power = text.lstrip("-").partition("e")
    whole, _, part = mantissa.partition(".")
    digits = (whole + part).lstrip("0")
    exponent = len(whole) - 1 - (len(whole + part) - len(digits)) + int(power or 0)
    return digits.rstrip("0"), exponent


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    return f"{digits[: exponent + 1].ljust(exponent + 1, '0')}.{digits[exponent + 1 :] or '0'}"


def _odd(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"
