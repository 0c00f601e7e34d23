"""Forms in which a record of Kafka Connect and ours are the same, each with the reason why they differ otherwise."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from integration.transforms.cases import Case
from integration.transforms.examples import example, typed
from integration.transforms.outcome import UNREAD, Row, Schema, scaled, schemaless, untyped, widened


@dataclass(frozen=True)
class Form:
    """Two records that are the same in this form differ by nothing but what the reason says.

    transforms: whose records may; all where none is named.
    """

    name: str
    reason: str
    of: Callable[[Row], Row]
    example: Case
    transforms: tuple[str, ...] = ()

    def concerns(self, case: Case) -> bool:
        """Whether one of the case's transforms may differ so."""
        return not self.transforms or any(step.name.partition("$")[0] in self.transforms for step in case.steps)


def _numbers(row: Row) -> Row:
    """Without a schema the sizes of numbers are not told apart."""
    found = row
    if row.value_schema is None:
        found = replace(found, value=schemaless(row.value))
    if row.key_schema is None and row.key != UNREAD:
        found = replace(found, key=schemaless(row.key))
    if isinstance(row.headers, str):
        return found
    return replace(found, headers=tuple((name, schemaless(value)) for name, value in row.headers))


def _headers(row: Row) -> Row:
    if isinstance(row.headers, str):
        return row
    return replace(row, headers=tuple((name, untyped(value)) for name, value in row.headers))


def _nameless(row: Row) -> Row:
    return replace(row, value_schema=_plain(row.value_schema), key_schema=_plain(row.key_schema))


def _plain(schema: Schema) -> Schema:
    if not isinstance(schema, tuple):
        return schema
    return (schema[0], "", schema[2]) if schema[1] == "Decimal" else (schema[0], "", *schema[2:])


def _optional(row: Row) -> Row:
    return replace(row, value_schema=_all_optional(row.value_schema), key_schema=_all_optional(row.key_schema))


def _all_optional(found: Any) -> Any:
    if not isinstance(found, tuple):
        return True if isinstance(found, bool) else found
    return tuple(_all_optional(one) for one in found)


def _decimals(row: Row) -> Row:
    return replace(row, value=scaled(row.value), key=scaled(row.key))


def _small(row: Row) -> Row:
    headers = row.headers if isinstance(row.headers, str) else tuple((name, widened(one)) for name, one in row.headers)
    return Row(
        row.topic, widened(row.value), widened(row.value_schema), widened(row.key), widened(row.key_schema), headers
    )


FORMS: Final = (
    Form(
        "numbers without a schema",
        "rows have no smaller whole number than int32, and what was added to a record is as JSON has it",
        _numbers,
        example("Cast$Value", {"spec": "a:int8"}, b'{"a": 300}'),
    ),
    Form(
        "lists and maps of headers",
        "a list of values of several types has none, in Connect neither: it is kept as JSON has it, dates as text",
        _headers,
        example("InsertHeader", {"header": "h", "value.literal": '["x","2020-01-01"]'}, b"{}"),
    ),
    Form(
        "the name of a whole value's schema",
        "Connect's Cast of a whole Date leaves its name on the new type, which its converters misread; ours has none",
        _nameless,
        example("Cast$Value", {"spec": "string"}, typed(1, "int32", "Date")),
    ),
    Form(
        "decimals that MaskField made",
        "Connect puts a decimal of scale 0 into a column of any scale, which its converters cannot write; ours fits",
        _decimals,
        example(
            "MaskField$Value", {"fields": "a"}, typed({"a": "AQ=="}, "bytes", "Decimal", parameters={"scale": "2"})
        ),
    ),
    Form(
        "fields of a record that may be null",
        "Connect passes on that a whole record may be null; no type here says so of one that is there",
        _optional,
        example("HoistField$Value", {"field": "a"}, typed({"b": 1}, "int32").replace(b"false", b"true")),
        ("HoistField", "Flatten"),
    ),
    Form(
        "int8 and int16",
        "columns have no smaller whole number than int32 (convert/decoded.py)",
        _small,
        example("ReplaceField$Value", {"exclude": "b"}, typed({"a": 1, "b": 2}, "int8")),
    ),
)
