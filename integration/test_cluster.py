"""Connectors on a Spark standalone cluster, from files and over REST; executors and drivers are killed in a flush."""

import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from integration import processes
from integration.cluster import LIGHT, Cluster, installed, running
from integration.conftest import TopicFactory
from integration.crash.streams import small
from integration.harness import Sink, committed
from integration.numbered import numbered, numbers
from integration.oracle.stream import Stream
from integration.worker_process import WorkerProcess
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess

TIMEOUT_S = 200.0
COUNT = 500
QUICK = f"spark.executor.extraJavaOptions={LIGHT}"
SMALL = ("--conf", "spark.executor.memory=512m", "--conf", QUICK)

OWN = Path(__file__).parents[1] / "docs" / "examples" / "own-transform"
SCALE = {
    "transforms": "scale",
    "transforms.scale.type": "com.example.Scale$Value",
    "transforms.scale.field": "n",
    "transforms.scale.percent": "200",
    "transforms.scale.predicate": "new",
    "predicates": "new",
    "predicates.new.type": "com.example.Since",
    "predicates.new.from": "2024-01-01",
}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an environment with the package installed, and beside it a user's own with transforms."""
    return installed(tmp_path_factory.mktemp("installed") / "venv", OWN)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers."""
    with Cluster(tmp_path_factory.mktemp("cluster"), uuid.uuid4().hex) as started:
        yield started


def until(condition: Callable[[], bool], log: Path) -> None:
    """Waits; fails with the program's last words when it takes too long."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, log.read_text(errors="replace")[-3_000:]
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.parametrize("killed", [pytest.param(0, id="whole"), pytest.param(1, id="an executor is killed")])
def test_a_cluster_delivers(
    cluster: Cluster,
    python: Path,
    broker: Broker,
    target: TargetProcess,
    topic: TopicFactory,
    tmp_path: Path,
    killed: int,
) -> None:
    """From a file: both machines flush, all records are committed; what a killed executor had is flushed again."""
    name, table = topic(4), f"t-{uuid.uuid4().hex[:8]}"
    connector, worker, tmp = tmp_path / "c.properties", tmp_path / "w.properties", tmp_path / "tmp"
    worker.write_text("value.converter=JsonConverter\nvalue.converter.schemas.enable=false\n")
    keys = {
        "endpoint": target.endpoint(),
        "authorization.key": "AppKey demo",
        "target.table": table,
        "commit.size.bytes": 10_000_000,
        "commit.records": 100,
        "commit.interval.ms": 1_000,
        "tmp.dir": tmp,
    }
    properties = {
        "name": table,
        "topics": name,
        **{f"connect.ems.{key}": value for key, value in keys.items()},
        **SCALE,
    }
    connector.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    broker.produce(name, [(b"%d" % number, b'{"n":%d}' % number) for number in range(COUNT)])
    arguments = ["--worker", str(worker), *SMALL, str(connector)]
    servers = {"PARQUET_SINK_BOOTSTRAP_SERVERS": broker.bootstrap_servers}
    with (
        closing(target.client) as client,
        running(python, cluster.master, tmp_path, arguments, servers) as log,
    ):
        if killed:
            client.order_faults({"latency_s": 3.0, "next": 8})
            until(lambda: len(cluster.executors()) == 2 and len(list(tmp.rglob("*.parquet.part"))) > 1, log)
            for executor in cluster.executors()[:killed]:
                processes.kill(executor)
        until(lambda: sum(file["rows"] for file in client.files()) >= COUNT, log)
        until(lambda: sum(offset or 0 for offset, _ in committed(broker, f"connect-{table}", name, 4)) == COUNT, log)
        assert len(cluster.executors()) == 2 or killed
        client.sync()
        found = sorted(row["n"] for row in client.table(table).to_pylist())
        assert (sorted(set(found)) if killed else found) == [2 * number for number in range(COUNT)]
        assert [file for file in client.files() if file["altered"]] == []


@pytest.fixture
def sink(broker: Broker, target: TargetProcess, tmp_path: Path) -> Sink:
    """Properties, rows and offsets of a connector; the Spark is the worker's own."""
    return Sink(cast(Any, None), broker, target, tmp_path)


@pytest.mark.in_turn(seconds=55)
def test_the_worker_delivers_on_a_cluster(
    cluster: Cluster, python: Path, broker: Broker, target: TargetProcess, topic: TopicFactory, sink: Sink
) -> None:
    """Connectors made over REST run on its executors; a stop in the middle of a flush finishes it there and commits.

    Executors have a user's transform and predicate by their entry points, where the package is installed.
    """
    names = {f"{sink.name}-{n}": topic(2) for n in range(2)}
    folder = sink.tmp_dir.parent / "driver"
    folder.mkdir()
    worker = WorkerProcess(folder, broker, python=python)
    try:
        worker.start("--master", cluster.master, *SMALL)
        for name, one in names.items():
            broker.produce(one, [(b"%d" % n, value) for n, (_, value) in enumerate(numbered(100))])
            config = {**sink.properties(one, target_table=name), **SCALE, "name": name}
            worker.do("POST", "/connectors", {"name": name, "config": config})
        for name, one in names.items():
            worker.until(lambda one=one, name=name: _delivered(sink, one, name) == 100, TIMEOUT_S)  # type: ignore[misc]
        assert worker.states() == dict.fromkeys(names, "RUNNING")
        assert len(cluster.executors()) == 2
        with closing(target.client) as client:
            client.order_faults({"latency_s": 3.0, "next": 1})
        last, one = list(names.items())[-1]
        broker.produce(one, numbered(50, 100))
        worker.until(lambda: any(sink.tmp_dir.rglob("*.parquet.part")), TIMEOUT_S)
        worker.stop()
        assert _delivered(sink, one, last) == 150
        for name, count in zip(names, (100, 150), strict=True):
            assert sorted(numbers(sink.rows(name))) == [2 * n for n in range(count)]
    finally:
        worker.close()


