"""What a PySpark program does beside its queries; without Spark, which others show."""

import hashlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from parquet_sink.archive.archive import LocalFile
from parquet_sink.archive.waiting import WaitingFolder
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.files import naming
from parquet_sink.notify.notice import TYPE, Notice
from parquet_sink.notify.waiting import NoticeFolder
from parquet_sink.spark import connector, dataframes, run_folder
from parquet_sink.spark.handoff import RUN_FOLDER, SETTINGS_FILE
from parquet_sink.worker_config.worker import BOOTSTRAP_VARIABLE
from tests.notify.receiver import Receiver, receiver

__all__ = ["receiver"]
NOTICE = Notice(
    {"specversion": "1.0", "id": f"{7:032x}", "source": "/connectors/c", "type": TYPE, "subject": "s"}, "{}"
)


KILLED = """
import os, pathlib, signal, sys
from parquet_sink.spark import dataframes, run_folder
run_folder._base = lambda: pathlib.Path(sys.argv[1])
with dataframes(sys.argv[2]):
    os.kill(os.getpid(), signal.SIGTERM)
"""


def connector_file(folder: Path, **ems: object) -> str:
    """Of a connector that sends DataFrames into a folder."""
    (folder / "lake").mkdir()
    keys = {"endpoint": f"directory:{folder / 'lake'}", "target_table": "t", "tmp_dir": folder / "tmp", **ems}
    size = {"commit_records": 10, "commit_size_bytes": 1_000_000}
    lines = {f"connect.ems.{key.replace('_', '.')}": value for key, value in {**keys, **size}.items()}
    file = folder / "c.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in {"name": "c", **lines}.items()))
    return str(file)


def test_what_waits_for_webhook_and_archive_goes_there(tmp_path: Path, receiver: Receiver) -> None:
    """While the options are held, and before they are let go: Spark's processes leave it to the program."""
    archive, sent, tmp_dir = tmp_path / "archive", tmp_path / "f.parquet", str(tmp_path / "tmp")
    archive.mkdir()
    sent.write_bytes(b"rows")
    behind = {"archive_url": f"directory:{archive}", "archive_required": "false", "notify_url": receiver.url}
    with dataframes(connector_file(tmp_path, **behind)):
        notices = NoticeFolder(naming.notices_folder(tmp_dir, "c"))
        files = WaitingFolder(naming.waiting_folder(tmp_dir, "c"), 1_000)
        assert (notices.tended, files.tended) == (True, True)
        notices.put(NOTICE)
        assert files.put(LocalFile(str(sent), "topic=q/f.parquet", 4, hashlib.sha256(b"rows").hexdigest())) is None
    assert receiver.taken == [(NOTICE.id, {})]
    assert [one.read_bytes() for one in archive.rglob("f.parquet")] == [b"rows"]
    assert (notices.notices(), files.files()) == ([], [])


def test_a_topic_of_notices_needs_brokers(tmp_path: Path) -> None:
    """A DataFrame has none, so who names a topic for notices names where it is; key and cure are told."""
    file = connector_file(tmp_path, notify_topic="files")
    with pytest.raises(InvalidConfiguration, match=r"\[connect\.ems\.notify\.topic\].*producer\.override\.bootstrap"):
        dataframes(file).__enter__()
    with Path(file).open("a") as more:
        more.write("producer.override.bootstrap.servers=localhost:1\n")
    with dataframes(file):
        pass


def test_what_a_killed_program_left_is_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder has secrets in clear. What a living program has stays until its end."""
    monkeypatch.setattr(run_folder, "_base", lambda: tmp_path)
    monkeypatch.setattr(run_folder, "MEMORY_FOLDER", tmp_path)
    file = connector_file(tmp_path)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), file], check=False, timeout=60)
    assert killed.returncode == -signal.SIGTERM
    (left,) = folders(tmp_path)
    assert (left / SETTINGS_FILE).stat().st_mode & 0o777 == 0o600
    other = tmp_path / "other"
    other.mkdir()
    with dataframes(file) as options:
        assert folders(tmp_path) == [Path(options[RUN_FOLDER])]
        with dataframes(connector_file(other)) as more:
            assert {*folders(tmp_path)} == {Path(options[RUN_FOLDER]), Path(more[RUN_FOLDER])}
    assert folders(tmp_path) == []


def test_brokers_must_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None is guessed; the three places are told, and each of them and the connector file is enough."""
    monkeypatch.delenv(BOOTSTRAP_VARIABLE, raising=False)
    file = Path(connector_file(tmp_path, commit_interval_ms=1000))
    keys = {"connector.class": "parquet_sink.EmsSink", "topics": "t", "value.converter": "JsonConverter"}
    file.write_text(file.read_text() + "".join(f"{key}={value}\n" for key, value in keys.items()))
    with pytest.raises(InvalidConfiguration) as refused:
        connector(str(file)).__enter__()
    for named in ("[bootstrap.servers]", "worker=", BOOTSTRAP_VARIABLE, "bootstrap_servers="):
        assert named in str(refused.value)
    worker = tmp_path / "worker.properties"
    worker.write_text("bootstrap.servers=localhost:1\n")
    with connector(str(file), worker=str(worker)):
        pass
    with monkeypatch.context() as environment:
        environment.setenv(BOOTSTRAP_VARIABLE, "localhost:1")
        with connector(str(file)):
            pass
    with connector(str(file), bootstrap_servers="localhost:1"):
        pass
    file.write_text(file.read_text() + "consumer.override.bootstrap.servers=localhost:9092\n")
    with connector(str(file)):
        pass


def folders(base: Path) -> list[Path]:
    """Of runs that are or were."""
    return list(base.glob(f"{run_folder.PREFIX}*"))
