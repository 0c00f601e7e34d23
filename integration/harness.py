"""Runs connectors in the test's own process, as `worker.loop.worker` does, in one Spark session for all tests.

A test asks the fixture `sink` for a `Run`: a connector whose settings went through the real loader of connector files.
"""

import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from pyspark.sql import SparkSession

from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.connectors.loading import load
from parquet_sink.files.durable_state import DURABLE_STATE, is_own_file
from parquet_sink.files.naming import component
from parquet_sink.model.events import Event, FileAccepted, FileFailed, OffsetsPassedOver
from parquet_sink.model.ranges import PartitionProgress
from parquet_sink.model.receipts import Failure, Receipt
from parquet_sink.settings.connector import with_cluster
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.spark import session
from parquet_sink.worker.loop.connector import Connector
from parquet_sink.worker.loop.status import Status
from parquet_sink.worker_config.worker_file import load_worker

TIMEOUT_S: Final = 120.0
LOOK_S: Final = 0.05
_ON_ITS_WAY: Final = {
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
}
WORKER: Final = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


def settings_of(
    properties: Mapping[str, str], bootstrap_servers: str, worker: Mapping[str, str] | None = None
) -> SinkSettings:
    """The settings of a connector file with these properties, on top of a worker file."""
    shared = load_worker({**WORKER, **(worker or {})}, source="worker", bootstrap_option=bootstrap_servers)
    return load(properties, shared.require(), source="test").require()


class Run:
    """One life of a connector, from `start` to `stop`; `receipts` holds what became of each file, in order."""

    def __init__(self, spark: SparkSession, settings: SinkSettings, folder: Path, **options: Any) -> None:
        self._spark = spark
        self._connector = Connector(settings, folder, **options)
        self._closed = False
        self.settings = settings
        self.receipts: list[Receipt] = []
        self.events: list[Event] = []
        self._last = 0

    @property
    def status(self) -> Status:
        return self._connector.status

    @property
    def failure(self) -> Failure:
        """Why the connector failed; a test asks only when it did."""
        assert self._connector.failure is not None, f"it did not fail, it is {self.status}"
        return self._connector.failure

    @property
    def accepted(self) -> list[Receipt]:
        return [receipt for receipt in self.receipts if receipt.accepted]

    @property
    def records(self) -> int:
        """Records in accepted files."""
        return sum(receipt.records for receipt in self.accepted)

    @property
    def losses(self) -> list[tuple[int, int, str]]:
        """Offsets that were passed over because what they held is gone, and why."""
        return [(one.start, one.end, str(one.cause)) for one in self.events if isinstance(one, OffsetsPassedOver)]

    @property
    def looked(self) -> bool:
        """Whether the connector has looked where its topic-partitions end: what comes now is new to it."""
        return self._connector.state is not None and bool(self._connector.state.progress())

    def progress(self) -> list[PartitionProgress]:
        """How its topic-partitions stand."""
        return [] if self._connector.state is None else self._connector.state.progress()

    def start(self) -> Self:
        self._connector.start(self._spark, slots=session.slots(self._spark))
        return self

    def until(self, condition: Callable[[], bool], timeout_s: float = TIMEOUT_S) -> Self:
        """Looks after the connector until the condition holds. Fails when it ends first, or takes too long."""
        deadline = time.monotonic() + timeout_s
        while True:
            self.look()
            if condition():
                return self
            assert self.status is Status.RUNNING, f"it ended before: {self.status}, {self._connector.failure}"
            assert time.monotonic() < deadline, f"not within {timeout_s} s; accepted: {self.accepted}"
            time.sleep(LOOK_S)

    def until_records(self, count: int) -> Self:
        """Until accepted files hold that many records."""
        return self.until(lambda: self.records >= count)

    def until_ended(self, timeout_s: float = TIMEOUT_S) -> Self:
        """Until the connector is done or has failed by itself; then it is closed."""
        deadline = time.monotonic() + timeout_s
        while self.status is Status.RUNNING:
            assert time.monotonic() < deadline, f"still running after {timeout_s} s; accepted: {self.accepted}"
            self.look()
            time.sleep(LOOK_S)
        return self.stop()

    def stop(self) -> Self:
        """What the first SIGTERM does; no harm when it was stopped before."""
        if not self._closed:
            self._connector.request_stop()
            while self._connector.active:
                self._connector.poll(self._spark)
                time.sleep(LOOK_S)
            self._collect()
            while not self._connector.at_rest:  # as the worker does: notices, and what is archived later
                time.sleep(LOOK_S)
                self._collect()
            self._connector.close()
            self._closed = True
        return self

    def look(self) -> None:
        """One poll of the connector, as the worker does it every quarter of a second."""
        self._connector.poll(self._spark)
        self._collect()

    def _collect(self) -> None:
        if self._connector.state is not None:
            batch = self._connector.state.events_after(self._last)
            self._last = batch.position
            self.events += batch.events
            self.receipts += [one.receipt for one in batch.events if isinstance(one, FileAccepted | FileFailed)]
        self.events += self._connector.news()