def _delivered(sink: Sink, topic: str, name: str) -> int:
    return sum(offset or 0 for offset in sink.offsets(topic, 2, f"connect-{name}"))


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("kept", [pytest.param(True, id="with its state"), pytest.param(False, id="without its state")])
def test_a_driver_that_is_killed_and_started_elsewhere_loses_nothing(
    cluster: Cluster,
    python: Path,
    broker: Broker,
    target: TargetProcess,
    topic: TopicFactory,
    tmp_path: Path,
    kept: bool,
) -> None:
    """First an executor, then the driver is killed in the middle of a flush; another with its connectors goes on.

    Where `connect.ems.tmp.dir` came along, files are sent again under their names at most. Without it the columns and
    sizes that were learned are gone: nothing is lost, but a range may be cut into other files the second time.
    """
    stream = Stream(small(f"elsewhere-{uuid.uuid4().hex[:8]}", 150.0, 3_000), broker)
    drivers = [_driver(tmp_path / name, broker, python) for name in ("here", "elsewhere")]
    first, second = drivers
    try:
        stream.start()
        first.start("--master", cluster.master, *SMALL)
        config = stream.connector(target.endpoint(), tmp_path / "shared")
        if not kept:
            del config["connect.ems.tmp.dir"]
        first.do("POST", "/connectors", {"name": stream.kind.topic, "config": config})
        _until_committed(first, stream, {0: 1})
        with closing(target.client) as client:
            client.order_faults({"latency_s": 0.7, "match": stream.kind.table})
        files = tmp_path / "shared" if kept else first.command.tmp
        first.until(lambda: any(files.rglob("*.parquet.part")), TIMEOUT_S)
        processes.kill(cluster.executors()[0])
        _until_committed(first, stream, stream.oracle.ends())
        first.until(lambda: any(files.rglob("*.parquet.part")), TIMEOUT_S)
        first.command.process.kill()
        assert first.command.gone_within(30), first.command.alive()

        shutil.copytree(first.store, second.store)
        second.start("--master", cluster.master, *SMALL)
        _until_committed(second, stream, stream.oracle.ends())
        second.until(lambda: stream.load.enough, TIMEOUT_S)
        stream.load.stop()
        _until_committed(second, stream, stream.oracle.ends())
        second.stop()
        with closing(target.client) as client:
            stream.judge(client, stream.stopped(client))
        assert stream.committed == stream.oracle.ends()
        found = stream.oracle.findings
        print(found)
        assert found.wrong.keys() <= (set() if kept else {"renamed", "recut", "altered_files"}), found
        assert stream.oracle.records >= 3_000
        assert found.dead_letters > 0
    finally:
        for driver in drivers:
            driver.close()
        stream.close()


def _driver(folder: Path, broker: Broker, python: Path) -> WorkerProcess:
    folder.mkdir()
    return WorkerProcess(folder, broker, python=python)


def _until_committed(worker: WorkerProcess, stream: Stream, ends: Mapping[int, int]) -> None:
    """All below these offsets."""

    def reached() -> bool:
        stream.look()
        return stream.reached(ends)

    worker.until(reached, TIMEOUT_S)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_an_environment_that_is_packed_goes_to_executors(
    cluster: Cluster, python: Path, broker: Broker, target: TargetProcess, topic: TopicFactory, sink: Sink
) -> None:
    """As on YARN, where nothing is installed on machines: the driver's environment, unpacked in its folder and sent."""
    name, folder = topic(2), sink.tmp_dir.parent / "driver"
    folder.mkdir()
    shutil.copytree(python.parents[1], folder / "environment", symlinks=True)
    archive = shutil.make_archive(str(folder / "environment"), "gztar", python.parents[1])
    broker.produce(name, numbered(100))
    worker = WorkerProcess(folder, broker, python=folder / "environment" / "bin" / "python")
    try:
        packed = ("spark.pyspark.python=./environment/bin/python", f"spark.archives={archive}#environment")
        worker.start("--master", cluster.master, *SMALL, *(word for one in packed for word in ("--conf", one)))
        worker.do("POST", "/connectors", {"name": sink.name, "config": sink.properties(name)})
        worker.until(lambda: _delivered(sink, name, sink.name) == 100, TIMEOUT_S)
        own = [one.command for one in cluster.processes() if "parquet_sink.spark.daemon" in one.command]
        assert own
        assert all(command.startswith("./environment/bin/python ") for command in own)
        worker.stop()
    finally:
        worker.close()
