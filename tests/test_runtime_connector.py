"""One connector's life, as far as it needs no Spark: start, failures, restarts, stop. Query and group are fakes."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from parquet_sink.config.secret import Secret
from parquet_sink.config.settings import (
    ConnectorSettings,
    FileSettings,
    FlushSettings,
    KafkaSettings,
    PushSettings,
    ShapeSettings,
)
from parquet_sink.errors import AnotherInstance
from parquet_sink.kafka.offsets import Plan
from parquet_sink.runtime import connector as module
from parquet_sink.runtime.connector import RESTART_PAUSE_S, RESTART_WINDOW_S, RESTARTS, STOP_S, Connector, Status
from parquet_sink.state import Accepted, Failure, Watch

SPARK: Any = None


class Query:
    """A streaming query that ends when the test says so."""

    def __init__(self) -> None:
        self.isActive = True
        self.error: Exception | None = None
        self.stopped = False

    def exception(self) -> Exception | None:
        return self.error

    def stop(self) -> None:
        self.isActive, self.stopped = False, True

    def fail(self, words: str = "org.apache.spark.SparkException: Job aborted") -> None:
        self.isActive, self.error = False, RuntimeError(words)


class Group:
    """The group's offsets; what was advanced is kept."""

    advanced: list[tuple[dict[Any, int], dict[Any, Plan]]]
    error: Exception | None

    def __init__(self, kafka: object, instance: object) -> None:
        self.closed = False

    def advance(self, offsets: dict[Any, int], plans: dict[Any, Plan]) -> None:
        Group.advanced.append((offsets, plans))
        if Group.error is not None:
            raise Group.error

    def close(self) -> None:
        self.closed = True


class Clock:
    """Seconds that pass when the test, or a pause, says so."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The connector's clock."""
    fake = Clock()
    monkeypatch.setattr(module, "time", fake)
    return fake


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> list[Query]:
    """Every query that was started."""
    queries: list[Query] = []

    def launch(self: Connector, spark: object) -> None:
        queries.append(Query())
        self._query, self.status = queries[-1], Status.RUNNING  # type: ignore[assignment]

    monkeypatch.setattr(Connector, "_launch", launch)
    monkeypatch.setattr(module, "GroupOffsets", Group)
    Group.advanced, Group.error = [], None
    return queries


def settings(folder: Path, name: str = "orders") -> ConnectorSettings:
    """A connector with its files below a folder."""
    return ConnectorSettings(
        name,
        KafkaSettings(("orders",), None, "connect-orders", {}),
        FlushSettings(1_000_000, 100, 2_000),
        ShapeSettings(),
        FileSettings(str(folder)),
        PushSettings("http://localhost/", Secret("AppKey k"), "t"),
    )


@pytest.fixture
def make(tmp_path: Path, launched: list[Query]) -> Iterator[Callable[..., Connector]]:
    """Makes connectors, and closes them at the end."""
    connectors: list[Connector] = []

    def made(name: str = "orders") -> Connector:
        connectors.append(Connector(settings(tmp_path / "tmp", name), tmp_path / f"run{len(connectors)}"))
        return connectors[-1]

    yield made
    for connector in connectors:
        connector.close()


@pytest.fixture
def running(make: Callable[..., Connector]) -> Connector:
    """A connector that was started."""
    connector = make()
    connector.start(SPARK, slots=4)
    assert connector.status is Status.RUNNING
    return connector


def test_a_start_makes_a_private_run_folder(running: Connector) -> None:
    """The query starts with the run folder in place, and closing removes it."""
    assert running.folder.stat().st_mode & 0o777 == 0o700
    running.close()
    assert not running.folder.exists()


def test_a_folder_that_is_of_no_use_fails_the_connector(tmp_path: Path, launched: list[Query]) -> None:
    """A tmp.dir that cannot be made is a failure of this connector with cause and cure, and nothing is started."""
    (tmp_path / "file").write_bytes(b"")
    connector = Connector(settings(tmp_path / "file" / "tmp"), tmp_path / "run")
    connector.start(SPARK, slots=4)
    assert connector.status is Status.FAILED
    assert connector.failure is not None
    assert connector.failure.kind == "StorageFailed"
    assert "connect.ems.tmp.dir" in connector.failure.message
    assert launched == []
    connector.ask_to_stop()
    connector.finish()
    connector.close()


