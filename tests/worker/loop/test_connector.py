"""One connector's life, as far as it needs no Spark: start, failures, restarts, stop. Query and group are fakes."""

import logging
import math
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from parquet_sink.errors import AnotherInstance, KafkaFailed, RunFilesLost, StorageFailed, failure_named
from parquet_sink.files.lock import ConnectorLock
from parquet_sink.kafka.group.committed import RangePlan
from parquet_sink.model.events import (
    ConnectorFailed,
    ConnectorRestarting,
    ConnectorStarting,
    ConnectorStopped,
    ConnectorStopping,
    Event,
    OffsetCommitted,
)
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import NO_TRIES, Accepted, Again, LearnedSchema, PartitionProgress
from parquet_sink.settings.connector import RestartSettings
from parquet_sink.spark import handoff
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import DRAINED, PAUSE, SETTLED, SLOTS, STARTED
from parquet_sink.worker.loop import connector as module
from parquet_sink.worker.loop.connector import Connector
from parquet_sink.worker.loop.events import EventDispatcher
from parquet_sink.worker.loop.request_queue import at_once
from parquet_sink.worker.loop.restarts import PAUSE_S, WINDOW_S, RestartPolicy
from parquet_sink.worker.loop.status import Status
from tests.factories import Clock, settings
from tests.messages import assert_line_says
from tests.worker.loop.doubles import Group, Query

SPARK: Any = None
MOST = RestartSettings().most
T = TypeVar("T")


class Told:
    """A listener that keeps what it is given."""

    def __init__(self, events: list[Event]) -> None:
        self.on_event = events.append

    def refresh(self, connectors: Sequence[Connector]) -> None:
        """Shows nothing."""

    def close(self, connectors: Sequence[Connector]) -> None:
        """Has nothing open."""


def wait_until_stopped(connector: Connector, sleep: Callable[[float], object] = lambda seconds: None) -> None:
    """Polls, as the worker does, until a stop that was requested is over."""
    while connector.active:
        connector.poll(SPARK)
        sleep(0.1)


@pytest.fixture
def make(tmp_path: Path, launched: list[Query]) -> Iterator[Callable[..., Connector]]:
    """Makes connectors, and closes them at the end."""
    connectors: list[Connector] = []

    def made(name: str = "orders") -> Connector:
        folder = tmp_path / f"run{len(connectors)}"
        connectors.append(Connector(settings(tmp_path / "tmp", name), folder, background=at_once))
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
    connector.request_stop()
    wait_until_stopped(connector)
    connector.close()


def test_a_connector_s_life_is_events(tmp_path: Path, launched: list[Query], clock: Clock) -> None:
    """Its beginning, the wish to stop and its end are told, each once, with the time."""
    events: list[Event] = []
    connector = Connector(settings(tmp_path / "tmp"), tmp_path / "run", emit=events.append, background=at_once)
    connector.start(SPARK)
    clock.sleep(5)
    connector.request_stop()
    connector.request_stop()
    wait_until_stopped(connector, clock.sleep)
    connector.close()
    assert [(type(event), event.connector) for event in events] == [
        (ConnectorStarting, "orders"),
        (ConnectorStopping, "orders"),
        (ConnectorStopped, "orders"),
    ]
    assert [event.at_s for event in events][:2] == [0.0, 5.0]


def test_what_happened_last_is_told(tmp_path: Path, launched: list[Query], clock: Clock) -> None:
    """Events of the last flush are told before the connector has stopped, and what comes after that before it closes.

    However long ago its event log was read.
    """
    told: list[Event] = []
    flushed, late = (OffsetCommitted("orders", 1.0, "orders", 0, offset) for offset in (5, 9))
    dispatcher = EventDispatcher([Told(told)])
    found = settings(tmp_path / "tmp")
    made = partial(Connector, found, tmp_path / "run", background=at_once, emit=dispatcher.emit)
    connector = made(hand_on=lambda one: dispatcher.read([one]))
    connector.start(SPARK)
    assert connector.state is not None
    connector.state.append_events([flushed])
    connector.request_stop()
    wait_until_stopped(connector, clock.sleep)
    connector.state.append_events([late])
    connector.close()
    of_life = [type(event) if event not in (flushed, late) else event for event in told]
    assert of_life == [ConnectorStarting, ConnectorStopping, flushed, ConnectorStopped, late]


def test_a_restart_is_an_event(tmp_path: Path, launched: list[Query], clock: Clock) -> None:
    """It says why the query ended, and when it is started again."""
    events: list[Event] = []
    connector = Connector(settings(tmp_path / "tmp"), tmp_path / "run", emit=events.append, background=at_once)
    connector.start(SPARK)
    launched[0].fail()
    connector.poll(SPARK)
    connector.close()
    (restart,) = [one for one in events if isinstance(one, ConnectorRestarting)]
    assert (restart.connector, restart.wait_s) == ("orders", PAUSE_S)
    assert restart.reason


