"""A crash before and after each numbered step of `parquet_sink/task/task.py` loses nothing and alters nothing.

The seams are patched from outside, by `integration/steps/sitecustomize.py`: production code has no hooks.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from integration.letters import letters
from integration.oracle.group import Group
from integration.oracle.judge import Stop, judge
from integration.oracle.load import Load
from integration.oracle.oracle import Oracle
from integration.sink_process import TABLE, SinkProcess, connector, dead_letters_of
from integration.steps.sitecustomize import SEAMS
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.client import TargetClient
from parquet_sink.addons.devkit.target.process import TargetProcess

PARTITIONS = 2
RECORDS = 1_200  # one full file (500 records) and some more for each topic-partition
MANY = 16  # so many that each Spark task has several, which are small
WAIT_S = 240.0
INTEGRATION = Path(__file__).parent


@dataclass(frozen=True)
class Step:
    """A crash at a seam; caller: only when called from there. whole: all processes of the sink, not only the one."""

    seam: str
    when: str
    caller: str = ""
    whole: bool = False


PROCESS = {
    "before 1, records arrive": Step("RangeReader._acquire", "before"),
    "after 1": Step("RangeReader._release", "after"),
    "before 2, rows": Step("RowBuilder.shape", "before"),
    "after 2": Step("Accumulator.add", "before"),
    "before 3, local files": Step("Accumulator._close", "before"),
    "after 3": Step("Accumulator._close", "after"),
    "before 4, upload": Step("PushTarget.push", "before"),
    "after 4": Step("PushTarget.push", "after"),
    "before its notice": Step("TopicNotices.send", "before"),
    "after its notice": Step("TopicNotices.send", "after"),
    "before 5, removal": Step("after_acceptance", "before"),
    "after 5": Step("after_acceptance", "after"),
    "before 7, acknowledgement": Step("RangeFlush.acknowledge", "before"),
    "before 8, outcome": Step("RangeFlush.outcome", "before"),
    "after 8": Step("PushWriter.write", "after"),
    "before 9, notes": Step("PushWriter.commit", "before"),
    "after 9": Step("SqliteStore.record_accepted", "after"),
    "before 10, group offsets": Step("GroupOffsets._look_and_commit", "before", "commit"),
    "after 10": Step("GroupOffsets._look_and_commit", "after", "commit"),
}
TOGETHER = {
    "before 1, small ranges are read together": Step("read_together", "before"),
    "after 1": Step("read_together", "after"),
    **{name: PROCESS[name] for name in ("after 3", "after 4", "before 8, outcome", "after 8", "after 9")},
}
WHOLE = {
    name: replace(PROCESS[name], whole=True) for name in ("after 3", "before its notice", "after its notice", "after 9")
}


class Bench:
    """A sink whose processes can be told to crash at a seam, with its records and their judge."""

    def __init__(self, broker: Broker, target: TargetProcess, topic: str, partitions: int, folder: Path) -> None:
        self._seams, self._target = folder / "seams", target
        self._broker, self._dead_letters = broker, dead_letters_of(topic)
        self._seams.mkdir()
        self.tmp = folder / "tmp"
        self.oracle = Oracle()
        address = broker.bootstrap_servers
        self._load = Load(address, topic, partitions, self.oracle, per_second=0, at_least=0)
        self.group = Group(address, f"connect-{topic}", topic, partitions)
        paths = [str(INTEGRATION / "steps"), str(INTEGRATION.parent), os.environ.get("PYTHONPATH", "")]
        environment = {
            "PARQUET_SINK_BOOTSTRAP_SERVERS": address,
            "PARQUET_SINK_TEST_SEAMS": str(self._seams),
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        }
        self._notices = f"{topic}-notices"
        broker.create_topic(self._notices, 1)
        notified = {**connector(topic, target.endpoint(), self.tmp), "connect.ems.notify.topic": self._notices}
        self.sink = SinkProcess([notified], folder, environment)

    def produce(self) -> None:
        self._load.more(RECORDS)

    def arm(self, step: Step) -> None:
        """The next time that a process comes to this seam, it dies there."""
        (self._seams / "fired").unlink(missing_ok=True)
        (self._seams / "new").write_text(json.dumps(asdict(step)))
        (self._seams / "new").rename(self._seams / "armed")

    def fired(self) -> bool:
        return (self._seams / "fired").exists()

    def delivered(self) -> bool:
        """Whether everything produced so far is committed."""
        try:
            return self.group.committed() == self.oracle.ends()
        except KafkaException:  # the group's coordinator is being made, or moves; it is asked again
            return False

    def until(self, done: Callable[[], bool], what: str, *, may_end: bool = False) -> None:
        """Waits. Fails with the sink's last words when that takes too long, or the sink ends unasked."""
        deadline = time.monotonic() + WAIT_S
        while not done():
            ended = self.sink.ended()
            assert may_end or ended is None, f"{what}: the sink ended with {ended}\n{self.sink.last_words()}"
            assert time.monotonic() < deadline, f"{what}: not within {WAIT_S} s\n{self.sink.last_words()}"
            time.sleep(0.05)

    def judged(self, *, start_again: bool) -> None:
        """SIGTERM, perhaps one more start with something left to do, and the oracle's word."""
        assert self.sink.terminate(WAIT_S) == 0, self.sink.last_words()
        with closing(self._target.client) as client:
            stop = Stop.of(self.group.committed(), client.files(TABLE))
            if start_again:
                self.produce()
                assert self.sink.run_to_end(WAIT_S, "--until-caught-up") == 0, self.sink.last_words()
            assert self.delivered()
            self._no_notice_is_missing(client)
            found = letters(self._broker, self._dead_letters)
            judge(self.oracle, client, TABLE, self.group.samples, stop, found)
        assert self.oracle.findings.clean, self.oracle.findings
        assert not list(self.tmp.rglob("*.part"))

    def _no_notice_is_missing(self, client: TargetClient) -> None:
        """Each file that the target took has one, with its bytes; there are none of others."""
        files = {(one["name"], one["sha256"]) for one in client.files(TABLE)}
        told = [json.loads(one.value() or b"") for one in letters(self._broker, self._notices)]
        assert {(one["file"], one["sha256"]) for one in told} == files

    def close(self) -> None:
        self.sink.end_all()
        self.group.close()


