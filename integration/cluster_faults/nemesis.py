"""What is done to workers, in rounds drawn from a seed."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM
from typing import Final

from integration.cluster_faults.history import Loss
from integration.cluster_faults.workers import Workers

STOP_S: Final = 120.0
WITHIN_S: Final = 120.0


class Kind(StrEnum):
    """What is done to a worker, with all its processes."""

    KILLED = "SIGKILL, started again later"
    KILLED_AT_ONCE = "SIGKILL, started again at once"
    STOPPED = "SIGTERM, started again"
    FROZEN_SHORT = "SIGSTOP for half a session"
    FROZEN = "SIGSTOP for a session"
    FROZEN_LONG = "SIGSTOP for three sessions"
    CUT_SHORT = "link to Kafka cut for half a session"
    CUT_LONG = "link to Kafka cut for three sessions"


_SESSIONS: Final = {
    Kind.FROZEN_SHORT: 0.5,
    Kind.FROZEN: 1.0,
    Kind.FROZEN_LONG: 3.0,
    Kind.CUT_SHORT: 0.5,
    Kind.CUT_LONG: 3.0,
}
LOST: Final = (Kind.KILLED, Kind.KILLED_AT_ONCE, Kind.FROZEN_LONG, Kind.CUT_LONG)
"""Kinds of which the group must take the worker for lost."""


def rounds(chance: random.Random) -> Iterator[tuple[Kind, int]]:
    """Kinds of faults, and whom they meet, without an end; each round has all kinds."""
    while True:
        for kind in chance.sample(list(Kind), len(Kind)):
            yield kind, chance.randrange(3)


def now_ms() -> int:
    """Epoch milliseconds."""
    return time.time_ns() // 1_000_000


class Nemesis:
    """Does one thing to one worker. wait: passes so many seconds; raises where the run has failed meanwhile."""

    def __init__(self, workers: Workers, session_s: float, wait: Callable[[float], None]) -> None:
        self._workers, self._session_s, self._wait = workers, session_s, wait

    def do(self, kind: Kind, number: int, connectors: Sequence[str], delivered: Callable[[], bool]) -> Loss:
        """What was done; the worker runs again. delivered: whether others have taken over.

        Raises AssertionError when a worker does not end in order, or does not come back.
        """
        command, at_ms = self._workers[number].command, now_ms()
        until_ms = at_ms
        match kind:
            case Kind.KILLED | Kind.KILLED_AT_ONCE:
                while command.alive():
                    command.signal_all(SIGKILL)
                until_ms = now_ms()
                if kind is Kind.KILLED:
                    self._until(delivered)
                self._workers[number].start()
            case Kind.STOPPED:
                command.send(SIGTERM)
                assert command.ended(STOP_S) == 0, command.said[-3_000:]
                until_ms = now_ms()
                self._workers[number].start()
            case Kind.FROZEN_SHORT | Kind.FROZEN | Kind.FROZEN_LONG:
                for _ in range(2):  # the second time, what was just being forked
                    command.signal_all(SIGSTOP)
                self._wait(_SESSIONS[kind] * self._session_s)
                until_ms = now_ms()
                command.signal_all(SIGCONT)
            case Kind.CUT_SHORT | Kind.CUT_LONG:
                self._workers.links[number].cut()
                self._wait(_SESSIONS[kind] * self._session_s)
                until_ms = now_ms()
                self._workers.links[number].mend()
        return Loss(kind, f"w{number}", tuple(connectors), at_ms, until_ms)

    def _until(self, delivered: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not delivered() and time.monotonic() < deadline:
            self._wait(0.2)
