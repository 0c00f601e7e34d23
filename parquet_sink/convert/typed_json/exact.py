"""Decodes JSON values of a known type one at a time: the definition of what is accepted, and why not.

The rules are those of Connect's JsonConverter, less its silence: where it reads text as the number 0 and cuts integers
to size, a value that is not of its type is refused here, by its path.
"""

import binascii
import json
import math
import struct
from collections.abc import Callable
from decimal import Context, Decimal, InvalidOperation
from typing import TypeAlias

import orjson

from parquet_sink.convert.decimals import LONGEST_DECIMAL, to_decimal_text
from parquet_sink.convert.decoded import MAX_DEPTH
from parquet_sink.convert.invalid import InvalidValue, Path, Unfit, show
from parquet_sink.convert.json.exact import load
from parquet_sink.convert.typed_json.types import (
    CELLS_A_BYTE,
    FREE_CELLS,
    OTHERS,
    DecimalKind,
    Field,
    Kind,
    ListKind,
    MapKind,
    ScalarKind,
    Slot,
    StructKind,
    TextKind,
    UnionKind,
    VariableDecimalKind,
    counter,
)
from parquet_sink.convert.typed_json.unions import NAMES, RANGES, TEXTS, named, union_reader

Read: TypeAlias = Callable[[object], object]
"""A JSON value, parsed, to what `pa.array` takes for the type: dict for a struct, pairs for a map, int for a date."""

_WIDE = Context(prec=160)
_EXACT_LIMIT = float(2**53)
_INT64_DIGITS = 19


class RoundedFraction(Exception):
    """A number that the quick parser may have rounded, where each digit counts; a Decimal is wanted in its place."""


def scalar_reader(kind: ScalarKind) -> Read:
    """The reader of one plain type. It raises Unfit, and RoundedFraction where a float may not be what is written."""
    if kind.name in RANGES:
        return _integer_reader(kind.name)
    return _SCALAR_READERS[kind.name]


def _integer_reader(name: str) -> Read:
    low, high = RANGES[name]

    def read_integer(value: object) -> object:
        number = value if type(value) is int else _to_integer(value, name)
        if low <= number <= high:
            return number
        raise Unfit(f"is beyond what {name} holds")

    return read_integer


def _to_integer(value: object, name: str) -> int:
    """The integer in a number that is written as a fraction, `1.0` or `1e3`."""
    if type(value) is float and abs(value) >= _EXACT_LIMIT:
        raise RoundedFraction
    if type(value) is float or type(value) is Decimal:
        if value and type(value) is Decimal and value.adjusted() > _INT64_DIGITS:
            raise Unfit(f"is beyond what {name} holds")
        if not value or value == int(value):
            return int(value) if value else 0
        raise Unfit(f"is a fraction, and it should be a whole number ({name})")
    raise Unfit(f"is {named(value)}, and it should be a whole number ({name})")


_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""Fractions that JSON has no numbers for, as Connect's JsonConverter writes them."""


def _read_float64(value: object) -> object:
    if type(value) is float:
        return value
    if type(value) is int or type(value) is Decimal:
        return float(value)
    if type(value) is str and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    raise Unfit(f"is {named(value)}, and it should be a number")


def _read_float32(value: object) -> object:
    try:
        return struct.unpack("<f", struct.pack("<f", _read_float64(value)))[0]
    except OverflowError:
        raise Unfit("is beyond what float32 holds") from None


def _reader_of_type(wanted: type, name: str) -> Read:
    def read(value: object) -> object:
        if type(value) is wanted:
            return value
        raise Unfit(f"is {named(value)}, and it should be {name}")

    return read


def _read_bytes(value: object) -> bytes:
    """Base64 with padding and nothing else."""
    if type(value) is not str:
        raise Unfit(f"is {named(value)}, and it should be text (base64)")
    try:
        return binascii.a2b_base64(value, strict_mode=True)
    except ValueError:
        raise Unfit("is not base64") from None


_SCALAR_READERS: dict[str, Read] = {
    "float32": _read_float32,
    "float64": _read_float64,
    "boolean": _reader_of_type(bool, "true or false"),
    "string": _reader_of_type(str, "text"),
    "bytes": _read_bytes,
    "null": _reader_of_type(type(None), "null"),
}


def decimal_reader(kind: DecimalKind) -> Read:
    """The reader of decimals. It raises Unfit, and RoundedFraction for every float: only the text is exact."""
    limit, factor = 10**kind.precision, 10**kind.zeros

    def read_decimal(value: object) -> object:
        if type(value) is str:
            unscaled = _unscaled_of(_read_bytes(value)) * factor
        elif type(value) is float:
            raise RoundedFraction
        else:
            unscaled = _number_to_unscaled(value, kind)
        if -limit < unscaled < limit:
            return Decimal(unscaled).scaleb(-kind.scale, _WIDE)
        raise Unfit(f"has more than {kind.precision} digits")

    return read_decimal


def _unscaled_of(raw: bytes) -> int:
    """Two's complement, big endian."""
    return int.from_bytes(_check_digits(raw), "big", signed=True)