@pytest.fixture
def bench(
    broker: Broker, target: TargetProcess, topic: Callable[..., str], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Bench]:
    """A bench with a topic of its own, of so many topic-partitions as the test says; the sink is not started yet."""
    partitions = getattr(request, "param", PARTITIONS)
    made = Bench(broker, target, topic(partitions, prefix="steps"), partitions, tmp_path)
    yield made
    made.close()


def test_each_step_has_a_seam() -> None:
    """A step whose function was renamed is named at once, not by a wait that ends."""
    named = {step.seam for steps in (PROCESS, TOGETHER, WHOLE) for step in steps.values()}
    assert named <= {seam for seams in SEAMS.values() for seam in seams}


@pytest.mark.in_turn
@pytest.mark.timeout(1_200)  # less than a minute where it is quiet
def test_a_process_that_dies_at_any_step_loses_nothing(bench: Bench) -> None:
    """Whichever process is at work at a step, its death before or after the step is healed while the sink runs on."""
    bench.sink.start()
    bench.produce()
    bench.until(bench.delivered, "first records")
    crash_at(bench, PROCESS)
    bench.judged(start_again=False)


@pytest.mark.slow
@pytest.mark.timeout(1_200)  # less than a minute where it is quiet
@pytest.mark.parametrize("bench", [MANY], indirect=True)
def test_a_process_that_dies_with_many_small_ranges_loses_nothing(bench: Bench) -> None:
    """Those that are read together, and whose files are on their way side by side, end together, and come again."""
    bench.sink.start()
    bench.produce()
    bench.until(bench.delivered, "first records")
    crash_at(bench, TOGETHER)
    bench.judged(start_again=True)


def crash_at(bench: Bench, steps: Mapping[str, Step]) -> None:
    """One after the other; what was lost on the way is delivered before the next."""
    for name, step in steps.items():
        bench.arm(step)
        bench.produce()
        bench.until(bench.fired, name)
        bench.until(bench.delivered, name)


@pytest.mark.slow
@pytest.mark.timeout(1_200)  # about a minute where it is quiet
def test_a_program_that_dies_at_any_step_loses_nothing(bench: Bench) -> None:
    """When all processes die at once after a step, the next start delivers the rest, and removes local files."""
    for name, step in WHOLE.items():
        bench.arm(step)
        bench.produce()
        bench.sink.start()
        bench.until(bench.fired, name, may_end=True)
        bench.until(lambda: bench.sink.ended() is not None and not bench.sink.left_over(), name, may_end=True)
    bench.sink.start()
    bench.until(bench.delivered, "after all")
    bench.judged(start_again=False)
