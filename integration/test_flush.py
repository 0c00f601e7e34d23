"""A flush that an operator asks for, on real parts: of a worker, and over a crash. For groups: `test_distributed`."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from signal import SIGKILL
from typing import Any, Final, cast

import pytest

from integration.conftest import TopicFactory
from integration.harness import Sink
from integration.numbered import numbered, numbers
from integration.worker_process import WorkerProcess
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.cli.main import main
from tests.messages import assert_says

HOUR_MS: Final = 3_600_000
Command = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def worker(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    """One worker of its own."""
    made = WorkerProcess(tmp_path_factory.mktemp("worker"), broker)
    made.start()
    yield made
    made.close()


@pytest.fixture
def sink(broker: Broker, target: TargetProcess, tmp_path: Path) -> Sink:
    """Properties, rows and offsets of a connector."""
    return Sink(cast(Any, None), broker, target, tmp_path)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """`parquet-sink connectors`: its status, and what it prints."""

    def run(worker: WorkerProcess, *words: str) -> tuple[int, str]:
        capsys.readouterr()
        status = main(["connectors", *words, "--url", worker.url])
        found = capsys.readouterr()
        return status, found.out + found.err

    return run


def _lag(worker: WorkerProcess, name: str) -> int:
    found = [one for one in worker.do("GET", "/progress") if one["status"]["name"] == name]
    return sum(part["lag"] for one in found for part in one["partitions"])


def _files(worker: WorkerProcess, name: str, reason: str) -> bool:
    """Whether the figures say that a connector closed files for a reason."""
    return f'parquet_sink_files_total{{connector="{name}",reason="{reason}"}} 2.0' in worker.ask("GET", "/metrics").text


def _begun(worker: WorkerProcess, sink: Sink, topic: str, count: int, partitions: int = 1) -> None:
    """A connector that has looked at its empty topic, then records that wait in all its topic-partitions."""
    _waiting(worker, sink.broker, sink.properties(topic, commit_interval_ms=HOUR_MS), count, partitions)


def _waiting(worker: WorkerProcess, broker: Broker, config: Mapping[str, str], count: int, partitions: int = 1) -> None:
    """Likewise, of a connector of any class."""
    name, topic = config["name"], config["topics"]
    worker.do("POST", "/connectors", {"name": name, "config": config})
    worker.until_state(name, "RUNNING")
    worker.until(
        lambda: any(one["partitions"] for one in worker.do("GET", "/progress") if one["status"]["name"] == name)
    )
    for partition in range(partitions):
        broker.produce(topic, numbered(count)[partition::partitions], partition)
    worker.until(lambda: _lag(worker, name) == count)


def test_what_waits_goes_out_when_it_is_asked_for(
    worker: WorkerProcess, sink: Sink, topic: TopicFactory, command: Command
) -> None:
    """Within an interval of an hour: all, one topic-partition, nothing; refused while paused and stopped."""
    name = topic(2)
    _begun(worker, sink, name, 10, partitions=2)
    assert sink.rows() == []
    status, out = command(worker, "flush", sink.name, "--topic-partition", f"{name}:1", "--wait")
    assert (status, "flushed: 1 file, " in out) == (0, True), out
    first, second = sink.offsets(name, 2)
    assert (first or 0, (second or 0) > 0) == (0, True)
    status, out = command(worker, "flush", sink.name, "--wait", "--json")
    report = json.loads(out)
    assert (status, report["state"], len(numbers(sink.rows()))) == (0, "done", 10)
    assert [one["files"] for one in report["partitions"]] == [1, 0]
    assert sum(offset or 0 for offset in sink.offsets(name, 2)) == 10
    worker.until(lambda: _files(worker, sink.name, "request"))
    assert "flushed: 0 files, 0 rows" in command(worker, "flush", sink.name, "--wait")[1]
    status, out = command(worker, "flush", sink.name, "--topic-partition", f"{name}:7")
    assert (status, f"{name}:7" in out) == (1, True)
    for verb, cure in (("pause", "resume it"), ("stop", "resume it")):
        worker.do("PUT", f"/connectors/{sink.name}/{verb}")
        refused = worker.ask("POST", f"/connectors/{sink.name}/flush")
        assert (refused.status_code, cure in refused.json()["message"]) == (409, True)
    worker.do("DELETE", f"/connectors/{sink.name}")


def test_lines_that_wait_go_out(
    worker: WorkerProcess, sink: Sink, broker: Broker, topic: TopicFactory, tmp_path: Path, command: Command
) -> None:
    """Of a sink of records: they are written and committed, and counted as records, for there are no files."""
    name, file = topic(2), tmp_path / "out.txt"
    keys = {"connector.class": "FileStreamSink", "file": str(file), "value.converter": "StringConverter"}
    ours = {"connect.ems.commit.interval.ms": str(HOUR_MS), "connect.ems.tmp.dir": str(sink.tmp_dir)}
    _waiting(worker, broker, {"name": sink.name, "topics": name, **keys, **ours}, 10, partitions=2)
    assert not file.exists() or file.read_text() == ""
    status, out = command(worker, "flush", sink.name, "--wait", "--json")
    report = json.loads(out)
    assert (status, report["state"]) == (0, "done"), out
    assert [sum(one[count] for one in report["partitions"]) for count in ("records", "files", "rows")] == [10, 0, 0]
    assert sorted(json.loads(line)["n"] for line in file.read_text().splitlines()) == list(range(10))
    assert sum(offset or 0 for offset in sink.offsets(name, 2)) == 10
    worker.do("DELETE", f"/connectors/{sink.name}")


@pytest.mark.parametrize("required", ["true", "false"])
def test_a_flush_of_raw_records_is_archived(
    worker: WorkerProcess, sink: Sink, topic: TopicFactory, tmp_path: Path, command: Command, required: str
) -> None:
    """What waits goes out as it came; the archive has the file by then, or soon where the connector waits for none."""
    name, archive = topic(), tmp_path / "archive"
    archive.mkdir()
    keys = {"mode": "raw", "archive_url": f"directory:{archive}", "archive_required": required}
    _waiting(worker, sink.broker, sink.properties(name, commit_interval_ms=HOUR_MS, **keys), 10)
    status, out = command(worker, "flush", sink.name, "--wait", "--json")
    report = json.loads(out)
    assert (status, report["state"], [one["files"] for one in report["partitions"]]) == (0, "done", [1]), out
    assert sorted(json.loads(row["value"])["n"] for row in sink.rows()) == list(range(10))
    (sent,) = [one["name"] for one in sink.target.client.files(sink.table)]
    if required == "false":
        worker.until(lambda: bool(list(archive.rglob(sent))))
    assert [one.name for one in archive.rglob("*.parquet")] == [sent]
    worker.do("DELETE", f"/connectors/{sink.name}")


@pytest.mark.in_turn
def test_a_flush_that_a_crash_interrupts_sends_the_same_files(
    worker: WorkerProcess, sink: Sink, topic: TopicFactory, target: TargetProcess, command: Command
) -> None:
    """The target refuses for now and the worker is killed: who waits is told, and the range comes again as it was."""
    name = topic()
    _begun(worker, sink, name, 6)
    target.client.order_faults({"status": 503})
    status, out = command(worker, "flush", sink.name, "--wait", "4")
    assert status == 1, out
    assert_says(out, f"{name}:0: ", "offsets 0 to 5", "did not go out")
    asked = worker.do("POST", f"/connectors/{sink.name}/flush")
    sink.broker.produce(name, numbered(3, 6))
    worker.command.signal_all(SIGKILL)
    worker.command.ended()
    target.client.clear_faults()
    worker.start()
    assert worker.ask("GET", f"/connectors/{sink.name}/flush/{asked['id']}").status_code == 404
    worker.until(lambda: (sink.offsets(name)[0] or 0) >= 6)
    assert sorted(numbers(sink.rows()))[:6] == list(range(6))
    files = [one["name"] for one in target.client.files(sink.table)]
    assert any("firstOffset-0_lastOffset-5_" in one for one in files), files
    worker.do("DELETE", f"/connectors/{sink.name}")
