"""Types of JSON values that have a schema: what the envelope and JSON Schema are both turned into.

They also bound how far a value may grow on its way to columns: `{}` in a list can stand for 2,500 nulls. A cell is
about 8 bytes of a column. A record costs the cells of its own fields, which its schema bounds, and those of the items
of its lists and maps, of which it may have FREE_CELLS and CELLS_A_BYTE more for each of its bytes. Only types whose
items can be that much larger than their text are counted.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import pyarrow as pa

from parquet_sink.convert.decimals import fit_decimal
from parquet_sink.convert.decoded import DEFAULT_PRECISION, MAX_DEPTH, MAX_PRECISION, decimal_type
from parquet_sink.convert.invalid import InvalidValue, Path, show

MAX_FIELDS = 2_500
"""Fields of all structs of one schema together."""

MAX_DEFAULTS = 20_000
"""Bytes of all defaults of one schema together: they stand in each record that has no value of its own."""

MILLIS_PER_DAY = 86_400_000

DATE = "org.apache.kafka.connect.data.Date"
TIME = "org.apache.kafka.connect.data.Time"
TIMESTAMP = "org.apache.kafka.connect.data.Timestamp"
DECIMAL = "org.apache.kafka.connect.data.Decimal"
VARIABLE_DECIMAL = "io.debezium.data.VariableScaleDecimal"
PRECISION_PARAMETER = "connect.decimal.precision"

ScalarName = Literal[
    "int8",
    "int16",
    "int32",
    "int64",
    "float32",
    "float64",
    "boolean",
    "string",
    "bytes",
    "date",
    "time",
    "timestamp",
    "null",
]


@dataclass(frozen=True)
class ScalarKind:
    """One value. bytes: base64 text. date: days. time, timestamp: milliseconds."""

    name: ScalarName


@dataclass(frozen=True)
class DecimalKind:
    """Base64 text of the unscaled value (two's complement, big endian), or a JSON number.

    zeros: behind the unscaled value, where the schema has a negative scale and the column has 0.
    """

    precision: int
    scale: int
    zeros: int = 0


@dataclass(frozen=True)
class VariableDecimalKind:
    """Debezium's object of `scale` and `value`, base64 text of the unscaled value: text of all digits."""


@dataclass(frozen=True)
class ListKind:
    """A JSON array."""

    item: "Slot"


@dataclass(frozen=True)
class MapKind:
    """object: a JSON object, keys being text. pairs: an array of [key, value]. entries: of {"key":..., "value":...}."""

    key: "Slot"
    value: "Slot"
    form: Literal["object", "pairs", "entries"]


@dataclass(frozen=True)
class StructKind:
    """A JSON object; fields that are not named here are ignored, unless a field holds the JSON text of the others."""

    fields: tuple["Field", ...]


@dataclass(frozen=True)
class UnionKind:
    """A value of one of several types: a struct with a field for each, all optional, of which one is not null."""

    fields: tuple["Field", ...]


@dataclass(frozen=True)
class TextKind:
    """JSON text of a value whose type the schema leaves open.

    content: which values it takes. others: those fields of the object around it that the schema does not name.
    """

    content: Literal["anything", "object", "list", "others"] = "anything"


OTHERS = TextKind("others")

Kind: TypeAlias = (
    ScalarKind | DecimalKind | VariableDecimalKind | ListKind | MapKind | StructKind | UnionKind | TextKind
)


@dataclass(frozen=True)
class Slot:
    """A place for a value.

    optional: null is allowed. default: what null stands for, as `exact` gives values; None: nothing.
    may_be_absent: a missing field is null, although a null that is written is not allowed.
    """

    kind: Kind
    optional: bool = False
    default: object = None
    may_be_absent: bool = False

    @property
    def nullable(self) -> bool:
        """Whether the column may hold nulls."""
        return self.optional or (self.may_be_absent and self.default is None)


@dataclass(frozen=True)
class Field:
    """A slot with a name, in a struct or a union."""

    name: str
    slot: Slot


SCALARS: dict[ScalarName, pa.DataType] = {
    "int8": pa.int32(),
    "int16": pa.int32(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "date": pa.date32(),
    "time": pa.time32("ms"),
    "timestamp": pa.timestamp("ms", "UTC"),
    "null": pa.null(),
}


def to_arrow(kind: Kind) -> pa.DataType:
    """The type of a column, as `convert.decoded` lists them; a field is nullable when its slot is."""
    if isinstance(kind, ScalarKind):
        return SCALARS[kind.name]
    if isinstance(kind, DecimalKind):
        return decimal_type(kind.precision, kind.scale)
    if isinstance(kind, TextKind | VariableDecimalKind):
        return pa.string()
    if isinstance(kind, ListKind):
        return pa.list_(_to_field("item", kind.item))
    if isinstance(kind, MapKind):
        return pa.map_(_to_field("key", kind.key).with_nullable(False), _to_field("value", kind.value))
    return pa.struct([_to_field(field.name, field.slot) for field in kind.fields])


def decimal_kind(parameters: dict[str, object], place: Path) -> DecimalKind:
    """Return a decimal by the parameters of its schema. Raise InvalidValue if one is missing or out of bounds."""
    scale = _number(parameters.get("scale"))
    if scale is None or abs(scale) > MAX_PRECISION:
        raise InvalidValue(
            f"the schema at {show(place)} needs a scale from -{MAX_PRECISION} to {MAX_PRECISION} for its decimal"
        )
    given = _number(parameters.get(PRECISION_PARAMETER, DEFAULT_PRECISION))
    if given is None or not 1 <= given <= MAX_PRECISION:
        raise InvalidValue(f"the schema at {show(place)} needs a precision from 1 to {MAX_PRECISION} for its decimal")
    return DecimalKind(*fit_decimal(given, scale), max(-scale, 0))


def kinds(kind: Kind) -> Iterator[Kind]:
    """The kind and all below it."""
    yield kind
    for slot in _slots(kind):
        yield from kinds(slot.kind)


def _slots(kind: Kind) -> tuple[Slot, ...]:
    """What is directly below."""
    if isinstance(kind, ListKind):
        return (kind.item,)
    if isinstance(kind, MapKind):
        return (kind.key, kind.value)
    return tuple(field.slot for field in kind.fields) if isinstance(kind, StructKind | UnionKind) else ()


class Limits:
    """Counts what a schema has while it is parsed; one for each schema."""

    def __init__(self) -> None:
        self._fields = 0
        self._defaults = 0

    def enter(self, place: Path, depth: int) -> None:
        """A type, `depth` levels down (the record: 1). Raises InvalidValue."""
        if depth > MAX_DEPTH:
            raise InvalidValue(f"the schema is nested deeper than {MAX_DEPTH} levels, at {show(place)}")

    def add_fields(self, count: int) -> None:
        """Fields of one more struct. Raises InvalidValue."""
        self._fields += count
        if self._fields > MAX_FIELDS:
            raise InvalidValue(f"the schema has more than {MAX_FIELDS:,} fields")

    def add_default(self, value: object) -> None:
        """One more default, as `exact` gives it. Raises InvalidValue."""
        self._defaults += CELL_BYTES * cost(value)
        if self._defaults > MAX_DEFAULTS:
            raise InvalidValue(f"the schema has defaults of more than {MAX_DEFAULTS:,} bytes")


def _to_field(name: str, slot: Slot) -> pa.Field:
    return pa.field(name, to_arrow(slot.kind), nullable=slot.nullable)


def _number(parameter: object) -> int | None:
    """Parameters are text in Connect, and sometimes numbers in what people write."""
    if isinstance(parameter, int) and not isinstance(parameter, bool):
        return parameter
    if isinstance(parameter, str) and len(parameter) < 10 and _WHOLE.fullmatch(parameter):
        return int(parameter)
    return None


_WHOLE = re.compile(r"-?[0-9]+")
CELLS_A_BYTE = 32
FREE_CELLS = 2_500
CELL_BYTES = 8
_NAME_CELL = 16
"""Characters of a field's name that count as a cell: where lists become text, each item has all names in it."""

_LEAST_BYTES = 2
"""Of an item: a digit and a comma."""

Count: TypeAlias = Callable[[object], int]


def counter(kind: Kind) -> Count | None:
    """What counts the cells of items in a parsed value; None where they are in proportion to its text anyway.

    It looks at what is there and judges nothing.
    """
    if isinstance(kind, StructKind):
        return _struct([(field.name, found) for field in kind.fields if (found := counter(field.slot.kind))])
    below = _sum([found for slot in _slots(kind) if (found := counter(slot.kind)) is not None])
    if isinstance(kind, ListKind | MapKind):
        inside = _elements if isinstance(kind, ListKind) else _entries
        return _items(sum(map(_cells, _slots(kind))), below, inside)
    return below


def cost(value: object) -> int:
    """Cells of a value as `exact` gives it, at the least."""
    if isinstance(value, str | bytes):
        return 1 + len(value) // CELL_BYTES
    if isinstance(value, dict):
        return 1 + sum(map(cost, value.values()))
    return 1 + sum(map(cost, value)) if isinstance(value, list | tuple) else 1


def _cells(slot: Slot) -> int:
    """What one value of a slot may cost, less the items below it."""
    kind = slot.kind
    own = 1
    if isinstance(kind, StructKind | UnionKind):
        for field in kind.fields:
            own += _cells(field.slot) + len(field.name) // _NAME_CELL
    return own if slot.default is None else own + cost(slot.default)


def _items(each: int, below: Count | None, inside: Callable[[object], Iterable[object]]) -> Count | None:
    counted = each if each > _LEAST_BYTES * CELLS_A_BYTE else 0
    if below is None:
        return (lambda value: counted * len(value) if isinstance(value, list | dict) else 0) if counted else None

    def count(value: object) -> int:
        own = counted * len(value) if isinstance(value, list | dict) else 0
        return own + sum(map(below, inside(value)))

    return count


def _elements(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else ()


def _entries(value: object) -> Iterable[object]:
    """The values of a map's entries, and its keys, in whatever form it is written."""
    if isinstance(value, dict):
        yield from value.values()
    for entry in value if isinstance(value, list) else ():
        yield from entry.values() if isinstance(entry, dict) else _elements(entry)


def _struct(members: list[tuple[str, Count]]) -> Count | None:
    def count(value: object) -> int:
        return sum(below(value.get(name)) for name, below in members) if isinstance(value, dict) else 0

    return count if members else None


def _sum(counts: list[Count]) -> Count | None:
    return (lambda value: sum(count(value) for count in counts)) if counts else None
