"""`history`, `parked`, `archive` and `replay` of a worker's connector on real parts, by any worker of a group."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from integration.conftest import TopicFactory
from integration.harness import Sink
from integration.numbered import numbered
from integration.worker_process import WorkerProcess
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess


@pytest.fixture
def sink(broker: Broker, target: TargetProcess, tmp_path: Path) -> Sink:
    """Properties, rows and offsets of a connector; the Spark is the worker's own."""
    return Sink(cast(Any, None), broker, target, tmp_path)


@pytest.fixture
def worker(broker: Broker, tmp_path: Path) -> Iterator[WorkerProcess]:
    """A worker without connectors."""
    made = WorkerProcess(tmp_path, broker)
    made.start()
    yield made
    try:
        made.stop()
        assert "Traceback" not in made.command.said
    finally:
        made.close()


def asked(worker: WorkerProcess, *words: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command, as it is typed."""
    found = subprocess.run(
        [sys.executable, "-m", "parquet_sink", *words, "--url", worker.url],
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    return found.returncode, found.stdout, found.stderr


def test_all_that_a_worker_knows_of_a_connector_is_asked_of_it(
    worker: WorkerProcess, sink: Sink, broker: Broker, topic: TopicFactory, tmp_path: Path
) -> None:
    """What was sent, where a record is, what is parked, and the archive; all of it is sent again, while it runs."""
    name, archive = topic(), tmp_path / "archive"
    archive.mkdir()
    keys = {"commit_records": 10, "archive_url": f"directory:{archive}", "data_primary_key": "n"}
    config = {**sink.properties(name, **keys), "errors.tolerance": "all"}
    broker.produce(name, [*numbered(20), (None, b"no JSON"), *numbered(9, 20)])
    worker.do("POST", "/connectors", {"name": sink.name, "config": config})
    worker.until(lambda: sink.offsets(name) == [30])
    of_it = ("--connector", sink.name)

    status, out, err = asked(worker, "history", *of_it)
    assert (status, err) == (0, "")
    assert f"connector {sink.name}: " in out
    assert f"{name} 0, offsets 0 to 9, 10 rows" in out
    status, out, _ = asked(worker, "history", "--where", f"{name}:0:25", *of_it)
    assert (status, "accepted" in out) == (0, True)
    status, out, _ = asked(worker, "parked", "show", "--content", *of_it)
    assert (status, "no JSON" in out) == (0, True)
    status, out, _ = asked(worker, "archive", "verify", *of_it)
    assert (status, "complete: " in out) == (0, True)

    files = len(sink.target.client.files(sink.table))
    status, out, _ = asked(worker, "replay", "--dry-run", *of_it)
    assert (status, "nothing was sent" in out) == (0, True)
    status, out, err = asked(worker, "replay", "--json", "--times", "2", "--rate", "100%", *of_it)
    found = json.loads(out)
    assert (found["same"], found["different"], found["new"]) == (2 * files, 0, 0), err
    assert {one["repeated"] for one in sink.target.client.files(sink.table)} == {2}
    assert "secret" not in out.lower()

    status, out, _ = asked(worker, "parked", "replay", "--dry-run", *of_it)
    assert (status, "would stay parked" in out) == (1, True)
    assert asked(worker, "parked", "drop", "--all", *of_it)[0] == 1
    assert asked(worker, "parked", "drop", "--all", "--yes", *of_it)[0] == 0
    assert "nothing is parked" in asked(worker, "parked", "list", *of_it)[1]
    jobs = worker.do("GET", f"/connectors/{sink.name}/jobs")
    assert {one["state"] for one in jobs} == {"ENDED"}
