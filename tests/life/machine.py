"""A connector's whole life as a state machine of hypothesis: what may happen, in any order; promises hold after each.

In the end the world is healed, and the connector must deliver everything, or have stopped with a named cause that an
operator can mend.
"""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.life.incidents import BEFALLS
from tests.life.promises import Hand
from tests.life.records import Kind
from tests.life.sink import Sink, Wishes
from tests.life.target import Reply
from tests.life.world import World

WISHES = st.builds(
    Wishes,
    commit_records=st.sampled_from([3, 5, 20]),
    commit_bytes=st.sampled_from([1_000, 1_000_000]),
    interval_ms=st.sampled_from([2_000, 2_000, 30_000]),
    error_policy=st.sampled_from(["THROW", "RETRY", "CONTINUE"]),
    tolerates=st.booleans(),
    max_retries=st.sampled_from([2, 5]),
    retry_interval_ms=st.sampled_from([1_000, 10_000]),
    lost_offsets=st.sampled_from(["STOP", "CONTINUE"]),
    tasks_max=st.sampled_from([None, 1]),
    offset_reset=st.sampled_from(["earliest", "earliest", "latest"]),
)
KINDS = st.one_of(
    st.lists(st.sampled_from(list(Kind)), min_size=1, max_size=4),
    st.tuples(st.sampled_from([Kind.GOOD, Kind.WIDE]), st.integers(1, 12)).map(lambda drawn: [drawn[0]] * drawn[1]),
)
GATES = (
    *("before push", "after push", "fetch", "task done", "before report", "after report"),
    *("before commit", "after commit", "before record_planned", "after record_planned"),
    *(
        "before begin_batch",
        "before record_accepted",
        "after record_accepted",
        "before parking",
        "after parking",
        "before removal",
        "",
    ),
)
"""Where something may happen; the last is any."""
ACTS = (
    *(
        "restart",
        "deliver what is there",
        "change settings",
        "mend and restart",
        "start elsewhere",
        "start twice",
        "kill",
    ),
    *(name for name in BEFALLS if "killed" not in name and name != "nothing"),
)
MENDS: dict[str, dict[str, Any]] = {
    "InvalidRecord": {"tolerates": True},
    "OffsetsLost": {"lost_offsets": "CONTINUE"},
}
"""What an operator changes before the next start, by why the connector failed."""
HEALED_STARTS, HEALED_TICKS = 10, 60
MEMORY = Path("/dev/shm")
"""Where no disk is waited for."""


