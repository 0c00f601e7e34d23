"""FileStreamSink on real parts: by REST in a worker, killed, then by `run`; beside EMS and the plug-in of the docs."""

import json
import os
import shutil
import sqlite3
import tomllib
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any, cast

from integration.conftest import TopicFactory
from integration.harness import committed
from integration.letters import letters
from integration.sink_process import SinkProcess
from integration.worker_process import WorkerProcess
from parquet_sink.addons.devkit.broker import Broker

TEXT = {"value.converter": "org.apache.kafka.connect.storage.StringConverter"}
ROOT = Path(__file__).parents[1]
SHOP = ROOT / "docs" / "examples" / "own-sink"
PER_PARTITION = 1_000
PAD = "x" * 500


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


class Scene:
    """Three connectors of one worker: two append to one file, one of them with dead letters, and one is EMS."""

    def __init__(self, broker: Broker, topic: TopicFactory, folder: Path) -> None:
        self.broker, self.texts, self.objects = broker, topic(4, prefix="texts"), topic(2, prefix="objects")
        self.file, self.lake, self.dead = folder / "out.txt", folder / "lake", topic(prefix="dead")
        self.lake.mkdir()
        self.expected: list[str] = []
        common = {"connect.ems.tmp.dir": str(folder / "tmp")}
        json_keys = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
        file_keys = {"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "file": str(self.file)}
        tolerant = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": self.dead}
        ems = {
            "connector.class": "EmsSink",
            "connect.ems.endpoint": f"directory:{self.lake}",
            "connect.ems.target.table": "t",
            "connect.ems.commit.size.bytes": "1000000",
            "connect.ems.commit.records": "1000",
            "connect.ems.commit.interval.ms": "1000",
        }
        self.configs = {
            f"file-{self.texts}": {"topics": self.texts, **file_keys, **TEXT, **common},
            f"file-{self.objects}": {"topics": self.objects, **file_keys, **json_keys, **tolerant, **common},
            f"ems-{self.objects}": {"topics": self.objects, **ems, **json_keys, **tolerant, **common},
        }

    def produce(self) -> None:
        """Long lines, objects, and one that is none."""
        for partition in range(4):
            lines = [f"line {partition} {number} {PAD}" for number in range(PER_PARTITION)]
            self.broker.produce(self.texts, [(None, line.encode()) for line in lines], partition)
            self.expected += lines
        for partition in range(2):
            found = [json.dumps({"n": n, "p": partition}).encode() for n in range(100)]
            self.broker.produce(self.objects, [(None, value) for value in found], partition)
            self.expected += [f"{{n={n}, p={partition}}}" for n in range(100)]
        self.broker.produce(self.objects, [(None, b"{no object")], 1)

    def produce_more(self) -> None:
        more = [f"more {number}" for number in range(200)]
        self.broker.produce(self.texts, [(None, line.encode()) for line in more], 1)
        self.expected += more


def _progress(worker: WorkerProcess, name: str) -> dict[str, Any]:
    found = worker.do("GET", "/progress")
    return cast("dict[str, Any]", next(one for one in found if one["status"]["name"] == name))


def _by_rest(worker: WorkerProcess, scene: Scene) -> None:
    """On a live worker; what was delivered is told."""
    types = {one["class"]: one["type"] for one in worker.do("GET", "/connector-plugins")}
    assert types["org.apache.kafka.connect.file.FileStreamSinkConnector"] == "sink"
    refused = worker.ask(
        "PUT", "/connectors/x/config", {**scene.configs[f"file-{scene.texts}"], "file": "/no/such/file"}
    )
    assert "Invalid [file]." in refused.json()["message"]
    scene.produce()
    for name, config in scene.configs.items():
        worker.do("PUT", f"/connectors/{name}/config", config)
    objects = f"file-{scene.objects}"
    worker.until(lambda: _progress(worker, objects)["records"] >= 200)
    worker.until(lambda: _progress(worker, objects)["set_aside"] == 1)
    assert _progress(worker, objects)["files"] == 0
    worker.until(lambda: any(line.startswith("line") for line in _lines(scene.file)))


def _with_shop_sink(site: Path) -> dict[str, str]:
    """The environment in which the package of docs/how-to/own-sinks.md is installed."""
    declared = tomllib.loads((SHOP / "pyproject.toml").read_text())["project"]["entry-points"]
    (found,) = declared["parquet_sink.connectors"].items()
    info = site / "shop_sink-1.0.dist-info"
    info.mkdir(parents=True)
    shutil.copy(SHOP / "shop_sink.py", site)
    (info / "entry_points.txt").write_text(f"[parquet_sink.connectors]\n{found[0]} = {found[1]}\n")
    return {"PYTHONPATH": os.pathsep.join([str(ROOT), str(site)])}


def test_no_line_is_missing_or_torn(broker: Broker, topic: TopicFactory, tmp_path: Path) -> None:
    """A worker is killed in the middle; `run` delivers the rest, what fails to dead letters; all lines are whole."""
    scene = Scene(broker, topic, tmp_path)
    with closing(WorkerProcess(tmp_path, broker)) as worker:
        worker.start()
        _by_rest(worker, scene)
        worker.command.process.kill()
        worker.command.process.wait()
    with scene.file.open("a") as torn:  # what nobody wrote down stays, on a line of its own
        torn.write("by hand")
    scene.produce_more()
    override = {"consumer.override.bootstrap.servers": broker.bootstrap_servers}
    override |= {"producer.override.bootstrap.servers": broker.bootstrap_servers}
    connectors = [{"name": name, **config, **override} for name, config in scene.configs.items()]
    connectors.append(
        {"name": f"out-{scene.texts}", "connector.class": "FileStreamSink", "topics": scene.texts, **TEXT}
    )
    connectors[-1] |= {**override, "connect.ems.tmp.dir": str(tmp_path / "tmp")}
    connectors.append({**connectors[1], "name": f"shop-{scene.objects}", "connector.class": "ShopSink"})
    connectors[-1] |= {"shop.database": str(tmp_path / "shop.db")}
    connectors[-1].pop("file")
    sink = SinkProcess(connectors, tmp_path, _with_shop_sink(tmp_path / "site"))
    try:
        assert sink.run_to_end(200, "--until-caught-up") == 0, sink.last_words()
    finally:
        sink.end_all()
    assert set(_lines(scene.file)) == {*scene.expected, "by hand"}
    assert committed(broker, f"connect-file-{scene.texts}", scene.texts, 4)[1][0] == PER_PARTITION + 200
    assert {letter.value() for letter in letters(broker, scene.dead)} == {b"{no object"}
    assert any(scene.lake.rglob("*.parquet"))
    with closing(sqlite3.connect(tmp_path / "shop.db")) as shop:
        rows = shop.execute("SELECT part, value FROM records ORDER BY part, at").fetchall()
    assert rows == [(partition, json.dumps({"n": n, "p": partition})) for partition in range(2) for n in range(100)]
    log = sink.log.read_text()
    assert Counter(line for line in log.splitlines() if line.startswith("line ")).keys() == {
        line for line in scene.expected if line.startswith("line ")
    }
    assert f"to file {scene.file}" in log
