"""What events tell of a connector, for whoever asks."""

from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from parquet_sink.addons.commands.status_text import connector_lines
from parquet_sink.errors import failure_named
from parquet_sink.model.events import (
    ConnectorFailed,
    ConnectorRestarting,
    ConnectorRunning,
    ConnectorStarting,
    ConnectorStopped,
    ConnectorWaiting,
    Event,
    FileAccepted,
    FileArchived,
    FlushIntervalExceeded,
    RangeFlushed,
    RangePlanned,
    RangePostponed,
    RecordsDelivered,
    RecordsSetAside,
    TopicsMissing,
)
from parquet_sink.model.ranges import Accepted, Trying
from parquet_sink.model.ranges import PartitionProgress as Standing
from parquet_sink.model.receipts import Archiving, Receipt
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.worker.herder.values import (
    ConnectorProgress,
    ConnectorStatus,
    Flushing,
    LastError,
    LastUpload,
    PartitionProgress,
    State,
    WarningKind,
)
from parquet_sink.worker.loop import event_aggregator
from parquet_sink.worker.loop.event_aggregator import LOOK_S, LOOK_SHARE, EventAggregator
from parquet_sink.worker.loop.status import Status
from tests.factories import Clock
from tests.messages import assert_line_says, assert_says

RECEIPT = Receipt("one", "orders", 3, "f", 10, 19, 20, 9, 10, 1_000, "records", accepted_at=5.0)
POSTPONED = RangePostponed(
    "one", 100.0, "orders", 3, 0, 100, 10, attempts=3, elapsed_s=12.0, wait_s=30.0, reason="HTTP 503."
)


@pytest.fixture
def aggregator() -> EventAggregator:
    """At second 100."""
    return EventAggregator(Clock(100.0))


def test_accepted_files_are_summed_up(aggregator: EventAggregator) -> None:
    """With the last one; its topic is active."""
    aggregator.on_event(FileAccepted("one", 5.0, "orders", 3, RECEIPT))
    aggregator.on_event(FileAccepted("one", 5.0, "orders", 3, RECEIPT))
    snapshot = aggregator.snapshot("one")
    assert (snapshot.totals.files, snapshot.totals.rows, snapshot.totals.size_bytes) == (2, 18, 2_000)
    assert snapshot.last_upload == LastUpload("orders", 3, 10, 19, 9, 1_000, 5.0)
    assert snapshot.topics == {"orders"}
    assert aggregator.snapshot("two").topics == set()


