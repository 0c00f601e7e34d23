"""Figures, log lines and traces of a real worker: what they say is what was sent, delivered, refused and left."""

import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families

from integration.conftest import TopicFactory
from integration.sink_process import SinkProcess
from parquet_sink.devkit.broker import Broker
from parquet_sink.devkit.ports import free_port
from parquet_sink.devkit.target.process import TargetProcess

GOOD: Final = 990
BAD: Final = 10
WAITING: Final = 50
LIMIT_S: Final = 150
PROMTOOL = shutil.which("promtool")


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


class Worker:
    """`parquet-sink run` with a REST API, and its page of figures."""

    def __init__(self, process: SinkProcess, port: int) -> None:
        self.process, self.url = process, f"http://127.0.0.1:{port}"

    def figures(self) -> Figures:
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=30) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain")
            return Figures(answer.read().decode())

    def until(self, condition: Callable[[Figures], bool]) -> Figures:
        """The first page for which it holds."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            assert self.process.ended() is None, self.process.log.read_text()
            try:
                found = self.figures()
            except OSError:
                found = Figures("")
            if condition(found):
                return found
            assert time.monotonic() < deadline, f"{self.process.log.read_text()}\n{found.text}"
            time.sleep(0.25)

    def delete(self, connector: str) -> None:
        request = urllib.request.Request(f"{self.url}/connectors/{connector}", method="DELETE")
        with urllib.request.urlopen(request, timeout=90) as answer:
            assert answer.status == 204


def connector(name: str, topic: str, endpoint: str, folder: Path, **more: str) -> dict[str, str]:
    """A connector file that flushes every second."""
    return {
        "name": name,
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


@pytest.fixture
def worker(
    broker: Broker, target: TargetProcess, topic: TopicFactory, tmp_path: Path
) -> Iterator[tuple[Worker, str, str]]:
    """Two connectors, of which one has a target that is not there; and their topics."""
    orders, items, port = topic(partitions=2, prefix="orders"), topic(prefix="items"), free_port()
    file = tmp_path / "worker.properties"
    lines = {
        "bootstrap.servers": broker.bootstrap_servers,
        "listeners": f"http://127.0.0.1:{port}",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    letters = {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"{orders}-dead",
        "errors.deadletterqueue.topic.replication.factor": "1",
    }
    files = [
        connector("orders", orders, target.endpoint(), tmp_path, **letters),
        connector("items", items, f"http://127.0.0.1:{free_port()}/items", tmp_path),
    ]
    process = SinkProcess(files, tmp_path)
    process.start("--worker", str(file), "--log-format", "json")
    try:
        yield Worker(process, port), orders, items
    finally:
        if process.ended() is None:
            process.terminate(60)


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


@pytest.mark.timeout(3 * LIMIT_S)
def test_figures_and_lines_are_what_happened(worker: tuple[Worker, str, str], broker: Broker) -> None:
    """Every record is in some figure; what waits is told with its age; a connector that goes leaves nothing."""
    running, orders, items = worker
    running.until(lambda page: page.sum("parquet_sink_connector_state", state="RUNNING") == 2)
    send(broker, orders, items)
    of = {"connector": "orders"}
    page = running.until(
        lambda page: (
            page.sum("parquet_sink_offset_commits_total", **of) >= 2
            and page.sum("parquet_sink_records_read_total", **of) >= GOOD + BAD
            and page.sum("parquet_sink_lag_records", **of) == 0
            and page.sum("parquet_sink_upload_retries_total", connector="items") >= 1
        )
    )
    assert page.sum("parquet_sink_records_read_total", **of, topic=orders) == GOOD + BAD
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
    assert page.sum("kafka_connect_sink_task_metrics_sink_record_send_total", **of) == GOOD
    assert page.sum("parquet_sink_losses_total") == page.sum("parquet_sink_dropped_events_total") == 0
    assert page.sum("parquet_sink_memory_bytes", process="java") > 100 << 20
    assert page.sum("parquet_sink_memory_bytes", process="program") > 20 << 20
    assert page.sum("parquet_sink_memory_bytes", process="python") > 20 << 20
    _waits(page)
    if PROMTOOL is not None:
        done = subprocess.run(
            [PROMTOOL, "check", "metrics"], input=page.text, capture_output=True, text=True, check=False
        )
        assert [line for line in done.stderr.splitlines() if not line.startswith("kafka_connect_")] == []
    assert page.connectors() == {"orders", "items"}
    running.delete("items")
    assert running.until(lambda page: page.sum("parquet_sink_partitions") == 2).connectors() == {"orders"}
    assert running.process.terminate(60) == 0
    _lines(running.process.log)


def _waits(page: Figures) -> None:
    """Of the connector whose target is away: it was tried, nothing was accepted, and all waits."""
    of = {"connector": "items"}
    assert page.sum("parquet_sink_lag_records", **of) >= WAITING
    assert page.sum("parquet_sink_oldest_unflushed_seconds", **of) > page.sum(
        "parquet_sink_flush_interval_seconds", **of
    )
    assert page.sum("parquet_sink_uploads_total", **of, outcome="accepted") == 0
    assert page.sum("parquet_sink_uploads_total", **of) == page.sum(
        "parquet_sink_upload_answers_total", **of, status=""
    )
    assert page.sum("parquet_sink_range_retries_total", **of, trying="upload") >= 1
    assert page.sum("parquet_sink_connector_waiting", **of) == 1


def _lines(log: Path) -> None:
    """All that was said is JSON; files are told with their connector, and sum up to what was delivered."""
    told: list[dict[str, Any]] = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert all({"time", "level", "logger", "message"} <= one.keys() for one in told)
    files = [one for one in told if one.get("event") == "FileAccepted"]
    assert sum(one["records"] for one in files if one["connector"] == "orders") == GOOD
    waits = [one for one in told if "next attempt in" in one["message"]]
    assert {one["connector"] for one in waits} == {"items"}, "lines of worker processes name their connector, too"
    aside = [one for one in told if one.get("event") == "RecordsSetAside"]
    assert sum(one["stages"]["VALUE_CONVERTER"] for one in aside) == BAD
    assert "stopping" in {one["message"].split(";")[0] for one in told}