def test_a_failure_is_an_event(tmp_path: Path, launched: list[Query], clock: Clock) -> None:
    """It carries the failure with its reaction, as the connector has it."""
    events: list[Event] = []
    connector = Connector(settings(tmp_path / "tmp"), tmp_path / "run", emit=events.append, background=at_once)
    connector.start(SPARK)
    assert connector.state is not None
    connector.state.record_failure(failure_named("UploadRefused", "the target answered 403"))
    launched[0].fail()
    connector.poll(SPARK)
    connector.close()
    assert events[-1] == ConnectorFailed("orders", 0.0, failure_named("UploadRefused", "the target answered 403"))


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
    running.state.record_accepted([Accepted("orders", 0, 100, 0, 100, "records")])
    launched[0].isActive = False
    running.poll(SPARK)
    assert running.status is Status.DONE
    assert Group.advanced == [({("orders", 0): 100}, {})]


def test_a_refusal_ends_the_connector(running: Connector, launched: list[Query]) -> None:
    """What a new start does not cure fails at once, in our words, and what was accepted before it is committed."""
    assert running.state is not None
    running.state.record_accepted([Accepted("orders", 0, 40, 0, 100, "records")])
    running.state.record_failure(failure_named("UploadRefused", "the target answered 403"))
    launched[0].fail()
    running.poll(SPARK)
    assert running.status is Status.FAILED
    assert running.failure == failure_named("UploadRefused", "the target answered 403")
    assert Group.advanced == [({("orders", 0): 40}, {("orders", 0): RangePlan(0, 100, "records")})]


def next_flushes(connector: Connector, clock: Clock, waits_s: float) -> list[float]:
    """When it is to flush: before it has begun, before its first flush, so long after it, and once it ended."""
    found = [connector.next_flush_s()]
    connector.start(SPARK, slots=4)
    assert connector.state is not None
    found.append(connector.next_flush_s())
    connector.state.record_accepted([Accepted("orders", 0, 100, 0, 100, "records")], clock.monotonic())
    clock.sleep(waits_s)
    found.append(connector.next_flush_s())
    stop(connector, clock, drained_s=0)
    return [*found, connector.next_flush_s()]


@pytest.mark.parametrize(
    ("interval_ms", "waits_s", "next_s"),
    [(60_000, 50, 10), (10_001, 0, 10), (10_001, 14, -4), (5_999, 0, math.inf)],
    ids=["waits", "just flushed", "is late", "often"],
)
def test_when_a_connector_flushes_next_is_told_by_its_last_flush(
    tmp_path: Path, clock: Clock, launched: list[Query], interval_ms: int, waits_s: float, next_s: float
) -> None:
    """An interval later; where flushes come often nobody need know."""
    found = settings(tmp_path / "tmp")
    found = replace(found, flush=replace(found.flush, commit_interval_ms=interval_ms))
    with closing(Connector(found, tmp_path / "run", background=at_once)) as connector:
        told = next_flushes(connector, clock, waits_s)
    assert told == [math.inf, math.inf, pytest.approx(next_s, abs=0.01), math.inf]


@pytest.mark.parametrize(
    ("interval_ms", "seconds", "next_s"),
    [
        (6_000, 0, 0.0),
        (6_000, 16, 0.0),
        (6_000, 17, math.inf),
        (10_000, 0, 0.0),
        (60_000, 49, math.inf),
        (60_000, 51, 0.0),
        (5_999, 0, math.inf),
    ],
)
def test_a_first_flush_that_comes_soon_is_waited_for(
    tmp_path: Path, clock: Clock, launched: list[Query], interval_ms: int, seconds: float, next_s: float
) -> None:
    """Its records waited elsewhere before; one that is far off, or does not come, delays no move."""
    found = settings(tmp_path / "tmp")
    found = replace(found, flush=replace(found.flush, commit_interval_ms=interval_ms))
    with closing(Connector(found, tmp_path / "run", background=at_once)) as connector:
        connector.start(SPARK, slots=4)
        clock.sleep(seconds)
        assert connector.next_flush_s() == next_s


