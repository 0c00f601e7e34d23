"""Kinds of connectors beside the built-in ones: a class of another package, with settings and a kind of its own."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from parquet_sink.connectors.check import Checked
from parquet_sink.connectors.connector_class import find_class, type_of
from parquet_sink.connectors.loading import Loaded, check_unique, load
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.plugins import PluginUnusable
from parquet_sink.targets.outcome import Health
from parquet_sink.validate.preflight import inspect
from parquet_sink.validate.probe import probe
from parquet_sink.validate.probe_kafka import Finding
from parquet_sink.worker.loop.flow import flow_of, stored_offsets_of
from parquet_sink.worker_config.worker import Worker
from parquet_sink.worker_config.worker_file import LoadedWorker
from tests.connectors.packages import forget, install
from tests.messages import assert_says, saying

SOURCE = """
from dataclasses import dataclass, replace
from parquet_sink.api import CONNECTOR_KEYS, ConnectorKind, Finding, Flow, Health


@dataclass(frozen=True)
class TickSettings:
    name: str
    kind = "tick_source.TICKS"
    group = None
    tmp_dir = "/tmp"

    def with_transforms(self, steps):
        return replace(self)


class LostSettings(TickSettings):
    kind = "lost"


class TickSource:
    kind = "tick_source.TICKS"
    keys = CONNECTOR_KEYS
    prefixes = ()

    def check(self, values, worker, report):
        pass

    def settings(self, values, worker):
        return TickSettings(values.text("name"))


class LostSource(TickSource):
    kind = "lost"

    def settings(self, values, worker):
        return LostSettings(values.text("name"))


class TickFlow(Flow):
    origin = "now"
    given_up = "it ticks again"

    def __init__(self, settings):
        self.name = settings.name


class TickOffsets:
    def __init__(self, settings):
        pass

    def read(self):
        return ()


def problems(settings, found):
    found.connector[f"Invalid [name]. {settings.name} does not tick."] = None


def tried(settings):
    yield Finding(Health.OK, "clock", "ticks")


TICKS = ConnectorKind(
    type="source",
    flow="tick_source:TickFlow",
    stored_offsets="tick_source:TickOffsets",
    problems="tick_source:problems",
    probe="tick_source:tried",
)
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package `tick_source` is installed."""
    monkeypatch.syspath_prepend(tmp_path)
    classes = {f"com.example.{name}Connector": f"tick_source:{name}" for name in ("TickSource", "LostSource")}
    install(tmp_path, "tick_source", SOURCE, classes)
    yield
    forget("tick_source")


def _loaded(name: str, class_: str = "TickSource", **keys: str) -> Loaded:
    return load({"connector.class": class_, "name": name, **keys}, Worker(), source=f"{name}.properties")


def test_a_class_says_whether_it_is_a_source() -> None:
    """By its kind; what names none is a sink, as all classes were."""
    names = ("TickSource", "FileStreamSource", "EmsSink", "FileStreamSink")
    assert [type_of(find_class(name)) for name in names] == ["source", "source", "sink", "sink"]
    with pytest.raises(PluginUnusable, match=saying('"lost"', "not a known kind", "sink, record_sink")):
        type_of(find_class("LostSource"))


def test_sources_share_no_consumer_group() -> None:
    """They have none; names are unique all the same."""
    assert check_unique([_loaded("a"), _loaded("b")]) == ()
    (problem,) = check_unique([_loaded("a"), _loaded("a")])
    assert_says(problem, "[name]", '"a"', "a.properties and a.properties", "its own")


def test_what_is_of_parquet_files_alone_refuses_others() -> None:
    """Replay, tuning and the like name the file that they cannot take."""
    loaded = _loaded("a")
    assert (loaded.problems, loaded.settings is None) == ((), False)
    with pytest.raises(
        InvalidConfiguration,
        match=saying("[connector.class]", "no Parquet files", "leave its file out", "a.properties"),
    ):
        loaded.require()


def test_every_room_asks_the_kind_of_another_package() -> None:
    """Its flow, its stored offsets, what is wrong with it, and what is tried."""
    loaded = _loaded("a")
    settings = loaded.settings
    assert settings is not None
    with closing(flow_of(settings)) as flow:
        assert (flow.origin, flow.news(), flow.at_rest(0), flow.nowhere_else()) == ("now", (), True, None)
    assert stored_offsets_of(settings).read() == ()
    (found,) = inspect(Checked(LoadedWorker(Worker()), (loaded,), ())).connectors
    assert (found.problems, found.settings) == (("Invalid [name]. a does not tick.",), None)
    assert [*probe(settings)] == [Finding(Health.OK, "clock", "ticks")]


def test_settings_of_no_kind_that_runs_are_a_problem_of_the_file() -> None:
    """The runtime never guesses how to run something."""
    loaded = _loaded("a", "LostSource")
    assert loaded.settings is None
    (problem,) = loaded.problems
    assert_says(problem, "[connector.class]", '"lost"', "not a known kind", "known are", "install")