def _check_digits(raw: bytes) -> bytes:
    """Return the bytes of an unscaled value. Raise Unfit if there are none or too many."""
    if not raw:
        raise Unfit("is empty, and it should be a decimal")
    if len(raw) > LONGEST_DECIMAL:
        raise Unfit("is too long for a decimal")
    return raw


def _number_to_unscaled(value: object, kind: DecimalKind) -> int:
    if type(value) is int:
        return int(value * 10**kind.scale)
    if type(value) is not Decimal:
        raise Unfit(f"is {named(value)}, and it should be a decimal")
    if not value:
        return 0
    if value.adjusted() >= kind.precision:
        raise Unfit(f"has more than {kind.precision} digits")
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    surplus = max(-exponent - kind.scale, 0)
    if surplus > len(digits) or any(digits[len(digits) - surplus :]):
        raise Unfit(f"has more than {kind.scale} digits after the point")
    kept = int("".join(map(str, digits[: len(digits) - surplus])))
    unscaled = int(kept * 10 ** max(exponent + kind.scale, 0))
    return -unscaled if sign else unscaled


_LEAST = Decimal("1E-1000000")
_MAY_BE_ABSENT = "is null, and it may only be missing (value.converter.use.optional.for.nonrequired=true permits null)"


class ExactReader:
    """Reads the values of one slot."""

    def __init__(self, slot: Slot) -> None:
        self._read = _reader_of(slot)
        self._count = counter(slot.kind)

    def parse(self, value: bytes) -> object:
        """A JSON text to a value, None when it is null and may be. Raises InvalidValue."""
        return self.read(load(value), value)

    def read(self, tree: object, text: bytes, enter: str | None = None, size: int | None = None) -> object:
        """A parsed value; text: what it was parsed from, or with `enter`, the object that has it in that member.

        size: bytes of the whole record, where that is more than `text`. Raises InvalidValue.
        """
        size = len(text) if size is None else size
        if self._count is not None and self._count(tree) > FREE_CELLS + CELLS_A_BYTE * size:
            raise InvalidValue("the value has lists of more items than a value of its size may have")
        try:
            return self._read(tree)
        except RoundedFraction:
            return self._read_slowly(text, enter)
        except Unfit as unfit:
            raise InvalidValue(str(unfit)) from None

    def _read_slowly(self, text: bytes, enter: str | None) -> object:
        """Parse once more, with fractions kept as they are written."""
        try:
            tree = json.loads(text.decode(), parse_float=_fraction, parse_int=_integer)
            return self._read(tree if enter is None else tree[enter])
        except Unfit as unfit:
            raise InvalidValue(str(unfit)) from None
        except RecursionError:
            raise InvalidValue(f"the value is nested deeper than {MAX_DEPTH} levels") from None


def _fraction(text: str) -> Decimal:
    """A number that the quick parser has read, so that it is finite."""
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent that Decimal has not: of zero, or of what is next to it
        near = Decimal(text.lower().partition("e")[0])
        return _LEAST.copy_sign(near) if near else near


def _integer(text: str) -> int | Decimal:
    """Return a whole number; one beyond 64 bits as a Decimal, whose digits JSON text can have."""
    number = int(text)
    return number if -(2**63) <= number < 2**64 else _fraction(text)


def to_default(kind: Kind, tree: object, place: Path) -> object:
    """The default that a schema gives, as a value. Raises InvalidValue, naming the place in the schema."""
    reader = ExactReader(Slot(kind))
    try:
        return reader.read(tree, orjson.dumps(tree))
    except InvalidValue as error:
        raise InvalidValue(f"the default in the schema at {show(place)} does not fit: {error}") from None
    except TypeError:  # orjson writes less depth than it reads
        raise InvalidValue(f"the default in the schema at {show(place)} is nested too deeply") from None


def _reader_of(slot: Slot) -> Read:
    """The reader of a slot: null is decided here, everything else by its kind."""
    read, default, optional = _kind_reader(slot.kind), slot.default, slot.optional

    def read_slot(value: object) -> object:
        if value is not None:
            return read(value)
        if default is not None:
            return default
        if optional:
            return None
        raise Unfit(_MAY_BE_ABSENT if slot.may_be_absent else "is null, and it is required")

    return read_slot


def _kind_reader(kind: Kind) -> Read:
    return _READERS[type(kind)](kind)


def _list_reader(kind: ListKind) -> Read:
    read = _reader_of(kind.item)

    def read_list(value: object) -> object:
        if type(value) is not list:
            raise Unfit(f"is {named(value)}, and it should be a list")
        return [_below(read, item, index) for index, item in enumerate(value)]

    return read_list


def _below(read: Read, value: object, step: str | int) -> object:
    try:
        return read(value)
    except Unfit as unfit:
        raise unfit.below(step) from None


