"""Takeovers by real workers that meet trouble: frozen owners, unavailable folders, brokers spelled in two ways."""

import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from signal import SIGKILL, SIGSTOP
from typing import Any, Final, cast

import pytest

from integration.harness import Sink
from integration.numbered import numbered, numbers
from integration.worker_group import WorkerGroup, create
from integration.worker_process import WorkerProcess
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.files.naming import parts_of
from tests.messages import assert_says

pytestmark = pytest.mark.in_turn(seconds=40)
MANY: Final = 20_000


@pytest.fixture
def group(broker: Broker, tmp_path: Path) -> Iterator[WorkerGroup]:
    """Two workers that have found each other; their file says `localhost` for the broker."""
    port = broker.bootstrap_servers.rpartition(":")[2]
    workers = WorkerGroup(tmp_path, broker, 2, {"bootstrap.servers": f"localhost:{port}"})
    workers.start()
    try:
        yield workers
    finally:
        workers.close()


@pytest.fixture
def sink(broker: Broker, target: TargetProcess, tmp_path: Path) -> Sink:
    """Properties, rows and offsets of a connector."""
    return Sink(cast(Any, None), broker, target, tmp_path)


@pytest.fixture
def topic(broker: Broker) -> str:
    """A topic with two topic-partitions."""
    name = f"topic-{time.time_ns()}"
    broker.create_topic(name, 2)
    return name


def _owner_and_other(group: WorkerGroup, sink: Sink) -> tuple[WorkerProcess, WorkerProcess]:
    """Return the worker that runs the connector, and the other one."""
    owner = group.worker_of(sink.name, group.workers[0])
    return owner, next(worker for worker in group.workers if worker is not owner)


def _deliver(group: WorkerGroup, sink: Sink, topic: str, first: int) -> None:
    """Produce 50 records, and wait until all are at the target."""
    sink.broker.produce(topic, numbered(50, first))
    group.until(lambda: sorted(numbers(sink.rows())) == list(range(first + 50)))


def test_a_connector_in_memory_moves_away_from_a_frozen_worker(group: WorkerGroup, sink: Sink, topic: str) -> None:
    """The files of two workers of one machine are in two folders, so the frozen one's lock stops nobody."""
    create(group.workers[0], [sink], [topic], inmemfs_enable="true")
    _deliver(group, sink, topic, 0)
    frozen, other = _owner_and_other(group, sink)
    frozen.command.signal_all(SIGSTOP)
    _deliver(group, sink, topic, 50)
    other.until_state(sink.name, "RUNNING")


@pytest.mark.parametrize("what", ["archive", "target"])
def test_a_takeover_waits_for_an_unavailable_folder(
    group: WorkerGroup, sink: Sink, topic: str, tmp_path: Path, what: str
) -> None:
    """The status names the folder and the next look; once the folder is there again, all is delivered."""
    folder = tmp_path / what
    folder.mkdir()
    keys = {"archive_url": f"directory:{folder}"} if what == "archive" else {"endpoint": f"directory:{folder}"}
    create(group.workers[0], [sink], [topic], **keys)
    sink.broker.produce(topic, numbered(50))
    group.until(lambda: _records_in(folder) == 50)
    owner, other = _owner_and_other(group, sink)
    shutil.move(folder, tmp_path / "unmounted")
    owner.command.signal_all(SIGKILL)
    sink.broker.produce(topic, numbered(50, 50))
    other.until_state(sink.name, "RESTARTING")
    (progress,) = other.do("GET", "/progress")
    assert_says(progress["status"]["waits_for"], str(folder), "No such file", "read again in")
    shutil.move(tmp_path / "unmounted", folder)
    group.until(lambda: _records_in(folder) == 100)
    other.until_state(sink.name, "RUNNING")


def test_a_restarted_worker_waits_for_an_unavailable_folder(
    broker: Broker, sink: Sink, topic: str, tmp_path: Path
) -> None:
    """A worker that is alone does so, too: its connector goes on once the folder is there again."""
    folder = tmp_path / "target"
    folder.mkdir()
    with closing(WorkerProcess(tmp_path, broker)) as worker:
        worker.start()
        create(worker, [sink], [topic], endpoint=f"directory:{folder}")
        worker.until_state(sink.name, "RUNNING")
        worker.stop()
        folder.rmdir()
        worker.start()
        worker.until_state(sink.name, "RESTARTING")
        folder.mkdir()
        broker.produce(topic, numbered(50))
        worker.until(lambda: _records_in(folder) == 50)
        worker.until_state(sink.name, "RUNNING")


def test_no_row_comes_twice_in_other_files_with_brokers_spelled_in_another_way(
    group: WorkerGroup, sink: Sink, topic: str, broker: Broker
) -> None:
    """The workers say localhost, the connector 127.0.0.1: its next owner sends the open ranges as the same files.

    A deleted connector leaves nothing in the state topic, and no warning.
    """
    spelled = {"consumer.override.bootstrap.servers": f"127.0.0.1:{broker.bootstrap_servers.rpartition(':')[2]}"}
    config = {**sink.properties(topic, commit_records=MANY // 4), **spelled}
    group.workers[0].do("POST", "/connectors", {"name": sink.name, "config": config})
    broker.produce(topic, [(None, b'{"n": %d, "once": "a"}' % number) for number in range(10)])  # a column to learn
    group.until(lambda: sorted(numbers(sink.rows())) == list(range(10)))
    owner, other = _owner_and_other(group, sink)
    accepted = len(sink.target.client.files(sink.table))
    try:
        sink.target.client.order_faults({"latency_s": 3, "store": True, "match": topic})
        broker.produce(topic, numbered(MANY, 10))
        group.until(lambda: len(sink.target.client.files(sink.table)) > accepted)
        owner.command.signal_all(SIGKILL)
        assert len(sink.rows()) > sum(offset or 0 for offset in sink.offsets(topic, 2))  # of an open range
    finally:
        sink.target.client.clear_faults()
    group.until(lambda: len(set(numbers(sink.rows()))) == MANY + 10)
    spans = sorted(
        (parts.partition, parts.first_offset, parts.last_offset)
        for name in {file["name"] for file in sink.target.client.files(sink.table)}
        if (parts := parts_of(name)) is not None
    )
    assert all(span[0] != later[0] or span[2] < later[1] for span, later in pairwise(spans)), spans
    other.do("DELETE", f"/connectors/{sink.name}?purge=true")
    assert "state topic" not in other.command.said


def _records_in(folder: Path) -> int:
    """Return how many records the files below a folder have, by their names."""
    names = [parts_of(path.name) for path in folder.rglob("*.parquet")]
    return sum(parts.records for parts in names if parts is not None)
