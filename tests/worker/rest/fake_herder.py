"""A herder that keeps everything in a dictionary and runs nothing; requests are as slow as a test wants them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from parquet_sink.connectors.loading import load
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.worker.herder import log_levels
from parquet_sink.worker.herder.errors import (
    ConnectorExists,
    FlushRefused,
    HerderError,
    InvalidConnector,
    NotReadable,
    NotStopped,
    OffsetsRefused,
    OtherWorker,
    UnknownConnector,
    UnknownFlush,
    UnknownPartitions,
    UnknownTask,
    UnknownWorker,
    WorkerAnswers,
)
from parquet_sink.worker.herder.values import (
    OFFSET,
    PARTITION,
    TOPIC,
    AssignedConnector,
    ConnectorInfo,
    ConnectorProgress,
    ConnectorStatus,
    FlushedPartition,
    FlushReport,
    FlushState,
    HoldingWorker,
    LastError,
    LastUpload,
    PartitionProgress,
    State,
    StoredOffset,
    TargetState,
    TaskStatus,
    WorkerInfo,
    Workers,
)
from parquet_sink.worker_config.worker import Worker

WORKER = "worker-1:8083"
STATES = {TargetState.STARTED: State.RUNNING, TargetState.PAUSED: State.PAUSED, TargetState.STOPPED: State.STOPPED}


@dataclass
class Kept:
    """One connector."""

    config: dict[str, str]
    target: TargetState = TargetState.STARTED
    trace: str = ""
    offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    topics: tuple[str, ...] = ("orders",)


class FakeHerder:
    """Follows `herder.protocol.Herder`. fails: raised by every method. waits: called at the start of each command."""

    worker_id = WORKER

    def __init__(self) -> None:
        self.kept: dict[str, Kept] = {}
        self.fails: HerderError | None = None
        self.crashes: Exception | None = None
        self.waits: Callable[[], None] = lambda: None
        self.asked: list[tuple[object, ...]] = []
        self.files: Path | None = None
        self.flush_looks = 0
        self.others: tuple[HoldingWorker, ...] = ()

    def _may_fail(self) -> None:
        if self.crashes is not None:
            raise self.crashes
        if self.fails is not None:
            raise self.fails

    def _find(self, name: str) -> Kept:
        self._may_fail()
        if name not in self.kept:
            raise UnknownConnector(name)
        return self.kept[name]

    def kafka_cluster_id(self) -> str:
        self._may_fail()
        return "cluster-1"

    def ping(self) -> None:
        self._may_fail()

    def set_log_level(self, logger: str, level: str) -> None:
        self._may_fail()
        log_levels.set_level(logger, level, 1)

    def names(self) -> tuple[str, ...]:
        self._may_fail()
        return tuple(sorted(self.kept))

    def _tasks(self, name: str) -> int:
        kept = self.kept[name]
        return 0 if kept.target is TargetState.STOPPED else _number(kept.config.get("tasks.max", "1"))

    def info(self, name: str) -> ConnectorInfo:
        return ConnectorInfo(name, self._find(name).config, self._tasks(name))

    def status(self, name: str) -> ConnectorStatus:
        kept = self._find(name)
        state = State.FAILED if kept.trace else STATES[kept.target]
        tasks = tuple(TaskStatus(number, state, WORKER, kept.trace) for number in range(self._tasks(name)))
        return ConnectorStatus(name, state, WORKER, tasks, kept.trace)

    def workers(self) -> Workers:
        self._may_fail()
        connectors = tuple(AssignedConnector(name, "the connector is new", 1, "") for name in self.names())
        return Workers(1, 2, (WorkerInfo(WORKER, f"http://{WORKER}", leads=True, since_ms=1, connectors=connectors),))

    def own_progress(self) -> tuple[ConnectorProgress, ...]:
        return self.progress()

    def progress(self) -> tuple[ConnectorProgress, ...]:
        upload = LastUpload("orders", 0, 10, 19, 10, 1234, 1700000000.5)
        partitions = (PartitionProgress("orders", 0, 7, 1.5, 20.0, away=False),)
        error = LastError("the target is away", 1700000001.0)
        return tuple(
            ConnectorProgress(self.status(name), 3, 30, 4000, 1, upload, error, partitions) for name in self.names()
        )

    def create(self, name: str, config: Mapping[str, str], target: TargetState | None = None) -> ConnectorInfo:
        self.waits()
        self._may_fail()
        if name in self.kept:
            raise ConnectorExists(name)
        self._check(config)
        self.kept[name] = Kept(dict(config), target or TargetState.STARTED)
        return self.info(name)

    def _check(self, config: Mapping[str, str]) -> None:
        if "topics" not in config:
            raise InvalidConnector(["Invalid [topics]. It is missing.", "Invalid [topics.regex]. It is missing."])

    def put(self, name: str, config: Mapping[str, str]) -> tuple[ConnectorInfo, bool]:
        if name not in self.kept:
            return self.create(name, config), True
        self.waits()
        self._check(config)
        self._find(name).config = dict(config)
        return self.info(name), False

    def patch(self, name: str, changes: Mapping[str, str | None]) -> ConnectorInfo:
        kept = self._find(name)
        merged = {**kept.config, **changes}
        config = {key: text for key, text in merged.items() if text is not None}
        self._check(config)
        kept.config = config
        return self.info(name)

    def delete(self, name: str) -> None:
        self._find(name)
        del self.kept[name]

    def purge(self, name: str, *, only_look: bool = False) -> tuple[str, ...]:
        self._find(name)
        self.asked.append(("look" if only_look else "purge", name))
        return () if only_look else ("/tmp/kept.parquet",)

    def set_target(self, name: str, target: TargetState) -> None:
        self.waits()
        self._find(name).target = target

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        status = self.status(name)
        self.asked.append(("restart", name, include_tasks, only_failed))
        return replace(status, state=State.RESTARTING)

    def restart_task(self, name: str, task: int) -> None:
        self._find(name)
        if not 0 <= task < self._tasks(name):
            raise UnknownTask(name, task)
        self.asked.append(("restart_task", name, task))

    def forget_worker(self, worker_id: str) -> None:
        self._may_fail()
        if worker_id == WORKER:
            raise WorkerAnswers(worker_id)
        if worker_id not in {other.worker_id for other in self.others}:
            raise UnknownWorker(worker_id)
        self.others = tuple(other for other in self.others if other.worker_id != worker_id)

    def find_holders(self, name: str) -> tuple[HoldingWorker, ...]:
        self._find(name)
        return (HoldingWorker(WORKER, runs=True, answers=True), *self.others)

    def settings(self, name: str, worker_id: str | None = None) -> ConnectorSettings:
        """What the configuration says; files are in `files`."""
        if worker_id not in (None, WORKER):
            raise OtherWorker(None, name, worker_id)
        config = {**self._find(name).config, "name": name}
        if self.files is not None:
            config["connect.ems.tmp.dir"] = str(self.files)
        settings = load(config, Worker(), source="c").settings
        if settings is None:
            raise NotReadable("the configuration is wrong")
        return settings

    def flush(self, name: str, partitions: Sequence[tuple[str, int | None]] = ()) -> FlushReport:
        """Done once it was followed `flush_looks` times."""
        kept = self._find(name)
        if kept.target is not TargetState.STARTED:
            raise FlushRefused(f"Connector {name} is {kept.target.lower()}; resume it.")
        if unknown := [topic for topic, _ in partitions if topic not in kept.topics]:
            raise UnknownPartitions(f"Connector {name} does not have {unknown[0]}; it has orders:0.")
        self.asked.append(("flush", name, *partitions))
        return FlushReport("f1", name, FlushState.WAITING)

    def flushed(self, name: str, flush_id: str) -> FlushReport:
        self._find(name)
        if flush_id != "f1":
            raise UnknownFlush(name, flush_id)
        self.flush_looks -= 1
        state = FlushState.WAITING if self.flush_looks >= 0 else FlushState.DONE
        one = FlushedPartition("orders", 0, 10, 20, 10 if state is FlushState.WAITING else 20, state)
        return FlushReport(flush_id, name, state, (one,))

    def topics(self, name: str) -> tuple[str, ...]:
        self._may_fail()
        return self.kept[name].topics if name in self.kept else ()

    def reset_topics(self, name: str) -> None:
        self._find(name).topics = ()

    def offsets(self, name: str) -> tuple[StoredOffset, ...]:
        kept = sorted(self._find(name).offsets.items())
        return tuple(
            StoredOffset({TOPIC: topic, PARTITION: number}, {OFFSET: at}, at + 7) for (topic, number), at in kept
        )

    def _stopped(self, name: str) -> Kept:
        kept = self._find(name)
        if kept.target is not TargetState.STOPPED:
            raise NotStopped(name)
        return kept

    def alter_offsets(self, name: str, offsets: Sequence[StoredOffset]) -> None:
        kept = self._stopped(name)
        self.asked.append(("alter", *offsets))
        if any(one.partition[TOPIC] == "nowhere" for one in offsets):
            raise OffsetsRefused("topic nowhere is not there")
        for one in offsets:
            key = one.partition[TOPIC], one.partition[PARTITION]
            if one.offset is None:
                kept.offsets.pop(key, None)
            else:
                kept.offsets[key] = one.offset[OFFSET]

    def reset_offsets(self, name: str) -> None:
        self._stopped(name).offsets.clear()


def _number(text: str) -> int:
    """1 of what is none: a configuration that is wrong is refused elsewhere, as the real one does it."""
    return int(text) if text.strip().isdecimal() else 1
