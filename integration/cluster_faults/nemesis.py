"""What is done to workers, in rounds drawn from a seed, and the requests that change some connectors meanwhile."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM
from typing import Final

import requests

from integration.cluster_faults.history import Loss
from integration.cluster_faults.workers import ASK_S, Workers

STOP_S: Final = 120.0
PAUSE_S: Final = 2.0
"""The most between two requests."""
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


class Writer:
    """Pauses, resumes, restarts and changes some connectors at random workers, in a thread of its own.

    configs: of those connectors, by name. answers: how often each status came; 0 stands for none.
    """

    KEY: Final = "connect.ems.commit.records"

    def __init__(self, workers: Workers, configs: Mapping[str, Mapping[str, str]], chance: random.Random) -> None:
        self._workers, self._configs, self._chance = workers, configs, chance
        self.may_be = {name: {config[self.KEY]} for name, config in configs.items()}
        """Values of `KEY` that may be stored by now: one, unless it is unknown what became of a request."""
        self.answers: Counter[int] = Counter()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        acts = (
            partial(self._plain, "PUT", "pause"),
            partial(self._plain, "PUT", "resume"),
            partial(self._plain, "POST", "restart?includeTasks=true"),
            self._put,
        )
        while self._configs and not self._ends.wait(self._chance.uniform(0.0, PAUSE_S)):
            self._chance.choice(acts)(self._chance.choice(list(self._configs)))

    def _plain(self, method: str, what: str, name: str) -> None:
        self.answers[self._workers.write(self._chance, method, f"/connectors/{name}/{what}")] += 1

    def _put(self, name: str) -> None:
        value = str(self._chance.randint(300, 900))
        body = {**self._configs[name], self.KEY: value}
        status = self._workers.write(self._chance, "PUT", f"/connectors/{name}/config", body)
        self.answers[status] += 1
        self.may_be[name] = told(self.may_be[name], value, status)

    def stop(self) -> None:
        """All of them run again. Raises TimeoutError."""
        self._ends.set()
        if self._thread.ident is not None:
            self._thread.join()
        for name in self._configs:
            self._workers.insist("PUT", f"/connectors/{name}/resume", {}, WITHIN_S)

    def troubles(self) -> list[str]:
        """Configurations that are not those which a worker said to have stored last."""
        found = []
        for name, values in self.may_be.items():
            url = f"{self._workers[0].url}/connectors/{name}/config"
            stored = requests.get(url, timeout=ASK_S).json().get(self.KEY)
            if stored not in values:
                found.append(f"connector {name}: {self.KEY} is {stored}, and one of {sorted(values)} was stored last")
        return found


def told(may_be: set[str], value: str, status: int) -> set[str]:
    """What may be stored once a request to store `value` was answered so; 0 is no answer."""
    if 200 <= status < 300:
        return {value}
    return may_be if status in {400, 404, 409} else may_be | {value}