def _struct_reader(kind: StructKind) -> Read:
    """Of a field without a default that may be missing, nothing is asked when it is."""
    others = next((field for field in kind.fields if field.slot.kind == OTHERS), None)
    if others is not None:
        return _open_struct_reader(kind, others)
    slots = [(field.name, field.slot) for field in kind.fields]
    fields = [
        (name, _reader_of(slot), slot.default is None and (slot.optional or slot.may_be_absent)) for name, slot in slots
    ]

    def read_struct(value: object) -> object:
        if type(value) is not dict:
            raise Unfit(f"is {named(value)}, and it should be an object")
        row: dict[str, object] = {}
        for name, read, absent_is_null in fields:
            if name not in value and absent_is_null:
                continue  # Arrow takes what a row lacks for null, and a long list of such rows stays small
            try:
                row[name] = read(value.get(name))
            except Unfit as unfit:
                if name not in value:
                    unfit.reason = "is missing, and it is required"
                raise unfit.below(name) from None
        return row

    return read_struct


def _open_struct_reader(kind: StructKind, others: Field) -> Read:
    """Return the reader of a struct whose field `others` takes what its other fields do not."""
    named_fields = tuple(field for field in kind.fields if field is not others)
    names = {field.name for field in named_fields}
    read_named, read_others = _struct_reader(StructKind(named_fields)), _kind_reader(others.slot.kind)

    def read_struct(value: object) -> object:
        row = read_named(value)
        assert isinstance(row, dict)
        assert isinstance(value, dict)
        unnamed = {name: below for name, below in value.items() if name not in names}
        return {**row, others.name: _below(read_others, unnamed, others.name)} if unnamed else row

    return read_struct


def _variable_decimal_reader(_kind: VariableDecimalKind) -> Read:
    read_scale = scalar_reader(ScalarKind("int32"))

    def read_variable_decimal(value: object) -> object:
        if type(value) is not dict:
            raise Unfit(f"is {named(value)}, and it should be an object (a decimal with its scale)")
        scale = _below(read_scale, value.get("scale"), "scale")
        assert isinstance(scale, int)
        digits = _below(lambda text: _check_digits(_read_bytes(text)), value.get("value"), "value")
        assert isinstance(digits, bytes)
        return to_decimal_text(digits, scale)

    return read_variable_decimal


def _map_reader(kind: MapKind) -> Read:
    read_key, read_value = _reader_of(kind.key), _reader_of(kind.value)
    to_pairs = {"object": _object_items, "pairs": _pair_items, "entries": _entry_items}[kind.form]

    def read_map(value: object) -> object:
        found: dict[str, tuple[object, object]] = {}
        for step, key, below in to_pairs(value):
            converted = _below(read_key, key, step)
            if converted is None:
                raise Unfit("has a key that is null")
            entry = (converted, _below(read_value, below, step))
            if found.setdefault(repr(converted), entry) != entry:
                raise Unfit("has a key twice")
        return list(found.values())

    return read_map


_ENTRY = {"key", "value"}
Items: TypeAlias = list[tuple[str | int, object, object]]


def _object_items(value: object) -> Items:
    if type(value) is not dict:
        raise Unfit(f"is {named(value)}, and it should be an object (a map with text for keys)")
    return [(key, key, below) for key, below in value.items()]


def _pair_items(value: object) -> Items:
    if type(value) is not list or not all(type(pair) is list and len(pair) == 2 for pair in value):
        raise Unfit("should be a list of pairs, each a list of a key and a value")
    return [(index, pair[0], pair[1]) for index, pair in enumerate(value)]


def _entry_items(value: object) -> Items:
    if type(value) is not list or not all(type(entry) is dict and entry.keys() == _ENTRY for entry in value):
        raise Unfit('should be a list of objects, each with "key" and "value"')
    return [(index, entry["key"], entry["value"]) for index, entry in enumerate(value)]


def _union_reader(kind: UnionKind) -> Read:
    return union_reader(kind, [_kind_reader(branch.slot.kind) for branch in kind.fields])


def _text_reader(kind: TextKind) -> Read:
    wanted = TEXTS.get(kind.content)

    def read_text(value: object) -> object:
        if wanted is not None and type(value) is not wanted:
            raise Unfit(f"is {named(value)}, and it should be {NAMES[wanted]}")
        _check_text(value, 1)
        return orjson.dumps(value, default=lambda number: orjson.Fragment(str(number))).decode()

    return read_text


def _check_text(value: object, depth: int) -> None:
    """Raise RoundedFraction for a float, which may not be what is written, and Unfit for excess depth."""
    if type(value) is float:
        raise RoundedFraction
    if not isinstance(value, dict | list):
        return
    if depth > MAX_DEPTH:
        raise Unfit(f"is nested deeper than {MAX_DEPTH} levels")
    for below in value.values() if isinstance(value, dict) else value:
        _check_text(below, depth + 1)


_READERS: dict[type[Kind], Callable[..., Read]] = {
    ScalarKind: scalar_reader,
    DecimalKind: decimal_reader,
    VariableDecimalKind: _variable_decimal_reader,
    ListKind: _list_reader,
    MapKind: _map_reader,
    StructKind: _struct_reader,
    UnionKind: _union_reader,
    TextKind: _text_reader,
}
