"""What the sink does to the world, counted, so that anything may happen between two of its effects.

An effect is what outlives the process that does it: a push, a commit of the group, a write to the state file, the
removal of a local file, a report to the driver. Each passes a gate before it and one after it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from typing import Any

Incident = Callable[[str], bool]
"""What happens at a gate, whose name it gets. False: not at this one, but at the next."""


class Dies(StrEnum):
    """Who is killed: a Spark task's worker, a process of the query beside the driver, or the program with all else."""

    TASK = "task"
    QUERY = "query"
    PROGRAM = "program"


class Crash(BaseException):
    """The end of a process, which nothing in it can catch: until it is let go, each further gate raises it again."""

    def __init__(self, who: Dies) -> None:
        super().__init__(who)
        self.who = who


@dataclass
class _Due:
    """An incident, and at which gate: after `before` others whose names begin so."""

    where: str
    before: int
    incident: Incident

    def happens(self, gate: str) -> bool:
        """Whether it has happened now."""
        if not gate.startswith(self.where):
            return False
        self.before -= 1
        return self.before < 0 and self.incident(gate)


class Effects:
    """The gates that the sink passes. passed: their names, for whoever reads a failed example."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self._due: list[_Due] = []
        self._dead: Dies | None = None
        self._open = 0

    def plan(self, where: str, before: int, incident: Incident) -> None:
        """Has it happen at a gate whose name begins so, after so many others of that name."""
        self._due.append(_Due(where, before, incident))

    def forget(self) -> None:
        """Nothing is planned any more."""
        self._due.clear()

    def gate(self, name: str) -> None:
        """Raises Crash for who is dead, or dies here."""
        if self._open:
            return
        if self._dead is None:
            self.passed.append(name)
            with self.open():
                self._due = [one for one in self._due if not one.happens(name)]
        if self._dead is not None:
            raise Crash(self._dead)

    def kill(self, who: Dies) -> bool:
        """An incident: who passes this gate dies there."""
        self._dead = who
        return True

    def let_go(self) -> None:
        """The dead process is gone; those that live pass gates again."""
        self._dead = None

    @contextmanager
    def open(self) -> Iterator[None]:
        """What is done within is no effect of the sink."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    def of(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same function between two gates."""

        @wraps(call)
        def between(*args: Any, **named: Any) -> Any:
            self.gate(f"before {name}")
            found = call(*args, **named)
            self.gate(f"after {name}")
            return found

        return between
