"""What clients asked of connectors by REST and what they were told, and whether that can be of one order. Pure.

Writes, and reads that a worker answered at the topic's end, are to be linearizable for each connector: there is an
order of them in which each takes effect between its question and its answer, and each answer is true. What nobody
knows the outcome of (no answer, 500) may take effect at any time after its question, or never. A read that took so
long that its worker gave the topic's end up (`FRESH_S`) may be stale. No read of a worker may go back behind an
earlier one of it.

The search is just in time, as in Lowe's "Testing for linearizability": it goes along the events with all states that
connectors may have, each with what is under way and has had no effect in it yet. A state in which more of the unknown
may still happen stands for those in which less may.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from parquet_sink.worker.herder.values import TargetState

NEVER: Final = float("inf")
FRESH_S: Final = 1.9
"""Below `distributed.herder.BARRIER_S`: who answers sooner has read to the topic's end."""
SHOWN: Final = 8
UNSEEN: Final = "written, never read"
"""No configuration's value, and no read's."""


class Act(StrEnum):
    """What a client asks for; READ is of a configuration, LOOK of the target state as well."""

    CREATE = "POST"
    PUT = "PUT config"
    PATCH = "PATCH config"
    DELETE = "DELETE"
    TARGET = "PUT state"
    RESTART = "restart"
    READ = "GET config"
    LOOK = "look"


class Told(StrEnum):
    """What an answer says. DONE: of a PUT, that it changed one, MADE that it made one; THERE: it exists already."""

    DONE = "done"
    MADE = "made"
    ABSENT = "not there"
    THERE = "exists"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Stored:
    """A connector: the value by which its configuration is known, and its target state."""

    value: str
    target: TargetState = TargetState.STARTED


@dataclass(frozen=True)
class Asked:
    """A request and its answer. Times are seconds of one clock; ended_s: NEVER where the outcome is unknown.

    value: of the configuration that is written, each time another, or that was read. target: that is asked for or seen.
    """

    connector: str
    worker: str
    act: Act
    told: Told
    begun_s: float
    ended_s: float
    value: str = ""
    target: TargetState = TargetState.STARTED

    def __str__(self) -> str:
        what = self.target if self.act in {Act.TARGET, Act.LOOK} else ""
        words = " ".join(word for word in (self.act, self.value, what) if word)
        return f"{self.begun_s:.2f}-{self.ended_s:.2f} {self.worker} {words}: {self.told}"


State = Stored | None
_READS: Final = frozenset({Act.READ, Act.LOOK})


def after(state: State, asked: Asked) -> list[State]:
    """The connector's state once it took effect in this one; nothing where the answer would be untrue then."""
    if asked.told is Told.UNKNOWN:
        return [_changed(state, asked)]
    right = (
        {Told.ABSENT: asked.act not in {Act.CREATE, Act.PUT}, Told.MADE: asked.act is Act.PUT}
        if state is None
        else {Told.THERE: asked.act is Act.CREATE, Told.DONE: asked.act is not Act.CREATE}
    )
    if state is None and asked.act is Act.CREATE:
        right[Told.DONE] = True
    if not right.get(asked.told, False):
        return []
    if state is not None and asked.act in _READS:
        same = asked.value == state.value and (asked.act is Act.READ or asked.target is state.target)
        return [state] if same else []
    return [_changed(state, asked)]


def _changed(state: State, asked: Asked) -> State:
    """What a request does, whatever was answered."""
    match asked.act:
        case Act.CREATE:
            return Stored(asked.value, asked.target) if state is None else state
        case Act.PUT:
            return Stored(asked.value, TargetState.STARTED if state is None else state.target)
        case Act.PATCH if state is not None:
            return Stored(asked.value, state.target)
        case Act.TARGET if state is not None:
            return Stored(state.value, asked.target)
        case Act.DELETE:
            return None
        case _:
            return state


Open = frozenset[int]
Configuration = tuple[State, Open]


