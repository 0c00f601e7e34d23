"""worker/loop/supervisor.py: which connectors begin, and how many at once. What else is in `test_lifecycle.py`."""

from collections.abc import Callable

import pytest

from parquet_sink.state.store import WARM_UP
from parquet_sink.worker.herder.store import StoredConnector
from parquet_sink.worker.loop import supervisor
from parquet_sink.worker.loop.connector import Connector
from parquet_sink.worker.loop.status import Status
from tests.worker.loop.worker_doubles import Loop


def test_the_first_begins_alone_and_then_several_side_by_side(
    make_loop: Callable[[], Loop], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One takes its turn when another has begun, or had its time."""
    begun = set[str]()
    monkeypatch.setattr(supervisor, "SIDE_BY_SIDE", 2)
    monkeypatch.setattr(Connector, "has_started", lambda self: self.settings.name in begun)
    loop = make_loop()
    for name in "abcde":
        loop.requests.create(name, {"name": name})

    def running() -> str:
        loop.round(3)
        return "".join(run.settings.name for run in loop.registry.runs if run.status is Status.RUNNING)

    assert running() == "a"
    assert loop.supervisor.starting
    begun.add("a")
    assert running() == "abc"
    begun.add("c")
    assert running() == "abcd"
    loop.clock.sleep(supervisor.START_S)
    assert running() == "abcde"
    begun.update("bde")
    running()
    assert not loop.supervisor.starting


def test_where_spark_is_warm_the_first_is_as_the_others(
    make_loop: Callable[[], Loop], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not begin alone, nor with a micro-batch that loads everything."""
    monkeypatch.setattr(supervisor, "SIDE_BY_SIDE", 2)
    monkeypatch.setattr(Connector, "has_started", lambda self: False)
    loop = make_loop()
    loop.supervisor.warmed_up()
    for name in "abc":
        loop.requests.create(name, {"name": name})
    loop.round(3)
    running = [run for run in loop.registry.runs if run.status is Status.RUNNING]
    assert [run.settings.name for run in running] == ["a", "b"]
    assert not any(run.state is None or run.state.get(WARM_UP) for run in running)


def test_what_was_taken_over_begins_before_what_is_started_again(
    make_loop: Callable[[], Loop], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has rested longest, whatever came first."""
    begun = set[str]()
    monkeypatch.setattr(supervisor, "SIDE_BY_SIDE", 1)
    monkeypatch.setattr(Connector, "has_started", lambda self: self.settings.name in begun)
    loop = make_loop()
    for name in "abc":
        loop.requests.create(name, {"name": name})
    loop.round(3)
    loop.registry.adopt("d", StoredConnector({"name": "d"}), taken_over=True)
    loop.round(3)
    begun.add("a")
    loop.round(3)
    assert [run.settings.name for run in loop.registry.runs if run.status is Status.RUNNING] == ["a", "d"]
