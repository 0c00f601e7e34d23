"""Figures under the names that Kafka Connect's have behind the JMX exporter, for dashboards that know those.

`NAMES` is the table; docs/reference/metrics.md is made of it. A connector's figures stand at its task 0 where Connect
has them for each task: Spark deals ranges to other tasks each time, so that a task of ours has no figures of its own.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.core import Metric, UntypedMetricFamily

from parquet_sink import __version__
from parquet_sink.model.events import (
    ConnectorFailed,
    Event,
    FileAccepted,
    FileFailed,
    OffsetCommitted,
    RangeFlushed,
    RangePostponed,
    RecordsDelivered,
    RecordsSetAside,
    SourcePolled,
)
from parquet_sink.worker.herder.values import ConnectorProgress, State
from parquet_sink.worker.metrics.labels import label

WINDOW_S: Final = 60
WORKER: Final = "kafka_connect_connect_worker_metrics_"
CONNECTOR: Final = "kafka_connect_connector_metrics"
TASK: Final = "kafka_connect_connector_task_metrics_"
SINK: Final = "kafka_connect_sink_task_metrics_"
SOURCE: Final = "kafka_connect_source_task_metrics_"
ERRORS: Final = "kafka_connect_task_error_metrics_"
Sample = tuple[Mapping[str, str], float]
APP: Final = "kafka_connect_app"
OF_THE_WORKER: Final = (
    (f"{WORKER}connector_count", "Connectors of this worker."),
    (f"{WORKER}task_count", "Tasks of this worker."),
)


@dataclass
class Recent:
    """Of one kind of thing; takes a bucket for each second, however much happens. Seconds come from one clock."""

    _buckets: deque[tuple[int, int, float, float]] = field(default_factory=deque)
    """Second, how often, sum, maximum."""

    def add(self, now_s: float, amount: float) -> None:
        second, times, total, most = int(now_s), 1, amount, amount
        if self._buckets and self._buckets[-1][0] >= second:
            second, before, sum_before, most_before = self._buckets.pop()
            times, total, most = before + 1, sum_before + amount, max(most_before, amount)
        self._buckets.append((second, times, total, most))
        self._drop(now_s)

    def rate(self, now_s: float) -> float:
        """Of the sum, in a second."""
        self._drop(now_s)
        return sum(total for _, _, total, _ in self._buckets) / WINDOW_S

    def mean(self, now_s: float) -> float:
        """Of the amounts; 0 when there are none."""
        self._drop(now_s)
        times = sum(times for _, times, _, _ in self._buckets)
        return sum(total for _, _, total, _ in self._buckets) / times if times else 0.0

    def maximum(self, now_s: float) -> float:
        """Of the amounts; 0 when there are none."""
        self._drop(now_s)
        return max((most for _, _, _, most in self._buckets), default=0.0)

    def _drop(self, now_s: float) -> None:
        while self._buckets and self._buckets[0][0] <= now_s - WINDOW_S:
            self._buckets.popleft()


@dataclass
class ConnectorSums:
    """clock: epoch seconds. Counts are of records, but `commits`, of offsets, and `retries`. last_error_s: epoch."""

    clock: Callable[[], float]
    read: int = 0
    sent: int = 0
    set_aside: int = 0
    dead_letters: int = 0
    commits: int = 0
    retries: int = 0
    last_error_s: float = 0.0
    recently_read: Recent = field(default_factory=Recent)
    recently_sent: Recent = field(default_factory=Recent)
    recent_commits: Recent = field(default_factory=Recent)
    recent_uploads_s: Recent = field(default_factory=Recent)
    polled: int = 0
    recently_polled: Recent = field(default_factory=Recent)
    recent_polls_s: Recent = field(default_factory=Recent)

    def add(self, event: Event) -> None:
        now_s = self.clock()
        match event:
            case FileAccepted():
                self.sent += event.receipt.records
                self.recently_sent.add(now_s, event.receipt.records)
                self.recent_uploads_s.add(now_s, event.receipt.seconds.get("upload", 0.0))
                self.retries += max(sum(one.count for one in event.receipt.answers) - 1, 0)
            case RecordsDelivered():
                self.sent += event.records
                self.recently_sent.add(now_s, event.records)
            case SourcePolled():
                self.polled += event.polled
                self.set_aside += event.passed_over
                self.last_error_s = event.at_s if event.passed_over else self.last_error_s
                self.recently_polled.add(now_s, event.polled)
                self.recent_polls_s.add(now_s, event.longest_poll_s)
            case RangeFlushed():
                self.read += event.read
                self.recently_read.add(now_s, event.read)
            case RangePostponed():
                self.retries += max(sum(one.count for one in event.answers), 1)
            case RecordsSetAside():
                self.set_aside += event.count
                self.dead_letters += event.count if event.dead_letters else 0
                self.last_error_s = event.at_s
            case OffsetCommitted():
                self.commits += 1
                self.recent_commits.add(now_s, 1)
            case FileFailed() | ConnectorFailed():
                self.last_error_s = event.at_s


@dataclass(frozen=True)
class One:
    """A connector: how it stands, and what happened to it. now_s: epoch seconds."""

    progress: ConnectorProgress
    sums: ConnectorSums
    now_s: float

    @property
    def name(self) -> str:
        return label(self.progress.status.name)


Of = Callable[[One], Iterable[Sample]]


@dataclass(frozen=True)
class ConnectName:
    """A name, what stands for it here, and its samples of one connector."""

    name: str
    text: str
    of: Of


def _sum(name: str, text: str, value: Callable[[One], float | None], kind: str | None = None) -> ConnectName:
    """One figure for a connector, at its task 0; None for one that is not known. kind: of sinks or sources alone."""

    def samples(one: One) -> Iterable[Sample]:
        found = value(one) if kind in (None, one.progress.kind) else None
        if found is not None:
            yield {"connector": one.name, "task": "0"}, found

    return ConnectName(name, text, samples)


def _of_source(name: str, text: str, value: Callable[[One], float]) -> ConnectName:
    return _sum(f"{SOURCE}{name}", text, value, "source")


def _of_sink(name: str, text: str, value: Callable[[One], float | None]) -> ConnectName:
    return _sum(f"{SINK}{name}", text, value, "sink")


def _tasks_in(state: State | None) -> Of:
    def count(one: One) -> Iterable[Sample]:
        tasks = one.progress.status.tasks
        yield {"connector": one.name}, sum(state in {None, task.state} for task in tasks)

    return count


def _ratio(state: State) -> Of:
    def ratios(one: One) -> Iterable[Sample]:
        for task in one.progress.status.tasks:
            yield {"connector": one.name, "task": str(task.id)}, float(task.state is state)

    return ratios


def _about(one: One) -> Iterable[Sample]:
    connector = {"connector": one.name}
    yield {**connector, "status": one.progress.status.state.lower()}, 1
    yield {**connector, "connector_type": one.progress.kind}, 1
    yield {**connector, "connector_version": __version__}, 1


NAMES: Final[Sequence[ConnectName]] = (
    ConnectName(f"{WORKER}connector_total_task_count", "Tasks of the connector.", _tasks_in(None)),
    *(
        ConnectName(
            f"{WORKER}connector_{state.lower()}_task_count",
            f"Tasks of the connector that are {state}.",
            _tasks_in(state),
        )
        for state in (State.RUNNING, State.PAUSED, State.FAILED, State.UNASSIGNED, State.RESTARTING)
    ),
    ConnectName(CONNECTOR, "1 for the status, the type and the version that the labels name.", _about),
    ConnectName(f"{TASK}running_ratio", "1 if the task is RUNNING now, else 0.", _ratio(State.RUNNING)),
    ConnectName(f"{TASK}pause_ratio", "1 if the task is PAUSED now, else 0.", _ratio(State.PAUSED)),
    _of_sink("partition_count", "Topic-partitions of the connector.", lambda one: len(one.progress.partitions)),
    _of_sink("sink_record_read_total", "Records read, counted when their range is done.", lambda one: one.sums.read),
    _of_sink("sink_record_send_total", "Records in accepted files.", lambda one: one.sums.sent),
    _of_sink(
        "sink_record_read_rate",
        "Records read in a second, over the last minute.",
        lambda one: one.sums.recently_read.rate(one.now_s),
    ),
    _of_sink(
        "sink_record_send_rate",
        "Records in accepted files in a second, over the last minute.",
        lambda one: one.sums.recently_sent.rate(one.now_s),
    ),
    _of_sink(
        "sink_record_lag_max",
        "The largest lag of its topic-partitions, up to the end of the topic. Absent while STOPPED or FAILED.",
        lambda one: max((partition.lag for partition in one.progress.partitions), default=None),
    ),
    _of_sink("offset_commit_completion_total", "Offsets committed.", lambda one: one.sums.commits),
    _of_sink(
        "offset_commit_completion_rate",
        "Offsets committed in a second, over the last minute.",
        lambda one: one.sums.recent_commits.rate(one.now_s),
    ),
    _of_sink(
        "put_batch_avg_time_ms",
        "Mean time until a file was accepted, over the last minute.",
        lambda one: 1000 * one.sums.recent_uploads_s.mean(one.now_s),
    ),
    _of_sink(
        "put_batch_max_time_ms",
        "Longest time until a file was accepted, of the last minute.",
        lambda one: 1000 * one.sums.recent_uploads_s.maximum(one.now_s),
    ),
    _of_source("source_record_poll_total", "Records that the source gave.", lambda one: one.sums.polled),
    _of_source("source_record_write_total", "Records that brokers acknowledged.", lambda one: one.sums.sent),
    _of_source(
        "source_record_poll_rate",
        "Records that the source gave in a second, over the last minute.",
        lambda one: one.sums.recently_polled.rate(one.now_s),
    ),
    _of_source(
        "source_record_write_rate",
        "Records that brokers acknowledged in a second, over the last minute.",
        lambda one: one.sums.recently_sent.rate(one.now_s),
    ),
    _of_source(
        "poll_batch_max_time_ms",
        "The longest time that a task took to give records, of the last minute.",
        lambda one: 1000 * one.sums.recent_polls_s.maximum(one.now_s),
    ),
    _sum(f"{ERRORS}total_record_failures", "Records that were diverted.", lambda one: one.sums.set_aside),
    _sum(f"{ERRORS}total_record_errors", "Records that were diverted.", lambda one: one.sums.set_aside),
    _sum(f"{ERRORS}total_records_skipped", "Records that were diverted.", lambda one: one.sums.set_aside),
    _sum(f"{ERRORS}total_retries", "Uploads and ranges that were tried again.", lambda one: one.sums.retries),
    _sum(
        f"{ERRORS}deadletterqueue_produce_requests",
        "Records written to the dead-letter topic.",
        lambda one: one.sums.dead_letters,
    ),
    _sum(
        f"{ERRORS}last_error_timestamp",
        "When a record was diverted, a file failed or the connector did; epoch milliseconds, 0 for never.",
        lambda one: round(1000 * one.sums.last_error_s),
    ),
)


def families(connectors: Sequence[One]) -> Iterator[Metric]:
    """All of them, for these connectors."""
    counts = (len(connectors), sum(len(one.progress.status.tasks) for one in connectors))
    for (name, text), count in zip(OF_THE_WORKER, counts, strict=True):
        yield UntypedMetricFamily(name, text, count)
    app = UntypedMetricFamily(
        APP, "1, with the worker's id as client_id, and its version.", labels=("client_id", "version")
    )
    for worker_id in sorted({one.progress.status.worker_id for one in connectors}):
        app.add_metric([label(worker_id), __version__], 1)
    yield app
    for one in NAMES:
        family = UntypedMetricFamily(one.name, one.text, labels=())
        for connector in connectors:
            for labels, value in one.of(connector):
                family.add_sample(one.name, dict(labels), value)
        yield family