def test_where_no_records_wait_no_flush_is_waited_for(tmp_path: Path, clock: Clock, launched: list[Query]) -> None:
    """Neither before its first flush nor after it; and it is until records come."""
    found = settings(tmp_path / "tmp")
    found = replace(found, flush=replace(found.flush, commit_interval_ms=6_000))
    with closing(Connector(found, tmp_path / "run", background=at_once)) as connector:
        connector.start(SPARK, slots=4)
        assert connector.state is not None
        told = []
        for start, end, accepted in [(7, 7, None), (7, 9, None), (7, 9, 9), (9, 9, None), (9, 10, None)]:
            connector.state.record_progress([PartitionProgress("orders", 0, start, end, None)])
            if accepted is not None:
                one = Accepted("orders", 0, accepted, start, accepted, "interval")
                connector.state.record_accepted([one], clock.monotonic())
            told.append(connector.next_flush_s())
    assert told == [math.inf, 0.0, math.inf, math.inf, pytest.approx(6.0, abs=0.01)]


def test_no_flush_of_a_paused_connector_is_waited_for(tmp_path: Path, clock: Clock, launched: list[Query]) -> None:
    """None is to come until it is resumed."""
    found = settings(tmp_path / "tmp")
    found = replace(found, flush=replace(found.flush, commit_interval_ms=6_000))
    with closing(Connector(found, tmp_path / "run", background=at_once)) as connector:
        connector.start(SPARK, slots=4, paused=True)
        paused = connector.next_flush_s()
        connector.pause(False)
        assert (paused, connector.next_flush_s()) == (math.inf, 0.0)


