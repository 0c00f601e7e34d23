"""One row being played: a connector of its own, what is done to it, and what must be seen."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from integration.faults.program import Program
from integration.faults.rows import BROKE, HELD, Broke, Outcome, Row
from integration.faults.verdict import judge
from integration.faults.world import Topic, World
from integration.oracle.group import Group
from integration.oracle.oracle import Findings, Sample
from integration.sink_process import connector

LOOK_S: Final = 0.1
PATIENCE_S: Final = 600.0
"""So long that a busy machine is not taken for a fault that was not survived."""


class Act:
    """Subclasses say in `play` what is done, and in class variables what may be seen.

    stops: whether the connector is to stop, and then to be started once more. tolerated: findings of the oracle that
    this fault explains. own_sink: whether it needs a program of its own, because it hits all of it.
    """

    stops = False
    own_sink = False
    tolerated: frozenset[str] = frozenset()

    def __init__(self, row: Row, world: World, topic: Topic | None = None) -> None:
        self.row, self.world = row, world
        self.outcome = Outcome(row)
        self.given = topic
        self.program: Program
        self.group: Group
        self.seen: list[str] = []
        self.first_sample = 0
        self._failure: str | None = None
        self.troubles: list[str] = []

    # What a subclass may say otherwise.

    def prepare(self) -> None:
        """Before the program is started. Raises NotRun."""

    def make_topic(self) -> Topic:
        """Its own topic; by default 300 records are in it."""
        made = Topic(self.world.broker, self.name)
        made.produce(300)
        return made

    def keys(self) -> Mapping[str, str]:
        """Keys above those that all have."""
        return {}

    def mended(self) -> Mapping[str, str]:
        """Keys for the start after a stop, above all others: what an operator corrects."""
        return {}

    def play(self) -> None:
        """After the program was started, in a thread. Raises Broke."""
        self.until_delivered()

    def between(self) -> None:
        """Before the second start: what an operator mends."""

    def environment(self) -> Mapping[str, str]:
        """For the program, if it is its own."""
        return {}

    def clean_up(self) -> None:
        """At the very end, whatever happened."""

    # What it works with.

    @property
    def name(self) -> str:
        """Of connector and topic."""
        return self.row.slug

    @property
    def table(self) -> str:
        return self.row.slug.upper()

    @property
    def endpoint(self) -> str:
        return self.world.target.endpoint()

    @property
    def tmp_dir(self) -> Path:
        return self.world.folder / "tmp"

    @property
    def bootstrap_servers(self) -> str:
        return self.world.broker.bootstrap_servers

    @property
    def topic(self) -> Topic:
        assert self.given is not None
        return self.given

    def set_up(self) -> None:
        """Topic and group."""
        self.prepare()
        self.given = self.given or self.make_topic()
        self.group = Group(self.bootstrap_servers, f"connect-{self.name}", self.topic.name, self.topic.partitions)

    def settings(self) -> dict[str, str]:
        """The connector file: what all crash tests use, without transforms and dead letters."""
        made = connector(self.topic.name, self.endpoint, self.tmp_dir, self.table)
        made = {key: value for key, value in made.items() if not key.startswith(("transforms", "predicates", "errors"))}
        own = {
            "name": self.name,
            "connect.ems.commit.records": "100",
            "connect.ems.error.policy": "THROW",
            "connect.ems.max.retries": "20",
            "consumer.override.bootstrap.servers": self.bootstrap_servers,
            "consumer.override.metadata.max.age.ms": "1000",
        }
        return made | own | dict(self.keys())

    def saw(self, what: str) -> None:
        """Something for the table."""
        self.seen.append(what)

    def must(self, condition: object, otherwise: str) -> None:
        """Raises Broke when the condition does not hold."""
        if not condition:
            raise Broke(otherwise)

    def committed(self) -> dict[int, int]:
        """The last sample of the group's offsets."""
        return dict(self.group.samples[-1].committed) if self.group.samples else {}

    def delivered(self) -> bool:
        """Whether everything produced so far is committed."""
        found = self.committed()
        return all(found.get(partition, 0) >= end for partition, end in self.topic.ends().items())

    def until(self, condition: Callable[[], bool], trouble: str, timeout_s: float = PATIENCE_S) -> None:
        """Waits. Raises Broke when it takes too long, or when the connector fails meanwhile."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            self.must(self.failed() is None, f"the connector failed: {self.failed()}")
            self.must(self.program.ended() is None, f"the program ended with status {self.program.ended()}")
            self.must(time.monotonic() < deadline, f"{trouble} within {timeout_s:.0f} s; committed: {self.committed()}")
            time.sleep(LOOK_S)

    def wait(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Whether the condition came to hold, whatever becomes of the connector."""
        deadline = time.monotonic() + timeout_s
        while not condition() and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        return condition()

    def until_delivered(self, timeout_s: float = PATIENCE_S) -> None:
        self.until(self.delivered, "not everything was committed", timeout_s)

    def until_said(self, words: str, times: int = 1, timeout_s: float = PATIENCE_S) -> None:
        """Waits until lines of this connector have said these words so often."""
        self.until(lambda: self.said(words) >= times, f"the log did not say {words!r} {times} times", timeout_s)

    def until_failed(self, *words: str, timeout_s: float = PATIENCE_S) -> None:
        """Waits until the connector stops for good, with all these words. Raises Broke."""
        deadline = time.monotonic() + timeout_s
        while (failure := self.failed()) is None:
            self.must(time.monotonic() < deadline, f"the connector did not stop within {timeout_s:.0f} s")
            time.sleep(LOOK_S)
        for one in words:
            self.must(one in failure, f"its last words do not hold {one!r}: {failure}")
        self._failure = failure

    def failed(self) -> str | None:
        """The line by which the connector failed for good, since the last start."""
        return next((line for line in self.program.lines() if f" ERROR connector {self.name} failed: " in line), None)

    def said(self, words: str) -> int:
        """How many lines of this connector hold these words."""
        return sum(words in line and f"connector {self.name}:" in line for line in self.program.lines())

    # The end.

    def samples(self) -> Sequence[Sample]:
        """The group's offsets that are judged."""
        return self.group.samples[self.first_sample :]

    which: Callable[[Mapping[str, Any]], bool] | None = None
    """Which files of the table are judged, None: all, and its rows."""

    def judge(self) -> None:
        """The oracle's word, into `outcome`."""
        findings = Findings()
        with closing(self.world.target.client) as client:
            judged = judge(self.topic.oracle(), client, self.table, self.samples(), self.which)
        findings, outcome = judged.findings, self.outcome
        outcome.findings, outcome.files, outcome.largest_bytes = findings, judged.files, judged.largest_bytes
        outcome.records = len(self.topic.records)
        outcome.seen = "; ".join(self.seen)
        if wrong := judged.wrong(self.tolerated):
            self.troubles += [wrong, *findings.examples]
        outcome.troubles = self.troubles
        outcome.status = HELD if not self.troubles else BROKE
