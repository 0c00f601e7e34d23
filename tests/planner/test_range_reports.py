"""What the sink reports of a micro-batch is all that makes its ranges done."""

from collections.abc import Callable

import pytest

from parquet_sink.errors import RunFilesLost
from parquet_sink.kafka.group.committed import RangePlan
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import NO_TRIES, Accepted, Again, LearnedSchema, PlannedRange
from parquet_sink.planner.planner import Planner
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import PAUSE
from tests.factories import Clock
from tests.messages import saying
from tests.planner.planner_cluster import KEY, SETTINGS, Cluster, done, planner_on

OTHER: PartitionKey = ("orders", 1)
Make = Callable[..., Planner]


@pytest.fixture
def cluster() -> Cluster:
    """Two topic-partitions, each with a full file."""
    made = Cluster()
    made.logs = {KEY: (0, 100), OTHER: (0, 100)}
    return made


@pytest.fixture
def make(cluster: Cluster, state: SqliteStore) -> Make:
    """Makes planners that have begun."""
    clock = Clock(1_000_000.0)

    def made(*, reported: bool = True) -> Planner:
        asked = planner_on(cluster, SETTINGS, state, clock, reported=reported)
        asked.begin()
        return asked

    return made


def ends(due: list[PlannedRange]) -> dict[PartitionKey, int]:
    """As Spark names the micro-batch when it is over."""
    return {(one.topic, one.partition): one.end for one in due}


def told(of: PlannedRange, until: int, again: Again | None = None, **other: int) -> Accepted:
    """A report of a range."""
    start, end = other.get("start", of.start), other.get("end", of.end)
    return Accepted(of.topic, of.partition, until, start, end, of.reason, again)


REPORTS: dict[str, Callable[[PlannedRange], Accepted]] = {
    "it failed": lambda of: told(of, of.start + 30),
    "of another range": lambda of: told(of, of.end, start=of.start + 1),
    "of another end": lambda of: told(of, of.end - 1, end=of.end - 1),
}


@pytest.mark.parametrize("report", ["none", *REPORTS])
def test_what_is_not_reported_as_done_is_not_done(
    make: Make, cluster: Cluster, state: SqliteStore, report: str
) -> None:
    """The query ends with a named cause, nothing is committed, and the next one repeats the same ranges."""
    asked = make()
    due = asked.tick({})
    if report != "none":
        state.record_accepted([done(due[0]), REPORTS[report](due[1])])
    with pytest.raises(RunFilesLost, match=saying("Topic orders, topic-partition", "connect.ems.tmp.dir")):
        asked.tick(ends(due))
    assert cluster.group == {KEY: 0, OTHER: 0}
    state.clear_for_restart()
    assert ends(make().tick({})) == ends(due)


def test_a_report_of_the_attempt_before_is_none_of_this_one(make: Make, state: SqliteStore) -> None:
    """A range that is tried again is not done, nor pending, by what was said of it the last time."""
    asked = make()
    due = asked.tick({})
    state.record_accepted([done(due[0]), told(due[1], 40, Again(NO_TRIES, 0.0))])
    again = asked.tick(ends(due))
    assert [(one.start, one.accepted) for one in again] == [(0, 40)]
    with pytest.raises(RunFilesLost, match="offsets 0 to 99") as found:
        asked.tick(ends(again))
    assert found.value.topic_partition == (again[0].topic, again[0].partition)


def test_a_program_may_leave_ranges_out(make: Make, cluster: Cluster, state: SqliteStore) -> None:
    """A PySpark program that filters the rows of some topic-partitions passes over these: the others are reported."""
    asked = make()
    due = asked.tick({})
    state.record_accepted([done(due[0])])
    assert asked.tick(ends(due)) == []
    assert cluster.group == {KEY: 100, OTHER: 100}


def test_where_no_sink_reports_the_micro_batch_counts(make: Make, cluster: Cluster) -> None:
    """A program that reads records gives them to a sink of its own, of which nothing is known."""
    asked = make(reported=False)
    assert asked.tick(ends(asked.tick({}))) == []
    assert cluster.group == {KEY: 100, OTHER: 100}


def spans_of(due: list[PlannedRange]) -> list[tuple[int, int, int]]:
    """Start, end, and what is accepted of each."""
    return [(one.start, one.end, one.accepted) for one in due]


