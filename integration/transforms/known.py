"""What may differ between Kafka Connect's transforms and ours, each with its reason; everything else is a fault.

Each difference has an example, in which it must occur: so this list cannot rot.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from integration.transforms.cases import Case, Record, Step
from integration.transforms.outcome import (
    UNREAD,
    Failed,
    Outcome,
    Outcomes,
    Refused,
    Row,
    Schema,
    Value,
    scaled,
    schemaless,
    untyped,
    widened,
)


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


@dataclass(frozen=True)
class Known:
    """Outcomes that differ for a reason. test: of the case, the record's place in it, Kafka's outcome and ours."""

    name: str
    reason: str
    test: Callable[[Case, int, Outcome, Outcome], bool]
    example: Case


_PACKAGE: Final = "org.apache.kafka.connect.transforms."


def _example(type_: str, keys: Mapping[str, str], *values: bytes, timestamp: int | None = 1, **more: Any) -> Case:
    records = tuple(Record(b'{"k": 1}', value, (), timestamp) for value in values)
    return Case((Step(_PACKAGE + type_, keys),), records, value_schemas=values[0].startswith(b'{"schema"'), **more)


def _typed(payload: object, type_: str, name: str = "", **more: Any) -> bytes:
    """An envelope of one value; of a field `a`, where the payload is an object."""
    kind = {"type": type_, "optional": True, **more, **({"name": _DATA + name, "version": 1} if name else {})}
    if isinstance(payload, dict):
        kind = {"type": "struct", "optional": False, "fields": [{"field": field, **kind} for field in payload]}
    return json.dumps({"schema": kind, "payload": payload}).encode()


_BELOW_NULL: Final = (
    b'{"schema": {"type": "struct", "optional": false, "fields": [{"field": "a", "type": "struct", "optional": true, '
    b'"fields": [{"field": "b", "type": "int32", "optional": true, "default": 5}]}]}, "payload": {"a": null}}'
)
_DATA: Final = "org.apache.kafka.connect.data."


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


def _null_with_schema(case: Case, at: int, theirs: Outcome, ours: Outcome) -> bool:
    """A null in an envelope, or one that was extracted, and then hoisted or looked into."""
    record = case.records[at]
    if any(_is_null(data) for data in (record.key, record.value)):
        return True
    if not isinstance(ours, Row) or not _has(case, "ExtractField"):
        return False
    if isinstance(theirs, Failed):
        return ours.value is None or ours.key is None
    return isinstance(theirs, Row) and _has(case, "HoistField") and _none_alone(theirs, ours)


def _none_alone(theirs: Row, ours: Row) -> bool:
    pairs = ((theirs.value, ours.value), (theirs.key, ours.key))
    return any(
        isinstance(one, tuple) and isinstance(other, tuple) and one[0] == "Struct" and other[0] == "Map"
        for one, other in pairs
    )


def _lacks_defaults(case: Case, at: int, theirs: Outcome, ours: Outcome) -> bool:
    """Whether ours has nulls where Flatten found defaults of fields below a null, and nothing else differs."""
    if not (isinstance(theirs, Row) and isinstance(ours, Row) and _has(case, "Flatten")):
        return False
    same = _same_or_null(theirs.value, ours.value) and _same_or_null(theirs.key, ours.key)
    return same and _has_default(case.records[at])


def _same_or_null(theirs: Any, ours: Any) -> bool:
    if not isinstance(theirs, tuple) or not isinstance(ours, tuple) or len(theirs) != len(ours):
        return ours is None or theirs == ours
    return all(_same_or_null(*pair) for pair in zip(theirs, ours, strict=True))


def _is_null(data: bytes | None) -> bool:
    return data is not None and data.startswith(b'{"schema"') and data.endswith(b'"payload": null}')


def _why(outcome: Outcome) -> str:
    return outcome.why if isinstance(outcome, Failed) else ""


def _has(case: Case, name: str, key: str = "") -> bool:
    return any(step.name.partition("$")[0] == name and (not key or key in step.keys) for step in case.steps)


def _has_default(record: Record) -> bool:
    return any(b'"default"' in (data or b"") for data in (record.key, record.value))


def _fails_by_default(case: Case, at: int, theirs: Outcome, ours: Outcome) -> bool:
    fails = isinstance(theirs, Failed) and isinstance(ours, Row)
    return fails and _has(case, "Cast") and _has_default(case.records[at])


def _without_renamed(case: Case, at: int, theirs: Outcome, ours: Outcome) -> bool:
    """Whether two rows are equal but for fields that several fields became."""
    if not isinstance(theirs, Row) or not isinstance(ours, Row):
        return False
    pairs = [pair.split(":") for step in case.steps for pair in step.keys.get("renames", "").split(",") if ":" in pair]
    names = {("String", pair[-1].strip()) for pair in pairs}
    one, other = (
        replace(row, value=_less(row.value, names), key=_less(row.key, names), headers=()) for row in (theirs, ours)
    )
    return bool(names) and one == other


def _less(value: Value, names: set[tuple[str, str]]) -> Value:
    if not isinstance(value, tuple) or value[0] != "Map":
        return value
    return "Map", tuple(pair for pair in value[1] if pair[0] not in names)


def _wrapped(theirs: object, ours: object) -> bool:
    """Whether two rows, or parts of them, differ by whole numbers that were wrapped alone."""
    if isinstance(theirs, Row) and isinstance(ours, Row):
        pairs = ((theirs.value, ours.value), (theirs.key, ours.key))
        return all(_wrapped(*pair) for pair in pairs) and theirs.headers == ours.headers
    if not isinstance(theirs, tuple) or not isinstance(ours, tuple) or len(theirs) != len(ours):
        return theirs == ours
    if ours[:1] == ("Integer",) and isinstance(ours[1], int):
        return theirs[1] in (ours[1], *((ours[1] + half) % (2 * half) - half for half in (2**7, 2**15)))
    return all(_wrapped(*pair) for pair in zip(theirs, ours, strict=True))


def _at_zero(case: Case, at: int, theirs: Outcome, ours: Outcome) -> bool:
    asked = _has(case, "InsertField", "timestamp.field") or _has(case, "TimestampRouter")
    return case.records[at].timestamp == 0 and asked


FORMS: Final = (
    Form(
        "numbers without a schema",
        "JSON has one whole number and one fraction: what Cast made of one as int8 is written as any whole number",
        _numbers,
        _example("Cast$Value", {"spec": "a:int8"}, b'{"a": 300}'),
    ),
    Form(
        "lists and maps of headers",
        "a list of values of several types has none, in Connect neither: it is kept as JSON has it, dates as text",
        _headers,
        _example("InsertHeader", {"header": "h", "value.literal": '["x","2020-01-01"]'}, b"{}"),
    ),
    Form(
        "the name of a whole value's schema",
        "Connect's Cast of a whole Date leaves its name on the new type, which its converters misread; ours has none",
        _nameless,
        _example("Cast$Value", {"spec": "string"}, _typed(1, "int32", "Date")),
    ),
    Form(
        "decimals that MaskField made",
        "Connect puts a decimal of scale 0 into a column of any scale, which its converters cannot write; ours fits",
        _decimals,
        _example(
            "MaskField$Value", {"fields": "a"}, _typed({"a": "AQ=="}, "bytes", "Decimal", parameters={"scale": "2"})
        ),
    ),
    Form(
        "fields of a record that may be null",
        "Connect passes on that a whole record may be null; no type here says so of one that is there",
        _optional,
        _example("HoistField$Value", {"field": "a"}, _typed({"b": 1}, "int32").replace(b"false", b"true")),
        ("HoistField", "Flatten"),
    ),
    Form(
        "int8 and int16",
        "columns have no smaller whole number than int32 (convert/decoded.py)",
        _small,
        _example("ReplaceField$Value", {"exclude": "b"}, _typed({"a": 1, "b": 2}, "int8")),
    ),
)

KNOWN: Final = (
    Known(
        "defaults of changed types",
        "Connect casts the default of the schema, too, and fails where that does not fit; types here keep none",
        _fails_by_default,
        _example("Cast$Value", {"spec": "a:int32"}, _typed({"a": "12"}, "string", default="abc")),
    ),
    Known(
        "defaults below a null",
        "Connect's Flatten gives fields of a null record their defaults; types here keep none, and they are null",
        _lacks_defaults,
        _example("Flatten$Value", {}, _BELOW_NULL),
    ),
    Known(
        "two fields of one name, without a schema",
        "Connect takes fields in the order of a Java HashMap, so chance decides which one is kept; ours the last",
        _without_renamed,
        _example("ReplaceField$Value", {"renames": "Upper:ts"}, b'{"Upper": 1, "ts": 2}', b'{"ts": 2, "Upper": 1}'),
    ),
    Known(
        "a required field that InsertField cannot fill",
        "Connect leaves null in it, and no converter can write that; ours rejects the record, and says why",
        lambda case, at, theirs, ours: (
            isinstance(ours, Failed) and "and the record has no timestamp" in ours.why and isinstance(theirs, Row)
        ),
        _example("InsertField$Value", {"timestamp.field": "at!"}, _typed({"a": 1}, "int32"), timestamp=None),
    ),
    Known(
        "a decimal that MaskField cannot make",
        "Connect puts a decimal of another scale into the column, which its converters cannot write; ours rejects it",
        lambda case, at, theirs, ours: (
            isinstance(ours, Failed) and "cannot hold `replacement`" in ours.why and isinstance(theirs, Row)
        ),
        _example(
            "MaskField$Value",
            {"fields": "a", "replacement": "1.5"},
            _typed({"a": "AQ=="}, "bytes", "Decimal", parameters={"scale": "0"}),
        ),
    ),
    Known(
        "a field taken from one of another type",
        "ReplaceField renames a field that it excludes to another: Connect fails unless it is null, ours always",
        lambda case, at, theirs, ours: (
            isinstance(ours, Failed) and "would take field" in ours.why and isinstance(theirs, Row)
        ),
        _example(
            "ReplaceField$Value",
            {"exclude": "b", "renames": "b:a"},
            json.dumps(
                {
                    "schema": {
                        "type": "struct",
                        "optional": False,
                        "fields": [
                            {"field": "a", "type": "string", "optional": True},
                            {"field": "b", "type": "int32", "optional": True},
                        ],
                    },
                    "payload": {"a": "x", "b": None},
                }
            ).encode(),
        ),
    ),
    Known(
        "two renames to one name, with a schema",
        "Connect turns the renames round in the order of a Java HashMap, so chance decides which one counts",
        lambda case, at, theirs, ours: (
            "is not a valid field name" in _why(theirs) and _has(case, "ReplaceField", "renames")
        ),
        _example("ReplaceField$Value", {"renames": "a:c,x.y.d:c"}, _typed({"a": 1}, "int32")),
    ),
    Known(
        "MaskField beyond int8 and int16",
        "Connect wraps the replacement into the field's type; here it is an int32 (convert/decoded.py) and fits",
        lambda case, at, theirs, ours: _has(case, "MaskField", "replacement") and _wrapped(theirs, ours),
        _example("MaskField$Value", {"fields": "a", "replacement": "300"}, _typed({"a": 1}, "int8")),
    ),
    Known(
        "a null with a schema",
        "JsonConverter keeps the schema of a null, which later transforms look at; here it is null, without a schema",
        _null_with_schema,
        _example("HoistField$Value", {"field": "a"}, _typed(None, "int32")),
    ),
    Known(
        "days beyond a Date",
        "a Date is an int32 of days, in Connect too, whose TimestampConverter makes one that no converter can write",
        lambda case, at, theirs, ours: "farther away than a Date can hold" in _why(ours) and isinstance(theirs, Row),
        _example("TimestampConverter$Value", {"target.type": "Date", "field": "a"}, b'{"a": 9223372036854775807}'),
    ),
    Known(
        "a timestamp of 0",
        "Kafka's way to say that a record has none is read as 0 (model/records.py), so 1970-01-01 stands for none",
        _at_zero,
        _example("InsertField$Value", {"timestamp.field": "at"}, b'{"a": 1}', timestamp=0),
    ),
)


@dataclass(frozen=True)
class KnownRefusal:
    """Configurations that one of both refuses, for a reason. test: of the case, Kafka's answer and ours."""

    name: str
    reason: str
    test: Callable[[Case, Outcomes, Outcomes], bool]
    example: Case


def _is_choice(why: str) -> bool:
    """Whether what Connect does not take is one of its choices, but for upper and lower case."""
    found = re.search(r"Invalid value (\S+) for .*String must be one of: (.*)", why)
    return found is not None and found[1].lower() in found[2].lower().split(", ")


REFUSALS: Final = (
    KnownRefusal(
        "groups that a regular expression has not",
        "Connect fails for each topic that matches; here it is told when the file is read",
        lambda case, theirs, ours: isinstance(ours, Refused) and ".replacement]" in ours.why,
        _example("RegexRouter", {"regex": "orders", "replacement": "$1"}, b"{}"),
    ),
    KnownRefusal(
        "choices in other letters",
        "a choice may be written in upper or lower case here, as for all keys; Connect insists on one",
        lambda case, theirs, ours: isinstance(theirs, Refused) and _is_choice(theirs.why),
        _example("TimestampConverter$Value", {"target.type": "date", "field": "a"}, b'{"a": 1}'),
    ),
)
