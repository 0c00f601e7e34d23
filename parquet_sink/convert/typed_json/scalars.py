"""Single JSON values of a known type (numbers, text, bytes, decimals), and how one says that it does not fit."""

import binascii
import struct
from collections.abc import Callable
from decimal import Context, Decimal
from typing import TypeAlias

from parquet_sink.convert.typed_json.types import MILLIS_PER_DAY, DecimalKind, ScalarKind

Read: TypeAlias = Callable[[object], object]
"""A JSON value, parsed, to what `pa.array` takes for the type: dict for a struct, pairs for a map, int for a date."""

_WIDE = Context(prec=160)
_EXACT_LIMIT = float(2**53)
_INT64_DIGITS = 19
RANGES = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "date": (-(2**31), 2**31 - 1),
    "time": (0, MILLIS_PER_DAY - 1),
    "timestamp": (-(2**63), 2**63 - 1),
}
_NAMES = {dict: "an object", list: "a list", str: "text", bool: "a boolean", type(None): "null"}


class Refused(Exception):
    """A value that does not fit; the path grows from the inside out."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str | int] = []


class RoundedFraction(Exception):
    """A number that the quick parser may have rounded, where each digit counts; a Decimal is wanted in its place."""


def named(value: object) -> str:
    """What a value is, for a message."""
    return _NAMES.get(type(value), "a number")


def scalar_reader(kind: ScalarKind) -> Read:
    """The reader of one plain type. It raises Refused, and RoundedFraction where a float may not be what is written."""
    if kind.name in RANGES:
        return _integer_reader(kind.name)
    others: dict[str, Read] = {
        "float32": _read_float32,
        "float64": _read_float64,
        "boolean": _read_boolean,
        "string": _read_string,
        "bytes": _read_bytes,
        "null": _read_null,
    }
    return others[kind.name]


def _integer_reader(name: str) -> Read:
    low, high = RANGES[name]

    def read_integer(value: object) -> object:
        number = value if type(value) is int else _to_integer(value, name)
        if low <= number <= high:
            return number
        raise Refused(f"is beyond what {name} holds")

    return read_integer


def _to_integer(value: object, name: str) -> int:
    """The integer in a number that is written as a fraction, `1.0` or `1e3`."""
    if type(value) is float and abs(value) >= _EXACT_LIMIT:
        raise RoundedFraction
    if type(value) is float or type(value) is Decimal:
        if value and type(value) is Decimal and value.adjusted() > _INT64_DIGITS:
            raise Refused(f"is beyond what {name} holds")
        if not value or value == int(value):
            return int(value) if value else 0
        raise Refused(f"is a fraction, and it should be a whole number ({name})")
    raise Refused(f"is {named(value)}, and it should be a whole number ({name})")


def _read_float64(value: object) -> object:
    if type(value) is float:
        return value
    if type(value) is int or type(value) is Decimal:
        return float(value)
    raise Refused(f"is {named(value)}, and it should be a number")


def _read_float32(value: object) -> object:
    try:
        return struct.unpack("<f", struct.pack("<f", _read_float64(value)))[0]
    except OverflowError:
        raise Refused("is beyond what float32 holds") from None


def _read_boolean(value: object) -> object:
    if type(value) is bool:
        return value
    raise Refused(f"is {named(value)}, and it should be true or false")


def _read_string(value: object) -> object:
    if type(value) is str:
        return value
    raise Refused(f"is {named(value)}, and it should be text")


def _read_null(value: object) -> object:
    raise Refused(f"is {named(value)}, and it should be null")


def _read_bytes(value: object) -> bytes:
    """Base64 with padding and nothing else."""
    if type(value) is not str:
        raise Refused(f"is {named(value)}, and it should be text (base64)")
    try:
        return binascii.a2b_base64(value, strict_mode=True)
    except ValueError:
        raise Refused("is not base64") from None


def decimal_reader(kind: DecimalKind) -> Read:
    """The reader of decimals. It raises Refused, and RoundedFraction for every float: only the text is exact."""
    limit = 10**kind.precision

    def read_decimal(value: object) -> object:
        if type(value) is str:
            unscaled = _unscaled_of(_read_bytes(value))
        elif type(value) is float:
            raise RoundedFraction
        else:
            unscaled = _number_to_unscaled(value, kind)
        if -limit < unscaled < limit:
            return Decimal(unscaled).scaleb(-kind.scale, _WIDE)
        raise Refused(f"has more than {kind.precision} digits")

    return read_decimal


def _unscaled_of(raw: bytes) -> int:
    """Two's complement, big endian."""
    if not raw:
        raise Refused("is empty, and it should be a decimal")
    if len(raw) > 64:
        raise Refused("is too long for a decimal")
    return int.from_bytes(raw, "big", signed=True)


def _number_to_unscaled(value: object, kind: DecimalKind) -> int:
    if type(value) is int:
        return int(value * 10**kind.scale)
    if type(value) is not Decimal:
        raise Refused(f"is {named(value)}, and it should be a decimal")
    if not value:
        return 0
    if value.adjusted() >= kind.precision:
        raise Refused(f"has more than {kind.precision} digits")
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    surplus = max(-exponent - kind.scale, 0)
    if surplus > len(digits) or any(digits[len(digits) - surplus :]):
        raise Refused(f"has more than {kind.scale} digits after the point")
    kept = int("".join(map(str, digits[: len(digits) - surplus])))
    unscaled = int(kept * 10 ** max(exponent + kind.scale, 0))
    return -unscaled if sign else unscaled