class Sink:
    """Makes connectors for one test: a name, a table and a folder for temporary files of their own."""

    def __init__(self, spark: SparkSession, broker: Broker, target: TargetProcess, folder: Path) -> None:
        self.spark, self.broker, self.target = spark, broker, target
        self.name = f"sink-{uuid.uuid4().hex[:10]}"
        self.tmp_dir = folder / "tmp"
        self._folder = folder
        self._runs: list[Run] = []

    @property
    def table(self) -> str:
        return self.name

    @property
    def group(self) -> str:
        return f"connect-{self.name}"

    def properties(self, topics: str, **ems: object) -> dict[str, str]:
        """A connector file; further keys of connect.ems. with underscores for full stops (`commit_records=5`)."""
        keys: dict[str, object] = {
            "endpoint": self.target.endpoint(),
            "authorization_key": "AppKey demo",
            "target_table": self.table,
            "commit_size_bytes": 10_000_000,
            "commit_records": 100_000,
            "commit_interval_ms": 1_000,
            "retry_interval": 1_000,
            "tmp_dir": self.tmp_dir,
            **ems,
        }
        own = {f"connect.ems.{name.replace('_', '.')}": str(value) for name, value in keys.items()}
        return {"name": self.name, "connector.class": "parquet_sink.EmsSink", "topics": topics, **own}

    def make(
        self,
        properties: Mapping[str, str],
        *,
        until_caught_up: bool = False,
        worker: Mapping[str, str] | None = None,
        broker: Broker | None = None,
        cluster: Mapping[str, str] | None = None,
    ) -> Run:
        """A connector that is not started yet. cluster: how its worker shares it with others, as of `with_cluster`."""
        settings = settings_of(properties, (broker or self.broker).bootstrap_servers, worker)
        settings = with_cluster(settings, **(cluster or {}))
        folder = self._folder / f"run-{len(self._runs)}"
        run = Run(self.spark, settings, folder, until_caught_up=until_caught_up)
        self._runs.append(run)
        return run

    def start(self, topics: str, more: Mapping[str, str] | None = None, **ems: object) -> Run:
        """A running connector. more: keys outside connect.ems."""
        return self.make({**self.properties(topics, **ems), **(more or {})}).start()

    def drain(self, topics: str, more: Mapping[str, str] | None = None, **ems: object) -> Run:
        """What `--until-caught-up` does, to its end."""
        properties = {**self.properties(topics, **ems), **(more or {})}
        return self.make(properties, until_caught_up=True).start().until_ended()

    def rows(self, table: str | None = None) -> list[dict[str, Any]]:
        """All rows of a table at the target, in the order of topic-partition and offset."""
        self.target.client.sync()
        if (table or self.table) not in self.target.client.tables():
            return []
        found: list[dict[str, Any]] = self.target.client.table(table or self.table).to_pylist()
        return sorted(found, key=lambda row: (row.get("kafkaPartition", 0), row.get("kafkaOffset", 0)))

    def offsets(self, topic: str, partitions: int = 1, group: str | None = None) -> list[int | None]:
        """The group's committed offset of each topic-partition, None where there is none."""
        return [offset for offset, _ in committed(self.broker, group or self.group, topic, partitions)]

    def remove_files(self) -> None:
        """The temporary files, with their folder, as where somebody cleans up."""
        remove_folder(self.tmp_dir)

    def close(self) -> None:
        for run in self._runs:
            run.stop()


def undeclared(folder: Path) -> list[Path]:
    """Return what a connector's folder has that is neither in the table of its durable state nor a topic's folder."""
    own = {item.name for item in DURABLE_STATE}
    found = folder.iterdir() if folder.exists() else ()
    return [path for path in found if path.name.startswith(".") and path.name not in own and not is_own_file(path.name)]


def remove_folder(folder: Path) -> None:
    """With all that is in it, while Spark's processes may still close a state: SQLite then removes two files itself."""
    while folder.exists():
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)


def committed(broker: Broker, group: str, topic: str, partitions: int = 1) -> list[tuple[int | None, str]]:
    """Committed offset (None when there is none) and metadata of each topic-partition."""
    reader = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "log_level": 0})
    try:
        found = _retried(lambda: reader.committed([TopicPartition(topic, n) for n in range(partitions)], timeout=20))
        return [(tp.offset if tp.offset >= 0 else None, tp.metadata or "") for tp in found]
    finally:
        reader.close()


def _retried(ask: Callable[[], list[TopicPartition]]) -> list[TopicPartition]:
    """A group's coordinator may be on its way to another broker, or be made, on a busy machine for seconds."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() not in _ON_ITS_WAY or time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def ends(broker: Broker, topic: str, partitions: int = 1) -> list[int]:
    """The high watermark of each topic-partition."""
    reader = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "ends", "log_level": 0})
    try:
        asked = [TopicPartition(topic, index) for index in range(partitions)]
        return [reader.get_watermark_offsets(tp, timeout=20)[1] for tp in asked]
    finally:
        reader.close()


def until_ends(broker: Broker, topic: str, expected: list[int], timeout_s: float = TIMEOUT_S) -> None:
    """Waits for these high watermarks: a transaction's marker is written a little after its commit was confirmed."""
    deadline = time.monotonic() + timeout_s
    while (found := ends(broker, topic, len(expected))) != expected:
        assert time.monotonic() < deadline, f"{topic} ends at {found}, not at {expected}"
        time.sleep(0.05)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The Spark session that all tests share, as `run` starts it."""
    shared = session.Session(None, tmp_path_factory.mktemp("run"))
    yield shared.start()
    shared.close()


@pytest.fixture
def sink(spark: SparkSession, broker: Broker, target: TargetProcess, tmp_path: Path) -> Iterator[Sink]:
    """Connectors of the shared session, broker and target; those that still run are stopped at the end."""
    made = Sink(spark, broker, target, tmp_path)
    yield made
    made.close()
    assert undeclared(made.tmp_dir / component(made.name)) == []
