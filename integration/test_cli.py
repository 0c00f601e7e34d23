"""The command line as an operator has it: exit statuses, signals, log lines, and secrets that never show."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from uuid import uuid4

import pytest

from integration import processes
from integration.conftest import TopicFactory
from integration.harness import Sink
from integration.numbered import numbered
from integration.spark_ui import pages
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.ports import free_port
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.cli.main import main
from parquet_sink.process.signals import SAME_REQUEST_S
from tests.messages import assert_says

CANARY = "canary-4711"
WORKER = "value.converter=JsonConverter\nvalue.converter.schemas.enable=false\nconsumer.sasl.password=${env:CANARY}\n"
TIMEOUT_S = 120.0


class Command:
    """`parquet-sink run` in a process of its own; `said` is everything it printed so far."""

    def __init__(self, folder: Path, servers: str, arguments: list[str]) -> None:
        self._log = folder / "said.log"
        environment = {
            **os.environ,
            "PARQUET_SINK_BOOTSTRAP_SERVERS": servers,
            "PARQUET_SINK_LOG_LEVEL": "DEBUG",
            "CANARY": CANARY,
        }
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "parquet_sink", "run", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=folder,
            )

    @property
    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def until(self, condition: Callable[[], bool]) -> None:
        """Waits; fails when the process ends first or it takes too long."""
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            assert self.process.poll() is None, self.said[-3_000:]
            assert time.monotonic() < deadline, self.said[-3_000:]
            time.sleep(0.1)

    def signal(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def ended(self, timeout_s: float = TIMEOUT_S) -> int:
        return self.process.wait(timeout_s)


@pytest.fixture
def files(tmp_path: Path) -> Callable[[Mapping[str, str]], str]:
    """Writes a connector file and returns its path; the worker file is beside it."""
    (tmp_path / "worker.properties").write_text(WORKER)

    def write(properties: Mapping[str, str]) -> str:
        path = tmp_path / f"{properties['name']}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        return str(path)

    return write


@pytest.fixture
def run(tmp_path: Path, broker: Broker) -> Iterator[Callable[..., Command]]:
    """Starts the command; brokers are named in the environment. What still runs is killed at the end."""
    started: list[Command] = []

    def start(*arguments: str) -> Command:
        worker = ["--worker", str(tmp_path / "worker.properties")]
        started.append(Command(tmp_path, broker.bootstrap_servers, [*worker, *arguments]))
        return started[-1]

    yield start
    for command in started:
        command.process.kill()
        command.process.wait()


def test_a_service_stops_in_order_and_shows_no_secret(
    sink: Sink,
    broker: Broker,
    topic: TopicFactory,
    files: Callable[[Mapping[str, str]], str],
    run: Callable[..., Command],
    tmp_path: Path,
) -> None:
    """At DEBUG, with faults, UI and event log: a line for each file, SIGTERM commits all and exits 0, no secret."""
    name, port, events = topic(), free_port(), tmp_path / "events"
    events.mkdir()
    spark = {"eventLog.enabled": "true", "eventLog.compress": "false", "eventLog.dir": events.as_uri()}
    spark |= {"ui.enabled": "true", "ui.port": str(port)}
    options = [word for key, value in spark.items() for word in ("--conf", f"spark.{key}={value}")]
    with TargetProcess(authorization=f"AppKey {CANARY}") as target:
        properties = sink.properties(name, endpoint=target.endpoint(), authorization_key="AppKey ${env:CANARY}")
        more = {"consumer.override.ssl.key.password": CANARY, "connect.ems.proxy.auth.password": CANARY}
        target.client.order_faults({"status": 503, "body": f"echo {CANARY}", "next": 1})
        broker.produce(name, numbered(5))
        command = run(*options, files({**properties, **more}))
        command.until(lambda: target.client.statistics()["files"] == 1)
        shown = pages(port)
        target.client.order_faults({"latency_s": 1.5, "next": 1})
        broker.produce(name, numbered(5, 5))
        command.until(lambda: target.client.faults()[-1]["fired"] == 1)
        command.signal()
        assert command.ended() == 0
        target.client.sync()
        assert target.client.tables() == {sink.table: 10}
        lines = [line for line in command.said.splitlines() if f"connector {sink.name}: accepted topic-{name}" in line]
        assert len(lines) == target.client.statistics()["files"] == 2
    assert sink.offsets(name) == [10]
    written = [path.read_text(errors="replace") for path in events.rglob("*") if path.is_file()]
    assert sum(map(len, written)) > 1_000
    assert "parquet_sink" in shown
    for text in (command.said, shown, *written):
        assert CANARY not in text


def test_second_signal_ends_at_once(
    sink: Sink, broker: Broker, topic: TopicFactory, target: TargetProcess, run: Callable[..., Command],
    files: Callable[[Mapping[str, str]], str],
) -> None:  # fmt: skip
    """The flush in progress is given up; the next start sends it again and nothing is missing."""
    name = topic()
    broker.produce(name, numbered(5))
    target.client.order_faults({"latency_s": 60, "next": 1})
    command = run(files(sink.properties(name)))
    command.until(lambda: target.client.faults()[0]["fired"] == 1)
    command.signal()
    command.until(lambda: "the flush in progress is finished first" in command.said)
    time.sleep(SAME_REQUEST_S)
    command.signal()
    assert command.ended(10) == 128 + signal.SIGTERM
    assert sink.offsets(name) == [0]
    sink.drain(name)
    assert sorted({row["n"] for row in sink.rows()}) == [0, 1, 2, 3, 4]
    assert sink.offsets(name) == [5]


@pytest.mark.in_turn
def test_a_stop_archives_what_waits(
    sink: Sink, broker: Broker, topic: TopicFactory, run: Callable[..., Command],
    files: Callable[[Mapping[str, str]], str], tmp_path: Path,
) -> None:  # fmt: skip
    """Files that an archive was away for, and would be tried at again in an hour, are there when the program ends."""
    name, archive = topic(), tmp_path / "archive"
    archive.mkdir()
    ems = {"archive_url": f"directory:{archive}", "archive_required": "false", "retry_interval": 3_600_000}
    ems |= {"commit_records": 5, "sink_put_timeout_ms": 7_200_000}
    command = run(files(sink.properties(name, **ems)))
    command.until(lambda: f"connector {sink.name}: running" in command.said)
    archive.rename(tmp_path / "away")
    broker.produce(name, numbered(40))
    command.until(lambda: "is accepted, and not archived yet" in command.said)  # one to four at once
    command.until(lambda: sink.offsets(name) == [40])
    (tmp_path / "away").rename(archive)
    command.signal()
    assert command.ended() == 0
    assert len(list(archive.rglob("*.parquet"))) == 8, command.said[-3_000:]


@pytest.mark.in_turn
def test_until_caught_up_tells_of_a_failure(
    sink: Sink,
    broker: Broker,
    topic: TopicFactory,
    run: Callable[..., Command],
    files: Callable[[Mapping[str, str]], str],
) -> None:
    """One of two connectors meets an invalid record: the other delivers all, and the exit status is 1."""
    good, bad = topic(), topic()
    broker.produce(good, numbered(5))
    broker.produce(bad, [*numbered(2), (None, b"not JSON")])
    first = files(sink.properties(good))
    second = files({**sink.properties(bad, target_table=f"{sink.table}-bad"), "name": f"{sink.name}-bad"})
    command = run("--until-caught-up", first, second)
    assert command.ended() == 1
    assert_says(command.said, f"topic {bad}, topic-partition 0, offset 2: ", "is not JSON")
    assert len(sink.rows()) == 5
    assert (sink.offsets(good), sink.offsets(bad, group=f"{sink.group}-bad")) == ([5], [2])


@pytest.mark.in_turn
def test_files_are_told_of_while_their_range_is_flushed_and_once(
    sink: Sink, broker: Broker, topic: TopicFactory, target: TargetProcess, run: Callable[..., Command],
    files: Callable[[Mapping[str, str]], str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Also when the task is killed after some of them: it comes again, and sends all of them again."""
    name, mark = topic(), uuid4().hex
    monkeypatch.setenv(processes.MARK, mark)
    broker.produce(name, numbered(40))
    target.client.order_faults({"latency_s": 1.0, "next": 8})
    command = run("--until-caught-up", files(sink.properties(name, commit_records=5)))

    def told() -> list[str]:
        return re.findall(rf"accepted (topic-{name}_\S+\.parquet)", command.said)

    command.until(lambda: len(told()) >= 2)
    assert target.client.statistics()["files"] < 8
    for worker in processes.workers(processes.of_run(mark)):
        os.kill(worker.pid, signal.SIGKILL)
    assert command.ended() == 0
    sent = target.client.statistics()
    assert (sent["files"], sent["repeated"] + sent["recognised"] > 0) == (8, True), "some came twice"
    assert len(told()) == len(set(told())) == 8
    assert sink.offsets(name) == [40]


def test_wrong_files_are_told_at_once(
    sink: Sink, files: Callable[[Mapping[str, str]], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every problem of every file is printed, nothing is started, and the exit status is 2."""
    properties = sink.properties("t", commit_records=-1)
    path = files({key: value for key, value in properties.items() if not key.endswith("target.table")})
    assert main(["run", path, str(tmp_path / "missing.properties")]) == 2
    said = capsys.readouterr().err
    for part in (
        "[connect.ems.commit.records]",
        "[connect.ems.target.table]",
        "[value.converter]",
        "missing.properties",
    ):
        assert part in said
