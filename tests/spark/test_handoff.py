"""Settings reach Spark's processes through a private folder; secrets are never seen on the way."""

import pickle
import re
import stat
from pathlib import Path

import pytest

from parquet_sink.config.secret import Secret
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.files.settings import FileSettings
from parquet_sink.kafka.settings import FlushSettings, KafkaSettings
from parquet_sink.model.instance import Instance
from parquet_sink.net.settings import ProxySettings
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.spark import handoff
from parquet_sink.spark.handoff import Handoff
from parquet_sink.targets.push.settings import PushSettings
from tests.messages import saying

CANARY = "canary-7f3a"


@pytest.fixture
def settings(tmp_path: Path) -> SinkSettings:
    """Of a connector with a secret in every place that may hold one."""
    client = {"bootstrap.servers": "b:1", "sasl.jaas.config": Secret(CANARY)}
    proxy = ProxySettings("p", 1, "HTTP", "u", Secret(CANARY))
    return SinkSettings(
        "orders",
        KafkaSettings(("orders",), None, "connect-orders", client),
        FlushSettings(1_000_000, 100, 2_000),
        ShapeSettings(primary_keys=("id",)),
        FileSettings(str(tmp_path / "tmp")),
        PushSettings("https://localhost/", Secret(f"AppKey {CANARY}"), "t", proxy=proxy),
    )


def test_what_is_written_is_read(settings: SinkSettings, tmp_path: Path) -> None:
    """Another process that knows the folder gets equal settings, secrets included, and the same instance."""
    written = handoff.write(settings, tmp_path / "run")
    found = handoff.read({handoff.RUN_FOLDER: str(tmp_path / "run")})
    assert found == written
    assert found.settings.target.authorization.reveal() == f"AppKey {CANARY}"
    assert found.state_path == tmp_path / "tmp" / "orders" / ".state.db"


def test_the_folder_is_private(settings: SinkSettings, tmp_path: Path) -> None:
    """Neither the folder nor a file in it can be read by anybody else."""
    handoff.write(settings, tmp_path / "run")
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "run").iterdir()}
    assert modes == {"settings.json": 0o600, "instance.json": 0o600, "state.json": 0o600}


def test_the_option_carries_no_secret(settings: SinkSettings, tmp_path: Path) -> None:
    """What Spark shows in plans and logs is a path; the object itself shows stars."""
    given = handoff.write(settings, tmp_path / "run")
    assert CANARY not in repr(given) + str(given) + f"{given}"
    assert "*****" in repr(given)


def test_it_travels_to_executors_by_value(settings: SinkSettings, tmp_path: Path) -> None:
    """The pickled handoff needs no folder on the other side."""
    given = handoff.write(settings, tmp_path / "run")
    back: Handoff = pickle.loads(pickle.dumps(given))
    assert back == given


def test_each_start_is_another_instance() -> None:
    """Two starts never share an id, and an instance says where and when."""
    one, other = Instance.new(), Instance.new()
    assert one.id != other.id
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", one.started)
    assert one.pid > 0
    assert one.host


def test_a_missing_option_is_named() -> None:
    """A PySpark program that forgot the option is told what to give."""
    with pytest.raises(InvalidConfiguration, match=saying("[run.folder]", "missing", ".options(**options)")):
        handoff.read({})


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """Options that are used after the `with` that made them say so; a folder that cannot be read has its cause."""
    with pytest.raises(
        InvalidConfiguration, match=saying("[run.folder]", str(tmp_path / "gone"), "`with`", "has ended")
    ):
        handoff.read({handoff.RUN_FOLDER: str(tmp_path / "gone")})
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidConfiguration, match=saying("[run.folder]", str(tmp_path / "file"), "Not a directory")):
        handoff.read({handoff.RUN_FOLDER: str(tmp_path / "file")})