def test_two_connectors_of_one_name_and_folder_do_not_run(
    running: Connector, make: Callable[..., Connector], launched: list[Query]
) -> None:
    """The second one fails at its start, so that none removes the other's files."""
    second = make()
    second.start(SPARK, slots=4)
    assert second.status is Status.FAILED
    assert len(launched) == 1


def test_a_query_that_ends_well_is_done(running: Connector, launched: list[Query]) -> None:
    """After --until-caught-up the connector is done, and what was accepted is committed."""
    assert running.state is not None
    running.state.accept([Accepted("orders", 0, 100, 0, 100, "records")])
    launched[0].isActive = False
    running.look(SPARK)
    assert running.status is Status.DONE
    assert Group.advanced == [({("orders", 0): 100}, {})]


def test_a_refusal_ends_the_connector(running: Connector, launched: list[Query]) -> None:
    """What a new start does not cure fails at once, in our words, and what was accepted before it is committed."""
    assert running.state is not None
    running.state.accept([Accepted("orders", 0, 40, 0, 100, "records")])
    running.state.fail(Failure("UploadRefused", "the target answered 403"))
    launched[0].fail()
    running.look(SPARK)
    assert running.status is Status.FAILED
    assert running.failure == Failure("UploadRefused", "the target answered 403")
    assert Group.advanced == [({("orders", 0): 40}, {("orders", 0): Plan(0, 100, "records")})]


@pytest.mark.parametrize("kind", ["BrokerAway", "KafkaFailed"])
def test_kafka_that_never_answered_is_not_tried_again(running: Connector, launched: list[Query], kind: str) -> None:
    """The first start has waited as long as it may; an unknown topic or a wrong address ends the connector."""
    assert running.state is not None
    running.state.fail(Failure(kind, "no such topic"))
    launched[0].fail()
    running.look(SPARK)
    assert running.status is Status.FAILED


@pytest.mark.parametrize("kind", ["BrokerAway", "KafkaFailed", None])
def test_what_may_be_cured_is_started_again(
    running: Connector, launched: list[Query], clock: Clock, kind: str | None
) -> None:
    """A lost worker or an absent broker ends the query, not the connector: after a pause it starts again."""
    assert running.state is not None
    running.state.watch([Watch("orders", 0, 0, 1, None)])
    if kind is not None:
        running.state.fail(Failure(kind, "away"))
    launched[0].fail()
    running.look(SPARK)
    assert (running.status, len(launched)) == (Status.RUNNING, 1)
    assert running.state.failure() is None
    clock.sleep(RESTART_PAUSE_S - 0.1)
    running.look(SPARK)
    assert len(launched) == 1
    clock.sleep(0.1)
    running.look(SPARK)
    assert (running.status, len(launched)) == (Status.RUNNING, 2)


def fail_again(connector: Connector, launched: list[Query], clock: Clock) -> None:
    """The query fails; time passes until it would be started again."""
    launched[-1].fail()
    connector.look(SPARK)
    clock.sleep(RESTART_PAUSE_S * (RESTARTS + 1))
    connector.look(SPARK)


def test_restarts_are_bounded(running: Connector, launched: list[Query], clock: Clock) -> None:
    """A query that fails again and again fails its connector."""
    for _ in range(RESTARTS):
        fail_again(running, launched, clock)
        assert running.status is Status.RUNNING
    fail_again(running, launched, clock)
    assert running.status is Status.FAILED
    assert len(launched) == RESTARTS + 1


