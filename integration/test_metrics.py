"""Figures and log lines of a real worker: what they say is what was sent, delivered, set aside and left."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families
from promql_parser import VectorSelector

from integration.conftest import TopicFactory
from integration.worker_process import WorkerProcess
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.ports import free_port
from parquet_sink.addons.devkit.target.process import TargetProcess
from tests.worker.metrics.queries import OF_PROMETHEUS, nodes, queries

PAGE: Final = Path(__file__).parents[1] / "docs" / "how-to" / "monitoring.md"
GOOD: Final = 990
BAD: Final = 10
WAITING: Final = 50


class Figures:
    """A page of `/metrics`, by name and labels."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.samples = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def sum(self, name: str, **labels: str) -> float:
        """Over all series of a name with these labels, and others."""
        wanted = labels.items()
        return sum(value for (found, own), value in self.samples.items() if found == name and wanted <= own)

    def connectors(self) -> set[str]:
        return {value for _, own in self.samples for label, value in own if label == "connector"}


@pytest.fixture
def worker(broker: Broker, tmp_path: Path) -> Iterator[WorkerProcess]:
    """A worker without connectors, whose log lines are JSON, with the listener of docs/how-to/monitoring.md."""
    (source,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "shop_audit.py").write_text(source)
    audit = {"class": "shop_audit.AuditListener", "param.file": str(tmp_path / "accepted")}
    listener = {"event.listeners": "audit", **{f"event.listeners.audit.{key}": text for key, text in audit.items()}}
    made = WorkerProcess(tmp_path, broker, {"plugin.path": str(tmp_path / "plugins"), **listener})
    made.start("--log-format", "json")
    yield made
    made.close()


def until(worker: WorkerProcess, condition: Callable[[Figures], bool]) -> Figures:
    """The first page of figures for which it holds."""
    found: list[Figures] = []

    def holds() -> bool:
        answer = worker.ask("GET", "/metrics")
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        found.append(Figures(answer.text))
        return condition(found[-1])

    worker.until(holds)
    return found[-1]


def create(worker: WorkerProcess, name: str, topic: str, endpoint: str, folder: Path, **more: str) -> None:
    """A connector that flushes every second."""
    config = {
        "connector.class": "parquet_sink.EmsSink",
        "topics": topic,
        "connect.ems.endpoint": endpoint,
        "connect.ems.authorization.key": "AppKey demo",
        "connect.ems.target.table": name.upper(),
        "connect.ems.commit.size.bytes": "1000000",
        "connect.ems.commit.records": "100",
        "connect.ems.commit.interval.ms": "1000",
        "connect.ems.tmp.dir": str(folder / "tmp"),
        "connect.ems.retry.interval": "1000",
        "connect.ems.max.retries": "1000",
        **more,
    }
    worker.do("POST", "/connectors", {"name": name, "config": config})


def send(broker: Broker, orders: str, items: str) -> None:
    """One transaction of good and bad records in two topic-partitions, and some records that nobody will get."""
    client = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": orders, "log_level": 0})
    client.init_transactions()
    client.begin_transaction()
    for number in range(GOOD + BAD):
        client.produce(orders, b"no json" if number < BAD else b'{"id":%d}' % number, partition=number % 2)
    for number in range(WAITING):
        client.produce(items, b'{"id":%d}' % number)
    client.commit_transaction()


@pytest.mark.in_turn
def test_figures_and_lines_are_what_happened(
    worker: WorkerProcess, broker: Broker, target: TargetProcess, topic: TopicFactory, tmp_path: Path
) -> None:
    """Every record is in some figure; what waits is told with its age; a connector that goes leaves nothing."""
    orders, items = topic(partitions=2, prefix="orders"), topic(prefix="items")
    letters = {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"{orders}-dead",
        "errors.deadletterqueue.topic.replication.factor": "1",
    }
    create(worker, "orders", orders, target.endpoint(), tmp_path, **letters)
    create(worker, "items", items, f"http://127.0.0.1:{free_port()}/items", tmp_path)
    send(broker, orders, items)
    of = {"connector": "orders"}
    page = until(
        worker,
        lambda page: (
            page.sum("parquet_sink_offset_commits_total", **of) >= 2
            and page.sum("parquet_sink_records_read_total", **of) >= GOOD + BAD
            and page.sum("parquet_sink_offset_gaps_total", **of) >= 2
            and page.sum("parquet_sink_lag_records", **of) == 0
            and page.sum("parquet_sink_connector_waiting", connector="items") == 1
            and page.sum("parquet_sink_upload_retries_total", connector="items") >= 1
        ),
    )
    _arrived(page, orders)
    _waits(page)
    _asked_for(page)
    assert page.sum("parquet_sink_memory_bytes", process="java") > 100 << 20
    assert page.sum("parquet_sink_memory_bytes", process="program") > 20 << 20
    assert page.sum("parquet_sink_memory_bytes", process="python") > 20 << 20
    assert page.connectors() == {"orders", "items"}
    worker.do("DELETE", "/connectors/items")
    page = until(worker, lambda page: page.connectors() == {"orders"})
    assert page.sum("parquet_sink_partitions") == 2
    worker.stop()
    _lines(worker.command.said)
    told = [json.loads(line) for line in (tmp_path / "accepted").read_text().splitlines()]
    assert [one["type"] for one in told] == ["FileAccepted"] * int(page.sum("parquet_sink_files_total", **of))
    assert sum(one["receipt"]["rows"] for one in told) == GOOD


