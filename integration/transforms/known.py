"""What may differ between Kafka Connect's transforms and ours, each with its reason; everything else is a fault.

Each difference has an example, in which it must occur: so this list cannot rot.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from integration.transforms.cases import Case, Record
from integration.transforms.examples import BELOW_NULL, chain, example, typed
from integration.transforms.outcome import Failed, Outcome, Outcomes, Refused, Row, Value


@dataclass(frozen=True)
class Known:
    """Outcomes that differ for a reason. test: of the case, the record's place in it, Kafka's outcome and ours."""

    name: str
    reason: str
    test: Callable[[Case, int, Outcome, Outcome], bool]
    example: Case


def _null_with_schema(case: Case, at: int, theirs: Outcome, ours: Outcome) -> bool:
    """A null in an envelope, or one that was extracted, and then hoisted or looked into."""
    record = case.records[at]
    if any(_is_null(data) for data in (record.key, record.value)):
        return True
    if not isinstance(ours, Row) or not _has(case, "ExtractField"):
        return False
    if isinstance(theirs, Failed):
        return ours.value is None or ours.key is None or "on non-struct type" in theirs.why
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
    if _flattened_twice(case, at, theirs, ours):
        return True
    if not isinstance(theirs, Row) or not isinstance(ours, Row):
        return False
    pairs = [pair.split(":") for step in case.steps for pair in step.keys.get("renames", "").split(",") if ":" in pair]
    names = {("String", pair[-1].strip()) for pair in pairs}
    one, other = (
        replace(row, value=_less(row.value, names), key=_less(row.key, names), headers=()) for row in (theirs, ours)
    )
    return bool(names) and one == other


def _two_to_one(case: Case) -> bool:
    """Whether a ReplaceField gives two fields one new name."""
    found = [step.keys["renames"].split(",") for step in case.steps if "renames" in step.keys]
    new = [[pair.rpartition(":")[2].strip() for pair in pairs] for pairs in found]
    return any(len(set(names)) < len(names) for names in new)


def _same_but_renamed(case: Case, theirs: Outcome, ours: Outcome) -> bool:
    """Whether two rows with a schema have the same in all fields that have no new name."""
    if not (isinstance(theirs, Row) and isinstance(ours, Row)):
        return False
    pairs = [pair for step in case.steps for pair in step.keys.get("renames", "").split(",")]
    new = {pair.rpartition(":")[2].strip() for pair in pairs}
    one, other = ([_others(value, new) for value in (row.value, row.key)] for row in (theirs, ours))
    return one == other and theirs.topic == ours.topic


def _others(value: Value, names: set[str]) -> Value:
    if not isinstance(value, tuple) or value[0] != "Struct":
        return value
    return "Struct", tuple(pair for pair in value[1] if pair[0] not in names)


def _flattened_twice(case: Case, at: int, theirs: Outcome, ours: Outcome) -> bool:
    """Whether two rows differ in nothing but fields whose names Flatten may have joined."""
    if not (isinstance(theirs, Row) and isinstance(ours, Row) and _has(case, "Flatten")):
        return False
    delimiters = [step.keys.get("delimiter", ".") for step in case.steps if step.name.startswith("Flatten")]
    record = case.records[at]
    if b'"": {' in (record.value or b"") + (record.key or b""):  # what is below an empty name has no delimiter
        delimiters.append("")
    return any(
        _but_for(theirs.value, ours.value, delimiter) and _but_for(theirs.key, ours.key, delimiter)
        for delimiter in delimiters
    )


def _but_for(theirs: Any, ours: Any, delimiter: str) -> bool:
    if not isinstance(theirs, tuple) or not isinstance(ours, tuple) or theirs == ours:
        return bool(theirs == ours)
    if theirs[0] != "Map" or ours[0] != "Map":
        return False
    pairs = list(zip(theirs[1], ours[1], strict=False))
    same_names = [one[0] for one, _ in pairs] == [other[0] for _, other in pairs] and len(theirs[1]) == len(ours[1])
    return same_names and all(delimiter in one[0][1] or _but_for(one[1], other[1], delimiter) for one, other in pairs)


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
    if ours[:1] in (("Integer",), ("Long",)) and isinstance(ours[1], int):
        return theirs[1] in (ours[1], *((ours[1] + half) % (2 * half) - half for half in (2**7, 2**15, 2**31)))
    return all(_wrapped(*pair) for pair in zip(theirs, ours, strict=True))


def _at_zero(case: Case, at: int, theirs: Outcome, ours: Outcome) -> bool:
    asked = _has(case, "InsertField", "timestamp.field") or _has(case, "TimestampRouter")
    return case.records[at].timestamp == 0 and asked


KNOWN: Final = (
    Known(
        "a whole Date that was cast, and changed again",
        "Connect's Cast of a whole Date leaves its name on the new type, and transforms behind it take it for a Date",
        lambda case, at, theirs, ours: (
            any(step.name.startswith("Cast") and ":" not in step.keys.get("spec", ":") for step in case.steps)
            and any(why in _why(theirs) for why in ("to class java.util.Date", 'schema "org.apache.kafka.connect.'))
        ),
        replace(
            chain(typed(1, "int32", "Date"), ("Cast$Value", {"spec": "int16"}), ("Cast$Value", {"spec": "boolean"})),
            value_schemas=True,
        ),
    ),
    Known(
        "defaults of changed types",
        "Connect casts the default of the schema, too, and fails where that does not fit; types here keep none",
        _fails_by_default,
        example("Cast$Value", {"spec": "a:int32"}, typed({"a": "12"}, "string", default="abc")),
    ),
    Known(
        "defaults below a null",
        "Connect's Flatten gives fields of a null record their defaults; types here keep none, and they are null",
        _lacks_defaults,
        example("Flatten$Value", {}, BELOW_NULL),
    ),
    Known(
        "two fields of one name, without a schema",
        "Connect takes fields in the order of a Java HashMap, so chance decides which one is kept; ours the last",
        _without_renamed,
        example("ReplaceField$Value", {"renames": "Upper:ts"}, b'{"Upper": 1, "ts": 2}', b'{"ts": 2, "Upper": 1}'),
    ),
    Known(
        "a required field that InsertField cannot fill",
        "Connect leaves null in it, and no converter can write that; ours rejects the record, and says why",
        lambda case, at, theirs, ours: (
            "and the record has no timestamp" in _why(ours) and not isinstance(theirs, Failed)
        ),
        example("InsertField$Value", {"timestamp.field": "at!"}, typed({"a": 1}, "int32"), timestamp=None),
    ),
    Known(
        "a decimal that MaskField cannot make",
        "Connect puts a decimal of another scale into the column, which its converters cannot write; ours rejects it",
        lambda case, at, theirs, ours: "cannot hold `replacement`" in _why(ours) and not isinstance(theirs, Failed),
        example(
            "MaskField$Value",
            {"fields": "a", "replacement": "1.5"},
            typed({"a": "AQ=="}, "bytes", "Decimal", parameters={"scale": "0"}),
        ),
    ),
    Known(
        "a field taken from one of another type",
        "ReplaceField renames a field that it excludes to another: Connect fails unless it is null; ours always, but "
        "for int8 and int16, which are int32 here",
        lambda case, at, theirs, ours: (
            (isinstance(ours, Failed) and "would take field" in ours.why and isinstance(theirs, Row))
            or ("Invalid Java object for schema" in _why(theirs) and _has(case, "ReplaceField", "exclude"))
        ),
        example(
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
            _two_to_one(case)
            and (
                any(why in _why(theirs) for why in ("is not a valid field name", "Invalid Java object for schema"))
                or _same_but_renamed(case, theirs, ours)
            )
        ),
        example("ReplaceField$Value", {"renames": "a:c,x.y.d:c"}, typed({"a": 1}, "int32")),
    ),
    Known(
        "MaskField beyond int8 and int16",
        "Connect wraps the replacement into the field's type; here it is an int32 (convert/decoded.py) and fits, and "
        "without a schema any whole number does, also one that Cast made",
        lambda case, at, theirs, ours: _has(case, "MaskField", "replacement") and _wrapped(theirs, ours),
        example("MaskField$Value", {"fields": "a", "replacement": "300"}, typed({"a": 1}, "int8")),
    ),
    Known(
        "a whole number that InsertField made, without a schema",
        "TimestampConverter takes Java's Long and no smaller one; here JSON has one whole number",
        lambda case, at, theirs, ours: (
            re.search(r"TimestampConverter does not support class java.lang.(Byte|Short|Integer)", _why(theirs))
            is not None
            and not isinstance(ours, Failed)
        ),
        chain(
            b'{"a": 5}',
            ("InsertField$Value", {"partition.field": "a"}),
            ("TimestampConverter$Value", {"field": "a", "target.type": "Timestamp"}),
        ),
    ),
    Known(
        "Flatten of dates without a schema",
        "Connect's Flatten knows no date that a transform before it made without a schema; here it stays as it is",
        lambda case, at, theirs, ours: (
            "Flatten transformation was passed a value of type class java.util.Date" in _why(theirs)
            and not isinstance(ours, Failed)
        ),
        chain(
            b'{"a": 5}',
            ("TimestampConverter$Value", {"field": "a", "target.type": "Timestamp"}),
            ("Flatten$Value", {}),
        ),
    ),
    Known(
        "a null with a schema",
        "JsonConverter keeps the schema of a null, which later transforms look at; here it is null, without a schema",
        _null_with_schema,
        example("HoistField$Value", {"field": "a"}, typed(None, "int32")),
    ),
    Known(
        "days beyond a Date",
        "a Date is an int32 of days, in Connect too, whose TimestampConverter makes one that no converter can write",
        lambda case, at, theirs, ours: "farther away than a Date can hold" in _why(ours) and isinstance(theirs, Row),
        example("TimestampConverter$Value", {"target.type": "Date", "field": "a"}, b'{"a": 9223372036854775807}'),
    ),
    Known(
        "a timestamp of 0",
        "Kafka's way to say that a record has none is read as 0 (model/records.py), so 1970-01-01 stands for none",
        _at_zero,
        example("InsertField$Value", {"timestamp.field": "at"}, b'{"a": 1}', timestamp=0),
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
        example("RegexRouter", {"regex": "orders", "replacement": "$1"}, b"{}"),
    ),
    KnownRefusal(
        "choices in other letters",
        "a choice may be written in upper or lower case here, as for all keys; Connect insists on one",
        lambda case, theirs, ours: isinstance(theirs, Refused) and _is_choice(theirs.why),
        example("TimestampConverter$Value", {"target.type": "date", "field": "a"}, b'{"a": 1}'),
    ),
)
