"""Connectors that are no sinks into Parquet files: a class of another package, with settings of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from parquet_sink.connectors.connector_class import find_class, type_of
from parquet_sink.connectors.loading import Loaded, check_unique, load
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.worker.loop.flow import flow_of
from parquet_sink.worker.loop.stored_offsets import stored_offsets_of
from parquet_sink.worker_config.worker import Worker
from tests.connectors.packages import forget, install

SOURCE = """
from dataclasses import dataclass, replace
from parquet_sink.connectors.connect_keys import CONNECTOR_KEYS
from parquet_sink.settings.connector import RestartSettings


@dataclass(frozen=True)
class TickSettings:
    name: str
    kind = "source"
    group = None

    def with_transforms(self, steps):
        return replace(self)


class TickSource:
    kind = "source"
    keys = CONNECTOR_KEYS
    prefixes = ()

    def check(self, values, worker, report):
        pass

    def settings(self, values, worker):
        return TickSettings(values.text("name"))
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package `tick_source` is installed."""
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "tick_source", SOURCE, {"com.example.TickSourceConnector": "tick_source:TickSource"})
    yield
    forget("tick_source")


def _loaded(name: str, class_: str = "TickSource", **keys: str) -> Loaded:
    return load({"connector.class": class_, "name": name, **keys}, Worker(), source=f"{name}.properties")


def test_a_class_says_whether_it_is_a_source(installed: None) -> None:
    """What says nothing is a sink, as all classes were."""
    assert (type_of(find_class("TickSource")), type_of(find_class("EmsSink"))) == ("source", "sink")


def test_sources_share_no_consumer_group(installed: None) -> None:
    """They have none; names are unique all the same."""
    assert check_unique([_loaded("a"), _loaded("b")]) == ()
    assert check_unique([_loaded("a"), _loaded("a")]) == (
        'Invalid [name]. "a" is used by a.properties and a.properties; give each connector its own.',
    )


def test_what_is_of_parquet_files_alone_refuses_others(installed: None) -> None:
    """Replay, tuning and the like name the file that they cannot take."""
    loaded = _loaded("a")
    assert (loaded.problems, loaded.settings is None) == ((), False)
    with pytest.raises(InvalidConfiguration, match=r"writes no Parquet files.*leave its file out. \(in a.properties\)"):
        loaded.require()


def test_settings_of_no_kind_that_runs_are_a_defect(installed: None) -> None:
    """The runtime never guesses how to run something."""
    settings = _loaded("a").settings
    assert settings is not None
    for of in (flow_of, stored_offsets_of):
        with pytest.raises(TypeError, match="TickSettings are settings of no kind"):
            of(settings)
