"""Java's texts: how it prints numbers, and what it takes for true."""

import math
from collections.abc import Callable
from typing import Final

import numpy as np

_PLAIN_FROM: Final = -3
_PLAIN_TO: Final = 7


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
