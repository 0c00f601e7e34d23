"""Gauges for Prometheus: how connectors and topic-partitions stand now, and what processes take of the machine."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from parquet_sink import __version__
from parquet_sink.process.usage import Usage, memory_limit_bytes
from parquet_sink.worker.herder.values import ConnectorProgress, PartitionProgress, State, Workers
from parquet_sink.worker.metrics.labels import label

STANDS_S: Final = 10.0
"""How long a measurement stands at most."""
STANDS_COSTS: Final = 100
"""And this many times the CPU time that it took, which is some milliseconds, more with the memory that is in use."""
MOST_PARTITIONS: Final = 1_000
"""Topic-partitions of a worker that have series of their own: the first in order of connector, topic and number. Sums
and maxima of connectors are of all."""
OF_CONNECTOR: Final = ("connector",)
OF_GROUP: Final = ("group",)
_OF_PROCESSES: Final = {
    "memory_bytes": "Memory of the worker's processes on this machine; what n processes share counts 1/n for each.",
    "open_fds": "File descriptors that the worker's processes on this machine have open.",
    "threads": "Threads of the worker's processes on this machine.",
}
"""By field of `process.usage.Usage`."""
OF_PARTITION: Final = ("connector", "topic", "partition")


def families(connectors: Sequence[ConnectorProgress], intervals_s: Mapping[str, float]) -> Iterator[Metric]:
    """All gauges. intervals_s: the flush interval of each connector of which it is known."""
    yield from _states(connectors)
    yield from _sums(connectors)
    yield _interval(connectors, intervals_s)
    every = [
        (label(one.status.name), progress)
        for one in sorted(connectors, key=lambda one: one.status.name)
        for progress in sorted(one.partitions, key=lambda progress: (progress.topic, progress.partition))
    ]
    yield from _partitions(every[:MOST_PARTITIONS])
    yield GaugeMetricFamily(
        "parquet_sink_unlisted_partitions",
        "Topic-partitions beyond the bound, which have no series of their own.",
        value=max(len(every) - MOST_PARTITIONS, 0),
    )


def of_workers(workers: Workers, worker_id: str) -> Iterator[Metric]:
    """Of the group. worker_id: of this worker."""
    count = _gauge(
        "workers", "Workers of the group (group.id) that this one knows of; 1 for a standalone worker.", OF_GROUP
    )
    leads = _gauge("leads", "1 for the leader of its group, and for a standalone worker.", OF_GROUP)
    waiting = _gauge("unassigned_connectors", "Connectors of the group that no worker has.", OF_GROUP)
    group = [label(workers.group)]
    count.add_metric(group, len(workers.workers))
    leads.add_metric(group, float(any(one.leads and one.worker_id == worker_id for one in workers.workers)))
    waiting.add_metric(group, len(workers.waiting))
    yield from (count, leads, waiting)


def _states(connectors: Sequence[ConnectorProgress]) -> Iterator[Metric]:
    states = GaugeMetricFamily(
        "parquet_sink_connector_state",
        "1 for the state that the connector is in, else 0.",
        labels=("connector", "state"),
    )
    waits = GaugeMetricFamily(
        "parquet_sink_connector_waiting",
        "1 while it waits for what should recover by itself, or has not begun.",
        labels=OF_CONNECTOR,
    )
    for one in connectors:
        name = label(one.status.name)
        for state in State:
            states.add_metric([name, state], float(one.status.state is state))
        waits.add_metric([name], float(bool(one.status.waits_for)))
    yield states
    yield waits


def _sums(connectors: Sequence[ConnectorProgress]) -> Iterator[Metric]:
    lag = _gauge(
        "lag_records", "Records that Kafka has and the target has not. Absent while STOPPED or FAILED.", OF_CONNECTOR
    )
    oldest = _gauge(
        "oldest_unflushed_seconds",
        "Age of the oldest record that is not delivered; 0: none waits. Absent while STOPPED or FAILED.",
        OF_CONNECTOR,
    )
    held = _gauge(
        "held_back_seconds",
        "How long an open transaction has kept records from being read; 0: none does. Absent while STOPPED or FAILED.",
        OF_CONNECTOR,
    )
    silent = _gauge(
        "planner_silent_seconds",
        "How long ago the planner last looked for records. Absent during a micro-batch, and while it does not run.",
        OF_CONNECTOR,
    )
    count = _gauge("partitions", "Topic-partitions of the connector.", OF_CONNECTOR)
    away = _gauge("away_partitions", "Topic-partitions without a leader that answers.", OF_CONNECTOR)
    missing = _gauge("missing_topics", "Topics that the key topics names and that do not exist.", OF_CONNECTOR)
    waiting = _gauge(
        "archive_waiting_files",
        "Accepted files that wait for the archive (connect.ems.archive.required=false).",
        OF_CONNECTOR,
    )
    last = _gauge("last_upload_timestamp_seconds", "When a file was last accepted, epoch seconds.", OF_CONNECTOR)
    for one in connectors:
        name = [label(one.status.name)]
        if one.partitions:  # nobody looks at those of a stopped connector: 0 would say that nothing waits
            lag.add_metric(name, sum(partition.lag for partition in one.partitions))
            oldest.add_metric(name, max(partition.oldest_s or 0.0 for partition in one.partitions))
            held.add_metric(name, max(partition.held_s or 0.0 for partition in one.partitions))
        if one.planner_silent_s is not None:
            silent.add_metric(name, one.planner_silent_s)
        count.add_metric(name, len(one.partitions))
        away.add_metric(name, sum(partition.away for partition in one.partitions))
        missing.add_metric(name, len(one.missing_topics))
        waiting.add_metric(name, one.archive_waiting)
        if one.last_upload is not None:
            last.add_metric(name, one.last_upload.at_s)
    yield from (lag, oldest, held, silent, count, away, missing, waiting, last)


def _interval(connectors: Sequence[ConnectorProgress], intervals_s: Mapping[str, float]) -> Metric:
    interval = _gauge("flush_interval_seconds", "The flush interval, connect.ems.commit.interval.ms.", OF_CONNECTOR)
    for one in connectors:
        if (seconds := intervals_s.get(one.status.name)) is not None:
            interval.add_metric([label(one.status.name)], seconds)
    return interval


def _partitions(shown: Sequence[tuple[str, PartitionProgress]]) -> Iterator[Metric]:
    lag = _gauge("partition_lag_records", "Lag of the topic-partition.", OF_PARTITION)
    oldest = _gauge(
        "partition_oldest_unflushed_seconds",
        "Age of the topic-partition's oldest record that is not delivered; 0: none waits.",
        OF_PARTITION,
    )
    away = _gauge("partition_away", "1 while the topic-partition has no leader that answers.", OF_PARTITION)
    rate = _gauge(
        "partition_records_per_second", "Records accepted in a second, over the last ten seconds.", OF_PARTITION
    )
    for connector, one in shown:
        labels = [connector, label(one.topic), str(one.partition)]
        lag.add_metric(labels, one.lag)
        oldest.add_metric(labels, one.oldest_s or 0.0)
        away.add_metric(labels, float(one.away))
        rate.add_metric(labels, one.records_per_s)
    yield from (lag, oldest, away, rate)


def _gauge(name: str, text: str, labels: Sequence[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"parquet_sink_{name}", text, labels=labels)


class Machine(Collector):
    """usage: by kind of process. clock: seconds. cpu: seconds of CPU time that this thread took."""

    def __init__(
        self,
        usage: Callable[[], Mapping[str, Usage]],
        clock: Callable[[], float],
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        self._usage, self._clock, self._cpu = usage, clock, cpu
        self._measured: Mapping[str, Usage] = {}
        self._measured_s, self._stands_s = 0.0, 0.0

    def collect(self) -> Iterator[Metric]:
        info = GaugeMetricFamily("parquet_sink_info", "1; the label has the version.", labels=("version",))
        info.add_metric([__version__], 1)
        yield info
        now_s = self._clock()
        if not 0 <= now_s - self._measured_s < self._stands_s:
            began_s = self._cpu()
            self._measured, self._measured_s = self._usage(), now_s
            self._stands_s = min(STANDS_S, STANDS_COSTS * (self._cpu() - began_s))
        for name, text in _OF_PROCESSES.items():
            family = _gauge(name, text, ("process",))
            for kind, usage in sorted(self._measured.items()):
                family.add_metric([kind], getattr(usage, name))
            yield family
        if (limit := memory_limit_bytes()) is not None:
            yield GaugeMetricFamily(
                "parquet_sink_memory_limit_bytes",
                "Memory that the control group allows, or that the machine has.",
                value=limit,
            )
