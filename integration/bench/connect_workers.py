"""One worker with many connectors, started as its users start it: ours, or Kafka Connect's with its file sink."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import requests

from integration.bench.parts import Stand
from integration.bench.running import connector_keys
from integration.connect import theirs
from integration.connect.play import until_ready
from integration.worker_process import WorkerProcess
from parquet_sink.addons.devkit.ports import free_port
from parquet_sink.errors import SetupError

POLL_S: Final = 0.1
REQUEST_S: Final = 100.0
STOCK_JAVA: Final = (
    *("-Xms256M", "-Xmx2G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true"),
)
"""Options of Java that Kafka's own `connect-distributed.sh` has."""
TEST_INTERVALS: Final = ("offset.flush.interval.ms", "scheduled.rebalance.max.delay.ms")
"""Keys of the comparison's worker file that a benchmark leaves at Kafka Connect's defaults."""


@dataclass(frozen=True)
class ConnectWorker:
    """A worker that runs and has no connectors yet.

    make_config: of a connector for a topic that has the connector's name. count_delivered: records delivered so far.
    """

    pid: int
    url: str
    make_config: Callable[[str], dict[str, str]]
    count_delivered: Callable[[], int]
    read_log: Callable[[], str]
    _session: requests.Session = field(default_factory=requests.Session)

    def create_connectors(self, topics: list[str], timeout_s: float) -> float:
        """Create a connector for each topic, one after the other. Return seconds until all run and have delivered.

        Raise SetupError if that takes longer than timeout_s.
        """
        began, before = time.monotonic(), self.count_delivered()
        deadline = began + timeout_s
        for topic in topics:
            body = {"name": topic, "config": self.make_config(topic)}
            self.wait(f"connector {topic}", lambda body=body: self._create(body), deadline)
        self.wait("a record of each", lambda: self.count_delivered() - before >= len(topics), deadline)
        self.wait("all connectors RUNNING", lambda: self._count_running() == len(topics), deadline)
        return time.monotonic() - began

    def wait(self, what: str, check: Callable[[], bool], deadline: float) -> None:
        """Wait until the check holds. Raise SetupError after the deadline (monotonic seconds)."""
        while not check():
            if time.monotonic() > deadline:
                raise SetupError(
                    f"There was not in time: {what}. The end of the worker's log:\n{self.read_log()[-3_000:]}"
                )
            time.sleep(POLL_S)

    def measure_answer_ms(self, path: str) -> float:
        """Return the milliseconds until a GET is answered. Raise HTTPError if it fails."""
        began = time.perf_counter()
        self._session.get(self.url + path, timeout=REQUEST_S).raise_for_status()
        return 1_000 * (time.perf_counter() - began)

    def _create(self, body: dict[str, Any]) -> bool:
        """Return False if the worker is rebalancing, which Kafka Connect answers with 409."""
        response = self._session.post(f"{self.url}/connectors", json=body, timeout=REQUEST_S)
        if response.status_code == requests.codes.conflict:
            return False
        if not response.ok:
            raise SetupError(f"Connector {body['name']} was not created: {response.status_code} {response.text}")
        return True

    def _count_running(self) -> int:
        """Return how many connectors are RUNNING with all their tasks."""
        listed = self._session.get(f"{self.url}/connectors?expand=status", timeout=REQUEST_S).json()
        statuses = [entry["status"] for entry in listed.values()]
        return sum(
            bool(status["tasks"])
            and {status["connector"]["state"], *(task["state"] for task in status["tasks"])} == {"RUNNING"}
            for status in statuses
        )


@contextmanager
def run_our_worker(stand: Stand, folder: Path, flush: dict[str, int]) -> Iterator[ConnectWorker]:
    """Run `parquet-sink worker`. flush: `commit.*` keys of its connectors, above the stand's."""
    endpoint = stand.target.endpoint()

    def make_config(topic: str) -> dict[str, str]:
        return connector_keys(folder, topic, topic, endpoint, {**stand.flush, **flush}, stand.keys)

    with closing(WorkerProcess(folder, stand.broker)) as worker:
        worker.start()
        pid = worker.command.process.pid
        yield ConnectWorker(pid, worker.url, make_config, stand.rows, lambda: worker.command.said)
        worker.stop()


@contextmanager
def run_kafka_connect(stand: Stand, folder: Path) -> Iterator[ConnectWorker]:
    """Run Kafka Connect's distributed worker, each of whose connectors writes a file of its own."""
    output, port = folder / "delivered", free_port()
    output.mkdir()
    keys = {key: value for key, value in theirs.properties(stand.broker, port).items() if key not in TEST_INTERVALS}
    path = folder / "connect.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))

    def make_config(topic: str) -> dict[str, str]:
        file = str(output / topic)
        return {"connector.class": theirs.CLASS, "tasks.max": "1", "topics": topic, "file": file}

    def count_delivered() -> int:
        return sum(file.stat().st_size > 0 for file in output.iterdir())

    def read_log() -> str:
        return (folder / theirs.LOG).read_text(errors="replace")

    with theirs.started(path, folder, java=STOCK_JAVA) as process:
        url = f"http://127.0.0.1:{port}"
        until_ready(url, lambda: process.poll() is None, read_log, theirs.START_S)
        yield ConnectWorker(process.pid, url, make_config, count_delivered, read_log)
