"""What every converter gives: decoded records, as columns or as trees.

A decoder takes the values of one topic and says of each what became of it:

- it is in exactly one piece: it is decoded;
- it is in `invalid`: it has no row, and this is why;
- it is in neither: it is a tombstone in its format (JSON `null`, a null datum), which has no row either.

Columns have these Arrow types only, so that what follows needs to know no format:

    Connect's type                                 Arrow
    int8, int16, int32                             int32
    int64                                          int64
    float32, float64                               float32, float64
    boolean                                        bool
    string, enum, uuid                             string (valid UTF-8, always)
    bytes, fixed                                   binary
    Date                                           date32
    Time (milliseconds of a day)                   time32[ms]
    Timestamp (milliseconds)                       timestamp[ms, UTC]
    Decimal(precision, scale)                      decimal128 up to precision 38, else decimal256
    array, map, struct                             list, map (keys of any type), struct
    a field that can only be null                  null

Microsecond times and timestamps are plain int64, as Connect has them. A field is nullable exactly when it is optional.
Names of fields in a struct are not empty and differ from each other. A record is a struct; whatever else comes (text,
a number, a list, a map) is handed on as it is, and what follows judges it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, Self, TypeVar, runtime_checkable

import pyarrow as pa

from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.errors import ConnectorError

MAX_DEPTH: Final = 100
"""Levels of records, lists and maps in each other, the record itself being the first: in values and in schemas."""

MAX_PRECISION: Final = 76
"""Digits of a decimal that Arrow can hold."""

DEFAULT_PRECISION: Final = 64
"""Digits of a decimal whose schema does not say it, as Confluent's AvroData assumes."""

_MOST_DIGITS_IN_128_BITS = 38

Tree = dict[str, object]
"""A record without a schema: dict, list, str, int within int64, finite float, bool and None below.

Transforms may leave `Int32` and `Float32`, and Arrow scalars for dates, times and timestamps.
"""


class Int32(int):
    """A whole number of a record without a schema that a transform made one of 32 bits, and its column int32."""

    __slots__ = ()


class Float32(float):
    """Likewise a fraction, which 32 bits hold."""

    __slots__ = ()


class LongFraction(float):
    """A fraction of a record without a schema that 64 bits round, where it becomes text; text: as it is written.

    It stands in lists, and in records that become text as a whole, of topics without transforms.
    """

    __slots__ = ("text",)

    def __new__(cls, number: float, text: str) -> Self:
        """Keep both."""
        fraction = super().__new__(cls, number)
        fraction.text = text
        return fraction

    text: str


@dataclass(frozen=True)
class SchemaColumns:
    """Records of one schema. positions: int64, increasing, where each stands in the input; rows: one for each.

    No row is null; null fields are. After transforms a position may come several times, one after the other: a record
    that has become several rows, all of which are in one piece.
    """

    positions: pa.Int64Array
    rows: pa.Array


@dataclass(frozen=True)
class Untyped:
    """Records without a schema. positions: as in `SchemaColumns`; trees: one for each.

    Each is a non-empty `Tree`; where any tree was asked for (`Reading.any_tree`) and after transforms it may be any
    value that can stand in one, but null. Transforms may also leave dates, times and timestamps, as Arrow scalars of
    the types above.
    """

    positions: pa.Int64Array
    trees: Sequence[object]


@dataclass(frozen=True)
class InferredColumns:
    """Records without a schema that were read as columns all the same: the same records as `tree` gives one by one.

    positions: as in `SchemaColumns`, each once. rows: structs, none null, with fields of int64, float64, bool, string,
    null and structs of these, after transforms also of dates, times and timestamps; a field that a record lacks is
    null, like one that it has as null. tree: the record at an index of `rows`.
    lists: fields that may be lists, or hold some below: their text may be the JSON text of a list, of a record that
    `Reading.rewrite` has passed; where lists are discarded, they are null.
    """

    positions: pa.Int64Array
    rows: pa.StructArray
    tree: Callable[[int], Tree]
    lists: frozenset[str] = frozenset()


Piece = SchemaColumns | Untyped | InferredColumns
"""Decoded records of one kind."""

Typed = SchemaColumns
"""Its former name, by which plug-ins import it."""
Trees = Untyped
"""Its former name, by which plug-ins import it."""
Inferred = InferredColumns
"""Its former name, by which plug-ins import it."""


@dataclass(frozen=True)
class Decoded:
    """Everything that was in some values. invalid: by position, why a value has no row, without its content."""

    pieces: tuple[Piece, ...] = ()
    invalid: Mapping[int, str] = field(default_factory=dict)


class Decoder(Protocol):
    """Bytes of records to `Decoded`. One bad value never changes what becomes of the others."""

    def decode(self, values: pa.BinaryArray) -> Decoded:
        """values: no nulls. Raises ConnectorError only for what is not a record's fault (the registry is away)."""
        ...


@dataclass(frozen=True)
class Reading:
    """What is made of records without a schema, as far as it decides how they may be read.

    as_trees: each is needed as a tree. anything: values that are no object are given, too, as text. any_tree: they are
    given as trees, and so is an empty object, because transforms may make a record of them. discard_lists:
    lists are left out of `InferredColumns.rows`; else they stand there as JSON text. rewrite: what is done to a record
    before its lists become text. ignore_case: names that differ in case alone become one.
    """

    as_trees: bool = False
    anything: bool = False
    any_tree: bool = False
    discard_lists: bool = False
    rewrite: Callable[[Tree], Tree] | None = None
    ignore_case: bool = False


@runtime_checkable
class LearningDecoder(Decoder, Protocol):
    """Reads a topic's records faster by what it learned of them; what they become never depends on it."""

    def for_topic(self, reading: Reading, learned: bytes | None) -> "LearningDecoder":
        """One that serves a single topic. learned: another's `learned`; anything else is ignored."""
        ...

    @property
    def learned(self) -> bytes | None:
        """What to begin with the next time; None for nothing."""
        ...

    def forget(self) -> None:
        """Learn again: most records that were given as columns had to be taken as trees."""
        ...


@runtime_checkable
class OwnDecoder(Decoder, Protocol):
    """A decoder of a user's class."""

    def failed(self, where: str, what: str) -> ConnectorError:
        """What is raised when it did something that it must not. what: with the verb, `left a Decimal in ...`."""
        ...


T = TypeVar("T")


def one_by_one(values: pa.BinaryArray, read: Callable[[bytes], T | None]) -> tuple[list[int], list[T], dict[int, str]]:
    """Positions of values, what each is read as (`None` is left out), and by position why others are InvalidValue."""
    positions: list[int] = []
    found: list[T] = []
    invalid: dict[int, str] = {}
    for position, value in enumerate(values.to_pylist()):
        try:
            one = read(value)
        except InvalidValue as error:
            invalid[position] = str(error)
            continue
        if one is not None:
            positions.append(position)
            found.append(one)
    return positions, found, invalid


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """The type of a column of decimals: 128 bits where they suffice."""
    make = pa.decimal128 if precision <= _MOST_DIGITS_IN_128_BITS else pa.decimal256
    return make(precision, scale)
