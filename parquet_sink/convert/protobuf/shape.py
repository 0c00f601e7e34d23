"""How the values of a Protobuf message are read, as a tree that follows its columns."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from parquet_sink.convert.protobuf.expansion import Growth
from parquet_sink.convert.protobuf.values import Convert


@dataclass(frozen=True)
class Scalar:
    """One value. convert: from what the library gives; check: what Arrow would refuse as well, in words."""

    arrow: pa.DataType
    convert: Convert | None = None
    check: Convert | None = None


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


@dataclass(frozen=True)
class Plan:
    """A message type. required: it has fields without which it is invalid, anywhere below. growth: see there."""

    name: str
    shape: Shape
    message: Any
    required: bool
    growth: Growth
