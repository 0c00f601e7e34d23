"""Workers of a group whose internal topics have three replicas, while brokers are killed under load."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import requests
from confluent_kafka import KafkaException

from integration.broker_cluster import BrokerCluster, three_brokers
from integration.oracle.records import value_of
from integration.oracle.stream import Kind, Stream
from integration.worker_group import WorkerGroup
from integration.worker_process import WorkerProcess
from parquet_sink.addons.devkit.target.process import TargetProcess

START_S: Final = 600.0
RECOVERY_S: Final = 240.0
ASK_S: Final = 100.0
PER_SECOND: Final = 100.0
IDLE: Final = "idle"
"""A connector that is stopped, whose configuration is written again and again."""
REFUSALS: Final = frozenset({409, 500, 503})
_KEYS: Final = {
    **{f"{what}.storage.replication.factor": "3" for what in ("config", "status", "offset")},
    "session.timeout.ms": "10000",
}


class Writes:
    """Numbers that are written into a configuration by one worker after the other, and what was answered."""

    def __init__(self, workers: Sequence[WorkerProcess], config: dict[str, str]) -> None:
        self._workers, self.config = workers, config
        self._lock, self._number = threading.Lock(), 0
        self.refused: list[tuple[int, str]] = []
        self.done = 0

    def write(self, worker: WorkerProcess) -> bool:
        """One; whether it was done."""
        with self._lock:
            self._number += 1
            body = {**self.config, "connect.ems.commit.records": str(self._number)}
            answer = requests.put(f"{worker.url}/connectors/{IDLE}/config", json=body, timeout=ASK_S)
            if answer.status_code not in {200, 201}:
                self.refused.append((answer.status_code, answer.json()["message"]))
                return False
            self.done = self._number
            return True

    def stored(self, worker: WorkerProcess) -> int:
        """The number that a worker reads."""
        return int(worker.do("GET", f"/connectors/{IDLE}/config")["connect.ems.commit.records"])

    @contextmanager
    def again_and_again(self) -> Iterator[None]:
        """Within, until they end."""
        ends = threading.Event()

        def run() -> None:
            while not ends.wait(0.5):
                for worker in self._workers:
                    self.write(worker)

        thread = threading.Thread(target=run, name="writes", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ends.set()
            thread.join(2 * ASK_S)


class Scene:
    """Two workers, two connectors under load, and a third that is stopped."""

    def __init__(self, cluster: BrokerCluster, target: TargetProcess, folder: Path, parts: ExitStack) -> None:
        self.cluster = cluster
        self.group = WorkerGroup(folder, cluster, 2, _KEYS)
        parts.callback(self.group.close)
        self._endpoint, self._tmp = target.endpoint("brokers-lost"), folder / "tmp"
        named = f"lost-{time.time_ns()}"
        self.streams = [Stream(_kind(f"{named}-{number}"), cluster) for number in range(2)]
        for stream in self.streams:
            parts.callback(stream.close)
        self.writes = Writes(self.group.workers, self._config(self.streams[0]) | {"name": IDLE, "topics": "no-records"})

    def _config(self, stream: Stream) -> dict[str, str]:
        return stream.connector(self._endpoint, self._tmp)

    def start(self) -> None:
        """Returns once both connectors deliver."""
        self.cluster.create_topic("no-records")
        for stream in self.streams:
            stream.create()
        self.group.start()
        first = self.group.workers[0]
        body: dict[str, Any] = {"name": IDLE, "config": self.writes.config, "initial_state": "STOPPED"}
        first.do("POST", "/connectors", body)
        for stream in self.streams:
            first.do("PUT", f"/connectors/{stream.kind.topic}/config", self._config(stream))
            stream.load.start()
        self.until(lambda: all(sum(stream.committed.values()) for stream in self.streams), START_S)

    def until(self, condition: Callable[[], bool], within_s: float = RECOVERY_S) -> float:
        """Seconds that it took, while committed offsets are asked for."""

        def looked() -> bool:
            for stream in self.streams:
                assert stream.load.failure is None
                with suppress(KafkaException):  # no coordinator now
                    stream.look()
            return condition()

        return self.group.until(looked, within_s)

    def delivers(self) -> Callable[[], bool]:
        """Whether all that is in Kafka by now is committed."""
        ends = [(stream, stream.oracle.ends()) for stream in self.streams]
        return lambda: all(stream.reached(end) for stream, end in ends)

    def lose(self, number: int, what: str) -> None:
        """Kills a broker; returns once everything goes on without it, and then with it again."""
        self.cluster.brokers[number].kill()
        with self.writes.again_and_again():
            delivered = self.until(self.delivers())
            # what came after the loss is delivered, too
            after = self.until(self.delivers())
        written = [self.group.until(partial(self.writes.write, worker), RECOVERY_S) for worker in self.group.workers]
        print(f"{what}, broker {number}: delivered {delivered:.1f} s, {after:.1f} s, written {written}")
        print(f"refused: {Counter(self.writes.refused)}")
        self.until(lambda: set(self.states().values()) == {"RUNNING"} and len(self.states()) == 2)
        assert {self.writes.stored(worker) for worker in self.group.workers} == {self.writes.done}
        self.cluster.brokers[number].start()
        self.cluster.until_in_sync(RECOVERY_S)

    def states(self) -> dict[str, str]:
        """Of both connectors under load."""
        return {name: state for name, state in self.group.workers[0].states().items() if name != IDLE}


def _kind(name: str) -> Kind:
    return Kind(name, name.upper(), 4, 0.0, {"tasks.max": "2"}, value_of, PER_SECOND, 0)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_lost_brokers_cost_no_record_and_no_write(target: TargetProcess, tmp_path: Path) -> None:
    """The one that coordinates the group, then the one that leads the config topic.

    Connectors go on without them, and REST refuses changes with a cause until it does them again.
    """
    with ExitStack() as parts:
        cluster = parts.enter_context(three_brokers(tmp_path / "kafka"))
        scene = Scene(cluster, target, tmp_path, parts)
        scene.start()
        scene.lose(cluster.coordinator(scene.group.group_id), "coordinator")
        scene.lose(cluster.leader(f"{scene.group.group_id}-configs"), "leader of the config topic")
        for stream in scene.streams:
            stream.load.stop()
        scene.until(scene.delivers())
        for worker in scene.group.workers:
            worker.stop()
        with closing(target.client) as client:
            for stream in scene.streams:
                stream.judge(client, stream.stopped(client))
                findings = stream.oracle.findings
                print(stream.oracle.records, findings)
                assert findings.clean, findings
        assert {status for status, _ in scene.writes.refused} <= REFUSALS
        assert all(message for _, message in scene.writes.refused)
