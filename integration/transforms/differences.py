"""What may differ between Kafka Connect's transforms and ours, each with its reason; everything else is a fault."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from integration.transforms.cases import Case, Record
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
    """Two records that are the same in this form differ by nothing but what the reason says."""

    name: str
    reason: str
    of: Callable[[Row], Row]


@dataclass(frozen=True)
class Known:
    """Outcomes that differ for a reason. test: of the case, the record's place in it, Kafka's outcome and ours."""

    name: str
    reason: str
    test: Callable[[Case, int, Outcome, Outcome], bool]


@dataclass(frozen=True)
class Finding:
    """A difference that nothing explains."""

    case: Case
    at: int
    theirs: object
    ours: object

    def __str__(self) -> str:
        record = "" if self.at < 0 else f"\n  record {self.at}: {self.case.records[self.at]}"
        steps = "".join(f"\n  {step}" for step in self.case.steps)
        theirs, ours = self._parts()
        return f"topic {self.case.topic}{steps}\n  kafka: {theirs}\n  ours:  {ours}{record}"

    def _parts(self) -> tuple[object, object]:
        """What differs of two rows, else both as they are."""
        if not isinstance(self.theirs, Row) or not isinstance(self.ours, Row):
            return self.theirs, self.ours
        one, other = vars(_as_read(self.theirs, self.ours)), vars(self.ours)
        names = [name for name in one if one[name] != other[name]]
        return {name: one[name] for name in names}, {name: other[name] for name in names}


def _numbers(row: Row) -> Row:
    """Without a schema the sizes of numbers are not told apart."""
    found = row
    if row.value_schema is None:
        found = replace(found, value=schemaless(row.value))
    return replace(found, key=schemaless(row.key)) if row.key_schema is None and row.key != UNREAD else found


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
        "JSON has one whole number and one fraction: what Cast made of one as int8 is written as any whole number",
        _numbers,
    ),
    Form(
        "lists and maps of headers",
        "a list of values of several types has none, in Connect neither: it is kept as JSON has it, dates as text",
        _headers,
    ),
    Form(
        "the name of a whole value's schema",
        "Connect's Cast of a whole Date leaves its name on the new type, which its converters misread; ours has none",
        _nameless,
    ),
    Form(
        "decimals that MaskField made",
        "Connect puts a decimal of scale 0 into a column of any scale, which its converters cannot write; ours fits",
        _decimals,
    ),
    Form("int8 and int16", "columns have no smaller whole number than int32 (convert/decoded.py)", _small),
)


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


KNOWN: Final = (
    Known(
        "defaults of changed types",
        "Connect casts the default of the schema, too, and fails where that does not fit; types here keep none",
        _fails_by_default,
    ),
    Known(
        "two fields of one name, without a schema",
        "Connect takes fields in the order of a Java HashMap, so chance decides which one is kept; ours the last",
        _without_renamed,
    ),
    Known(
        "a required field that InsertField cannot fill",
        "Connect leaves null in it, and no converter can write that; ours rejects the record, and says why",
        lambda case, at, theirs, ours: (
            isinstance(ours, Failed) and "and the record has no timestamp" in ours.why and isinstance(theirs, Row)
        ),
    ),
    Known(
        "MaskField beyond int8 and int16",
        "Connect wraps the replacement into the field's type; here it is an int32 (convert/decoded.py) and fits",
        lambda case, at, theirs, ours: _has(case, "MaskField", "replacement") and _wrapped(theirs, ours),
    ),
    Known(
        "a timestamp of 0",
        "Kafka's way to say that a record has none is read as 0 (model/records.py), so 1970-01-01 stands for none",
        _at_zero,
    ),
)


def names() -> list[str]:
    """Of all differences that are known, each of which must occur."""
    return [one.name for one in (*FORMS, *KNOWN)]


def compare(case: Case, theirs: Outcomes, ours: Outcomes) -> tuple[set[str], list[Finding]]:
    """Names of known differences that occur, and those that nothing explains."""
    if isinstance(theirs, Refused) or isinstance(ours, Refused):
        return set(), [] if theirs == ours else [Finding(case, -1, theirs, ours)]
    seen: set[str] = set()
    found = []
    for at, (one, other) in enumerate(zip(theirs, ours, strict=True)):
        names = _same(case, at, _as_read(one, other), other)
        if names is None:
            found.append(Finding(case, at, one, other))
        else:
            seen |= names
    return seen, found


def _as_read(theirs: Outcome, ours: Outcome) -> Outcome:
    """Kafka's, without what ours does not read."""
    if not isinstance(theirs, Row) or not isinstance(ours, Row):
        return theirs
    if ours.key == UNREAD:
        theirs = replace(theirs, key=UNREAD, key_schema=UNREAD)
    if isinstance(ours.headers, str) or len(theirs.headers) != len(ours.headers):
        return replace(theirs, headers=UNREAD) if ours.headers == UNREAD else theirs
    pairs = zip(theirs.headers, ours.headers, strict=True)
    return replace(theirs, headers=tuple((name, UNREAD if one == UNREAD else own) for (name, own), (_, one) in pairs))


def _same(case: Case, at: int, theirs: Outcome, ours: Outcome) -> set[str] | None:
    """Names of the differences; None when something else differs."""
    if theirs == ours:
        return set()
    seen = set()
    one, other = theirs, ours
    for form in FORMS:
        if isinstance(one, Row) and isinstance(other, Row):
            before = one, other
            one, other = form.of(one), form.of(other)
            seen |= {form.name} if (one, other) != before else set()
            if one == other:
                return seen
    known = next((known for known in KNOWN if known.test(case, at, one, other)), None)
    return None if known is None else {*seen, known.name}