def test_a_look_that_takes_long_is_made_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for thousands of topic-partitions: looks take so small a part of a core."""
    clock, cpu = Clock(100.0), Clock()
    looks: list[float] = []

    def look(connector: Any, now_s: float) -> None:
        looks.append(now_s)
        cpu.sleep(0.1)

    monkeypatch.setattr(event_aggregator, "time", SimpleNamespace(thread_time=cpu))
    aggregator = EventAggregator(clock)
    monkeypatch.setattr(aggregator, "_look", look)
    for _ in range(600):
        aggregator.refresh([SimpleNamespace()])  # type: ignore[list-item]
        clock.sleep(LOOK_S / 10)
    assert len(looks) == 6
    assert min(later - one for one, later in pairwise(looks)) >= 0.1 * LOOK_SHARE - 0.01


def test_what_stands_still_is_read_and_shown_once(tmp_path: Path) -> None:
    """Of very many topic-partitions most do; what moves, is accepted or is deleted is seen at the next look."""
    clock, store = Clock(100.0), SqliteStore.for_new_run(tmp_path / "state")
    aggregator = EventAggregator(clock)
    connector: Any = SimpleNamespace(
        state=store,
        status=None,
        settings=SimpleNamespace(name="one"),
        waiting_files=lambda: 0,
        planner_silent_s=lambda: None,
    )

    def looked() -> tuple[PartitionProgress, ...]:
        clock.sleep(LOOK_S * 10)
        aggregator.refresh([connector])
        return aggregator.snapshot("one").partitions

    with closing(store):
        store.record_progress([Standing("orders", number, 20, 20, None) for number in range(4)])
        first, again = looked(), looked()
        assert all(one is other for one, other in zip(first, again, strict=True))
        store.record_progress([Standing("orders", 1, 20, 25, 100_000), Standing("orders", 2, 20, 20, None, away=True)])
        aggregator.on_event(FileAccepted("one", 125.0, "orders", 3, replace(RECEIPT, accepted_at=125.0)))
        store.forget_partition("orders", 0)
        assert [(one.partition, one.lag, one.oldest_s, one.records_per_s > 0, one.away) for one in looked()] == [
            (1, 5, 30.0, False, False),
            (2, 0, None, False, True),
            (3, 0, None, True, False),
        ]
        assert [(one.lag, one.records_per_s) for one in looked()] == [(5, 0.0), (0, 0.0), (0, 0.0)]
        assert aggregator.snapshot("one").partitions[0].oldest_s == 40.0
        store.record_accepted([Accepted("orders", 1, 25, 20, 25, "records")])
        assert [one.lag for one in looked()] == [0, 0, 0]


def looked_at(aggregator: EventAggregator, store: SqliteStore, **more: Any) -> None:
    """The aggregator looks at a connector with this state."""
    about = {"status": None, "waiting_files": lambda: 0, "planner_silent_s": lambda: None, **more}
    aggregator._looked_s = -LOOK_S * 10
    aggregator.refresh([SimpleNamespace(state=store, settings=SimpleNamespace(name="one"), **about)])  # type: ignore[list-item]


def test_what_an_open_transaction_holds_back_is_a_warning(aggregator: EventAggregator, tmp_path: Path) -> None:
    """Offset and time are known at once, and warned of after a minute."""
    with closing(SqliteStore.for_new_run(tmp_path / "state")) as store:
        store.record_progress([Standing("orders", 1, 20, 25, 30_000, held_at=20, held_ms=30_000)])
        looked_at(aggregator, store)
        snapshot = aggregator.snapshot("one")
        (found,) = snapshot.partitions
        assert (found.lag, found.held_at, found.held_s) == (5, 20, 70.0)
        (warning,) = snapshot.live_warnings
        assert warning.kind is WarningKind.HELD_BACK
        assert_says(warning.message, "topic-partition 1", "held back at offset 20", "open transaction", "70 s")
        store.record_progress([Standing("orders", 1, 20, 25, 30_000, held_at=20, held_ms=60_000)])
        looked_at(aggregator, store)
        assert snapshot.live_warnings == ()


def test_a_planner_that_hangs_is_a_warning(
    aggregator: EventAggregator, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """After a minute without a look, once in the log; not while a micro-batch runs, in which none comes."""
    with closing(SqliteStore.for_new_run(tmp_path / "state")) as store:
        snapshot = aggregator.snapshot("one")
        for silent_s in (59.0, 75.0, 76.0):
            looked_at(aggregator, store, planner_silent_s=lambda: silent_s)  # noqa: B023 - called at once
        (warning,) = snapshot.live_warnings
        assert (warning.kind, snapshot.planner_silent_s) == (WarningKind.PLANNER_SILENT, 76.0)
        assert_says(warning.message, "has not looked for records for 76 s", "restart")
        assert len(caplog.records) == 1
        aggregator.on_event(RangePlanned("one", 100.0, "t", 0, 10, 15, "interval"))
        looked_at(aggregator, store, planner_silent_s=lambda: 80.0)
        assert (snapshot.live_warnings, snapshot.planner_silent_s) == ((), None)


def test_how_a_failed_connector_stands_is_not_known(aggregator: EventAggregator, tmp_path: Path) -> None:
    """Nobody counts any more: there is no lag rather than an old one, and the status says since when."""
    with closing(SqliteStore.for_new_run(tmp_path / "state")) as store:
        store.record_progress([Standing("orders", 1, 20, 20, None)])
        looked_at(aggregator, store)
        snapshot = aggregator.snapshot("one")
        assert [one.lag for one in snapshot.partitions] == [0]
        aggregator.on_event(ConnectorFailed("one", 40.0, failure_named("UploadRefused", "The target answered 403.")))
        looked_at(aggregator, store, status=Status.FAILED)
        assert snapshot.partitions == ()
        failed = ConnectorStatus("one", State.FAILED, "w", ())
        shown = ConnectorProgress(failed, 0, 0, 0, 0, None, snapshot.last_error, snapshot.partitions)
        assert_line_says(
            "\n".join(connector_lines(shown, 100.0, partitions=True)),
            "lag",
            "not known since 1970-01-01 00:00:40 UTC (60.0 s ago)",
        )


def test_what_became_of_files_at_an_archive(aggregator: EventAggregator) -> None:
    """Counted, and one that is not archived is the last error; `status` says so in a line of its own."""
    for cause in (None, None, "full"):
        receipt = replace(RECEIPT, archive=Archiving("directory:/a", 1, cause))
        aggregator.on_event(FileAccepted("one", 5.0, "orders", 3, receipt))
    snapshot = aggregator.snapshot("one")
    assert (snapshot.totals.archived, snapshot.totals.not_archived) == (2, 1)
    assert snapshot.last_error == LastError("file f is not archived: full", 5.0)
    for cause in (None, "away"):
        aggregator.on_event(FileArchived("two", 6.0, "g", Archiving("directory:/a", 1, cause)))
    behind = aggregator.snapshot("two")
    assert (behind.totals.archived, behind.totals.not_archived, behind.totals.files) == (1, 1, 0)
    assert behind.last_error == LastError("file g is not archived: away", 6.0)
    status = ConnectorStatus("one", State.RUNNING, "here", ())
    told = ConnectorProgress(status, 3, 27, 3_000, 0, None, None, (), archived=2, not_archived=1, archive_waiting=4)
    lines = list(connector_lines(told, 10.0, partitions=False))
    assert_line_says("\n".join(lines), "kept", "2 files archived", "4 files waiting", "1 file not archived")
    without = replace(told, archived=0, not_archived=0, archive_waiting=0)
    assert not any("kept" in line for line in connector_lines(without, 10.0, partitions=False))


def test_an_error_heals_where_it_was(aggregator: EventAggregator) -> None:
    """By what is accepted of its topic-partition; one of the connector by anything that is, or when it runs again."""
    snapshot = aggregator.snapshot("one")
    aggregator.on_event(POSTPONED)
    aggregator.on_event(FileAccepted("one", 101.0, "orders", 4, RECEIPT))
    assert snapshot.last_error == LastError("HTTP 503.", 100.0)
    aggregator.on_event(FileAccepted("one", 112.0, "orders", 3, RECEIPT))
    aggregator.on_event(FileAccepted("one", 113.0, "orders", 3, RECEIPT))
    assert snapshot.last_error == LastError("HTTP 503.", 100.0, healed_s=112.0)
    aggregator.on_event(ConnectorWaiting("one", 120.0, "No broker answers."))
    assert snapshot.last_error == LastError("No broker answers.", 120.0)
    aggregator.on_event(ConnectorRunning("one", 125.0))
    assert snapshot.last_error == LastError("No broker answers.", 120.0, healed_s=125.0)


def test_what_is_set_aside_does_not_heal(aggregator: EventAggregator) -> None:
    """It stays aside until somebody replays it, whatever is accepted meanwhile."""
    aggregator.on_event(RecordsSetAside("one", 7.0, "orders", 3, 5, 1, 9, {"SHAPE": 5}, "no JSON"))
    aggregator.on_event(FileAccepted("one", 8.0, "orders", 3, RECEIPT))
    aggregator.on_event(ConnectorRunning("one", 9.0))
    error = aggregator.snapshot("one").last_error
    assert error is not None
    assert (error.at_s, error.healed_s) == (7.0, None)
    assert_says(error.message, "5 records diverted", "no JSON")


def test_records_without_a_file_are_summed_up(aggregator: EventAggregator) -> None:
    """What a record sink took, or a source sent; nothing is waited for any more there."""
    aggregator.on_event(replace(POSTPONED, trying=Trying.PUT))
    aggregator.on_event(RecordsDelivered("one", 6.0, "orders", 3, 9, 10, 19, "file /out"))
    snapshot = aggregator.snapshot("one")
    assert (snapshot.totals.delivered, snapshot.totals.files, snapshot.postponed, snapshot.topics) == (
        9,
        0,
        {},
        {"orders"},
    )
    assert snapshot.last_upload == LastUpload("orders", 3, 10, 19, 9, 0, 6.0)
    assert snapshot.totals.rate(("orders", 3), 6.0) == 9


def test_what_is_tried_again_is_waited_for(aggregator: EventAggregator) -> None:
    """With the reason and the time of the next try, until it is delivered."""
    aggregator.on_event(POSTPONED)
    snapshot = aggregator.snapshot("one")
    waits = snapshot.waits_for(110.0)
    assert_says(waits, "orders, topic-partition 3", "HTTP 503", "3 attempts within 12 s", "again in 20 s")
    assert_says(snapshot.waits_for(200.0), "orders, topic-partition 3", "again now")
    assert snapshot.last_error == LastError("HTTP 503.", 100.0)
    aggregator.on_event(RangeFlushed("one", 140.0, "orders", 3, 0, 100, 1, 1, 1, 1))
    assert snapshot.waits_for(141.0) == ""


def test_several_topic_partitions_are_counted(aggregator: EventAggregator) -> None:
    """The next try comes first."""
    aggregator.on_event(POSTPONED)
    aggregator.on_event(RangePostponed("one", 100.0, "orders", 4, 0, 100, 10, attempts=1, elapsed_s=0.1, wait_s=5.0))
    waits = aggregator.snapshot("one").waits_for(100.0)
    assert_says(waits, "orders, topic-partition 4", "first attempt", "again in 5 s", "1 more topic-partition")
    assert "topic-partition 3" not in waits


@pytest.mark.parametrize(
    "end",
    [
        ConnectorStarting("one", 101.0),
        ConnectorFailed("one", 101.0, failure_named("UploadExhausted", "away for good")),
    ],
)
def test_a_new_begin_or_the_end_waits_for_nothing(aggregator: EventAggregator, end: Event) -> None:
    """What was waited for is over."""
    for event in (POSTPONED, ConnectorWaiting("one", 100.0, "No broker answers."), end):
        aggregator.on_event(event)
    assert aggregator.snapshot("one").waits_for(101.0) == ""


def test_a_broker_is_waited_for_until_one_answers(aggregator: EventAggregator) -> None:
    """In the words of who waits; it was the last error."""
    aggregator.on_event(ConnectorWaiting("one", 100.0, "No broker answers."))
    assert aggregator.snapshot("one").waits_for(100.0) == "No broker answers."
    aggregator.on_event(ConnectorRunning("one", 101.0))
    assert aggregator.snapshot("one").waits_for(101.0) == ""
    assert aggregator.snapshot("one").last_error == LastError("No broker answers.", 100.0, healed_s=101.0)


@pytest.mark.parametrize("end", [None, ConnectorStarting("one", 103.0), ConnectorStopped("one", 103.0)])
def test_topics_that_are_missing_are_waited_for(aggregator: EventAggregator, end: Event | None) -> None:
    """By name, until they are there, or the connector is not; a broker that is away goes first."""
    aggregator.on_event(TopicsMissing("one", 100.0, ("items", "orders")))
    aggregator.on_event(ConnectorRunning("one", 100.5))
    snapshot = aggregator.snapshot("one")
    assert_says(snapshot.waits_for(101.0), "items, orders", "not there", "deleted")
    aggregator.on_event(ConnectorWaiting("one", 101.0, "No broker answers."))
    assert snapshot.waits_for(101.0) == "No broker answers."
    aggregator.on_event(ConnectorRunning("one", 102.0))
    aggregator.on_event(TopicsMissing("one", 102.0, ("items",)))
    assert_says(snapshot.waits_for(102.0), "Topic items,", "not there", "deleted")
    assert snapshot.missing_topics == ("items",)
    aggregator.on_event(end or TopicsMissing("one", 103.0))
    assert (snapshot.waits_for(103.0), snapshot.missing_topics) == ("", ())


def test_a_pattern_without_a_match_is_a_warning(aggregator: EventAggregator) -> None:
    """Nothing is waited for by name: it may be as it is meant."""
    aggregator.on_event(TopicsMissing("one", 100.0, (), "item.*"))
    snapshot = aggregator.snapshot("one")
    [warning] = snapshot.live_warnings
    assert warning.kind is WarningKind.NO_TOPIC_MATCHES
    assert_says(warning.message, "[topics.regex]", "no topic", '"item.*"')
    assert snapshot.waits_for(100.0) == ""
    aggregator.on_event(TopicsMissing("one", 101.0))
    assert snapshot.live_warnings == ()


def test_what_was_set_aside_is_counted_and_told(aggregator: EventAggregator) -> None:
    """The first reason is the last error."""
    aggregator.on_event(RecordsSetAside("one", 7.0, "orders", 3, 5, 1, 9, {"VALUE_CONVERTER": 5}, "no JSON"))
    assert aggregator.snapshot("one").totals.set_aside == 5
    error = aggregator.snapshot("one").last_error
    assert error is not None
    assert (error.at_s, error.healed_s) == (7.0, None)
    assert_says(error.message, "5 records diverted", "no JSON")


def test_a_connector_that_is_gone_is_forgotten(aggregator: EventAggregator) -> None:
    """One of its name begins with an empty snapshot."""
    aggregator.on_event(FileAccepted("one", 5.0, "orders", 3, RECEIPT))
    aggregator.forget("one")
    aggregator.forget("one")
    assert aggregator.snapshot("one").totals.files == 0


def test_a_flush_interval_that_is_not_kept_is_a_warning(aggregator: EventAggregator) -> None:
    """Until it is kept again."""
    aggregator.on_event(FlushIntervalExceeded("one", 100.0, 300, 27.25, 3.0, 300, 26.1))
    (warning,) = aggregator.snapshot("one").live_warnings
    assert warning.kind is WarningKind.FLUSH_INTERVAL_EXCEEDED
    assert_says(warning.message, "interval of 3 s", "exceeded", "300 topic-partitions", "27.2 s")
    aggregator.on_event(FlushIntervalExceeded("one", 103.0, 0, 0.0, 3.0, 300, 1.0))
    assert aggregator.snapshot("one").live_warnings == ()


def test_what_is_being_flushed_is_known(aggregator: EventAggregator) -> None:
    """From when it is taken until its outcome is told, or the query ends."""
    assert aggregator.snapshot("one").flushing is None
    for number in range(3):
        aggregator.on_event(RangePlanned("one", 100.0 + number, "t", number, 10, 15, "interval"))
    assert aggregator.snapshot("one").flushing == Flushing(3, 15, 100.0)
    aggregator.on_event(RangeFlushed("one", 105.0, "t", 0, 10, 15, 15, 5, 5, 1, read=5))
    assert aggregator.snapshot("one").flushing == Flushing(2, 10, 101.0)
    aggregator.on_event(ConnectorRestarting("one", 106.0, "KafkaFailed", 5.0))
    assert aggregator.snapshot("one").flushing is None
