"""Converts single values of Protobuf fields to what Arrow takes, as Confluent's ProtobufData; parts of a plan."""

import calendar
import decimal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from parquet_sink.addons.formats.protobuf.expansion import Growth
from parquet_sink.convert import calendars
from parquet_sink.convert.decimals import LONGEST_DECIMAL, fit_decimal
from parquet_sink.convert.decoded import DEFAULT_PRECISION, MAX_PRECISION, decimal_type
from parquet_sink.convert.invalid import InvalidValue, Unfit
from parquet_sink.convert.json.exact import text_of

_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
_NANOS = 1_000_000_000
_EXACT = decimal.Context(prec=MAX_PRECISION + 4, Emin=-999_999, Emax=999_999)

Convert = Callable[[Any], object]


def text(value: str | bytes) -> str:
    """A string; the library gives bytes for one of proto2 that is not UTF-8."""
    if isinstance(value, bytes):
        raise Unfit("is not valid UTF-8")
    return value


def int64(value: int) -> int:
    """An unsigned integer of 64 bits, as a signed one."""
    if value >= 2**63:
        raise Unfit("holds an integer beyond 64 bits with a sign")
    return value


def timestamp(value: Any) -> int:
    """A google.protobuf.Timestamp in whole milliseconds since 1970, rounded down; of the years 1 to 9999."""
    seconds, nanos = value.seconds, value.nanos
    if not (_FIRST_SECOND <= seconds <= _LAST_SECOND and 0 <= nanos < _NANOS):
        raise Unfit("is not a timestamp of the years 1 to 9999")
    return int(seconds * 1000 + nanos // 1_000_000)


class UnrepresentableValue(Unfit):
    """A valid date or time that its column has no value for: a record has its parts in place of it.

    field: the full name of the Protobuf field.
    """

    def __init__(self, reason: str, field: str) -> None:
        super().__init__(reason)
        self.field = field


def to_date(field: str) -> Convert:
    """Return a converter from google.type.Date to days since 1970; a date of zeros is null.

    It raises UnrepresentableValue for a date without year, month or day, Unfit for one that is not in the calendar.
    """

    def convert(value: Any) -> int | None:
        year, month, day = value.year, value.month, value.day
        most = calendar.monthrange(year or 4, month or 1)[1] if 0 <= year <= 9999 and 0 <= month <= 12 else -1
        if not 0 <= day <= most or (day and not month):
            raise Unfit("is not a date of the years 1 to 9999")
        if year and month and day:
            return calendars.gregorian_month(int(year), int(month)) + int(day) - 1
        if not (year or month or day):
            return None
        raise UnrepresentableValue("is a date without year, month or day", field)

    return convert


def to_time(field: str) -> Convert:
    """Return a converter from google.type.TimeOfDay to whole milliseconds since midnight.

    It raises UnrepresentableValue for 24:00 and for a leap second, Unfit for what is no time of day.
    """

    def convert(value: Any) -> int:
        hours, minutes, seconds, nanos = value.hours, value.minutes, value.seconds, value.nanos
        if (hours, minutes, seconds, nanos) == (24, 0, 0, 0):
            raise UnrepresentableValue("is 24:00", field)
        if not (0 <= hours < 24 and 0 <= minutes < 60 and 0 <= seconds <= 60 and 0 <= nanos < _NANOS):
            raise Unfit("is not a time of day")
        if seconds == 60:
            raise UnrepresentableValue("is a leap second", field)
        return int(((hours * 60 + minutes) * 60 + seconds) * 1000 + nanos // 1_000_000)

    return convert


def to_struct_text(value: Any) -> str:
    """Return the JSON text of a google.protobuf.Struct: keys sorted, numbers as doubles."""
    return text_of(_to_object(value))


def to_list_text(value: Any) -> str:
    """Return the JSON text of a google.protobuf.ListValue."""
    return text_of([_to_tree(item) for item in value.values])


def to_value_text(value: Any) -> str | None:
    """Return the JSON text of a google.protobuf.Value, None where it is null or has no kind."""
    tree = _to_tree(value)
    return None if tree is None else text_of(tree)


def _to_object(value: Any) -> dict[str, object]:
    fields = value.fields
    return {name: _to_tree(fields[name]) for name in sorted(fields)}


def _to_tree(value: Any) -> object:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _to_object(value.struct_value)
    if kind == "list_value":
        return [_to_tree(item) for item in value.list_value.values]
    return None if kind is None or kind == "null_value" else getattr(value, kind)


def to_decimal_type(params: Mapping[str, str]) -> pa.DataType:
    """The type of a confluent.type.Decimal by its field's `precision` and `scale`. Raises InvalidValue."""
    precision, scale = _integer(params, "precision", DEFAULT_PRECISION), _integer(params, "scale", 0)
    if not (1 <= precision <= MAX_PRECISION and abs(scale) <= MAX_PRECISION):
        raise InvalidValue(
            f"the schema has a decimal of precision {precision} and scale {scale}, beyond what files hold"
        )
    return decimal_type(*fit_decimal(precision, scale))


def _integer(params: Mapping[str, str], name: str, default: int) -> int:
    try:
        return int(params[name][:20]) if name in params else default
    except ValueError:
        return default


def to_decimal(column: pa.DataType) -> Convert:
    """A confluent.type.Decimal to the scale of its column, which must lose nothing."""
    limit: int = 10**column.precision

    def convert(value: Any) -> decimal.Decimal:
        digits = value.value
        if not 0 < len(digits) <= LONGEST_DECIMAL:
            raise Unfit("is a decimal without digits" if not digits else "is a decimal of too many digits")
        unscaled = int.from_bytes(digits, "big", signed=True)
        if value.precision and abs(unscaled) >= 10 ** min(value.precision, 200):
            raise Unfit("is a decimal of more digits than its own precision")
        scaled = _rescale(unscaled, column.scale - value.scale)
        if not -limit < scaled < limit:
            raise Unfit(f"is a decimal of more than {column.precision} digits")
        return decimal.Decimal(scaled).scaleb(-column.scale, _EXACT)

    return convert


def _rescale(unscaled: int, by: int) -> int:
    """`unscaled` times ten to the power `by`. Raises Unfit where that is not an integer or a very long one."""
    if by == 0 or unscaled == 0:
        return unscaled
    if 0 < by <= MAX_PRECISION:
        return int(unscaled * 10**by)
    whole, rest = divmod(unscaled, 10**-by) if 0 < -by <= 2 * MAX_PRECISION else (0, 1)
    if rest:
        raise Unfit("is a decimal whose scale is not that of the schema")
    return whole


class EnumNames(dict[int, str]):
    """Names by number. An unknown number gets the name that Java's library gives it."""

    def __init__(self, enum: Any) -> None:
        super().__init__()
        self._enum = enum.name
        for value in enum.values:
            self.setdefault(value.number, value.name)
        self.longest = max(map(len, self.values()), default=0)

    def __missing__(self, number: int) -> str:
        return f"UNKNOWN_ENUM_VALUE_{self._enum}_{number}"


@dataclass(frozen=True)
class Scalar:
    """One value. convert: from what the library gives; check: what Arrow would refuse as well, in words.

    wraps: it stands in a google.protobuf.*Value.
    """

    arrow: pa.DataType
    convert: Convert | None = None
    check: Convert | None = None
    wraps: bool = False


@dataclass(frozen=True)
class Many:
    """A list."""

    arrow: pa.DataType
    element: "Shape"


@dataclass(frozen=True)
class Table:
    """A map. explicit: it is a list of messages with `key` and `value`."""

    arrow: pa.DataType
    key: Scalar
    value: "Shape"
    explicit: bool


@dataclass(frozen=True)
class Struct:
    """A message, or a oneof, whose members are read from the message that has it."""

    arrow: pa.DataType
    members: tuple["Member", ...]


Shape = Scalar | Many | Table | Struct


@dataclass(frozen=True)
class Member:
    """A field of a struct. source: the field or oneof of the message.

    get: its value in a message. has: whether a message has the field or oneof of that name; None: it always has.
    """

    name: str
    shape: Shape
    nullable: bool
    source: str
    get: Callable[[Any], Any]
    has: Callable[[Any, str], object] | None
    is_oneof: bool = False


class WireReader(Protocol):
    """Reads many messages at once from their bytes."""

    def read(self, payloads: pa.BinaryArray) -> tuple[pa.StructArray, np.ndarray] | None:
        """Return the rows of plain messages, and for each message whether it is left; None if nothing can be read."""
        ...


@dataclass(frozen=True)
class Plan:
    """A message type. required: it has fields without which it is invalid, anywhere below. growth: see there.

    wire: how many messages are read at once; None where they are left to the library.
    """

    name: str
    shape: Shape
    message: Any
    required: bool
    growth: Growth
    wire: "WireReader | None"
