"""Signals to the command as `timeout`, terminals and service managers send them, and what is left after kill -9."""

import os
import pty
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGKILL, SIGTERM, Signals
from typing import Any, cast

import pytest

from integration import processes
from integration.commands import Command
from integration.conftest import TopicFactory
from integration.harness import Sink
from integration.numbered import numbered
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.ports import free_port
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.spark.run_folder import PREFIX
from tests.messages import assert_says

WORKER = "value.converter=JsonConverter\nvalue.converter.schemas.enable=false\n"
GONE_S = 10.0
"""Within how many seconds nothing of a killed run is left."""


@pytest.fixture
def sink(broker: Broker, target: TargetProcess, tmp_path: Path) -> Sink:
    """Properties and offsets of a connector; the Spark is the command's own."""
    return Sink(cast(Any, None), broker, target, tmp_path)


@pytest.fixture
def start(tmp_path: Path, broker: Broker) -> Iterator[Callable[..., Command]]:
    """Starts `parquet-sink run` with connectors of these properties; what still runs is killed at the end."""
    started: list[Command] = []
    worker = tmp_path / "worker.properties"
    worker.write_text(WORKER)

    def run(*connectors: dict[str, str], **how: object) -> Command:
        words = ["run", "--worker", str(worker), "--bootstrap-servers", broker.bootstrap_servers]
        for properties in connectors:
            file = tmp_path / f"{properties['name']}.properties"
            file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
            words.append(str(file))
        started.append(Command(tmp_path, words, {}, **how))  # type: ignore[arg-type]
        return started[-1]

    yield run
    for command in started:
        command.close()


