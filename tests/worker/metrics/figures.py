"""Connectors as a herder tells of them, and pages of figures as Prometheus reads them."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from prometheus_client.parser import text_string_to_metric_families

from parquet_sink.model.events import FileAccepted
from parquet_sink.model.ranges import AttemptCount
from parquet_sink.model.receipts import Receipt
from parquet_sink.process.usage import Usage
from parquet_sink.worker.herder.protocol import Herder
from parquet_sink.worker.herder.values import (
    ConnectorProgress,
    ConnectorStatus,
    LastUpload,
    PartitionProgress,
    State,
    TaskStatus,
    WorkerInfo,
    Workers,
)
from parquet_sink.worker.metrics.exposition import Metrics
from tests.factories import Clock

Labels = frozenset[tuple[str, str]]
WORKER_ID = "127.0.0.1:8083"
RECEIPT = Receipt(
    "orders", "t", 0, "f.parquet", 0, 9, 10, rows=30, records=10, size_bytes=5_000_000, reason="interval",
    attempts=1, seconds={"write": 0.2, "upload": 0.7}, accepted_at=100.0, oldest_ms=91_000,
    answers=(AttemptCount("accepted", 200, 1),),
)  # fmt: skip
ACCEPTED = FileAccepted("orders", 100.0, "t", 0, RECEIPT)


def connector(
    name: str = "orders",
    state: State = State.RUNNING,
    *partitions: PartitionProgress,
    tasks: int = 2,
    waits_for: str = "",
    uploaded_s: float | None = None,
) -> ConnectorProgress:
    """How a connector stands."""
    of_tasks = tuple(TaskStatus(task, state, WORKER_ID) for task in range(tasks if state is not State.STOPPED else 0))
    status = ConnectorStatus(name, state, WORKER_ID, of_tasks, waits_for=waits_for)
    last = None if uploaded_s is None else LastUpload("orders", 0, 0, 9, 10, 1_000, uploaded_s)
    return ConnectorProgress(status, 0, 0, 0, 0, last, None, partitions)


class Page:
    """Figures of one moment, by name and labels."""

    def __init__(self, metrics: Metrics) -> None:
        text, self.content_type = metrics.exposition()
        self.text = text.decode()
        self.families = list(text_string_to_metric_families(self.text))
        self.samples: dict[tuple[str, Labels], float] = {}
        for family in self.families:
            for sample in family.samples:
                key = (sample.name, frozenset(sample.labels.items()))
                assert key not in self.samples, f"{key} stands there twice"
                self.samples[key] = sample.value

    def get(self, name: str, **labels: str) -> float | None:
        """The value of exactly this series; None when there is none."""
        return self.samples.get((name, frozenset(labels.items())))

    def all(self, name: str, label: str) -> dict[str, float]:
        """The values of all series of a name, by one of their labels."""
        return {dict(labels)[label]: value for (found, labels), value in self.samples.items() if found == name}

    def names(self) -> set[str]:
        return {name for name, _ in self.samples}

    def of(self, name: str) -> list[Labels]:
        """The labels of all series that name a connector."""
        return [labels for _, labels in self.samples if ("connector", name) in labels]


class World:
    """Metrics over connectors that the test sets, with a clock that stands still and usage that is given, at a cost.

    It is the herder, as far as figures ask one.
    """

    worker_id = WORKER_ID

    def __init__(self, *connectors: ConnectorProgress) -> None:
        self.connectors: Sequence[ConnectorProgress] = connectors
        self.clock = Clock(1_000.0)
        self.usage = {"program": Usage(100, 7, 5), "java": Usage(900, 400, 90)}
        self.measured, self.cost_s, self._spent = 0, 3.0, Clock()
        self.group = Workers(0, 0, (WorkerInfo(WORKER_ID, "", leads=True, since_ms=0, connectors=()),))
        self.metrics = Metrics(cast(Herder, self), self.clock, self._measure, self._spent)

    def _measure(self) -> dict[str, Usage]:
        self.measured += 1
        self._spent.sleep(self.cost_s)
        return self.usage

    def own_progress(self) -> Sequence[ConnectorProgress]:
        return self.connectors

    def workers(self) -> Workers:
        return self.group

    def page(self) -> Page:
        return Page(self.metrics)


def watched(name: str, interval_ms: int) -> Any:
    """A connector as the loop has it."""
    return SimpleNamespace(settings=SimpleNamespace(name=name, flush_interval_ms=interval_ms))
