"""docs/reference/metrics.md: all that `/metrics` has, as it is declared.

`python -m parquet_sink.worker.metrics.documentation > docs/reference/metrics.md` writes the page.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from parquet_sink.process.usage import Usage
from parquet_sink.worker.herder.values import (
    ConnectorProgress,
    ConnectorStatus,
    LastUpload,
    PartitionProgress,
    State,
    WorkerInfo,
    Workers,
)
from parquet_sink.worker.metrics import connect_names, gauges
from parquet_sink.worker.metrics.counters import Counters
from parquet_sink.worker.metrics.labels import MOST_TOPICS

_INTRO: Final = f"""\
<!-- Written by `python -m parquet_sink.worker.metrics.documentation > docs/reference/metrics.md`; do not edit. -->
# Metrics

For those who build dashboards and alerts: every figure that a worker has at `/metrics`. How to set it up, and what to
look at first: [monitoring.md](../how-to/monitoring.md).

Counters begin at 0 when the worker starts; those of a connector end when it is deleted. Figures of a connector cover
all its topic-partitions. At most {MOST_TOPICS} topics have series of their own, the others share `topic="(other)"`;
and at most {gauges.MOST_PARTITIONS:,} topic-partitions, the first by connector, topic and number.
"""
_OTHERS: Final = """
`process_*` are those of every Prometheus client, of the program itself: CPU, memory, open files, start time. The memory
of executors on a Spark cluster is in Spark's own figures.
"""
_CONNECT: Final = """
## Under Kafka Connect's names

For dashboards of Kafka Connect: the names that the JMX exporter gives, untyped as there. Figures of a connector are at
its task 0. Name the job as the dashboard selects it, often `job="kafka-connect"`; labels that it wants, such as `env`,
can be given in the job's `static_configs`.
"""
_ABSENT: Final = """
Absent, because nothing here is like it: rebalances, the coordinator, `batch_size_*`, `sink_record_active_count`, and
the JVM's heap, which Spark's own figures have.
"""
_PARTITION: Final = PartitionProgress("orders", 0, 0, None, 0.0, away=False)
_CONNECTOR: Final = ConnectorProgress(
    ConnectorStatus("orders", State.RUNNING, "w", ()),
    0, 0, 0, 0, LastUpload("orders", 0, 0, 0, 0, 0, 0.0), None, (_PARTITION,), planner_silent_s=0.0,
)  # fmt: skip
_WORKERS: Final = Workers(0, 0, (WorkerInfo("w", "", leads=True, since_ms=0, connectors=()),))
_KINDS: Final = ("program", "java", "python", "other")
Row = tuple[str, Iterable[str], str]


def markdown() -> str:
    """The page."""
    kinds: dict[str, list[Row]] = {"counter": [], "histogram": []}
    counters = Counters(CollectorRegistry())
    for one in counters.declared:
        (family,) = one.series.collect()
        values = {one.labels[-1]: [value for known in one.known for value in known]}
        name = f"{family.name}_total" if family.type == "counter" else family.name
        kinds[family.type].append((name, one.labels, _text(family, values)))
    shown = [*gauges.families([_CONNECTOR], {"orders": 0.0}), *gauges.of_workers(_WORKERS, "w"), *_machine().collect()]
    parts = [
        _INTRO,
        *(_table(title, kinds[kind]) for title, kind in (("Counters", "counter"), ("Histograms", "histogram"))),
        _table("Gauges", [_gauge(one) for one in shown]),
        _OTHERS,
        _CONNECT,
        "\n| Figure | What it is here |\n|---|---|\n",
        *(f"| `{one.name}` | {one.documentation} |\n" for one in connect_names.families([])),
        _ABSENT,
    ]
    return "".join(parts)


def _machine() -> gauges.Machine:
    return gauges.Machine(lambda: dict.fromkeys(_KINDS, Usage(0, 0, 0)), lambda: 1.0)


def _gauge(family: Metric) -> Row:
    labels = list(family.samples[0].labels)
    several = {name: list(dict.fromkeys(one.labels[name] for one in family.samples)) for name in labels}
    return family.name, labels, _text(family, {name: found for name, found in several.items() if len(found) > 1})


def _text(family: Metric, values: Mapping[str, Iterable[str]]) -> str:
    told = "".join(f" `{name}`: {', '.join(f'`{one}`' for one in found)}." for name, found in values.items() if found)
    return family.documentation + told


def _table(title: str, rows: Iterable[Row]) -> str:
    return f"\n## {title}\n\n" + "".join(_lines(rows))


def _lines(rows: Iterable[Row]) -> Iterator[str]:
    yield "| Figure | Labels | What |\n|---|---|---|\n"
    for name, labels, text in rows:
        yield f"| `{name}` | {', '.join(labels)} | {text} |\n"


if __name__ == "__main__":
    sys.stdout.write(markdown())