def leaves_nothing(command: Command) -> None:
    """No process, no run folder, and no temporary file is left of a run within GONE_S."""
    assert command.gone_within(GONE_S), command.alive()
    deadline = time.monotonic() + GONE_S
    while left := [*command.tmp.iterdir(), *filter(Path.exists, command.run_folders)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def test_a_signal_for_all_stops_in_order(
    sink: Sink, broker: Broker, topic: TopicFactory, target: TargetProcess, start: Callable[..., Command]
) -> None:
    """In the middle of a flush a SIGTERM for each of the processes finishes it: status 0, lag 0, no trace."""
    name = topic()
    broker.produce(name, numbered(5))
    target.client.order_faults({"latency_s": 3.0, "next": 1})
    command = start(sink.properties(name))
    command.until(lambda: target.client.faults()[0]["fired"] == 1)
    command.signal_all()
    assert command.ended() == 0, command.said
    assert "Traceback" not in command.said
    assert "\tat " not in command.said
    assert sink.offsets(name) == [5]
    assert target.client.statistics()["files"] == 1
    assert len(command.run_folders) == 1
    leaves_nothing(command)


@pytest.mark.in_turn
@pytest.mark.parametrize(("number", "wait_s"), [(SIGTERM, 0.0), (SIGHUP, 1.5), (SIGINT, 4.0)])
def test_a_signal_during_the_start_ends_it(
    number: Signals, wait_s: float, sink: Sink, topic: TopicFactory, start: Callable[..., Command]
) -> None:
    """While modules load, while Java loads, while Spark or the connector starts: status 0, and nothing is left."""
    command = start(sink.properties(topic()))
    command.until_caught()
    time.sleep(wait_s)
    command.signal_group(number)
    assert command.ended(30) == 0, command.said
    assert "Traceback" not in command.said
    leaves_nothing(command)


@pytest.mark.in_turn
def test_timeout_is_one_wish(sink: Sink, topic: TopicFactory, start: Callable[..., Command]) -> None:
    """`timeout` signals the program and then its group: the run stops in order, with the status of `timeout`."""
    command = start(sink.properties(topic()), before=["timeout", "--signal=TERM", "12"])
    assert command.ended() == 124, command.said
    assert "second signal, ending" not in command.said
    assert "Traceback" not in command.said
    leaves_nothing(command)


@pytest.mark.in_turn
@pytest.mark.parametrize("victim", ["program", "Java"])
def test_a_kill_leaves_nothing_behind(
    victim: str, sink: Sink, broker: Broker, topic: TopicFactory, target: TargetProcess, start: Callable[..., Command]
) -> None:
    """In the middle of an upload, program or Java die by SIGKILL: all other processes end, and all folders go."""
    name = topic()
    broker.produce(name, numbered(5))
    target.client.order_faults({"latency_s": 60.0, "next": 1})
    command = start(sink.properties(name))
    command.until(lambda: target.client.faults()[0]["fired"] == 1)
    if victim == "program":
        command.send(SIGKILL)
    else:
        [java] = processes.jvm(command.alive())
        processes.kill(java)
        assert command.ended(30) == 1
        assert command.said.count("Traceback") == 0, command.said
        assert_says(command.said.splitlines()[-1], "Spark's Java process", "ended")
    leaves_nothing(command)


@pytest.mark.in_turn
def test_a_stop_while_the_target_is_down_is_bounded(
    sink: Sink, broker: Broker, topic: TopicFactory, start: Callable[..., Command]
) -> None:
    """Two connectors with a dead target stop within one bound; the lag is told, nothing is committed, status 0."""
    names = [topic(), topic()]
    for name in names:
        broker.produce(name, numbered(5))
    dead = f"http://127.0.0.1:{free_port()}/items"
    properties = [
        sink.properties(name, endpoint=dead, max_retries=100, error_policy="RETRY", stop_timeout_ms=4_000)
        | {"name": f"{sink.name}-{index}"}
        for index, name in enumerate(names)
    ]
    command = start(*properties)
    command.until(lambda: all(f"topic-{name}_" in command.said for name in names))
    asked = time.monotonic()
    command.send()
    assert command.ended() == 0, command.said
    took_s = time.monotonic() - asked
    assert "for at most 4 s" in command.said
    for index, name in enumerate(names):
        assert_says(command.said, f"connector {sink.name}-{index}: stopped", "lag 5", f"({name} 0 from offset 0)")
        assert sink.offsets(name, group=f"{sink.group}-{index}") == [0]
    assert "\tat " not in command.said
    assert took_s < 4 + 26, took_s
    leaves_nothing(command)


@pytest.mark.slow
def test_standard_error_may_be_gone(
    sink: Sink, broker: Broker, topic: TopicFactory, start: Callable[..., Command]
) -> None:
    """With full standard streams, files arrive, and SIGTERM stops in order: status 0, lag 0."""
    name = topic()
    broker.produce(name, numbered(5))
    with Path("/dev/full").open("wb") as full:
        command = start(sink.properties(name), out=full, err=full)
    command.until(lambda: sink.offsets(name) == [5])
    command.send()
    assert command.ended() == 0
    leaves_nothing(command)


@pytest.mark.slow
def test_a_closed_terminal_is_a_stop(
    sink: Sink, broker: Broker, topic: TopicFactory, tmp_path: Path, start: Callable[..., Command]
) -> None:
    """The terminal goes while the live view is drawn on it: the run stops in order."""
    name = topic()
    broker.produce(name, numbered(5))
    terminal, side = pty.openpty()
    with os.fdopen(side, "wb") as file:
        command = start(sink.properties(name), out=file, err=file)
    command.until(lambda: sink.offsets(name) == [5])
    os.close(terminal)
    command.send(SIGHUP)
    assert command.ended() == 0
    leaves_nothing(command)


@pytest.mark.slow
def test_a_run_folder_that_is_removed_is_made_anew(
    sink: Sink, broker: Broker, topic: TopicFactory, start: Callable[..., Command]
) -> None:
    """A cleaner of temporary files costs a restart of the query; what comes later arrives, and the stop is in order."""
    name = topic()
    broker.produce(name, numbered(5))
    command = start(sink.properties(name))
    command.until(lambda: sink.offsets(name) == [5])
    [java] = processes.jvm(command.alive())
    folder = Path(java.command.partition("-Djava.io.tmpdir=")[2].split()[0]).parent
    assert folder.name.startswith(PREFIX)
    _remove(folder)
    command.until_said("was removed while")
    broker.produce(name, numbered(5, 5))
    command.until(lambda: sink.offsets(name) == [10])
    command.send()
    assert command.ended() == 0, command.said
    leaves_nothing(command)
    assert sorted({row["n"] for row in sink.rows()}) == list(range(10))


def _remove(folder: Path) -> None:
    """As a cleaner does, whatever is written meanwhile."""
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)
