"""Which process is killed when: a plan drawn from a seed, and the search for its victims."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from integration import processes
from integration.processes import Process

PATIENT_S: Final = (0.3, 3.0)
"""Delay after the kill before was recovered from."""
IMPATIENT_S: Final = (0.3, 6.0)
"""Delay after the kill before, recovered from or not."""
IMPATIENT_SHARE: Final = 0.25


class Kind(StrEnum):
    """What gets SIGKILL. The sink's driver program is `driver`; Spark's Java is `jvm`."""

    DRIVER = "driver"
    JVM = "jvm"
    PLANNER = "planner"
    READING = "worker, reading"
    WRITING = "worker, writing"
    TARGET = "target"


ENDS_SINK: Final = frozenset({Kind.DRIVER, Kind.JVM})


@dataclass(frozen=True)
class Kill:
    """One planned kill. patient: counted from the recovery, else from the kill before."""

    kind: Kind
    delay_s: float
    patient: bool


def plan(kills: int, chance: random.Random) -> list[Kill]:
    """Kills in random order, each kind at least once if there are as many kills as kinds."""
    kinds = list(Kind)
    chance.shuffle(kinds)
    drawn = (kinds + chance.choices(list(Kind), k=max(kills - len(kinds), 0)))[:kills]
    chance.shuffle(drawn)
    return [_kill(kind, chance) for kind in drawn]


def _kill(kind: Kind, chance: random.Random) -> Kill:
    patient = chance.random() >= IMPATIENT_SHARE
    return Kill(kind, chance.uniform(*(PATIENT_S if patient else IMPATIENT_S)), patient)


class Victims:
    """Finds the processes of a kind. Workers are looked at twice, to see which of them work."""

    def __init__(self) -> None:
        self._ticks: dict[Process, int] = {}

    def find(self, kind: Kind, alive: Sequence[Process], driver: int) -> list[Process]:
        """Processes of this kind, of which one may be killed; none when there is none at work just now.

        A worker writes when it holds an unsent Parquet file open. It reads when it works without one (or shapes what
        was read: the two cannot be told apart from outside).
        """
        match kind:
            case Kind.DRIVER:
                return [one for one in alive if one.pid == driver]
            case Kind.JVM:
                return processes.jvm(alive)
            case Kind.PLANNER:
                return processes.planners(alive)
            case Kind.WRITING:
                return [one for one in processes.workers(alive) if processes.open_files(one, ".parquet.part")]
            case _:
                return [one for one in self._working(alive) if not processes.open_files(one, ".parquet.part")]

    def _working(self, alive: Sequence[Process]) -> list[Process]:
        """Workers that used the processor since the last look."""
        before, self._ticks = self._ticks, {one: processes.cpu_ticks(one) for one in processes.workers(alive)}
        return [one for one, ticks in self._ticks.items() if ticks > before.get(one, ticks)]
