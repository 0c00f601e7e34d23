"""The planner: commits what was accepted, looks around, and says what is due; with a fake broker and clock."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from parquet_sink.errors import (
    AnotherInstance,
    BrokerAway,
    BrokersGone,
    ConnectorError,
    KafkaFailed,
    KafkaRefused,
    OffsetsLost,
)
from parquet_sink.files.rotation import Reason
from parquet_sink.kafka.group.committed import RangePlan
from parquet_sink.kafka.settings import DeadLetterSettings, FlushSettings, Ownership
from parquet_sink.model.events import OffsetCommitted, OffsetsPassedOver, RangePlanned
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import Accepted, Again, LearnedSchema, PlannedRange, Tries
from parquet_sink.model.receipts import Restart
from parquet_sink.planner.admission import Range
from parquet_sink.planner.discovery import METADATA_S, named
from parquet_sink.planner.planner import CHECK_S, PATIENCE_S, RECOMMIT_S, Planner
from parquet_sink.process.lease import LeaseFile, clock_ns
from parquet_sink.settings.connector import RestartSettings
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import DRAINED, PAUSE, SETTLED, SLOTS, STOP
from tests.factories import Clock
from tests.messages import assert_says, saying
from tests.planner.planner_cluster import KEY, SETTINGS, Cluster, Reported, planner_on, spans


@pytest.fixture
def make(cluster: Cluster, clock: Clock, state: SqliteStore) -> Callable[..., Planner]:
    """Makes planners of the cluster, with other settings if given."""

    def made(
        flush: FlushSettings = SETTINGS.flush,
        away_ms: int = -1,
        ensure_topic: Callable[[DeadLetterSettings], None] = lambda settings: None,
        **kafka: object,
    ) -> Planner:
        restart = RestartSettings(away_ms=away_ms)
        settings = replace(SETTINGS, flush=flush, restart=restart, kafka=replace(SETTINGS.kafka, **kafka))
        return planner_on(cluster, settings, state, clock, Reported, ensure_topic=ensure_topic)

    return made


def test_it_begins_at_the_committed_offset(cluster: Cluster, make: Callable[..., Planner]) -> None:
    """The group's offset is where reading goes on, and it is signed at the start."""
    cluster.logs[KEY], cluster.group[KEY] = (0, 90), 40
    assert make().begin() == {KEY: 40}
    assert "claim" in cluster.calls


@pytest.mark.parametrize(("reset", "start"), [("earliest", 5), ("latest", 90)])
def test_without_an_offset_the_reset_decides(
    cluster: Cluster, make: Callable[..., Planner], reset: str, start: int
) -> None:
    """A topic-partition without a commit begins where auto.offset.reset says, and that is committed."""
    cluster.logs[KEY] = (5, 90)
    assert make(offset_reset=reset).begin() == {KEY: start}
    assert cluster.group == {KEY: start}


def test_a_reset_of_none_fails(cluster: Cluster, make: Callable[..., Planner]) -> None:
    """With auto.offset.reset=none a missing offset is an error that names topic-partition, group and cure."""
    said = ("Topic orders, topic-partition 0:", "group connect-orders", "no committed", "auto.offset.reset is none")
    with pytest.raises(
        ConnectorError,
        match=saying(*said, "--group connect-orders --topic orders:0", "--to-earliest", "earliest or latest"),
    ):
        make(offset_reset="none").begin()


@pytest.mark.parametrize("committed", [3, 95])
def test_a_committed_offset_that_kafka_has_no_more_stops(
    cluster: Cluster, make: Callable[..., Planner], committed: int
) -> None:
    """An offset below the first or past the last one is a loss that is told, not passed over."""
    cluster.logs[KEY], cluster.group[KEY] = (10, 90), committed
    with pytest.raises(OffsetsLost, match="Topic orders, topic-partition 0"):
        make().begin()
    assert cluster.group[KEY] == committed


