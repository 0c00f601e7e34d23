"""A connector class of an installed package is run from the command line, with a target of its own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
import pytest

from integration.conftest import TopicFactory
from integration.harness import committed
from parquet_sink.addons.devkit.broker import Broker

TIMEOUT_S: Final = 120.0
PACKAGE: Final = '''
import shutil
from dataclasses import dataclass

from parquet_sink.config.key import Key, Origin, Type
from parquet_sink.config.secret import Secret
from parquet_sink.connectors import reading
from parquet_sink.connectors.connect_keys import CONNECTOR_KEYS
from parquet_sink.files.settings import FileSettings
from parquet_sink.kafka.settings import OVERRIDE_KEYS, TOPIC_KEYS
from parquet_sink.kafka.settings import FlushSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.targets.outcome import Outcome, Verdict


def text(name, kind=Type.STRING):
    return Key(name, "The lake", kind, "Of the lake.", required=True, missing="give it.", origin=Origin.PLUGIN)


class Lake:
    """A target of its own: what arrives is copied to a folder, if the key is right."""

    def __init__(self, settings):
        self.name, self._settings = settings.folder, settings

    def push(self, file, seconds_left):
        assert self._settings.key.reveal() == "canary-77"
        shutil.copy(file.path, f"{self.name}/{file.name}")
        return Outcome(Verdict.ACCEPTED, "the lake has it")

    def close(self):
        pass


@dataclass(frozen=True)
class LakeSettings:
    """Handed to Spark's processes by value, as the sink's own settings are."""

    folder: str
    target_table: str
    key: Secret

    def open(self):
        return Lake(self)


class LakeSink:
    keys = (*CONNECTOR_KEYS, *TOPIC_KEYS, *OVERRIDE_KEYS, text("lake.folder"), text("lake.key", Type.PASSWORD))
    prefixes = ("lake.",)

    def check(self, values, worker, report):
        reading.check(values, worker, report)

    def settings(self, values, worker):
        return SinkSettings(
            name=values.text("name"),
            kafka=reading.kafka_settings(values, worker),
            flush=FlushSettings(10_000_000, 100_000, 1_000),
            shape=ShapeSettings(),
            files=FileSettings(worker.machine.tmp_dir),
            target=LakeSettings(values.text("lake.folder"), values.text("name"), values.secret("lake.key")),
        )
'''


@pytest.mark.in_turn
def test_a_class_of_an_installed_package_is_run(broker: Broker, topic: TopicFactory, tmp_path: Path) -> None:
    """Its keys say where files go; Spark's processes get its settings and its target; offsets are committed."""
    lake = tmp_path / "lake"
    lake.mkdir()
    site, name = tmp_path / "site", topic(prefix="lake")
    (site / "lake_sink").mkdir(parents=True)
    (site / "lake_sink" / "__init__.py").write_text(PACKAGE)
    (site / "lake_sink-1.0.dist-info").mkdir()
    (site / "lake_sink-1.0.dist-info" / "entry_points.txt").write_text(
        "[parquet_sink.connectors]\ncom.example.LakeSinkConnector = lake_sink:LakeSink\n"
    )
    file = tmp_path / "lake.properties"
    keys = {"connector.class": "LakeSink", "name": name, "topics": name, "lake.folder": str(lake)}
    file.write_text("".join(f"{key}={text}\n" for key, text in {**keys, "lake.key": "${env:LAKE_KEY}"}.items()))
    broker.produce(name, [(None, b'{"id": %d}' % number) for number in range(30)])
    paths = [str(Path(__file__).parents[1]), str(site)]
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "parquet_sink", "run", "--until-caught-up"),
            *("--bootstrap-servers", broker.bootstrap_servers, str(file)),
        ],
        env={**os.environ, "LAKE_KEY": "canary-77", "PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(tmp_path)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-3_000:]
    rows = [row for file in lake.iterdir() for row in pq.read_table(file).to_pylist()]
    assert [row["id"] for row in rows] == list(range(30))
    assert "canary-77" not in ended.stdout
    assert [offset for offset, _ in committed(broker, f"connect-{name}", name)] == [30]
