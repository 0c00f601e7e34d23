"""Flushes that somebody asked for, in the planner: taken at once, followed to the commit, and over restarts."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from parquet_sink.files.rotation import Reason
from parquet_sink.kafka.settings import FlushSettings
from parquet_sink.model.flushes import FlushBounds, FlushProgress, FlushRequest, progress_from_json, requests_to_json
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.planner.admission import Range
from parquet_sink.planner.planner import CHECK_S, Planner
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import FLUSH, FLUSHED, PAUSE
from tests.factories import Clock
from tests.planner.planner_cluster import KEY, SETTINGS, Cluster, Reported, planner_on, spans

OTHER = ("orders", 1)
SLOW = FlushSettings(1_000_000, 100, 3_600_000)


@pytest.fixture
def make(cluster: Cluster, clock: Clock, state: SqliteStore) -> Callable[[], Planner]:
    """Planners with an interval of an hour."""
    return lambda: planner_on(
        cluster,
        replace(SETTINGS, flush=SLOW),
        state,
        clock,
        Reported,
        ensure_topic=lambda settings: None,
    )


def ask(state: SqliteStore, *requests: FlushRequest) -> None:
    """As the program does it."""
    state.set(FLUSH, requests_to_json(requests))


def begun(cluster: Cluster, make: Callable[[], Planner], **ends: int) -> Planner:
    """One that has looked at empty topic-partitions, to which records come now: ends by number."""
    keys = {("orders", int(name.removeprefix("p"))): end for name, end in ends.items()}
    cluster.logs |= dict.fromkeys(keys, (0, 0))
    planner = make()
    assert planner.tick(planner.begin()) == []
    cluster.logs |= {key: (0, end) for key, end in keys.items()}
    return planner


def stands(state: SqliteStore, name: str = "a") -> dict[PartitionKey, tuple[int, int | None, int, bool]]:
    """Start, end, how far it got, and whether it is gone, of each topic-partition of a flush."""
    (found,) = [one for one in progress_from_json(state.get(FLUSHED) or "[]") if one.id == name]
    return {one.key: (one.start, one.until, one.reached, one.gone) for one in found.partitions}


def is_open(state: SqliteStore, name: str = "a") -> bool:
    """Whether something of a flush has yet to go out."""
    (found,) = [one for one in progress_from_json(state.get(FLUSHED) or "[]") if one.id == name]
    return found.open


def test_what_waits_goes_out_and_what_comes_later_waits(
    cluster: Cluster, make: Callable[[], Planner], state: SqliteStore
) -> None:
    """Nothing is due by itself; asked for, all is, and it is done once it is committed."""
    planner = begun(cluster, make, p0=7)
    assert planner.tick({}) == []
    ask(state, FlushRequest("a"))
    assert spans(planner.tick({})) == [(*KEY, Range(0, 7, Reason.REQUEST))]
    assert stands(state) == {KEY: (0, 7, 0, False)}
    assert cluster.plans[KEY].reason == "request"
    cluster.logs[KEY] = (0, 9)
    assert planner.tick({KEY: 7}) == []
    assert (cluster.group[KEY], stands(state), is_open(state)) == (7, {KEY: (0, 7, 7, False)}, False)


def test_nothing_that_waits_is_done_at_once(cluster: Cluster, make: Callable[[], Planner], state: SqliteStore) -> None:
    """At the tick that sees the request; without a file."""
    planner = make()
    ask(state, FlushRequest("a"))
    assert planner.tick(planner.begin()) == []
    assert (stands(state), is_open(state)) == ({KEY: (0, 0, 0, False)}, False)


def test_only_what_is_named_goes_out(cluster: Cluster, make: Callable[[], Planner], state: SqliteStore) -> None:
    """Of one topic-partition; one that is not there is gone, and holds nothing up."""
    planner = begun(cluster, make, p0=7, p1=3)
    ask(state, FlushRequest("a", (OTHER, ("none", 0))))
    assert spans(planner.tick({})) == [(*OTHER, Range(0, 3, Reason.REQUEST))]
    planner.tick({OTHER: 3})
    assert stands(state) == {OTHER: (0, 3, 3, False), ("none", 0): (0, None, 0, True)}
    assert not is_open(state)


def test_twice_at_once_is_sent_once(cluster: Cluster, make: Callable[[], Planner], state: SqliteStore) -> None:
    """Both are done by the same range; one that is asked for during it has what came meanwhile."""
    planner = begun(cluster, make, p0=7)
    ask(state, FlushRequest("a"), FlushRequest("b"))
    assert spans(planner.tick({})) == [(*KEY, Range(0, 7, Reason.REQUEST))]
    cluster.logs[KEY] = (0, 9)
    ask(state, FlushRequest("a"), FlushRequest("b"), FlushRequest("c"))
    assert spans(planner.tick({KEY: 7})) == [(*KEY, Range(7, 9, Reason.REQUEST))]
    assert [is_open(state, name) for name in "abc"] == [False, False, True]
    planner.tick({KEY: 9})
    assert [stands(state, name)[KEY][1] for name in "abc"] == [7, 7, 9]


def test_a_pause_holds_it(cluster: Cluster, make: Callable[[], Planner], state: SqliteStore) -> None:
    """Nothing goes out while paused; afterwards it does."""
    planner = begun(cluster, make, p0=7)
    state.set(PAUSE, True)
    ask(state, FlushRequest("a"))
    assert planner.tick({}) == []
    assert is_open(state)
    state.set(PAUSE, False)
    assert spans(planner.tick({})) == [(*KEY, Range(0, 7, Reason.REQUEST))]


def test_another_query_goes_on_with_it(cluster: Cluster, make: Callable[[], Planner], state: SqliteStore) -> None:
    """The range in flight comes again as the same; the request keeps the ends that it found."""
    planner = begun(cluster, make, p0=7)
    ask(state, FlushRequest("a"))
    first = planner.tick({})
    cluster.logs[KEY] = (0, 50)
    again = make()
    second = again.tick(again.begin())
    assert spans(second) == spans(first) == [(*KEY, Range(0, 7, Reason.REQUEST))]
    assert [one.known for one in second] == [one.known for one in first]
    again.tick({KEY: 7})
    assert (stands(state), is_open(state)) == ({KEY: (0, 7, 7, False)}, False)


def test_without_its_request_a_range_comes_again_as_it_was(
    cluster: Cluster, make: Callable[[], Planner], state: SqliteStore
) -> None:
    """A program that was killed forgets the request, not the range that it had begun: its files are the same."""
    planner = begun(cluster, make, p0=7)
    ask(state, FlushRequest("a"))
    first = planner.tick({})
    state.begin_run()
    cluster.logs[KEY] = (0, 50)
    again = make()
    second = again.tick(again.begin())
    assert [(one.start, one.end, one.reason, one.known) for one in second] == [
        (one.start, one.end, one.reason, one.known) for one in first
    ]
    assert again.in_flight == second


def test_a_topic_partition_that_is_away_keeps_it_open(
    cluster: Cluster, make: Callable[[], Planner], state: SqliteStore, clock: Clock
) -> None:
    """What waits there is not known until it is back; the others go out meanwhile."""
    planner = begun(cluster, make, p0=7, p1=3)
    cluster.leaderless.add(OTHER)
    ask(state, FlushRequest("a"))
    assert spans(planner.tick({})) == [(*KEY, Range(0, 7, Reason.REQUEST))]
    planner.tick({KEY: 7})
    assert (stands(state)[OTHER][1], is_open(state)) == (None, True)
    cluster.leaderless.clear()
    found = []
    for _ in range(20):
        clock.sleep(CHECK_S)
        found += spans(planner.tick({}))
    assert found[0] == (*OTHER, Range(0, 3, Reason.REQUEST))


def test_a_topic_that_was_made_anew_ends_it() -> None:
    """Its offsets begin again, so the end that was noted is another topic's."""
    one = FlushProgress("a", (FlushBounds(*KEY, 5, 9, 6),))
    assert one.noted({KEY: 20}, {KEY: 0}).partitions[0].gone
    assert one.noted({KEY: 8}, {KEY: 6}).partitions[0].gone
    assert one.without(KEY).open is False
    done = one.noted({KEY: 20}, {KEY: 9})
    assert (done.open, done.without(KEY)) == (False, done)