def test_accepted_loss_goes_on_at_the_first_offset(
    cluster: Cluster, make: Callable[..., Planner], state: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    """With CONTINUE log and events name the lost offsets, and reading begins with what is left."""
    cluster.logs[KEY], cluster.group[KEY] = (10, 90), 3
    assert make(lost_offsets="CONTINUE").begin() == {KEY: 10}
    assert "offsets 3 to 9" in caplog.text
    assert losses(state) == [(3, 10, "retention")]


def losses(state: SqliteStore) -> list[tuple[int, int, str]]:
    """What the event log has of offsets that were passed over."""
    events = state.events_after(0).events
    return [(one.start, one.end, one.cause) for one in events if isinstance(one, OffsetsPassedOver)]


def test_a_broker_that_is_late_is_waited_for(cluster: Cluster, make: Callable[..., Planner], clock: Clock) -> None:
    """The broker may come up after the connector."""
    cluster.away = 5
    begun = clock.seconds
    assert make().begin() == {KEY: 0}
    assert clock.seconds - begun == 5


def test_waiting_for_the_broker_has_an_end(cluster: Cluster, make: Callable[..., Planner], clock: Clock) -> None:
    """A broker that never answers is an error after a minute, or after what the configuration says."""
    begun, cluster.away = clock.seconds, 1_000
    with pytest.raises(KafkaFailed, match="no answer") as found:
        make().begin()
    assert not isinstance(found.value, BrokerAway)
    assert clock.seconds - begun == PATIENCE_S
    with pytest.raises(KafkaFailed):
        make(client={"default.api.timeout.ms": "3000"}).begin()
    assert clock.seconds - begun == PATIENCE_S + 3


def test_what_waited_before_the_start_is_due_at_once(cluster: Cluster, make: Callable[..., Planner]) -> None:
    """Records that were there before we looked count as old enough where their age cannot be read in time."""
    cluster.logs[KEY] = (0, 7)
    planner = make()
    assert spans(planner.tick(planner.begin())) == [(*KEY, Range(0, 7, Reason.INTERVAL))]


def test_what_waits_at_the_start_is_as_old_as_its_record(
    cluster: Cluster, make: Callable[..., Planner], clock: Clock
) -> None:
    """A start makes no small files of what is young, and holds back nothing that is old; it asks once."""
    now_ms = int(clock.now() * 1000)
    other = ("orders", 1)
    cluster.logs = {KEY: (0, 7), other: (0, 5), ("orders", 2): (0, 0)}
    cluster.times.of = {KEY: now_ms - 500, other: now_ms - 3_600_000}
    planner = make()
    start = planner.begin()
    assert spans(planner.tick(start)) == [(*other, Range(0, 5, Reason.INTERVAL))]
    clock.sleep(1)
    assert planner.tick({other: 5}) == []
    clock.sleep(0.5)
    assert spans(planner.tick({})) == [(*KEY, Range(0, 7, Reason.INTERVAL))]
    cluster.logs = {KEY: (0, 9), other: (0, 5), ("orders", 2): (0, 3)}
    assert planner.tick({KEY: 7}) == []
    assert cluster.times.asked == [{KEY: 0, other: 0}]


@pytest.mark.parametrize("answered", [True, False])
def test_a_full_file_hardly_waits_for_its_age(
    cluster: Cluster, make: Callable[..., Planner], clock: Clock, *, answered: bool
) -> None:
    """A start has less time for the ages of what is due in any case; where one is not read, the rest is old enough."""
    flush = FlushSettings(1_000_000, 10, 60_000)
    full, young, old, empty = (("orders", number) for number in range(4))
    cluster.logs = {full: (0, 37), young: (0, 9), old: (0, 9), empty: (0, 0)}
    now_ms = int(clock.now() * 1000)
    cluster.times.of = {young: now_ms - 9_000, old: now_ms - 61_000, **({full: now_ms - 1_000} if answered else {})}
    planner = make(flush=flush)
    due = planner.tick(planner.begin())
    assert sorted(spans(due)) == [(*full, Range(0, 30, Reason.RECORDS)), (*old, Range(0, 9, Reason.INTERVAL))]
    assert cluster.times.asked == [{young: 0, old: 0}, {full: 0}]
    assert cluster.times.hurried == [{full: 0}]
    rest = [] if answered else [(*full, Range(30, 37, Reason.INTERVAL))]
    assert spans(planner.tick({full: 30, old: 9})) == rest
    assert len(cluster.times.asked) == 2


def test_files_end_by_the_clock(cluster: Cluster, make: Callable[..., Planner], clock: Clock) -> None:
    """A trickle over full hours: one file for each hour, with what was seen before its end; none of one record."""
    flush = FlushSettings(1_000_000, 1_000, 86_400_000, schedule_interval_ms=3_600_000)
    clock.seconds, cluster.logs[KEY] = 3_600.0 * 1_000 - 600, (0, 0)
    planner = make(flush=flush)
    planner.tick(planner.begin())
    finished: dict[PartitionKey, int] = {}
    taken: list[PlannedRange] = []
    seen: list[float] = []
    for second in range(2 * 3_600):
        if second % 10 == 0:
            cluster.logs[KEY] = (0, cluster.logs[KEY][1] + 1)
            seen.append(clock.seconds)
        due = planner.tick(finished)
        finished = {KEY: due[0].end} if due else {}
        taken += due
        clock.sleep(1)
    assert [(one.reason, one.start, one.end) for one in taken] == [("schedule", 0, 60), ("schedule", 60, 420)]
    assert [seen[one.end - 1] // 3_600 for one in taken] == [999, 1_000]
    assert [seen[one.end] % 3_600 for one in taken] == [0, 0]


def test_a_start_after_a_full_hour_sends_what_waited_before_it(
    cluster: Cluster, make: Callable[..., Planner], clock: Clock
) -> None:
    """By its first record's timestamp; a start within the hour of that record waits for its end."""
    flush = FlushSettings(1_000_000, 1_000, 86_400_000, schedule_interval_ms=3_600_000)
    clock.seconds, cluster.logs[KEY] = 3_600.0 * 1_000 + 60, (0, 7)
    cluster.times.of = {KEY: (3_600 * 1_000 - 1) * 1_000}
    planner = make(flush=flush)
    assert spans(planner.tick(planner.begin())) == [(*KEY, Range(0, 7, Reason.SCHEDULE))]
    cluster.logs[KEY], cluster.group = (0, 7), {}
    cluster.times.of = {KEY: (3_600 * 1_000 + 1) * 1_000}
    again = make(flush=flush)
    assert again.tick(again.begin()) == []


def test_a_tick_commits_what_was_accepted(cluster: Cluster, make: Callable[..., Planner]) -> None:
    """Everything below the start of a tick was accepted, so it is committed before anything else is asked."""
    cluster.logs[KEY] = (0, 7)
    planner = make()
    planner.begin()
    cluster.calls.clear()
    planner.tick({KEY: 7})
    assert cluster.group == {KEY: 7}
    assert cluster.calls == ["ids", "commit", "highs"]


def test_age_counts_from_arrival(cluster: Cluster, make: Callable[..., Planner], clock: Clock) -> None:
    """A record that came while we looked is due when it is as old as the interval, on an idle topic too."""
    planner = make()
    start = planner.begin()
    assert planner.tick(start) == []
    cluster.logs[KEY] = (0, 3)
    found = []
    for _ in range(4):
        clock.sleep(1)
        found.append(spans(planner.tick(start)))
    assert found == [[], [], [(*KEY, Range(0, 3, Reason.INTERVAL))], [(*KEY, Range(0, 3, Reason.INTERVAL))]]


def test_what_is_half_as_old_as_the_interval_goes_along(
    cluster: Cluster, make: Callable[..., Planner], clock: Clock
) -> None:
    """When one topic-partition is due by its age, so are others of half of it; younger ones wait."""
    keys = [("orders", number) for number in range(4)]
    cluster.logs = dict.fromkeys(keys, (0, 0))
    planner = make(flush=FlushSettings(1_000_000, 1_000, 10_000))
    assert planner.tick(planner.begin()) == []
    for key, seconds in zip(keys[:3], (1, 5, 4), strict=True):
        clock.sleep(1)
        cluster.logs[key] = (0, 3)
        assert planner.tick({}) == []
        clock.sleep(seconds - 1)
        assert planner.tick({}) == []
    clock.sleep(1)
    cluster.logs[keys[3]] = (0, 3)
    due = planner.tick({})
    assert spans(due) == [(*key, Range(0, 3, Reason.INTERVAL)) for key in keys[:2]]
    assert planner.tick(dict.fromkeys(keys[:2], 3)) == []


def test_what_is_full_takes_none_along(cluster: Cluster, make: Callable[..., Planner], clock: Clock) -> None:
    """A busy topic-partition makes no small files of others: they go along with age alone."""
    keys = [("orders", number) for number in range(2)]
    cluster.logs = dict.fromkeys(keys, (0, 0))
    planner = make(flush=FlushSettings(1_000_000, 1_000, 10_000))
    planner.tick(planner.begin())
    cluster.logs[keys[0]] = (0, 999)
    assert planner.tick({}) == []
    clock.sleep(9)
    cluster.logs[keys[1]] = (0, 1_000)
    assert spans(planner.tick({})) == [(*keys[1], Range(0, 1_000, Reason.RECORDS))]


def test_a_range_is_put_down_before_its_flush(cluster: Cluster, make: Callable[..., Planner]) -> None:
    """What is taken stands beside the group's offset, and a start after a crash takes the same range again."""
    cluster.logs[KEY] = (0, 150)
    planner = make()
    assert spans(planner.tick(planner.begin())) == [(*KEY, Range(0, 100, Reason.RECORDS))]
    assert cluster.plans == {KEY: RangePlan(0, 100, "records")}
    cluster.logs[KEY] = (0, 900)
    again = make()
    assert spans(again.tick(again.begin())) == [(*KEY, Range(0, 100, Reason.RECORDS))]
    assert spans(again.tick({KEY: 100})) == [(*KEY, Range(100, 900, Reason.RECORDS))]


@pytest.mark.parametrize(("first", "expected"), [(10, (0, 100)), (99, (0, 100)), (100, (100, 500)), (120, (120, 420))])
def test_a_range_whose_beginning_was_deleted_is_taken_again(
    cluster: Cluster, make: Callable[..., Planner], first: int, expected: tuple[int, int]
) -> None:
    """With CONTINUE what is left of it comes again with the same end: it may have been sent before the crash."""
    cluster.logs[KEY] = (0, 150)
    planner = make(lost_offsets="CONTINUE")
    planner.tick(planner.begin())
    cluster.logs[KEY] = (first, 500)
    again = make(lost_offsets="CONTINUE")
    assert spans(again.tick(again.begin())) == [(*KEY, Range(*expected, Reason.RECORDS))]
    assert [one.accepted for one in again.in_flight] == [first]


def test_a_range_that_kafka_has_no_more_is_not_taken_again(cluster: Cluster, make: Callable[..., Planner]) -> None:
    """When the topic-partition ends before the range that was put down, what is there is decided anew."""
    cluster.logs[KEY], cluster.group[KEY], cluster.plans[KEY] = (0, 50), 0, RangePlan(0, 100, "records")
    planner = make()
    assert spans(planner.tick(planner.begin())) == [(*KEY, Range(0, 50, Reason.INTERVAL))]


REPEATED = [(*KEY, Range(0, 100, Reason.RECORDS)), ("items", 0, Range(0, 9, Reason.RECORDS))]


@pytest.mark.parametrize(
    ("offset", "plan", "end", "expected"),
    [
        (0, RangePlan(0, 100, "records"), 150, REPEATED[:1]),
        (0, None, 150, []),
        (0, RangePlan(0, 99, "records"), 150, []),
        (5, RangePlan(0, 100, "records"), 150, []),
        (5, RangePlan(5, 100, "records"), 150, []),
        (0, RangePlan(0, 100, "records"), 99, []),
    ],
)
def test_a_range_is_repeated_if_the_group_has_it_put_down(
    cluster: Cluster,
    make: Callable[..., Planner],
    offset: int,
    plan: RangePlan | None,
    end: int,
    expected: list[object],
) -> None:
    """Of what an earlier run planned counts what stands beside the offset and is there; a reset leaves nothing."""
    cluster.logs[KEY], cluster.group[KEY] = (0, end), offset
    cluster.plans = {} if plan is None else {KEY: plan}
    planner = make()
    planner.begin()
    assert spans(planner.repeated(REPEATED)) == expected


def test_another_instance_is_noticed_before_a_range_is_put_down(cluster: Cluster, make: Callable[..., Planner]) -> None:
    """An older instance whose range falls due right after a newer one started does not write over its offsets."""
    planner = make()
    start = planner.begin()
    planner.tick(start)
    cluster.logs[KEY], cluster.foreign = (0, 200), True
    cluster.calls.clear()
    with pytest.raises(AnotherInstance):
        planner.tick(start)
    assert "recommit" not in cluster.calls


def test_one_request_tells_all_ends(cluster: Cluster, make: Callable[..., Planner]) -> None:
    """However many topic-partitions there are, a tick asks once where they end."""
    cluster.logs = {("orders", p): (0, 0) for p in range(100)}
    planner = make()
    start = planner.begin()
    cluster.calls.clear()
    planner.tick(start)
    assert cluster.calls.count("highs") == 1
    assert len(cluster.calls) == 2


def test_bytes_are_estimated_by_what_was_learned(
    cluster: Cluster, make: Callable[..., Planner], state: SqliteStore
) -> None:
    """Receipts of a topic tell how large its records become, which makes a range due by size."""
    planner = make()
    start = planner.begin()
    planner.tick(start)
    cluster.logs[KEY] = (0, 50)
    assert planner.tick(start) == []
    state.learn("orders", LearnedSchema(None, bytes_per_record=20_000.0))
    assert spans(planner.tick(start)) == [(*KEY, Range(0, 47, Reason.SIZE))]


def test_the_dead_letter_topic_is_there_before_anything_is_signed(
    cluster: Cluster, make: Callable[..., Planner], clock: Clock
) -> None:
    """One that cannot be made ends the start; one whose broker is away is waited for, as for the others."""
    asked: list[float] = []

    def ensure(settings: DeadLetterSettings) -> None:
        assert settings.topic == "dlq"
        asked.append(clock.now())
        if len(asked) == 1:
            raise BrokerAway("away")
        if len(asked) == 3:
            raise KafkaRefused("it cannot be made")

    assert make(ensure_topic=ensure).begin() == {KEY: 0}
    assert asked == []
    make(ensure_topic=ensure).begin(DeadLetterSettings("dlq"))
    assert len(asked) == 2
    cluster.calls.clear()
    with pytest.raises(KafkaRefused):
        make(ensure_topic=ensure).begin(DeadLetterSettings("dlq"))
    assert cluster.calls == []


def test_a_broker_that_goes_away_costs_ticks_only(
    cluster: Cluster, make: Callable[..., Planner], clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """While no broker answers nothing is due, the log says so once in a while, and then all goes on."""
    planner = make()
    start = planner.begin()
    cluster.logs[KEY], cluster.away = (0, 200), 20
    for _ in range(20):
        assert planner.tick(start) == []
        clock.sleep(1)
    assert caplog.text.count("Nothing is lost") == 1
    assert spans(planner.tick(start)) == [(*KEY, Range(0, 200, Reason.RECORDS))]


def test_brokers_that_stay_away_end_the_connector_where_that_is_configured(
    cluster: Cluster, make: Callable[..., Planner], clock: Clock
) -> None:
    """After so long without an answer, and not after as many short absences; nothing would start it again."""
    planner = make(away_ms=10_000)
    start = planner.begin()
    for _ in range(4):
        cluster.away = 6
        for _ in range(6):
            assert planner.tick(start) == []
            clock.sleep(1)
        planner.tick(start)
    cluster.away = 1_000
    for _ in range(10):
        assert planner.tick(start) == []
        clock.sleep(1)
    with pytest.raises(BrokersGone, match=saying("connect.ems.away.timeout.ms", "10000 ms")) as found:
        planner.tick(start)
    assert found.value.reaction.restart is Restart.NEVER


def test_a_drain_waits_for_the_broker(cluster: Cluster, make: Callable[..., Planner]) -> None:
    """Who drains must not be told that nothing is left while no broker answers; it waits, and fails in the end."""
    planner = make()
    start = planner.begin()
    planner.drain()
    cluster.logs[KEY], cluster.away = (0, 50), 20
    assert spans(planner.tick(start)) == [(*KEY, Range(0, 50, Reason.END_OF_INPUT))]
    cluster.away = 10_000
    with pytest.raises(KafkaFailed, match="no answer"):
        planner.tick(start)


def test_a_stop_admits_nothing_more(cluster: Cluster, make: Callable[..., Planner], state: SqliteStore) -> None:
    """Asked to stop, the planner commits what was accepted, takes nothing new, and says that it is done."""
    cluster.logs[KEY] = (0, 200)
    planner = make()
    planner.begin()
    state.set(STOP, True)
    assert planner.tick({KEY: 100}) == []
    assert cluster.group == {KEY: 100}
    assert state.get(DRAINED) is state.get(SETTLED) is True


def test_a_pause_admits_nothing_and_looks_on(
    cluster: Cluster, make: Callable[..., Planner], state: SqliteStore
) -> None:
    """Paused, the planner commits what was accepted and sees what comes; afterwards all of it is due."""
    cluster.logs[KEY] = (0, 200)
    planner = make()
    planner.begin()
    state.set(PAUSE, True)
    assert planner.tick({KEY: 100}) == []
    assert cluster.group == {KEY: 100}
    cluster.logs[KEY] = (0, 400)
    assert planner.tick({}) == []
    assert [one.lag for one in state.progress()] == [300]
    assert state.get(DRAINED) is False
    state.set(PAUSE, False)
    assert [span.start for *_, span in spans(planner.tick({}))] == [100]


def test_slots_are_shared_anew_while_it_runs(
    cluster: Cluster, make: Callable[..., Planner], state: SqliteStore
) -> None:
    """Other connectors come and go: the next micro-batch has as many tasks as it may."""
    planner = make()
    planner.begin()
    state.set(SLOTS, 3)
    assert planner.tasks() == 3
    state.set(SLOTS, 1)
    assert planner.tasks() == 1


def test_the_only_topic_partition_has_long_micro_batches(
    cluster: Cluster, make: Callable[..., Planner], clock: Clock, state: SqliteStore
) -> None:
    """It is worked off in ten seconds of work at a time, with any slots; where there is another, in a second of it."""
    state.set(SLOTS, 4)
    flush = replace(SETTINGS.flush, commit_records=50_000)
    per_record = LearnedSchema(bytes_per_record=0.1)
    state.learn("orders", per_record)
    for others, first, second in (((), 1_000_000, 2_000_000), ((("orders", 1),), 200_000, 100_000)):
        cluster.logs = {KEY: (0, 10**7)} | dict.fromkeys(others, (0, 10**7))
        cluster.group.clear()
        planner = make(flush)
        planner.begin()
        taken = spans(planner.tick({}))
        assert [len(span) for *_, span in taken] == [first] * (1 + len(others))
        clock.seconds += sum(len(span) for *_, span in taken) / 200_000
        taken = spans(planner.tick({(topic, partition): span.end for topic, partition, span in taken}))
        assert [len(span) for *_, span in taken] == [second] * (1 + len(others))


def test_a_full_file_is_seen_between_ticks(
    cluster: Cluster, make: Callable[..., Planner], clock: Clock, state: SqliteStore
) -> None:
    """What is as much as a file, or a stop; nothing while the connector is paused or stopped, or brokers are away."""
    planner = make()
    planner.begin()
    assert planner.tick({}) == []
    before = clock.seconds
    cluster.logs[KEY] = (0, 99)
    assert not planner.fills(0.5)
    assert clock.seconds == before + 0.5
    cluster.logs[KEY] = (0, 100)
    assert planner.fills(0.5)
    for field in (PAUSE, STOP):
        state.set(field, True)
        assert not planner.fills(0.5)
        state.set(field, False)
    cluster.logs[KEY] = (0, 99)
    planner._sleep = lambda seconds: state.set(STOP, True)
    assert planner.fills(0.5)
    planner._sleep = clock.sleep
    state.set(STOP, False)
    cluster.logs[KEY] = (0, 100)
    cluster.away = 1
    assert planner.tick({}) == []
    assert not planner.fills(0.5)
    assert [span.end for *_, span in spans(planner.tick({}))] == [100]
    assert clock.seconds == before + 1.0


@pytest.mark.parametrize(
    ("topic_partitions", "asked"), [(100, "back"), (101, "quick"), (1_000, "quick"), (1_001, None)]
)
def test_many_topic_partitions_are_watched_by_quick_requests(
    cluster: Cluster, make: Callable[..., Planner], topic_partitions: int, asked: str | None
) -> None:
    """A full file among up to a thousand is seen between ticks; of more the next tick sees it."""
    keys = [("orders", partition) for partition in range(topic_partitions)]
    cluster.logs = dict.fromkeys(keys, (0, 0))
    planner = make()
    planner.begin()
    assert planner.tick({}) == []
    cluster.logs[keys[-1]] = (0, 99)
    cluster.leaderless = {keys[0]}
    cluster.calls.clear()
    assert not planner.fills(0.5)
    cluster.logs[keys[-1]] = (0, 100)
    assert planner.fills(0.5) is (asked is not None)
    assert cluster.calls == ([asked] * 2 if asked else [])


def test_a_stop_while_the_broker_is_away_ends_too(
    cluster: Cluster, make: Callable[..., Planner], state: SqliteStore
) -> None:
    """A stop does not wait for a broker that does not answer; the program may have something left to commit."""
    planner = make()
    start = planner.begin()
    state.set(STOP, True)
    cluster.away = 1
    assert planner.tick(start) == []
    assert state.get(DRAINED) is True
    assert state.get(SETTLED) is False


def test_new_topic_partitions_are_read_from_their_first_record(
    cluster: Cluster, make: Callable[..., Planner], clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """What is added while running is found within seconds, and nothing of it is missed even with reset=latest."""
    caplog.set_level(logging.INFO)
    planner = make(offset_reset="latest")
    start = planner.begin()
    cluster.logs["orders", 1] = (0, 5)
    assert planner.tick(start) == []
    clock.sleep(METADATA_S)
    assert spans(planner.tick(start)) == [("orders", 1, Range(0, 5, Reason.INTERVAL))]
    assert cluster.group["orders", 1] == 0
    assert "new topic-partitions orders 1" in caplog.text


def test_how_often_is_looked_is_a_setting(cluster: Cluster, make: Callable[..., Planner], clock: Clock) -> None:
    """`metadata.max.age.ms` says how soon a new topic-partition is found."""
    planner = make(client={"metadata.max.age.ms": "1000"})
    start = planner.begin()
    cluster.calls.clear()
    clock.sleep(1)
    planner.tick(start)
    assert "topic_partitions" in cluster.calls


def test_a_deleted_topic_partition_is_let_go(
    cluster: Cluster, make: Callable[..., Planner], clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """What is gone is named once and neither asked for nor committed again, though a range of it was flushed."""
    cluster.logs["items", 0] = (0, 0)
    planner = make()
    start = planner.begin()
    del cluster.logs["items", 0]
    clock.sleep(METADATA_S)
    for _ in range(3):
        assert planner.tick(start) == []
        clock.sleep(METADATA_S)
    planner.tick({**start, ("items", 0): 9})
    assert cluster.group == {KEY: 0, ("items", 0): 0}
    assert caplog.text.count("is gone") == 1


def test_another_instance_is_looked_for_on_idle_topics_too(
    cluster: Cluster, make: Callable[..., Planner], clock: Clock
) -> None:
    """Without anything to commit the group is still checked every few seconds, not at each tick."""
    planner = make()
    start = planner.begin()
    cluster.calls.clear()
    for _ in range(4):
        clock.sleep(CHECK_S / 4)
        planner.tick(start)
    assert cluster.calls.count("verify") == 1
    cluster.foreign = True
    clock.sleep(CHECK_S)
    with pytest.raises(AnotherInstance):
        planner.tick(start)


def test_offsets_of_idle_topics_are_kept_alive(cluster: Cluster, make: Callable[..., Planner], clock: Clock) -> None:
    """Each hour all offsets are signed again, because Kafka forgets those of a group without members."""
    planner = make()
    start = planner.begin()
    cluster.calls.clear()
    for _ in range(8):
        clock.sleep(RECOMMIT_S / 4)
        planner.tick(start)
    assert cluster.calls.count("recommit") == 2
    assert cluster.group == start


def test_draining_takes_what_was_there_and_nothing_later(cluster: Cluster, make: Callable[..., Planner]) -> None:
    """The first tick of a drain fixes the ends; records that come later are left for another run."""
    cluster.logs[KEY] = (0, 150)
    planner = make()
    start = planner.begin()
    planner.drain()
    assert spans(planner.tick(start)) == [(*KEY, Range(0, 100, Reason.RECORDS))]
    cluster.logs[KEY] = (0, 1_000)
    assert spans(planner.tick({KEY: 100})) == [(*KEY, Range(100, 150, Reason.END_OF_INPUT))]
    assert planner.tick({KEY: 150}) == []
    assert cluster.group == {KEY: 150}


def test_an_offset_beyond_the_last_stable_one_is_no_loss(cluster: Cluster, make: Callable[..., Planner]) -> None:
    """A group that read uncommitted records stands beyond the last stable offset; it waits, and nothing is told."""
    cluster.logs[KEY], cluster.highest[KEY], cluster.group[KEY] = (0, 50), 80, 70
    planner = make()
    assert planner.begin() == {KEY: 70}
    assert planner.tick({KEY: 70}) == []


def test_a_topic_made_anew_stops(cluster: Cluster, make: Callable[..., Planner], state: SqliteStore) -> None:
    """When a topic-partition suddenly ends below where we stand, the connector stops and says why."""
    cluster.logs[KEY], cluster.group[KEY] = (0, 100), 100
    planner = make()
    start = planner.begin()
    cluster.logs[KEY] = (0, 5)
    with pytest.raises(OffsetsLost, match="deleted and recreated"):
        planner.tick(start)
    assert cluster.group == {KEY: 100}
    assert losses(state) == []


def test_a_topic_made_anew_begins_again_if_loss_is_accepted(
    cluster: Cluster, make: Callable[..., Planner], state: SqliteStore
) -> None:
    """With CONTINUE the group is set to the new beginning, and a new start of the query goes on from there.

    How much the former topic held from there on nobody knows: the event has the offset alone, and comes once.
    """
    cluster.logs[KEY], cluster.group[KEY] = (0, 100), 100
    planner = make(lost_offsets="CONTINUE")
    start = planner.begin()
    cluster.logs[KEY] = (0, 5)
    with pytest.raises(KafkaFailed, match="Going on at 0") as found:
        planner.tick(start)
    assert found.value.topic_partition == KEY
    assert make(lost_offsets="CONTINUE").begin() == {KEY: 0}
    assert losses(state) == [(100, 100, "recreated")]


def test_how_things_stand_is_told_when_it_changed(
    cluster: Cluster, make: Callable[..., Planner], state: SqliteStore
) -> None:
    """Lag and age of each topic-partition are left for the live view."""
    planner = make()
    start = planner.begin()
    planner.tick(start)
    (watch,) = state.progress()
    assert (watch.topic, watch.partition, watch.lag, watch.oldest_ms) == ("orders", 0, 0, None)
    cluster.logs[KEY] = (0, 30)
    planner.tick(start)
    (watch,) = state.progress()
    assert (watch.lag, watch.oldest_ms) == (30, 1_000_000_000)


def test_closing_closes_the_client(cluster: Cluster, make: Callable[..., Planner]) -> None:
    """The connection to the group's coordinator is given back."""
    make().close()
    assert cluster.calls == ["close"]


def test_names_are_sorted() -> None:
    """A log line lists topic-partitions in order."""
    assert named({("b", 1): 0, ("a", 2): 0}) == "a 2, b 1"


def owing(state: SqliteStore, until: int, wait_s: float, attempts: int = 1) -> None:
    """The sink's word on the range [0, 100): accepted in part, the rest to be tried again."""
    state.record_accepted([Accepted(*KEY, until, 0, 100, "records", Again(Tries(attempts, 5.0), wait_s))])


def test_what_must_wait_is_tried_again_when_its_time_has_come(
    cluster: Cluster, state: SqliteStore, make: Callable[..., Planner], clock: Clock
) -> None:
    """A range comes again as a whole, with what was accepted, the attempts so far and what was known at first."""
    state.learn("orders", LearnedSchema(b"then", 1.0, 1.0))
    planner = make()
    planner.begin()
    cluster.logs[KEY] = (0, 100)
    (first,) = planner.tick({})
    assert (first.accepted, first.known.schema) == (0, b"then")
    state.learn("orders", LearnedSchema(b"later", 1.0, 1.0))
    owing(state, 40, 8.0)
    assert planner.tick({KEY: 100}) == []
    assert cluster.group[KEY] == 40, "what was accepted is committed"
    assert cluster.plans[KEY] == RangePlan(0, 100, "records"), "and beside it stands the whole range"
    assert planner.tasks() == 1
    clock.sleep(7.9)
    assert planner.tick({KEY: 100}) == []
    clock.sleep(0.2)
    (second,) = planner.tick({KEY: 100})
    assert (second.start, second.end, second.accepted, second.known.schema) == (0, 100, 40, b"then")
    assert second.tries.attempts == 1
    assert second.tries.elapsed_s == pytest.approx(5.0 + 8.1)
    state.record_accepted([Accepted(*KEY, 100, 0, 100, "records")])
    assert planner.tick({KEY: 100}) == []
    assert (cluster.group[KEY], planner.tasks()) == (100, None)


def test_a_pause_takes_no_time_from_what_is_tried_again(
    cluster: Cluster, state: SqliteStore, make: Callable[..., Planner], clock: Clock
) -> None:
    """An hour's pause does not use up how long a target may be away."""
    planner = make()
    planner.begin()
    cluster.logs[KEY] = (0, 100)
    planner.tick({})
    owing(state, 40, 8.0)
    state.set(PAUSE, True)
    planner.tick({KEY: 100})
    clock.sleep(3_600)
    assert planner.tick({KEY: 100}) == []
    state.set(PAUSE, False)
    clock.sleep(1)
    (again,) = planner.tick({KEY: 100})
    assert (again.start, again.end, again.accepted) == (0, 100, 40)
    assert again.tries.elapsed_s == pytest.approx(6.0)


def test_other_topic_partitions_go_on_while_one_waits(
    cluster: Cluster, state: SqliteStore, make: Callable[..., Planner]
) -> None:
    """A file that must wait holds up its own topic-partition and no other; it gets no newer files meanwhile."""
    other = ("orders", 1)
    cluster.logs[other] = (0, 0)
    planner = make()
    planner.begin()
    cluster.logs[KEY] = (0, 100)
    planner.tick({})
    owing(state, 0, 60.0)
    cluster.logs[KEY], cluster.logs[other] = (0, 900), (0, 100)
    (taken,) = planner.tick({KEY: 100})
    assert (taken.topic, taken.partition, taken.start, taken.end) == (*other, 0, 100)
    assert planner.tick({other: 100}) == []
    assert (cluster.group[KEY], cluster.group[other]) == (0, 100)


def test_a_stop_does_not_wait_for_what_is_owed(
    cluster: Cluster, state: SqliteStore, make: Callable[..., Planner]
) -> None:
    """Once told to stop nothing is tried again: what was accepted is committed, with the range beside it."""
    planner = make()
    planner.begin()
    cluster.logs[KEY] = (0, 100)
    planner.tick({})
    owing(state, 40, 0.0)
    state.set(STOP, True)
    assert planner.tick({KEY: 100}) == []
    assert state.get(DRAINED)
    assert (cluster.group[KEY], cluster.plans[KEY]) == (40, RangePlan(0, 100, "records"))


def test_a_drain_waits_for_what_is_owed(
    cluster: Cluster, state: SqliteStore, make: Callable[..., Planner], clock: Clock
) -> None:
    """`--until-caught-up` is not caught up while a file must be tried again."""
    cluster.logs[KEY] = (0, 100)
    planner = make()
    planner.begin()
    planner.drain()
    planner.tick({})
    owing(state, 0, 30.0)
    before = clock.seconds
    (again,) = planner.tick({KEY: 100})
    assert (again.start, again.end) == (0, 100)
    assert clock.seconds - before >= 30.0


def test_a_range_that_was_cut_off_comes_again_at_the_next_start(
    cluster: Cluster, state: SqliteStore, make: Callable[..., Planner]
) -> None:
    """After a crash the group says which range and how far, and the state file what was known then."""
    state.learn("orders", LearnedSchema(b"then"))
    planner = make()
    planner.begin()
    cluster.logs[KEY] = (0, 100)
    planner.tick({})
    owing(state, 40, 60.0)
    planner.tick({KEY: 100})
    state.learn("orders", LearnedSchema(b"later"))
    state.clear_for_restart()
    following = make()
    following.begin()
    (again,) = following.tick({})
    assert (again.start, again.end, again.accepted, again.known) == (0, 100, 40, LearnedSchema(b"then"))


def test_other_settings_cut_the_rest_anew(cluster: Cluster, state: SqliteStore, make: Callable[..., Planner]) -> None:
    """What was put down under other settings cannot be made again: only what is not accepted yet is sent."""
    planner = make()
    planner.begin()
    cluster.logs[KEY] = (0, 100)
    planner.tick({})
    owing(state, 40, 60.0)
    planner.tick({KEY: 100})
    state.clear_for_restart()
    following = make(FlushSettings(1_000_000, 50, 2_000))
    following.begin()
    (again,) = following.tick({})
    assert (again.start, again.end, again.accepted) == (40, 100, 40)


def test_ranges_and_commits_are_events(
    cluster: Cluster, make: Callable[..., Planner], clock: Clock, state: SqliteStore
) -> None:
    """Each range that is planned, then each offset that is committed, once; an idle tick tells nothing."""
    cluster.logs[KEY] = (0, 150)
    planner = make()
    planner.tick(planner.begin())
    told = state.events_after(0)
    assert told.events == (RangePlanned("orders", clock.seconds, *KEY, 0, 100, "records"),)
    clock.sleep(1)
    cluster.logs[KEY] = (0, 100)
    planner.tick({KEY: 100})
    planner.tick({})
    assert state.events_after(told.position).events == (OffsetCommitted("orders", clock.seconds, *KEY, 100),)


def test_without_a_lease_nothing_is_admitted(
    cluster: Cluster, make: Callable[..., Planner], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """While it is over the planner commits and looks on, as in a pause; that is told once, and that it goes on."""
    lease = LeaseFile(str(tmp_path / "lease"))
    cluster.logs[KEY] = (0, 200)
    planner = make(owned=Ownership(lease=lease.path))
    planner.begin()
    assert planner.tick({KEY: 100}) == []
    assert planner.tick({KEY: 100}) == []
    assert cluster.group == {KEY: 100}
    assert len(caplog.messages) == 1
    assert_says(caplog.text, "nothing more is begun", "lease is over")
    lease.write(clock_ns() + 60_000_000_000)
    assert [span.start for *_, span in spans(planner.tick({}))] == [100]
    assert "goes on again" in caplog.messages[-1]