def _arrived(page: Figures, topic: str) -> None:
    """Of the connector whose records arrived, but for those that are none."""
    of = {"connector": "orders"}
    assert page.sum("parquet_sink_records_read_total", **of, topic=topic) == GOOD + BAD
    assert page.sum("parquet_sink_records_total", **of) == page.sum("parquet_sink_rows_total", **of) == GOOD
    assert page.sum("parquet_sink_rejects_total", **of, stage="VALUE_CONVERTER") == BAD
    assert page.sum("parquet_sink_dead_letters_total", **of) == page.sum("parquet_sink_rejects_total") == BAD
    assert page.sum("parquet_sink_offset_gaps_total", **of) == 2, "a marker in each topic-partition"
    files = page.sum("parquet_sink_files_total", **of)
    assert files >= 10
    assert page.sum("parquet_sink_files_total", **of, reason="records") >= 8
    assert page.sum("parquet_sink_uploads_total", **of, outcome="accepted") == files
    assert page.sum("parquet_sink_upload_answers_total", **of, status="200") == files
    for name in ("freshness_seconds", "upload_seconds", "write_seconds", "file_bytes"):
        assert page.sum(f"parquet_sink_{name}_count", **of) == files
    assert page.sum("parquet_sink_file_bytes_sum", **of) == page.sum("parquet_sink_uploaded_bytes_total", **of)
    assert page.sum("parquet_sink_oldest_unflushed_seconds", **of) == 0
    assert page.sum("parquet_sink_partitions", **of) == 2
    assert page.sum("parquet_sink_connector_state", **of, state="RUNNING") == 1
    assert page.sum("kafka_connect_sink_task_metrics_sink_record_send_total", **of) == GOOD
    assert page.sum("parquet_sink_losses_total") == page.sum("parquet_sink_dropped_events_total") == 0


def _asked_for(page: Figures) -> None:
    """By rules and panels: a worker has all of it from its first page on, so that nothing is compared with nothing."""
    named = {node.name for _, query in queries() for node in nodes(query) if isinstance(node, VectorSelector)}
    assert len(named) > 20
    assert named - OF_PROMETHEUS.keys() - {name for name, _ in page.samples} == set()


def _waits(page: Figures) -> None:
    """Of the connector whose target is away: it was tried, nothing was accepted, and all waits."""
    of = {"connector": "items"}
    interval_s = page.sum("parquet_sink_flush_interval_seconds", **of)
    assert interval_s == 1
    assert page.sum("parquet_sink_oldest_unflushed_seconds", **of) > interval_s
    assert page.sum("parquet_sink_lag_records", **of) >= WAITING
    assert page.sum("parquet_sink_uploads_total", **of, outcome="accepted") == 0
    tried = page.sum("parquet_sink_uploads_total", **of)
    assert tried == page.sum("parquet_sink_upload_answers_total", **of, status="") >= 2
    assert page.sum("parquet_sink_upload_retries_total", **of) == tried - 1
    assert page.sum("parquet_sink_range_retries_total", **of, trying="upload") >= 1
    assert page.sum("parquet_sink_connector_waiting", **of) == 1


def _lines(said: str) -> None:
    """All that was said is JSON; files are told with their connector, and sum up to what was delivered."""
    told: list[dict[str, Any]] = [json.loads(line) for line in said.splitlines()]
    assert all({"time", "level", "logger", "message"} <= one.keys() for one in told)
    files = [one for one in told if one.get("event") == "FileAccepted"]
    assert sum(one["records"] for one in files if one["connector"] == "orders") == GOOD
    waits = [one for one in told if "next attempt in" in one["message"]]
    assert {one["connector"] for one in waits} == {"items"}, "lines of worker processes name their connector, too"
    aside = [one for one in told if one.get("event") == "RecordsSetAside"]
    assert sum(one["stages"]["VALUE_CONVERTER"] for one in aside) == BAD
    assert any(one["message"].startswith("stopping") for one in told)