@pytest.mark.parametrize(("patience_ms", "goes_on"), [(3_600_000, True), (-1, True), (60_000, False)])
def test_a_registry_is_waited_for_as_long_as_configured(
    running: Connector, launched: list[Query], clock: Clock, patience_ms: int, goes_on: bool
) -> None:
    """With errors.retry.timeout a registry that is away does not use up the restarts; the pauses stay short of it."""
    running.settings = replace(running.settings, registry_patience_ms=patience_ms, registry_pause_ms=5_000)
    assert running.state is not None
    running.state.watch([Watch("orders", 0, 0, 1, None)])
    for _ in range(RESTARTS * 6):
        running.state.fail(Failure("RegistryAway", "no answer"))
        launched[-1].fail()
        running.look(SPARK)
        clock.sleep(5.0)
        running.look(SPARK)
    assert (running.status is Status.RUNNING) == goes_on
    assert (len(launched) == RESTARTS * 6 + 1) == goes_on


def test_restarts_long_ago_do_not_count(running: Connector, launched: list[Query], clock: Clock) -> None:
    """A failure each hour over months is not a connector that cannot run."""
    for _ in range(RESTARTS * 3):
        fail_again(running, launched, clock)
        clock.sleep(RESTART_WINDOW_S)
    assert running.status is Status.RUNNING


def test_offsets_that_cannot_be_committed_are_told(
    running: Connector, launched: list[Query], caplog: pytest.LogCaptureFixture
) -> None:
    """When the last commit fails the connector still ends, and the log says that files are sent again."""
    assert running.state is not None
    running.state.accept([Accepted("orders", 0, 100, 0, 100, "records")])
    Group.error = AnotherInstance("committed by another; it stays.")
    launched[0].isActive = False
    running.look(SPARK)
    assert running.status is Status.DONE
    assert "it stays. The files after it are sent again." in caplog.text


def test_a_stop_waits_for_the_flush(running: Connector, launched: list[Query], clock: Clock) -> None:
    """Asked to stop, the connector waits until the source says that it admits nothing more, then ends the query."""
    assert running.state is not None
    running.ask_to_stop()
    assert running.state.stopping()
    honest = clock.sleep

    def sleep(seconds: float) -> None:
        honest(seconds)
        if clock.seconds >= 5:
            assert running.state is not None
            running.state.say("drained", True)

    clock.sleep = sleep  # type: ignore[method-assign]
    running.finish(clock.monotonic)
    assert (running.status, launched[0].stopped) == (Status.DONE, True)
    assert clock.seconds == pytest.approx(5, abs=0.2)


def test_a_stop_does_not_wait_for_ever(running: Connector, launched: list[Query], clock: Clock) -> None:
    """A flush that never ends is given up after a bounded time."""
    running.ask_to_stop()
    running.finish(clock.monotonic)
    assert launched[0].stopped
    assert clock.seconds == pytest.approx(STOP_S, abs=0.2)


def test_a_failure_while_stopping_is_a_failure(running: Connector, launched: list[Query], clock: Clock) -> None:
    """A flush that fails during the stop is not started again, and the exit status tells."""
    assert running.state is not None
    running.ask_to_stop()
    running.state.fail(Failure("KafkaFailed", "away"))
    launched[0].fail()
    running.finish(clock.monotonic)
    assert running.status is Status.FAILED
    assert len(launched) == 1


@pytest.mark.parametrize(("interval", "tick"), [(1_000, "250"), (2_000, "500"), (60_000, "1000")])
def test_ticks_follow_the_interval(tmp_path: Path, interval: int, tick: str) -> None:
    """A short commit interval is looked at more often, a long one once a second."""
    made = settings(tmp_path)
    object.__setattr__(made, "flush", FlushSettings(1_000_000, 100, interval))
    assert Connector(made, tmp_path / "run")._tick() == f"{tick} milliseconds"


def test_failures_are_logged_once(running: Connector, launched: list[Query], caplog: pytest.LogCaptureFixture) -> None:
    """The log names the connector and the reason."""
    caplog.set_level(logging.INFO)
    assert running.state is not None
    running.state.fail(Failure("UploadRefused", "the target answered 403"))
    launched[0].fail()
    for _ in range(3):
        running.look(SPARK)
    assert caplog.text.count("connector orders failed: the target answered 403") == 1