def test_a_connector_whose_state_was_lost_flushes_nobody_knows_when(
    tmp_path: Path, clock: Clock, launched: list[Query], monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is no failure here: its next poll finds out, and says what follows."""

    def lost(*_: object) -> None:
        raise RunFilesLost("the state file was removed")

    found = settings(tmp_path / "tmp")
    found = replace(found, flush=replace(found.flush, commit_interval_ms=60_000))
    with closing(Connector(found, tmp_path / "run", background=at_once)) as connector:
        connector.start(SPARK, slots=4)
        assert connector.state is not None
        connector.state.record_accepted([Accepted("orders", 0, 100, 0, 100, "records")], clock.monotonic())
        assert connector.next_flush_s() < math.inf
        with monkeypatch.context() as patched:
            patched.setattr(connector.state, "get", lost)
            assert connector.next_flush_s() == math.inf


@pytest.mark.parametrize("kind", ["BrokerAway", "KafkaFailed"])
def test_kafka_that_never_answered_is_not_tried_again(running: Connector, launched: list[Query], kind: str) -> None:
    """The first start has waited as long as it may; an unknown topic or a wrong address ends the connector."""
    assert running.state is not None
    running.state.record_failure(failure_named(kind, "no such topic"))
    launched[0].fail()
    running.poll(SPARK)
    assert running.status is Status.FAILED


@pytest.mark.parametrize("kind", ["BrokerAway", "KafkaFailed", None])
def test_what_may_be_cured_is_started_again(
    running: Connector, launched: list[Query], clock: Clock, kind: str | None
) -> None:
    """A lost worker or an absent broker ends the query, not the connector: after a pause it starts again."""
    assert running.state is not None
    running.state.record_progress([PartitionProgress("orders", 0, 0, 1, None)])
    if kind is not None:
        running.state.record_failure(failure_named(kind, "away"))
    launched[0].fail()
    running.poll(SPARK)
    assert (running.status, len(launched)) == (Status.RUNNING, 1)
    assert running.state.failure() is None
    clock.sleep(PAUSE_S - 0.1)
    running.poll(SPARK)
    assert len(launched) == 1
    clock.sleep(0.1)
    running.poll(SPARK)
    assert (running.status, len(launched)) == (Status.RUNNING, 2)


def fail_again(connector: Connector, launched: list[Query], clock: Clock) -> None:
    """The query fails; time passes until it would be started again."""
    launched[-1].fail()
    connector.poll(SPARK)
    clock.sleep(PAUSE_S * (MOST + 1))
    connector.poll(SPARK)


def test_restarts_are_bounded(running: Connector, launched: list[Query], clock: Clock) -> None:
    """A query that fails again and again fails its connector."""
    for _ in range(MOST):
        fail_again(running, launched, clock)
        assert running.status is Status.RUNNING
    fail_again(running, launched, clock)
    assert running.status is Status.FAILED
    assert len(launched) == MOST + 1


@pytest.mark.parametrize("failed", [("orders", 0), None])
def test_a_slow_failure_does_not_go_on_for_ever(
    running: Connector, launched: list[Query], clock: Clock, failed: PartitionKey | None
) -> None:
    """A range that fails after minutes each time uses up the restarts, although another topic-partition goes on."""
    assert running.state is not None
    running.state.record_progress(
        [PartitionProgress("orders", 0, 7, 100, None), PartitionProgress("orders", 1, 0, 100, None)]
    )
    for times in range(MOST + 1):
        assert running.status is Status.RUNNING
        Group.committed = {("orders", 0): (7, RangePlan(0, 50, "records")), ("orders", 1): (times * 10, None)}
        clock.sleep(WINDOW_S)
        running.state.record_failure(KafkaFailed("no record came for 120 s").at(failed).failure())
        fail_again(running, launched, clock)
    assert running.status is Status.FAILED


def test_progress_begins_the_count_anew(running: Connector, launched: list[Query], clock: Clock) -> None:
    """A range that gets on between two failures may fail as often as it likes."""
    assert running.state is not None
    running.state.record_progress([PartitionProgress("orders", 0, 7, 100, None)])
    for times in range(MOST * 3):
        Group.committed = {("orders", 0): (7 + times // 2, RangePlan(0, 50, "records"))}
        fail_again(running, launched, clock)
    assert running.status is Status.RUNNING


@pytest.mark.parametrize(("patience_ms", "goes_on"), [(3_600_000, True), (-1, True), (60_000, False)])
def test_a_registry_is_waited_for_as_long_as_configured(
    running: Connector, launched: list[Query], clock: Clock, patience_ms: int, goes_on: bool
) -> None:
    """With errors.retry.timeout a registry that is away does not use up the restarts; the pauses stay short of it."""
    running._restarts = RestartPolicy(patience_ms, registry_pause_ms=5_000)
    assert running.state is not None
    running.state.record_progress([PartitionProgress("orders", 0, 0, 1, None)])
    for _ in range(MOST * 6):
        running.state.record_failure(failure_named("RegistryAway", "no answer"))
        launched[-1].fail()
        running.poll(SPARK)
        clock.sleep(5.0)
        running.poll(SPARK)
    assert (running.status is Status.RUNNING) == goes_on
    assert (len(launched) == MOST * 6 + 1) == goes_on


@pytest.mark.parametrize(("pause_s", "goes_on"), [(30.0, True), (300.0, False)])
def test_a_busy_machine_is_waited_for(
    running: Connector, launched: list[Query], clock: Clock, pause_s: float, goes_on: bool
) -> None:
    """Processes that start too slowly use up no restarts; after half an hour of nothing else the connector fails."""
    assert running.state is not None
    for _ in range(MOST * 4):
        running.state.record_failure(failure_named("MachineBusy", "too busy"))
        launched[-1].fail()
        running.poll(SPARK)
        clock.sleep(pause_s)
        running.poll(SPARK)
    assert (running.status is Status.RUNNING) == goes_on


def test_restarts_long_ago_do_not_count(running: Connector, launched: list[Query], clock: Clock) -> None:
    """A failure each hour over months is not a connector that cannot run."""
    for _ in range(MOST * 3):
        fail_again(running, launched, clock)
        clock.sleep(WINDOW_S)
    assert running.status is Status.RUNNING


def test_offsets_that_cannot_be_committed_are_told(
    running: Connector, launched: list[Query], caplog: pytest.LogCaptureFixture
) -> None:
    """When the last commit fails the connector still ends, and the log says that files are sent again."""
    assert running.state is not None
    running.state.record_accepted([Accepted("orders", 0, 100, 0, 100, "records")])
    Group.error = AnotherInstance("committed by another.")
    launched[0].isActive = False
    running.poll(SPARK)
    assert running.status is Status.DONE
    assert_line_says(caplog.text, "connector orders", "committed by another", "delivered again")


def stop(connector: Connector, clock: Clock, drained_s: float | None = None) -> None:
    """Asks for a stop and waits for its end; the source says that it admits nothing more after so many seconds."""

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        if drained_s is not None and clock.seconds >= drained_s:
            assert connector.state is not None
            connector.state.set(DRAINED, True)

    connector.request_stop()
    assert connector.status is not Status.RUNNING
    wait_until_stopped(connector, sleep)


@pytest.fixture
def begun(running: Connector) -> Connector:
    """A connector that knows where its topic-partitions start."""
    assert running.state is not None
    running.state.set(STARTED, True)
    running.state.record_progress(
        [PartitionProgress("orders", 0, 7, 12, None), PartitionProgress("orders", 1, 3, 3, None)]
    )
    return running


def test_what_the_planner_committed_is_not_committed_again(begun: Connector, clock: Clock) -> None:
    """Its last tick settled all; the group is asked for nothing more."""
    assert begun.state is not None
    begun.state.record_accepted([Accepted("orders", 0, 9, 7, 9, "interval")])
    begun.state.set(SETTLED, True)
    stop(begun, clock, drained_s=1)
    assert Group.advanced == []


def test_a_stop_waits_for_the_flush(begun: Connector, launched: list[Query], clock: Clock) -> None:
    """Asked to stop, the connector waits until the source says that it admits nothing more, then ends the query."""
    stop(begun, clock, drained_s=5)
    assert (begun.status, launched[0].stopped) == (Status.DONE, True)
    assert clock.seconds == pytest.approx(5, abs=0.5)


def test_a_stop_does_not_wait_for_what_has_not_begun(running: Connector, launched: list[Query], clock: Clock) -> None:
    """While the source still looks for its broker nothing is in flight."""
    stop(running, clock)
    assert (running.status, launched[0].stopped) == (Status.DONE, True)
    assert clock.seconds < 1


def test_a_stop_is_bounded_and_tells_what_waits(
    begun: Connector, launched: list[Query], clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """A flush that does not end is given up; what was accepted is committed, the rest is told, and nothing failed."""
    assert begun.state is not None
    begun.settings = replace(begun.settings, stop_timeout_ms=20_000)
    begun.state.record_accepted([Accepted("orders", 0, 9, 0, 12, "records")])
    stop(begun, clock)
    assert (begun.status, launched[0].stopped) == (Status.DONE, True)
    assert clock.seconds == pytest.approx(20, abs=0.5)
    assert Group.advanced == [({("orders", 0): 9}, {("orders", 0): RangePlan(0, 12, "records")})]
    assert_line_says(caplog.text, "given up, 20 s", "connect.ems.stop.timeout.ms")
    assert_line_says(caplog.text, "connector orders", "lag 3", "orders 0 from offset 9", "next start")


def test_connectors_stop_side_by_side(make: Callable[..., Connector], launched: list[Query], clock: Clock) -> None:
    """The bound counts from the wish, for each of them: it does not add up."""
    connectors = [make("one"), make("two"), make("three")]
    for connector in connectors:
        connector.start(SPARK)
        assert connector.state is not None
        connector.state.record_progress([PartitionProgress("orders", 0, 7, 12, None)])
    for connector in connectors:
        connector.request_stop(clock.seconds)
    while any(connector.active for connector in connectors):
        for connector in connectors:
            connector.poll(SPARK)
        clock.sleep(0.25)
    assert clock.seconds == pytest.approx(connectors[0].settings.stop_timeout_ms / 1000, abs=1)


@pytest.mark.parametrize("kind", ["UploadExhausted", "KafkaFailed", "BrokerAway", "RegistryAway", None])
def test_trouble_that_passes_is_no_failure_of_a_stop(
    begun: Connector, launched: list[Query], clock: Clock, kind: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """A target or broker that is away while the connector stops is told, and the next start goes on."""
    assert begun.state is not None
    begun.request_stop()
    if kind is not None:
        begun.state.record_failure(failure_named(kind, "away"))
    launched[0].fail("away")
    wait_until_stopped(begun, clock.sleep)
    assert (begun.status, len(launched)) == (Status.DONE, 1)
    assert_line_says(caplog.text, "connector orders", "last flush failed", "away")
    assert_line_says(caplog.text, "lag 5", "orders 0 from offset 7")


def test_what_needs_a_hand_is_a_failure_also_of_a_stop(begun: Connector, launched: list[Query], clock: Clock) -> None:
    """A refused file during the stop would be refused again, and the exit status tells."""
    assert begun.state is not None
    begun.request_stop()
    begun.state.record_failure(failure_named("UploadRefused", "the target answered 403"))
    launched[0].fail()
    wait_until_stopped(begun, clock.sleep)
    assert (begun.status, len(launched)) == (Status.FAILED, 1)


def test_a_stop_before_the_next_start_of_the_query_is_done(
    begun: Connector, launched: list[Query], clock: Clock
) -> None:
    """Nothing is in flight while a query waits to be started again, so there is nothing to fail."""
    launched[0].fail()
    begun.poll(SPARK)
    stop(begun, clock)
    assert (begun.status, len(launched)) == (Status.DONE, 1)
    assert clock.seconds < 1


def test_a_query_that_cannot_be_started_is_as_one_that_failed(
    make: Callable[..., Connector], launched: list[Query], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception on the way to a query is tried again, then fails this connector; it is never raised."""

    def broken(self: Connector, spark: object) -> Query:
        raise ValueError("no such thing")

    monkeypatch.setattr(Connector, "_start_query", broken)
    connector = make()
    connector.start(SPARK)
    for _ in range(MOST + 1):
        clock.sleep(PAUSE_S * (MOST + 1))
        connector.poll(SPARK)
    assert connector.status is Status.FAILED
    assert connector.failure is not None
    assert "no such thing" in connector.failure.message


def test_a_java_that_is_gone_is_no_failure_of_one_connector(
    make: Callable[..., Connector], launched: list[Query], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever hosts the connectors deals with it."""

    def gone(self: Connector, spark: object) -> Query:
        raise ConnectionRefusedError

    monkeypatch.setattr(Connector, "_start_query", gone)
    with pytest.raises(ConnectionRefusedError):
        make().start(SPARK)


@pytest.mark.parametrize("lost", ["run", "state"])
def test_files_that_were_removed_are_made_anew(
    running: Connector, launched: list[Query], clock: Clock, lost: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A cleaner of temporary files costs a new start of the query: same instance, same place in Kafka."""
    instance = handoff.read({handoff.RUN_FOLDER: str(running.folder)}).instance
    if lost == "run":
        shutil.rmtree(running.folder)
    else:
        shutil.rmtree(running.settings.files.tmp_dir)
    running.poll(SPARK)
    assert launched[0].stopped
    clock.sleep(PAUSE_S)
    running.poll(SPARK)
    assert (running.status, len(launched)) == (Status.RUNNING, 2)
    assert handoff.read({handoff.RUN_FOLDER: str(running.folder)}).instance == instance
    assert running.state is not None
    assert running.state.get(SLOTS) == 4
    with pytest.raises(AnotherInstance):
        ConnectorLock(running.settings.files.tmp_dir, "orders").acquire()
    folder = running.folder if lost == "run" else running.settings.files.tmp_dir
    assert_line_says(caplog.text, str(folder), "was removed", "in use", "created again")


@pytest.mark.parametrize(
    ("span", "plan"),
    [((0, 60), RangePlan(0, 60, "records")), ((40, 100), RangePlan(40, 100, "records")), ((0, 40), None)],
)
def test_a_range_that_was_to_be_planned_anew_is_put_down_so(
    begun: Connector, launched: list[Query], clock: Clock, span: tuple[int, int], plan: RangePlan | None
) -> None:
    """A stop comes before its planner did: the next start does not take the range as it was planned first."""
    assert begun.state is not None
    begun.state.record_accepted([Accepted("orders", 0, 40, 0, 100, "records", Again(NO_TRIES, 0.0, span))])
    stop(begun, clock, drained_s=0)
    assert Group.advanced == [({("orders", 0): 40}, {} if plan is None else {("orders", 0): plan})]


def state_files(connector: Connector) -> Path:
    """Of a running connector, without the ends of the names."""
    return handoff.state_path(connector.settings)


@pytest.mark.parametrize("how", ["removed", "made by somebody else"])
@pytest.mark.parametrize("lost", [".state.db", ".state.db-wal", ".state.db-shm", ".lock"])
def test_one_file_that_is_lost_is_enough(
    running: Connector, launched: list[Query], clock: Clock, lost: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A file of the same name is another file: processes that have the old one open would not see what is in it."""
    assert running.state is not None
    running.state.learn("orders", LearnedSchema(b"schema", 7.0))
    path = state_files(running).with_name(lost)
    path.unlink()
    if how != "removed":
        path.touch()
    running.poll(SPARK)
    assert launched[0].stopped
    assert_line_says(caplog.text, str(path), "was removed", "in use", "created again")
    clock.sleep(PAUSE_S)
    running.poll(SPARK)
    running.poll(SPARK)
    assert (running.status, len(launched)) == (Status.RUNNING, 2), caplog.text
    given = handoff.read({handoff.RUN_FOLDER: str(running.folder)})
    with closing(SqliteStore(given.state_path, given.state_ids)) as other:
        assert other.learned() == {"orders": LearnedSchema(b"schema", 7.0)}
        assert other.get(SLOTS) == 4
    with pytest.raises(AnotherInstance):
        ConnectorLock(running.settings.files.tmp_dir, "orders").acquire()


def test_a_file_that_is_made_before_ours_is_not_taken_for_it(
    running: Connector, launched: list[Query], clock: Clock
) -> None:
    """Between the moment when the loss is seen and the next start another process may make a file of that name."""
    path = state_files(running)
    path.unlink()
    running.poll(SPARK)
    SqliteStore(path).close()
    clock.sleep(PAUSE_S)
    running.poll(SPARK)
    running.poll(SPARK)
    assert (running.status, len(launched)) == (Status.RUNNING, 2)
    given = handoff.read({handoff.RUN_FOLDER: str(running.folder)})
    assert running.state is not None
    with closing(SqliteStore(given.state_path, given.state_ids)) as planner:
        planner.record_failure(failure_named("KafkaFailed", "away"))
    assert running.state.failure() == failure_named("KafkaFailed", "away")


def test_a_lock_that_another_process_took_ends_the_connector(
    running: Connector, launched: list[Query], clock: Clock
) -> None:
    """Whoever removed the lock file may have started the connector a second time."""
    state_files(running).with_name(".lock").unlink()
    with ConnectorLock(running.settings.files.tmp_dir, "orders"):
        for _ in range(3):
            running.poll(SPARK)
            clock.sleep(PAUSE_S)
    assert running.status is Status.FAILED
    assert running.failure is not None
    assert running.failure.kind == "AnotherInstance"
    assert len(launched) == 1


def test_a_query_that_finds_a_file_lost_first_is_started_again(
    running: Connector, launched: list[Query], clock: Clock
) -> None:
    """It may end before the program has looked: the cause is the same, and so is the cure."""
    path = state_files(running)
    path.unlink()
    launched[0].fail(f"Traceback (most recent call last):\n  x\nparquet_sink.errors.RunFilesLost: {path} was removed")
    for _ in range(3):
        running.poll(SPARK)
        clock.sleep(PAUSE_S)
    assert (running.status, len(launched)) == (Status.RUNNING, 2)
    assert path.exists()


@pytest.mark.parametrize("step_s", [-3_600.0, -3.0, -1.0, 0.0, 3_600.0])
def test_a_clock_that_is_set_back_costs_a_new_start_of_the_query(
    running: Connector,
    launched: list[Query],
    clock: Clock,
    step_s: float,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Spark would wait until the old time comes again; a step forward, or one of a second, does no harm."""
    running.poll(SPARK)
    monkeypatch.setattr(clock, "time", lambda: clock.seconds + step_s)
    running.poll(SPARK)
    back = step_s <= -3
    assert launched[0].stopped == back
    for _ in range(3):
        clock.sleep(PAUSE_S)
        running.poll(SPARK)
    assert (running.status, len(launched)) == (Status.RUNNING, 2 if back else 1)
    assert (f"set back by {-step_s:.0f} s" in caplog.text) == back


def test_a_query_that_does_not_stop_keeps_nothing_from_being_committed(
    begun: Connector, launched: list[Query], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark may give up on a query; what the target accepted is committed all the same."""

    def stuck() -> None:
        raise TimeoutError("the query did not stop within 10 s")

    monkeypatch.setattr(launched[0], "stop", stuck)
    assert begun.state is not None
    begun.state.record_accepted([Accepted("orders", 0, 9, 0, 12, "records")])
    stop(begun, clock, drained_s=0)
    assert begun.status is Status.DONE
    assert Group.advanced == [({("orders", 0): 9}, {("orders", 0): RangePlan(0, 12, "records")})]


def test_a_crash_ends_one_connector(running: Connector, launched: list[Query]) -> None:
    """What nobody foresaw fails the connector with its words, and ends its query."""
    running.fail_unexpectedly(OSError(28, "No space left on device"))
    assert (running.status, launched[0].stopped) == (Status.FAILED, True)
    assert running.failure is not None
    assert "No space left on device" in running.failure.message


def test_failures_are_logged_once(running: Connector, launched: list[Query], caplog: pytest.LogCaptureFixture) -> None:
    """The log names the connector and the reason."""
    caplog.set_level(logging.INFO)
    assert running.state is not None
    running.state.record_failure(failure_named("UploadRefused", "the target answered 403"))
    launched[0].fail()
    for _ in range(3):
        running.poll(SPARK)
    assert_line_says(caplog.text, "connector orders", "the target answered 403", times=1)


class Slow:
    """What is done in the background, and ends when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], Any], Future[Any]]] = []

    def __call__(self, act: Callable[[], T], /) -> "Future[T]":
        future: Future[T] = Future()
        self.waiting.append((act, future))
        return future

    def go_on(self, most: int = 9) -> None:
        """So many of them at most."""
        for _ in range(min(most, len(self.waiting))):
            act, future = self.waiting.pop(0)
            try:
                future.set_result(act())
            except Exception as error:  # noqa: BLE001 - as threads do it
                future.set_exception(error)


