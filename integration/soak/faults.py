"""The faults of a soak: each is done once in a round, in an order drawn from a seed."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from os import kill
from signal import SIGCONT, SIGSTOP
from typing import Any, Final

from integration import processes
from integration.crash.kills import Kind, Victims
from integration.oracle.trial import Trial
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess

VICTIM_S: Final = 60.0
ANSWERS: Final[dict[str, dict[str, Any]]] = {
    "500, stored": {"status": 500, "store": True},
    "500": {"status": 500},
    "503 with Retry-After": {"status": 503, "retry_after": "1"},
    "429": {"status": 429, "retry_after": "1"},
    "408": {"status": 408},
    "200 with HTML": {"body": "<html>all is well</html>"},
    "connection cut before": {"cut": "before"},
    "connection cut after": {"cut": "after"},
    "answer cut": {"cut": "during"},
    "slow answers": {"latency_s": 3.0},
}
"""What the target does to some uploads."""
MOST_UPLOADS: Final = 4


@dataclass(frozen=True)
class Fault:
    """kind: in words. do: does it, and brings back what does not come back by itself; what was done, in words."""

    kind: str
    do: Callable[[], str]
    ends_sink: bool = False


class Faults:
    """Does faults to one trial. pause_s: how long broker and target stay away, at most."""

    def __init__(
        self, trial: Trial, broker: Broker, target: TargetProcess, chance: random.Random, pause_s: float
    ) -> None:
        self._trial, self._broker, self._target = trial, broker, target
        self._chance, self._pause_s, self._victims = chance, pause_s, Victims()
        answers = [Fault(kind, partial(self._answers, rule)) for kind, rule in ANSWERS.items()]
        kinds = (Kind.READING, Kind.WRITING, Kind.PLANNER)
        kills = [Fault(f"{kind} killed", partial(self._kill, kind)) for kind in kinds]
        self._mixed = [
            *answers,
            *kills,
            Fault("half of all uploads refused for a while", self._half),
            Fault("target killed", self._target_killed),
            Fault("target away", self._target_away),
            Fault("broker restarted", partial(self._broker_away, broker.stop)),
            Fault("broker killed", partial(self._broker_away, broker.kill)),
            Fault("broker paused", self._broker_paused),
        ]
        self.ends_of_sink = [
            Fault("program killed", partial(self._kill, Kind.DRIVER), ends_sink=True),
            Fault("Java killed", partial(self._kill, Kind.JVM), ends_sink=True),
        ]

    @property
    def kinds(self) -> int:
        """How many there are in a round."""
        return len(self._mixed)

    def rounds(self) -> Iterator[Fault]:
        """Without an end; each round has all of them."""
        while True:
            yield from self._chance.sample(self._mixed, len(self._mixed))

    def _answers(self, rule: dict[str, Any]) -> str:
        uploads = self._chance.randint(1, MOST_UPLOADS)
        with closing(self._target.client) as client:
            client.clear_faults()
            client.order_faults({**rule, "next": uploads})
            self._trial.until(lambda: bool(client.faults()[0]["fired"]), "no upload met the fault", VICTIM_S)
        return f"{uploads} uploads"

    def _half(self) -> str:
        with closing(self._target.client) as client:
            client.order_faults({"status": 503, "rate": 0.5})
            self._trial.wait(seconds := self._away_s())
            client.clear_faults()
        return f"for {seconds:.0f} s"

    def _target_killed(self) -> str:
        self._target.restart()
        return "and started again at once"

    def _target_away(self) -> str:
        self._target.stop()
        self._trial.wait(seconds := self._away_s())
        self._target.start()
        return f"for {seconds:.0f} s"

    def _kill(self, kind: Kind) -> str:
        found: list[processes.Process] = []

        def look() -> bool:
            found[:] = self._victims.find(kind, self._trial.sink.processes(), self._trial.sink.pid)
            return bool(found)

        self._trial.until(look, f"no process to kill as {kind}", VICTIM_S)
        victim = self._chance.choice(found)
        processes.kill(victim)
        return f"process {victim.pid}"

    def _broker_away(self, end: Callable[[], None]) -> str:
        """Nothing is asked of the broker meanwhile."""
        end()
        time.sleep(seconds := self._away_s())
        self._broker.start()
        self._trial.ask()
        return f"away for {seconds:.0f} s"

    def _broker_paused(self) -> str:
        kill(self._broker.pid, SIGSTOP)
        try:
            time.sleep(seconds := self._away_s())
        finally:
            kill(self._broker.pid, SIGCONT)
        self._trial.ask()
        return f"for {seconds:.0f} s"

    def _away_s(self) -> float:
        return self._chance.uniform(0.2, 1.0) * self._pause_s
