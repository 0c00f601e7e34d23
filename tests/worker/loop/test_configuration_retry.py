"""Configurations whose config provider is away when a connector is to start."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from parquet_sink.settings.connector import RestartSettings
from parquet_sink.worker.herder.errors import InvalidConnector, OffsetsRefused
from parquet_sink.worker.herder.values import State, TargetState
from tests.messages import assert_says
from tests.worker.loop.worker_doubles import AWAY, BROKEN, Loop


def status_of(loop: Loop, name: str = "one") -> tuple[State, str, str]:
    """State, trace, and what is waited for."""
    found = loop.registry.snapshot().statuses[name]
    return found.state, found.trace, found.waits_for


@pytest.mark.parametrize("target", [TargetState.STARTED, TargetState.PAUSED])
def test_a_provider_that_is_away_at_the_start_is_asked_again(loop: Loop, target: TargetState) -> None:
    """With pauses that grow; the status says what is waited for; then the connector is what it is to be."""
    loop.requests.create("one", {}, target)
    asked = loop.clock.seconds
    loop.away["one"] = RestartSettings(pause_ms=2_000, longest_ms=3_000)
    loop.requests.restart("one", include_tasks=True, only_failed=False)
    loop.round(2)
    state, trace, waits = status_of(loop)
    assert (state, trace) == (State.RESTARTING, "")
    assert_says(waits, AWAY.rstrip("."), "read again in 2 s")
    loop.round(60)
    assert loop.clock.seconds > asked + 10
    assert status_of(loop)[0] is State.RESTARTING
    loop.away.clear()
    loop.round(24)
    wanted = State.PAUSED if target is TargetState.PAUSED else State.RUNNING
    assert status_of(loop) == (wanted, "", "")


def test_it_is_waited_for_as_long_as_configured(loop: Loop, caplog: pytest.LogCaptureFixture) -> None:
    """Then the connector has failed, with the cause, until somebody restarts it; only then the log has an error."""
    loop.requests.create("one", {})
    loop.settle()
    loop.away["one"] = RestartSettings(pause_ms=1_000, away_ms=5_000)
    loop.requests.restart("one", include_tasks=True, only_failed=False)
    loop.round(12)
    assert status_of(loop)[0] is State.RESTARTING
    assert {one.levelname for one in caplog.records} == {"WARNING"}
    loop.round(24)
    assert caplog.records[-1].levelname == "ERROR"
    assert status_of(loop) == (State.FAILED, AWAY, "")
    loop.away.clear()
    loop.requests.restart("one", include_tasks=True, only_failed=True)
    loop.settle()
    assert status_of(loop)[0] is State.RUNNING


def test_what_is_wrong_otherwise_fails_at_once(loop: Loop) -> None:
    """Nobody waits for what cannot heal."""
    loop.requests.create("one", {})
    loop.broken.add("one")
    loop.requests.restart("one", include_tasks=True, only_failed=False)
    loop.settle()
    assert status_of(loop)[:2] == (State.FAILED, BROKEN)


def test_a_new_configuration_takes_the_place_of_one_that_is_waited_for(loop: Loop) -> None:
    """While its provider is away none is taken; then the new one counts, and it may be deleted as ever."""
    loop.requests.create("one", {})
    loop.settle()
    loop.away["one"] = RestartSettings()
    loop.requests.restart("one", include_tasks=True, only_failed=False)
    loop.round(2)
    with pytest.raises(InvalidConnector, match="vault"):
        loop.requests.put("one", {"records": "7"})
    loop.away.clear()
    loop.requests.put("one", {"records": "7"})
    loop.settle()
    assert status_of(loop)[0] is State.RUNNING
    assert loop.run("one").settings.flush.commit_records == 7
    loop.requests.delete("one")
    loop.settle()
    assert loop.requests.names() == ()


def test_what_the_store_has_is_read_beside_the_loop(
    make_loop: Callable[..., Loop], loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider that hangs when a worker begins holds up its connector alone, which is UNASSIGNED meanwhile."""
    for name in ("one", "two"):
        loop.requests.create(name, {})
    loop.requests.create("still", {}, TargetState.STOPPED)
    hangs: dict[str, Future[Any]] = {}
    later = make_loop()
    later.registry.store = loop.registry.store

    def aside(act: Callable[[], Any]) -> "Future[Any]":
        future: Future[Any] = Future()
        loaded = act()
        if loaded.settings.name == "one":
            hangs["one"] = future
        else:
            future.set_result(loaded)
        return future

    monkeypatch.setattr(later.supervisor._configuration_retry, "_background", aside)
    loop.close()
    later.registry.begin({})
    later.settle()
    states = {name: status_of(later, name)[0] for name in ("one", "two", "still")}
    assert states == {"one": State.UNASSIGNED, "two": State.RUNNING, "still": State.STOPPED}
    _, trace, waits = status_of(later)
    assert trace == ""
    assert_says(waits, "configuration", "being read")
    with pytest.raises(OffsetsRefused, match="being read"):
        later.requests.offsets("one")
    hangs["one"].set_result(later.load({"name": "one"}, "one"))
    later.settle()
    assert status_of(later)[0] is State.RUNNING


def test_many_are_read_one_after_the_other(make_loop: Callable[..., Loop], loop: Loop) -> None:
    """A few at each step, until all are."""
    names = [f"c{number}" for number in range(10)]
    for name in names:
        loop.requests.create(name, {})
    loop.close()
    later = make_loop(loop.registry.store)
    read = [sum(one.settings is not None for one in later.registry.connectors.values())]
    for _ in range(4):
        later.supervisor.step()
        read.append(sum(one.settings is not None for one in later.registry.connectors.values()))
    assert read[0] < 10
    later.settle()
    assert all(one.settings is not None for one in later.registry.connectors.values())


def test_what_nobody_foresaw_is_the_connectors_failure(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class that breaks the judging of one connector ends no other."""
    for name in ("one", "two"):
        loop.requests.create(name, {})
    loop.settle()
    loop.away["one"] = RestartSettings(pause_ms=500)
    loop.requests.restart("one", include_tasks=True, only_failed=False)

    def broken(config: object, name: str) -> Any:
        raise RuntimeError("secret")

    monkeypatch.setattr(loop.registry, "load", broken)
    loop.settle()
    state, trace, _ = status_of(loop)
    assert (state, "RuntimeError" in trace, "secret" in trace) == (State.FAILED, True, False)
    assert status_of(loop, "two")[0] is State.RUNNING