def unexplained(history: Sequence[Asked]) -> Asked | None:
    """Of one connector, which is absent at first: the first answer that no order explains; None where one does."""
    history = _alike(history)
    unknown = frozenset(number for number, one in enumerate(history) if one.ended_s == NEVER)
    events = [(one.begun_s, 0, number) for number, one in enumerate(history)]
    events += [(one.ended_s, 1, number) for number, one in enumerate(history) if number not in unknown]
    found: set[Configuration] = {(None, frozenset())}
    for _, ends, number in sorted(events):
        if not ends:
            found = {(state, under_way | {number}) for state, under_way in found}
            continue
        found = _until(history, found, number, unknown)
        if not found:
            return history[number]
    return None


def _alike(history: Sequence[Asked]) -> list[Asked]:
    """Values that may have been written and that nobody has seen are one value: which of them it was is the same."""
    seen = {one.value for one in history if one.act in _READS}
    return [replace(one, value=UNSEEN) if one.ended_s == NEVER and one.value not in seen else one for one in history]


def _until(history: Sequence[Asked], found: Iterable[Configuration], number: int, unknown: Open) -> set[Configuration]:
    """All ways to go on until this one has taken effect."""
    done: set[Configuration] = set()
    best: dict[tuple[State, Open], list[Open]] = defaultdict(list)
    layer = set(found)
    while layer:
        further: set[Configuration] = set()
        for state, under_way in layer:
            optional, known = under_way & unknown, under_way - unknown
            if any(optional <= other for other in best[state, known]):
                continue
            best[state, known].append(optional)
            if number not in under_way:
                done.add((state, under_way))
                continue
            for one in _unlike(history, under_way, unknown):
                further |= {(next_, under_way - {one}) for next_ in after(state, history[one])}
        layer = further
    return done


def _unlike(history: Sequence[Asked], under_way: Open, unknown: Open) -> Iterator[int]:
    """Of what is unknown and does the same, the first: whichever it was, the others may still happen."""
    met: set[tuple[Act, str, TargetState]] = set()
    for number in sorted(under_way):
        one = history[number]
        if number not in unknown:
            yield number
        elif (what := (one.act, one.value, one.target)) not in met:
            met.add(what)
            yield number


def troubles(history: Iterable[Asked]) -> Iterator[str]:
    """What is wrong, in words: for each connector the first answer that no order explains, and reads that went back."""
    of: dict[str, list[Asked]] = defaultdict(list)
    for one in history:
        of[one.connector].append(one)
    for name, each in sorted(of.items()):
        fresh = sorted((one for one in each if _counts(one)), key=lambda one: one.begun_s)
        if (wrong := unexplained(fresh)) is not None:
            before = [one for one in fresh if one.begun_s <= wrong.ended_s and one is not wrong][-SHOWN:]
            yield f"connector {name}: no order explains {wrong}; before it: {'; '.join(map(str, before))}"
        yield from (f"connector {name}: a read went back: {one}" for one in went_back(each))


def _counts(asked: Asked) -> bool:
    """Whether it has to fit into the order: not a read that is unknown, or may be stale."""
    if asked.act is not Act.READ:
        return True
    return asked.told is not Told.UNKNOWN and asked.ended_s - asked.begun_s < FRESH_S


def went_back(history: Iterable[Asked]) -> list[Asked]:
    """Of one connector: reads of a worker that show again what it showed before something newer. Values are unique."""
    reads: dict[str, list[Asked]] = defaultdict(list)
    for one in sorted(history, key=lambda one: one.ended_s):
        if one.act is Act.READ and one.told is Told.DONE:
            reads[one.worker].append(one)
    return [one for each in reads.values() for one in _back(each)]


def _back(reads: Iterable[Asked]) -> Iterator[Asked]:
    """In order of their ends. What was shown before a read began is older than what that one shows."""
    shown: dict[str, float] = {}
    older: dict[str, float] = {}
    for one in reads:
        if older.get(one.value, NEVER) < one.begun_s:
            yield one
        for value, ended_s in shown.items():
            if value != one.value and ended_s < one.begun_s:
                older.setdefault(value, one.ended_s)
        shown.setdefault(one.value, one.ended_s)
