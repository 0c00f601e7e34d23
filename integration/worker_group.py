"""Several `parquet-sink worker` of one group on this machine, as `connect-distributed.properties` makes them."""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from signal import Signals
from typing import Any, Final

from confluent_kafka import Consumer, TopicPartition

from integration.harness import Sink
from integration.worker_process import WorkerProcess
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.distributed.records import Entry

TIMEOUT_S: Final = 120.0
READ_S: Final = 30.0
LOOK_S: Final = 0.2
"""Between two looks, each of which asks workers or the target."""
SESSION_MS: Final = 6_000
"""The shortest that a broker allows with its own settings."""


class WorkerGroup:
    """Workers with the same topics; each has its own REST API. more: further keys of the worker file."""

    def __init__(self, folder: Path, broker: Broker, count: int, more: Mapping[str, str] | None = None) -> None:
        self.group_id = f"workers-{uuid.uuid4().hex[:8]}"
        self._folder, self._broker = folder, broker
        self._keys = {
            "group.id": self.group_id,
            **{f"{what}.storage.topic": f"{self.group_id}-{what}s" for what in ("config", "offset", "status")},
            **{f"{what}.storage.replication.factor": "1" for what in ("config", "offset", "status")},
            "session.timeout.ms": str(SESSION_MS),
            "heartbeat.interval.ms": "1000",
            "parquet-sink.config.secrets": "plain",
            **(more or {}),
        }
        self.workers = [self.add() for _ in range(count)]

    def add(self, more: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None) -> WorkerProcess:
        """One more, not started yet. more, environment: of this one alone."""
        folder = self._folder / uuid.uuid4().hex[:8]
        folder.mkdir()
        return WorkerProcess(folder, self._broker, {**self._keys, **(more or {})}, environment=environment)

    def start(self) -> None:
        """All of them, one after the other."""
        for worker in self.workers:
            worker.start()
        self.until(lambda: len(self.placed(self.workers[0])) == len(self.workers))

    def placed(self, asked: WorkerProcess) -> dict[str, list[str]]:
        """Which connectors each worker has, by its id, as a worker tells."""
        found = asked.do("GET", "/workers")["workers"]
        return {one["worker_id"]: [connector["name"] for connector in one["connectors"]] for one in found}

    def leader(self, asked: WorkerProcess) -> WorkerProcess:
        """As a worker tells."""
        found = next(one["worker_id"] for one in asked.do("GET", "/workers")["workers"] if one["leads"])
        return next(one for one in self.workers if one.url.endswith(found))

    def worker_of(self, connector: str, asked: WorkerProcess) -> WorkerProcess:
        """That has a connector, as a worker tells."""
        found = next(worker for worker, names in self.placed(asked).items() if connector in names)
        return next(one for one in self.workers if one.url.endswith(found))

    def until(self, condition: Callable[[], bool], timeout_s: float = TIMEOUT_S) -> float:
        """Seconds that it took; fails when it takes too long."""
        began = time.monotonic()
        while not condition():
            assert time.monotonic() - began < timeout_s, self.said()
            time.sleep(LOOK_S)
        return time.monotonic() - began

    def config_records(self) -> list[Entry]:
        """Of the config topic, as far as they are committed."""
        options = {"bootstrap.servers": self._broker.bootstrap_servers, "group.id": uuid.uuid4().hex, "log_level": 0}
        found: list[Entry] = []
        with closing(Consumer({**options, "enable.partition.eof": True})) as consumer:
            consumer.assign([TopicPartition(f"{self.group_id}-configs", 0, 0)])
            deadline = time.monotonic() + READ_S
            while (message := consumer.poll(READ_S)) is not None and time.monotonic() < deadline:
                if message.error() is not None:
                    break  # its end
                found.append(Entry(message.key(), message.value(), message.offset()))
        return found

    def said(self) -> str:
        """The last words of each worker."""
        return "\n".join(f"== {one.url}\n{one.command.said[-3_000:]}" for one in self.workers if one.started)

    def close(self) -> None:
        for worker in self.workers:
            if worker.started:
                worker.command.signal_all(Signals.SIGCONT)
            worker.close()


def create(worker: WorkerProcess, sinks: Sequence[Sink], topics: Sequence[str], **ems: object) -> None:
    """A connector for each topic, by one worker."""
    for sink, topic in zip(sinks, topics, strict=True):
        body: dict[str, Any] = {"name": sink.name, "config": sink.properties(topic, **ems)}
        worker.do("POST", "/connectors", body)