@pytest.fixture
def one(cluster: Cluster, state: SqliteStore) -> Cluster:
    """One topic-partition with a full file and a bit, of which something is known."""
    cluster.logs = {KEY: (0, 130)}
    state.learn("orders", LearnedSchema(b"then", 1.0))
    return cluster


@pytest.mark.parametrize("accepted", [0, 20])
def test_a_range_that_must_end_earlier_is_put_down_before_it_is_sent(
    make: Make, one: Cluster, state: SqliteStore, accepted: int
) -> None:
    """It comes again with its knowledge, as after a crash; its rest is planned by itself, at once."""
    asked = make()
    due = asked.tick({})
    assert spans_of(due) == [(0, 100, 0)]
    state.learn("orders", LearnedSchema(b"later", 2.0))
    state.record_accepted([told(due[0], accepted, Again(NO_TRIES, 0.0, (0, 50)))])
    before = asked.tick(ends(due))
    assert spans_of(before) == [(0, 50, accepted)]
    assert before[0].known == LearnedSchema(b"then", 1.0)
    assert (one.group[KEY], one.plans[KEY]) == (accepted, RangePlan(0, 50, "records"))
    after_crash = make().tick({})
    assert spans_of(after_crash) == [(0, 50, accepted)]
    assert after_crash[0].known == LearnedSchema(b"then", 1.0)
    asked = make()
    due = asked.tick({})
    state.record_accepted([done(due[0])])
    asked.tick(ends(due))
    assert one.group[KEY] == 50


def test_the_rest_of_a_range_that_ended_earlier_is_due_at_once(make: Make, one: Cluster, state: SqliteStore) -> None:
    """What stopped it is met by the next micro-batch, with nothing before it."""
    asked = make()
    due = asked.tick({})
    state.record_accepted([told(due[0], 50, Again(NO_TRIES, 0.0, (0, 50)))])
    rest = asked.tick(ends(due))
    assert spans_of(rest) == [(50, 100, 50)], "all before it was accepted already"
    assert (one.group[KEY], one.plans[KEY]) == (50, RangePlan(50, 100, "records"))
    state.record_accepted([told(rest[0], 50, Again(NO_TRIES, 0.0, (50, 70)))])
    before = asked.tick(ends(rest))
    assert spans_of(before) == [(50, 70, 50)]
    state.record_accepted([done(before[0])])
    assert spans_of(asked.tick(ends(before))) == [(70, 100, 70)]


def test_a_rest_that_cannot_be_the_same_is_planned_as_a_new_range(make: Make, one: Cluster, state: SqliteStore) -> None:
    """It begins where what is accepted ends, with what is known now; a lost tick passes over nothing of it."""
    one.group[KEY], one.plans[KEY] = 40, RangePlan(0, 100, "records")
    state.record_planned([PlannedRange("orders", 0, 0, 100, "records")], SETTINGS.fingerprint)
    asked = make()
    due = asked.tick({})
    assert spans_of(due) == [(0, 100, 40)]
    state.learn("orders", LearnedSchema(b"later", 2.0))
    state.record_accepted([told(due[0], 40, Again(NO_TRIES, 0.0, (40, 100)))])
    one.away = 1
    assert asked.tick(ends(due)) == []
    state.set(PAUSE, True)
    assert asked.tick(ends(due)) == []
    assert one.group[KEY] == 40
    state.set(PAUSE, False)
    rest = asked.tick(ends(due))
    assert spans_of(rest) == [(40, 100, 40)]
    assert rest[0].known == LearnedSchema(b"later", 2.0)
    assert (one.group[KEY], one.plans[KEY]) == (40, RangePlan(40, 100, "records"))
    state.learn("orders", LearnedSchema(b"even later", 3.0))
    again = make().tick({})
    assert spans_of(again) == [(40, 100, 40)]
    assert again[0].known == LearnedSchema(b"later", 2.0)


def test_a_range_that_was_put_down_by_an_earlier_run_may_have_been_sent(
    make: Make, one: Cluster, state: SqliteStore
) -> None:
    """Nobody told what became of its files, whether they come out the same or not; what comes after it is new."""
    one.group[KEY], one.plans[KEY] = 10, RangePlan(10, 100, "records")
    asked = make()
    due = asked.tick({})
    assert [(one.start, one.end, one.repeated) for one in due] == [(10, 100, True)]
    one.logs[KEY] = (0, 300)
    state.record_accepted([done(due[0])])
    due = asked.tick(ends(due))
    assert [(one.start, one.repeated) for one in due] == [(100, False)]
