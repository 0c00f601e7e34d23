"""A connector class of an installed package is run from the command line, with settings of classes of its own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from integration.conftest import TopicFactory
from integration.harness import committed
from parquet_sink.devkit.broker import Broker
from parquet_sink.devkit.target.process import TargetProcess

TIMEOUT_S: Final = 120.0
PACKAGE: Final = '''
from dataclasses import dataclass

from parquet_sink.config.key import Key, Origin, Type
from parquet_sink.config.secret import Secret
from parquet_sink.connectors import reading
from parquet_sink.connectors.connect_keys import CONNECTOR_KEYS
from parquet_sink.files.settings import FileSettings
from parquet_sink.kafka.keys import OVERRIDE_KEYS, TOPIC_KEYS
from parquet_sink.kafka.settings import FlushSettings
from parquet_sink.pipeline.settings import SinkSettings
from parquet_sink.shape.settings import ShapeSettings
from parquet_sink.targets.push.settings import PushSettings


def text(name, kind=Type.STRING):
    return Key(name, "The lake", kind, "Of the lake.", required=True, missing="give it.", origin=Origin.PLUGIN)


@dataclass(frozen=True)
class Shore:
    """What only this class knows."""

    named: tuple[str, ...]
    password: Secret


@dataclass(frozen=True)
class LakeSettings(SinkSettings):
    shore: Shore | None = None


class LakeSink:
    keys = (*CONNECTOR_KEYS, *TOPIC_KEYS, *OVERRIDE_KEYS, text("lake.url"), text("lake.key", Type.PASSWORD))
    prefixes = ("lake.",)

    def check(self, values, worker, report):
        reading.check(values, worker, report)

    def settings(self, values, worker):
        return LakeSettings(
            name=values.text("name"),
            kafka=reading.kafka_settings(values, worker),
            flush=FlushSettings(10_000_000, 100_000, 1_000),
            shape=ShapeSettings(),
            files=FileSettings(worker.machine.tmp_dir),
            push=PushSettings(values.text("lake.url"), values.secret("lake.key"), values.text("name")),
            shore=Shore(("a", "b"), values.secret("lake.key")),
        )
'''


def test_a_class_of_an_installed_package_is_run(
    broker: Broker, target: TargetProcess, topic: TopicFactory, tmp_path: Path
) -> None:
    """Its keys say where files go; Spark's processes get its settings; records arrive, offsets are committed."""
    site, name = tmp_path / "site", topic(prefix="lake")
    (site / "lake_sink").mkdir(parents=True)
    (site / "lake_sink" / "__init__.py").write_text(PACKAGE)
    (site / "lake_sink-1.0.dist-info").mkdir()
    (site / "lake_sink-1.0.dist-info" / "entry_points.txt").write_text(
        "[parquet_sink.connectors]\ncom.example.LakeSinkConnector = lake_sink:LakeSink\n"
    )
    file = tmp_path / "lake.properties"
    keys = {"connector.class": "LakeSink", "name": name, "topics": name, "lake.url": target.endpoint()}
    file.write_text("".join(f"{key}={text}\n" for key, text in {**keys, "lake.key": "${env:LAKE_KEY}"}.items()))
    broker.produce(name, [(None, b'{"id": %d}' % number) for number in range(30)])
    paths = [str(Path(__file__).parents[1]), str(site)]
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "parquet_sink", "run", "--until-caught-up"),
            *("--bootstrap-servers", broker.bootstrap_servers, str(file)),
        ],
        env={**os.environ, "LAKE_KEY": "AppKey demo", "PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(tmp_path)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-3_000:]
    target.client.sync()
    assert sorted(row["id"] for row in target.client.table(name).to_pylist()) == list(range(30))
    assert [offset for offset, _ in committed(broker, f"connect-{name}", name)] == [30]
