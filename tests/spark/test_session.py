"""The settings of the Spark session."""

import importlib.util
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from parquet_sink.errors import SetupError
from parquet_sink.spark import session
from parquet_sink.spark.session import FORCED, SETTINGS, Session
from tests.messages import saying


def test_every_setting_has_a_name_that_spark_reads() -> None:
    """Spark ignores a setting whose name it does not know, so each is `spark.` and words with dots between."""
    wrong = [key for key in {**SETTINGS, **FORCED} if not re.fullmatch(r"spark(\.[A-Za-z]\w*)+", key)]
    assert wrong == []


def test_workers_come_from_our_daemon_and_are_used_again() -> None:
    """Without the first a signal for the service ends workers, without the second each task starts a process."""
    module = SETTINGS["spark.python.daemon.module"]
    assert module == "parquet_sink.spark.daemon"
    assert importlib.util.find_spec(module) is not None
    assert SETTINGS["spark.python.worker.reuse"] == "true"


class Crashing:
    """Java that a signal ends when it is given an archive. crashed: whether one did."""

    def __init__(self, *, by_signal: bool) -> None:
        self.crashed = False
        self.launched: list[bool] = []
        self._by_signal = by_signal

    def launch(self, command: Sequence[str], variables: Mapping[str, str]) -> Any:
        with_archive = any("SharedArchiveFile" in word for word in command)
        self.launched.append(with_archive)
        self.crashed = with_archive and self._by_signal
        if with_archive:
            raise SetupError("Java ended")
        return "gateway"


@pytest.mark.parametrize(("by_signal", "launched"), [(True, [True, False]), (False, [True])])
def test_java_that_crashes_over_an_archive_is_started_without(
    by_signal: bool, launched: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archive is thrown away; Java that ends in order was given a wrong setting, which a second start keeps."""
    found = tmp_path / "a.jsa"
    found.touch()
    monkeypatch.setattr(session.cds_archive, "usable", lambda java_options, jars: found)
    monkeypatch.setattr("pyspark.SparkContext._jvm", None)
    started = Session(None, tmp_path)
    java = Crashing(by_signal=by_signal)
    monkeypatch.setattr(started, "java", java)
    if by_signal:
        assert started._launched(local=True)[1] == "gateway"
    else:
        with pytest.raises(SetupError):
            started._launched(local=True)
    assert java.launched == launched
    assert found.exists() is not by_signal


@pytest.mark.parametrize("variable", ["", "off"])
def test_a_start_without_an_archive_says_how_it_is_made(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody else would tell; who does not want one is not told."""
    monkeypatch.setenv("PARQUET_SINK_JAVA_ARCHIVE", variable)
    monkeypatch.setenv("PARQUET_SINK_CACHE", str(tmp_path / "empty"))
    monkeypatch.setattr("pyspark.SparkContext._jvm", None)
    started = Session(None, tmp_path)
    monkeypatch.setattr(started, "java", Crashing(by_signal=False))
    with caplog.at_level("INFO"):
        started._launched(local=True)
    assert ("python -m parquet_sink.spark.make_archive" in caplog.text) is not bool(variable)


def test_executors_have_our_python_or_the_one_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its path there; one that this machine does not have is refused, because what plans runs here with it."""
    monkeypatch.chdir(tmp_path)
    assert session._python_of_executors({}) == sys.executable
    named = {"spark.pyspark.python": "./environment/bin/python"}
    with pytest.raises(SetupError, match=saying("'./environment/bin/python'", "not on this machine", "unpack")):
        session._python_of_executors(named)
    (tmp_path / "environment" / "bin").mkdir(parents=True)
    (tmp_path / "environment" / "bin" / "python").symlink_to(sys.executable)
    assert session._python_of_executors(named) == "./environment/bin/python"
