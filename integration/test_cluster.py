"""A connector on a Spark standalone cluster: files arrive, and an executor that is killed in a flush loses nothing."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from integration import processes
from integration.cluster import Cluster, install, installed, running
from integration.conftest import TopicFactory
from integration.harness import committed
from parquet_sink.devkit.broker import Broker
from parquet_sink.devkit.target.process import TargetProcess

TIMEOUT_S = 200.0
COUNT = 500
QUICK = "spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


OWN = Path(__file__).parents[1] / "docs" / "examples" / "own-transform"
SCALE = """
transforms=scale
transforms.scale.type=com.example.Scale$Value
transforms.scale.field=n
transforms.scale.percent=200
transforms.scale.predicate=new
predicates=new
predicates.new.type=com.example.Since
predicates.new.from=2024-01-01
"""


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """Of an environment with the package installed, and beside it a user's own with transforms."""
    found = installed(tmp_path / "venv")
    install(found, OWN)
    return found


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A master and two workers."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    with Cluster(folder, uuid.uuid4().hex) as started:
        yield started


def until(condition: Callable[[], bool], log: Path) -> None:
    """Waits; fails with the program's last words when it takes too long."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, log.read_text(errors="replace")[-3_000:]
        time.sleep(0.1)


@pytest.mark.parametrize(
    "killed", [pytest.param(0, id="whole"), pytest.param(1, id="an executor is killed", marks=pytest.mark.slow)]
)
def test_a_cluster_delivers(
    cluster: Cluster,
    python: Path,
    broker: Broker,
    target: TargetProcess,
    topic: TopicFactory,
    tmp_path: Path,
    killed: int,
) -> None:
    """Both machines flush, all records arrive and are committed; what a killed executor had is flushed again.

    Executors have a user's transform and predicate by their entry points, where the package is installed.
    """
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
    lines = "".join(f"connect.ems.{key}={value}\n" for key, value in keys.items())
    connector.write_text(f"name={table}\ntopics={name}\n{lines}{SCALE}")
    broker.produce(name, [(b"%d" % number, b'{"n":%d}' % number) for number in range(COUNT)])
    arguments = ["--worker", str(worker), "--conf", "spark.executor.memory=512m", "--conf", QUICK, str(connector)]
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
