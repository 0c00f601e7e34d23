"""What became of one record, in one form for both sides, and how two of them differ."""

import base64
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, Final

import numpy as np

Value = Any
"""None, or a tuple that begins with the name of a class: ("Long", 5), ("Map", ((key, value), ...))."""
Schema = Any
"""None where there is none, or a tuple: type, logical type, whether optional, then what is below."""

_EXACT: Final = Context(prec=100)

UNREAD: Final = "not read"
"""Stands for a key, or headers, that no transform asked for."""


@dataclass(frozen=True)
class Row:
    """A record that came out. A schema is None where the value is null, or has none."""

    topic: str
    value: Value
    value_schema: Schema
    key: Value
    key_schema: Schema
    headers: tuple[tuple[str, Value], ...] | str


@dataclass(frozen=True)
class Dropped:
    """A record that a transform took out."""


@dataclass(frozen=True)
class Failed:
    """A record that could not be decoded or transformed. stage: where; why: for who reads the report, not compared."""

    stage: str
    why: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Failed) and other.stage == self.stage

    def __hash__(self) -> int:
        return hash(self.stage)


@dataclass(frozen=True)
class Refused:
    """A configuration that is not taken: then none of the case's records has an outcome."""

    why: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Refused)

    def __hash__(self) -> int:
        return 0


Outcome = Row | Dropped | Failed
Outcomes = Refused | list[Outcome]


def of_kafka(answer: Mapping[str, Any]) -> Outcomes:
    """What the Java driver said."""
    if "refused" in answer:
        return Refused(f"{answer['refused']}: {answer['message']}")
    return [_of_kafka(record) for record in answer["records"]]


def _of_kafka(record: Mapping[str, Any]) -> Outcome:
    if "error" in record:
        return Failed(record["stage"], f"{record['error']}: {record['message']}")
    if "dropped" in record:
        return Dropped()
    value, key = _value(record["value"]), _value(record["key"])
    return Row(
        record["topic"],
        value,
        None if value is None else _top(_schema(record["value_schema"])),
        key,
        None if key is None else _top(_schema(record["key_schema"])),
        tuple((name, _value(value)) for name, value, _ in record["headers"]),
    )


def _value(found: Any) -> Value:
    if found is None:
        return None
    tag, content = found
    return (tag, *_READ.get(tag, _whole)(content))


def _decimal(content: str) -> tuple[int, int]:
    digits, _, scale = content.partition("/")
    return int(digits), int(scale)


def _whole(content: str) -> tuple[int]:
    return (int(content),)


def _fraction(content: str) -> tuple[str]:
    return (bits(float(content)),)


_READ: Final[Mapping[str, Callable[[Any], tuple[Any, ...]]]] = {
    "Struct": lambda content: (tuple((name, _value(value)) for name, value in content),),
    "Map": lambda content: (in_order((_value(key), _value(value)) for key, value in content),),
    "List": lambda content: (tuple(_value(value) for value in content),),
    "Bytes": lambda content: (base64.b64decode(content),),
    "Boolean": lambda content: (content == "true",),
    "Float": lambda content: (bits(float(np.float32(content))),),
    "Double": _fraction,
    "BigDecimal": _decimal,
    "String": lambda content: (content,),
}


def in_order(pairs: Any) -> tuple[tuple[Value, Value], ...]:
    """Entries of a map, which has no order."""
    return tuple(sorted(pairs, key=repr))


def bits(number: float) -> str:
    """Equal for equal numbers: 0.0 is not -0.0, and NaN is itself."""
    return "NaN" if number != number else struct.pack(">d", number).hex()  # noqa: PLR0124


def decimal(number: Decimal, scale: int) -> Value:
    """As `java.math.BigDecimal` holds it."""
    return "BigDecimal", int(number.scaleb(scale, _EXACT)), scale


def _schema(found: Any) -> Schema:
    if found is None:
        return None
    name = found.get("name", "").removeprefix("org.apache.kafka.connect.data.")
    logical = name if name in ("Date", "Time", "Timestamp", "Decimal") else ""
    below: tuple[Any, ...] = ()
    if "fields" in found:
        below = tuple((name, _schema(one)) for name, one in found["fields"])
    elif "items" in found:
        below = (_schema(found["items"]),)
    elif "keys" in found:
        below = (_schema(found["keys"]), _schema(found["values"]))
    elif logical == "Decimal":
        below = (int(found["scale"]),)
    return found["type"], logical, found["optional"], *below


def _top(schema: Schema) -> Schema:
    """The schema of a value that is there: whether it might have been null does not matter."""
    return None if schema is None else (*schema[:2], False, *schema[3:])


def widened(found: Any) -> Any:
    """With int32 for whole numbers of 8 and 16 bits, at every depth of a value or a schema."""
    if not isinstance(found, tuple):
        return found
    if found[:1] in (("Byte",), ("Short",)):
        return "Integer", found[1]
    if found[:1] in (("int8",), ("int16",)) and len(found) > 1:
        return "int32", *found[1:]
    return tuple(widened(one) for one in found)


def scaled(found: Any) -> Any:
    """With the number in place of digits and scale, for each decimal."""
    if not isinstance(found, tuple):
        return found
    if found[:1] == ("BigDecimal",) and len(found) == 3:
        return "BigDecimal", str(Decimal(found[1]).scaleb(-found[2], _EXACT).normalize(_EXACT))
    return tuple(scaled(one) for one in found)


def untyped(found: Value) -> Value:
    """A header's list or map as JSON has it: what JSON has no word for is text, whichever; so are texts like that.

    Maps whose keys are not all text are lists of pairs.
    """
    if not isinstance(found, tuple) or found[0] not in ("List", "Map"):
        return found
    return _untyped(found)


def _untyped(found: Value) -> Value:
    if found is None:
        return None
    tag, *content = found
    if tag == "List":
        items = tuple(_untyped(one) for one in content[0])
        pairs = all(one is not None and one[0] == "List" and len(one[1]) == 2 for one in items)
        return tag, tuple(sorted(items, key=repr)) if pairs else items
    if tag == "Map":
        pairs = [(_untyped(key), _untyped(value)) for key, value in content[0]]
        if all(key is not None and key[0] in ("String", "Text") for key, _ in pairs):
            return tag, in_order(pairs)
        return "List", tuple(sorted((("List", pair) for pair in pairs), key=repr))
    if tag in ("Date", "BigDecimal") or (tag == "String" and _TEXT_OF_MORE.fullmatch(content[0])):
        return ("Text",)
    return schemaless(found)


_TEXT_OF_MORE: Final = re.compile(r"[+-]?\d{4,}-\d\d-\d\d(T.*)?|\d\d:\d\d:\d\d.*|[+-]?[\d.]+([eE][+-]?\d+)?")


def schemaless(found: Any) -> Any:
    """With one whole number and one fraction, as JSON has: the sizes of numbers without a schema are not told apart."""
    if not isinstance(found, tuple):
        return found
    if found[:1] in (("Byte",), ("Short",), ("Integer",), ("Long",)):
        return "Long", found[1]
    if found[:1] == ("Float",):
        return "Double", found[1]
    return tuple(schemaless(one) for one in found)