@pytest.fixture
def slow(tmp_path: Path, launched: list[Query]) -> Iterator[tuple[Connector, Slow]]:
    """A connector whose queries start, and whose questions to Kafka end, when the test says so."""
    background = Slow()
    connector = Connector(settings(tmp_path / "tmp"), tmp_path / "run", launch=background, background=background)
    yield connector, background
    background.go_on()
    connector.close()


def test_nothing_waits_for_a_query_to_start(slow: tuple[Connector, Slow], launched: list[Query]) -> None:
    """Polls go on meanwhile."""
    connector, background = slow
    connector.start(SPARK)
    connector.poll(SPARK)
    assert (connector.status, launched) == (Status.RUNNING, [])
    background.go_on()
    connector.poll(SPARK)
    launched[0].isActive = False
    connector.poll(SPARK)
    connector.poll(SPARK)
    assert connector.status is Status.RUNNING
    background.go_on()
    connector.poll(SPARK)
    assert connector.status is Status.DONE


def test_nothing_waits_for_kafka_after_a_failure(slow: tuple[Connector, Slow], launched: list[Query]) -> None:
    """What follows is decided once Kafka has answered; until then it is RUNNING, and can be stopped."""
    connector, background = slow
    connector.start(SPARK)
    background.go_on()
    connector.poll(SPARK)
    assert connector.state is not None
    connector.state.record_failure(failure_named("UploadRefused", "403"))
    launched[0].fail()
    for _ in range(3):
        connector.poll(SPARK)
    assert connector.status is Status.RUNNING
    background.go_on()
    connector.poll(SPARK)
    assert connector.status is Status.FAILED


