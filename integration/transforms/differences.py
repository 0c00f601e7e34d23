"""What may differ between Kafka Connect's transforms and ours, each with its reason; everything else is a fault."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from integration.transforms.cases import Case
from integration.transforms.outcome import UNREAD, Outcome, Outcomes, Refused, Row, schemaless, untyped, widened


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
        return f"topic {self.case.topic}{steps}{record}\n  kafka: {theirs}\n  ours:  {ours}"

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
    Form("int8 and int16", "columns have no smaller whole number than int32 (convert/decoded.py)", _small),
)
KNOWN: Final[tuple[Known, ...]] = ()


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
    return replace(theirs, headers=UNREAD) if ours.headers == UNREAD else theirs


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
