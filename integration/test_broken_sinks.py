"""The harness of `make crash`, `make faults` and `make soak` on itself: sinks that are broken on purpose are caught.

One program runs six connectors: five broken in a way of their own by `integration/broken/sitecustomize.py`, one sound.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from integration.oracle.oracle import Findings
from integration.oracle.records import value_of
from integration.oracle.stream import Kind, Stream
from integration.sink_process import SinkProcess
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess

INTEGRATION = Path(__file__).parent
PARTITIONS, RECORDS, WAIT_S, LOOK_S = 2, 1_200, 240.0, 0.05
SOUND = "sound"


@dataclass(frozen=True)
class Broken:
    """faults: what the target is told. caught: what the oracle must have found; it may have found more."""

    faults: Mapping[str, Any]
    caught: frozenset[str]


LOSES = frozenset({"missing", "early_commits"})
BROKEN = {
    "commit-before-upload": Broken({"latency_s": 1.0}, frozenset({"early_commits"})),
    "drop-on-500": Broken({"status": 500, "next": 1}, LOSES),
    "skip-a-record": Broken({}, LOSES),
    "other-name-on-retry": Broken({"cut": "after", "next": 1}, frozenset({"renamed", "recut"})),
    "forget-a-partition": Broken({}, frozenset({"missing"})),
    SOUND: Broken({"cut": "after", "next": 1}, frozenset()),
}


class Bench:
    """The six connectors' streams; `run` delivers what was produced before, to the end."""

    def __init__(self, broker: Broker, target: TargetProcess, folder: Path) -> None:
        self.streams = {
            name: Stream(Kind(name, name, PARTITIONS, 0.0, {}, value_of, 0.0, 0), broker) for name in BROKEN
        }
        self._target = target
        paths = [str(INTEGRATION / "broken"), str(INTEGRATION.parent), os.environ.get("PYTHONPATH", "")]
        environment = {
            "PARQUET_SINK_BOOTSTRAP_SERVERS": broker.bootstrap_servers,
            "PARQUET_SINK_TEST_BROKEN": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        }
        files = [stream.connector(target.endpoint(), folder / "tmp") for stream in self.streams.values()]
        self.sink = SinkProcess(files, folder, environment)

    def run(self) -> None:
        """All that was produced, until the sink ends by itself; committed offsets are looked at all the time."""
        for name, broken in BROKEN.items():
            if broken.faults:
                self._target.client.order_faults({**broken.faults, "match": name})
            self.streams[name].create()
            self.streams[name].load.more(RECORDS)
        self.sink.start("--until-caught-up")
        deadline = time.monotonic() + WAIT_S
        while self.sink.ended() is None:
            assert time.monotonic() < deadline, self.sink.last_words()
            for stream in self.streams.values():
                stream.look()
            time.sleep(LOOK_S)
        assert self.sink.ended() == 0, self.sink.last_words()

    def judge(self, name: str) -> Findings:
        stream = self.streams[name]
        with closing(self._target.client) as client:
            stream.judge(client, stream.stopped(client))
        return stream.oracle.findings

    def close(self) -> None:
        self.sink.end_all()
        for stream in self.streams.values():
            stream.close()


@pytest.fixture
def bench(broker: Broker, target: TargetProcess, tmp_path: Path) -> Iterator[Bench]:
    """Six connectors; the sink is not started yet."""
    made = Bench(broker, target, tmp_path)
    yield made
    made.close()


@pytest.mark.in_turn
@pytest.mark.timeout(600)  # about half a minute where it is quiet
def test_each_broken_sink_is_caught(bench: Bench) -> None:
    """Committed before upload, dropped on 500, a record skipped, renamed on retry, a topic-partition forgotten."""
    bench.run()
    found = {name: bench.judge(name) for name in BROKEN}
    for name, broken in BROKEN.items():
        print(name, found[name].wrong)
        assert broken.caught <= found[name].wrong.keys(), f"{name}: {found[name]}"
        assert found[name].clean is (name == SOUND), f"{name}: {found[name]}"
