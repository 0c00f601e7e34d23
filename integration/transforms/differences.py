"""How two outcomes of one case are compared: nothing may differ but what `known` tells."""

from dataclasses import dataclass, replace

from integration.transforms.cases import Case
from integration.transforms.forms import FORMS
from integration.transforms.known import KNOWN, REFUSALS
from integration.transforms.outcome import UNREAD, Outcome, Outcomes, Refused, Row


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


def compare(case: Case, theirs: Outcomes, ours: Outcomes) -> tuple[set[str], list[Finding]]:
    """Names of known differences that occur, and those that nothing explains."""
    if isinstance(theirs, Refused) or isinstance(ours, Refused):
        if theirs == ours:
            return set(), []
        known = next((known.name for known in REFUSALS if known.test(case, theirs, ours)), None)
        return ({known}, []) if known is not None else (set(), [Finding(case, -1, theirs, ours)])
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
    for form in (form for form in FORMS if form.concerns(case)):
        if isinstance(one, Row) and isinstance(other, Row):
            before = one, other
            one, other = form.of(one), form.of(other)
            seen |= {form.name} if (one, other) != before else set()
            if one == other:
                return seen
    known = next((known for known in KNOWN if known.test(case, at, one, other)), None)
    return None if known is None else {*seen, known.name}