class Life(RuleBasedStateMachine):
    """One connector, now and then on another machine; one topic with one or two topic-partitions."""

    def __init__(self) -> None:
        super().__init__()
        self._patch = pytest.MonkeyPatch()
        where = MEMORY if MEMORY.is_dir() else None
        self._folder = tempfile.TemporaryDirectory(prefix="parquet-sink-life-", dir=where)
        self.sinks: list[Sink] = []

    @initialize(seed=st.integers(0, 999), partitions=st.integers(1, 2), wishes=WISHES, knows_names=st.booleans())
    def begin(self, seed: int, partitions: int, wishes: Wishes, knows_names: bool) -> None:
        self.world = World(Path(self._folder.name), seed, self._patch)
        self.world.kafka.make("orders", partitions)
        self.world.target.knows_names = knows_names
        self.sinks = [Sink(self.world, "first", wishes)]
        self.sink.start()

    @property
    def sink(self) -> Sink:
        """On the machine where it was started last."""
        return self.sinks[-1]

    @rule(
        produced=st.lists(st.tuples(st.integers(0, 1), KINDS, st.sampled_from([0, 0, 1, 3])), max_size=2),
        ticks=st.lists(st.sampled_from([0.5, 2.0, 10.0]), min_size=1, max_size=6),
        replies=st.lists(st.sampled_from(list(Reply)), max_size=4),
        befalls=st.sampled_from(list(BEFALLS)),
        at=st.tuples(st.sampled_from(GATES), st.integers(0, 2)),
        number=st.integers(0, 99),
        starts=st.booleans(),
        mends=st.booleans(),
    )
    def live(
        self,
        produced: list[tuple[int, list[Kind], int]],
        ticks: list[float],
        replies: list[Reply],
        befalls: str,
        at: tuple[str, int],
        number: int,
        starts: bool,
        mends: bool,
    ) -> None:
        """Records come, time passes, the target answers so; something happens at a gate that the sink passes."""
        keys = self.world.kafka.partitions()
        for partition, kinds, gap in produced:
            self.world.produce(keys[partition % len(keys)], kinds, gap)
        if starts and not self.sink.up:
            if mends:
                self._mend()
            self.sink.start()
        self.world.target.replies = list(replies)
        self.world.effects.plan(*at, BEFALLS[befalls](self.world, self.sink, number))
        for seconds in ticks:
            for sink in self.sinks:
                sink.tick(seconds)
        self.world.effects.forget()

    @rule(act=st.sampled_from(ACTS), number=st.integers(0, 99))
    def operate(self, act: str, number: int) -> None:
        """Something is done, or happens, while the sink does nothing."""
        if act in BEFALLS:
            BEFALLS[act](self.world, self.sink, number)("")
        elif act in {"start elsewhere", "start twice"} and len(self.sinks) < 3:
            self._start_another("first" if act == "start twice" else f"machine{len(self.sinks)}")
        elif act == "kill":
            self.sink.kill()
        else:
            self.sink.stop()
            if act == "change settings":
                self._change_settings(number)
            if act == "mend and restart":
                self._mend()
            self.sink.start(draining=act == "deliver what is there")

    def _change_settings(self, number: int) -> None:
        self.world.promises.may_cut_anew()
        records = (3, 5, 20)[number % 3]
        self.sink.wishes = replace(self.sink.wishes, commit_records=records, tolerates=number % 2 == 0)

    def _mend(self) -> None:
        """What the connector failed for is seen to: a schema is registered, or a loss accepted."""
        if any(failure.kind == "InvalidRecord" for failure in self.sink.failures[-1:]):
            BEFALLS["schema registered"](self.world, self.sink, 0)("")
        elif any(failure.kind == "OffsetsLost" for failure in self.sink.failures[-1:]):
            self.world.promises.may_cut_anew()
            self.sink.wishes = replace(self.sink.wishes, lost_offsets="CONTINUE")

    def _start_another(self, machine: str) -> None:
        """On another machine, or on the same one, while the one before may run on."""
        self.world.promises.touched.add(Hand.GROUP)
        self.world.promises.memory_lost |= machine != "first"
        another = Sink(self.world, machine, self.sink.wishes)
        another.start()
        if another.up:
            self.world.promises.may_cut_anew()
            self.sink.is_current = False
            self.sinks.append(another)

    @invariant()
    def promises_hold(self) -> None:
        if self.sinks:
            self.world.promises.check()

    def teardown(self) -> None:
        try:
            if self.sinks and not self.world.promises.broken:
                self._heal()
        finally:
            for sink in self.sinks:
                sink.close()
            self._patch.undo()
            self._folder.cleanup()

    def _heal(self) -> None:
        """Nothing goes wrong any more, and an operator mends what the connector names: everything is delivered."""
        self.world.effects.forget()
        self.world.kafka.away = 0
        for key in self.world.kafka.partitions():
            self.world.kafka.log(key).end_transaction()
        self.world.target.heal()
        for sink in self.sinks[:-1]:
            sink.kill()
        for _ in range(HEALED_STARTS):
            if self._delivers():
                break
        self.world.promises.check_all_done()

    def _delivers(self) -> bool:
        """One start of the program, or what is left of it: until the lag is 0, or it fails."""
        if not self.sink.up:
            for failure in self.sink.failures[-1:]:
                self.sink.wishes = replace(self.sink.wishes, **MENDS.get(failure.kind, {}))
                self.world.promises.may_cut_anew()
            self.sink.start()
        for _ in range(HEALED_TICKS):
            if self.world.lag == 0 or not self.sink.up:
                break
            self.sink.tick(3.0)
        return self.world.lag == 0