def test_a_stop_while_the_query_starts_ends_it(
    slow: tuple[Connector, Slow], launched: list[Query], clock: Clock
) -> None:
    """Also one that starts so late that nobody waits for it any more."""
    connector, background = slow
    connector.start(SPARK)
    connector.request_stop()
    connector.close()
    background.go_on()
    assert launched[0].stopped


def prepared(connector: Connector, query: list[Query]) -> None:
    """It waits for Spark."""
    connector.prepare()


def half_way(connector: Connector, query: list[Query]) -> None:
    """A start for which there is no room any more once the state is made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handoff, "write", failing(StorageFailed("No space left on device")))
        connector.start(SPARK)
    assert connector.status is Status.FAILED


def failing(error: Exception) -> Callable[..., Any]:
    """Raises it."""

    def raise_it(*args: object) -> None:
        raise error

    return raise_it


def restarting(connector: Connector, query: list[Query]) -> None:
    """A query that is started again, with a state of its own."""
    connector.start(SPARK)
    state_files(connector).unlink()
    connector.poll(SPARK)
    module.time.sleep(PAUSE_S)
    connector.poll(SPARK)
    assert len(query) == 2


def stopped(connector: Connector, query: list[Query]) -> None:
    """A stop by request."""
    connector.start(SPARK)
    connector.request_stop()
    wait_until_stopped(connector, module.time.sleep)


def crashed(connector: Connector, query: list[Query]) -> None:
    """An error that nobody foresaw."""
    connector.start(SPARK)
    connector.fail_unexpectedly(OSError(28, "No space left on device"))


@pytest.mark.parametrize("life", [prepared, half_way, restarting, stopped, crashed])
def test_a_connector_that_is_closed_has_no_file_open(
    make: Callable[..., Connector], launched: list[Query], life: Callable[..., None]
) -> None:
    """However it ended: Python would warn of a database that nobody closed."""
    connector = make()
    life(connector, launched)
    connector.close()
    assert is_closed(connector)


def is_closed(connector: Connector) -> bool:
    """Whether its state cannot be asked any more."""
    assert connector.state is not None
    try:
        connector.state.progress()
    except sqlite3.ProgrammingError:
        return True
    return False


@pytest.mark.parametrize("stops", [False, True])
def test_a_state_that_is_in_use_is_closed_by_its_last_user(
    slow: tuple[Connector, Slow], launched: list[Query], stops: bool
) -> None:
    """Who asks Kafka, or ends the query, when a connector is closed still has its state."""
    connector, background = slow
    connector.start(SPARK)
    background.go_on()
    connector.poll(SPARK)
    launched[0].fail()
    connector.poll(SPARK)
    if stops:
        connector.fail_unexpectedly(RuntimeError("x"))
    assert len(background.waiting) == 1 + stops
    connector.close()
    assert not is_closed(connector)
    while background.waiting:
        assert not is_closed(connector)
        background.go_on(1)
    assert is_closed(connector)


def test_a_pause_and_a_share_reach_the_planner(running: Connector) -> None:
    """They are fields of the state store, and survive its loss."""
    running.pause(True)
    running.share(7)
    assert running.state is not None
    assert (running.state.get(PAUSE), running.state.get(SLOTS)) == (True, 7)
    running.pause(False)
    assert not running.state.get(PAUSE)


def test_a_pause_survives_a_cleaner_of_temporary_files(running: Connector, launched: list[Query], clock: Clock) -> None:
    """What is made anew says what the old one said."""
    running.pause(True)
    shutil.rmtree(running.settings.files.tmp_dir)
    running.poll(SPARK)
    clock.sleep(PAUSE_S)
    running.poll(SPARK)
    assert running.state is not None
    assert (running.state.get(PAUSE), running.state.get(SLOTS)) == (True, 4)


def test_a_start_that_is_waited_for_is_told(running: Connector, launched: list[Query], clock: Clock) -> None:
    """Why, and in how many seconds; until it has begun."""
    assert running.state is not None
    running.state.record_progress([PartitionProgress("orders", 0, 0, 1, None)])
    assert running.waits_for is None
    launched[0].fail("worker lost")
    running.poll(SPARK)
    assert running.waits_for == ("worker lost", PAUSE_S)
    clock.sleep(PAUSE_S)
    running.poll(SPARK)
    assert running.waits_for is None
