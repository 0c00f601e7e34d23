"""A topic that is deleted and recreated at any moment: nothing of the new one is passed over; with fake clients."""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, Uuid
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.addons.file_sink.settings import FileSinkSettings
from parquet_sink.errors import AnotherInstance, BrokerAway, KafkaFailed, OffsetsLost, TopicGone
from parquet_sink.kafka.cluster.cluster import KafkaCluster
from parquet_sink.kafka.group.committed import Committed, RangePlan, commit_metadata
from parquet_sink.model.events import OffsetsPassedOver, TopicsMissing
from parquet_sink.model.instance import Instance
from parquet_sink.model.ranges import Accepted
from parquet_sink.planner.discovery import METADATA_S, MISSING_LOG_S
from parquet_sink.planner.planner import CHECK_S, RECOMMIT_S
from parquet_sink.planner.start_offsets import is_another_topic
from parquet_sink.planner.unavailable import ASK_S
from parquet_sink.settings.record_sink import DeliverySettings, RecordSinkSettings
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import COMING
from tests.factories import Clock
from tests.kafka.simulation import (
    KAFKA,
    KEY,
    ME,
    SETTINGS,
    WATCHFUL,
    Cluster,
    Query,
    at_once,
    count_as_very_many,
    done,
    id_of,
    planner_on,
)
from tests.messages import assert_says, saying
from tests.thorough import FIXTURES_SHARED, examples

RECREATED = ("deleted and recreated", "connect.ems.lost.offsets.policy=CONTINUE", "reset the group's offset")


@pytest.fixture
def cluster() -> Cluster:
    """A cluster with one topic of 10 records."""
    made = Cluster()
    made.make("orders", 10)
    return made


@pytest.fixture
def query(cluster: Cluster, state: SqliteStore) -> Query:
    """A query that delivered what there is, and waits."""
    made = Query(cluster, state, Clock(1_000_000.0))
    made.tick()
    made.tick()
    return made


@pytest.fixture
def accepting(cluster: Cluster, state: SqliteStore) -> Query:
    """The same with lost.offsets.policy=CONTINUE."""
    made = Query(cluster, state, Clock(1_000_000.0), lost_offsets="CONTINUE")
    made.tick()
    made.tick()
    return made


def due_range(query: Query) -> None:
    """Ticks until what waits now is old enough."""
    for _ in range(4):
        query.tick()


def due_and_committed(query: Query) -> None:
    """Ticks until what waits now is delivered, and its end committed."""
    for _ in range(8):
        query.tick()


def test_every_commit_names_its_topic(cluster: Cluster, query: Query) -> None:
    """Offsets claimed, put down with a range, and committed carry the topic's id, in Kafka's own spelling."""
    assert (cluster.stands().offset, cluster.stands().topic_id) == (10, "AAAAAAAAAAAAAAAAAAAAAQ")
    assert query.planner._plans._context.ids.by_topic == {"orders": "AAAAAAAAAAAAAAAAAAAAAQ"}


def test_an_offset_of_another_topic_stops_the_start(cluster: Cluster, state: SqliteStore) -> None:
    """A topic made anew while the connector was stopped, whose old offset Kafka kept, is named and not passed over."""
    cluster.stand(5, "another")
    with pytest.raises(OffsetsLost, match=saying("topic-partition 0:", "offset 5", *RECREATED)):
        Query(cluster, state, Clock(1_000_000.0))
    assert cluster.stands().topic_id == "another"


def test_an_offset_of_another_topic_is_passed_over_if_loss_is_accepted(
    cluster: Cluster, state: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    """With CONTINUE reading begins at the new topic's first record, and what was being flushed is forgotten."""
    cluster.stand(5, "another", RangePlan(0, 9, "records"))
    query = Query(cluster, state, Clock(1_000_000.0), lost_offsets="CONTINUE")
    assert query.start == {KEY: 0}
    assert "was deleted and recreated" in caplog.text
    assert (cluster.stands().topic_id, cluster.stands().plan) == (cluster.id(), None)


@pytest.mark.parametrize("signed", ["", '{"by": "parquet-sink", "id": "a"}', commit_metadata(ME)])
def test_an_offset_that_names_no_topic_is_believed(cluster: Cluster, state: SqliteStore, signed: str) -> None:
    """An operator's reset, Kafka Connect and earlier versions write no id: the offset counts for the topic there is."""
    cluster.offsets[KEY] = (5, signed)
    assert Query(cluster, state, Clock(1_000_000.0)).start == {KEY: 5}
    assert cluster.stands().topic_id == cluster.id()


def test_a_forgotten_offset_is_a_new_topic(cluster: Cluster, query: Query) -> None:
    """When Kafka forgot the offset together with the topic, the next start reads the new one from its first record."""
    cluster.remake(12)
    assert Query(cluster, query.state, Clock(1_000_000.0)).start == {KEY: 0}


@pytest.mark.parametrize("forget", [True, False])
@pytest.mark.parametrize("call", ["ends", "ids", "read", "commit"])
@pytest.mark.parametrize("count", [3, 10, 20, 35])
def test_made_anew_before_a_range_is_taken(cluster: Cluster, query: Query, call: str, count: int, forget: bool) -> None:
    """Whichever request of a tick it comes before, no range of the new topic is taken at an offset of the old one."""
    cluster.topics["orders"].count = 30
    cluster.between[call] = lambda: cluster.remake(count, forget=forget)
    with pytest.raises((OffsetsLost, KafkaFailed), match="orders"):
        due_and_committed(query)
    if KEY in cluster.offsets:
        assert cluster.stands().topic_id != cluster.id()
    cluster.forget("orders")
    again = Query(cluster, query.state, Clock(1_000_000.0))
    due_range(again)
    assert {(cluster.topics["orders"].number, offset) for offset in range(count)} <= again.delivered


def test_made_anew_before_the_ends_are_asked(cluster: Cluster, query: Query) -> None:
    """The loss of CI: ten records delivered, the new topic has twenty, Kafka kept the offset; nothing is taken."""
    cluster.remake(20, forget=False)
    with pytest.raises(OffsetsLost, match=saying("topic-partition 0:", "offset 10", *RECREATED)):
        due_range(query)
    assert (cluster.stands().offset, len(query.delivered)) == (10, 10)


def test_made_anew_during_the_flush(cluster: Cluster, query: Query) -> None:
    """A range of the old topic that read the new one's records is not committed."""
    cluster.topics["orders"].count = 30
    cluster.between["fetch"] = lambda: cluster.remake(40, forget=False)
    with pytest.raises(OffsetsLost, match=saying("topic-partition 0:", "offset 30", *RECREATED)):
        due_range(query)
    assert cluster.stands().offset == 10
    assert (2, 15) in query.delivered


def test_made_anew_between_the_look_and_the_commit(cluster: Cluster, accepting: Query) -> None:
    """A commit that came too late carries the old topic's id, so the next look finds it."""
    cluster.topics["orders"].count = 30
    while KEY not in accepting.tick():
        pass
    cluster.between["commit"] = lambda: cluster.remake(40, forget=False)
    accepting.tick()
    assert (cluster.stands().offset, cluster.stands().topic_id != cluster.id()) == (30, True)
    with pytest.raises(KafkaFailed, match=saying("Going on", "first record")):
        due_range(accepting)
    assert (cluster.stands().offset, cluster.stands().topic_id) == (0, cluster.id())
    accepting.again()
    due_range(accepting)
    assert {(2, offset) for offset in range(40)} <= accepting.delivered


@pytest.mark.parametrize("count", [3, 40])
def test_what_was_accepted_of_the_old_topic_is_forgotten(cluster: Cluster, accepting: Query, count: int) -> None:
    """After a failure the program commits what was accepted; nothing of that may end up beside the new topic."""
    accepting.state.record_accepted([Accepted(*KEY, 10, 0, 10, "interval"), Accepted("items", 0, 7, 0, 9, "interval")])
    cluster.remake(count)
    with pytest.raises(KafkaFailed, match=saying("deleted and recreated", "Going on", "first record")):
        due_range(accepting)
    assert [one.topic for one in accepting.state.accepted()] == ["items"]
    assert (cluster.stands().offset, cluster.stands().topic_id) == (0, cluster.id())


def test_made_anew_with_as_many_records(cluster: Cluster, query: Query) -> None:
    """A new topic that ends where the old one did has nothing due; it is found within seconds all the same."""
    cluster.remake(10)
    query.tick()
    query.clock.sleep(CHECK_S)
    with pytest.raises(OffsetsLost, match="recreated"):
        query.tick()


@pytest.mark.parametrize("forget", [True, False])
def test_made_anew_among_very_many(
    cluster: Cluster, query: Query, monkeypatch: pytest.MonkeyPatch, forget: bool
) -> None:
    """The same, though ids are asked for less often, whether Kafka forgot the old topic's offset by then or not."""
    count_as_very_many(monkeypatch)
    query.tick()
    cluster.remake(10, forget=forget)
    assert query.tick() == []
    assert cluster.calls[-1] == "quick"
    query.clock.sleep(METADATA_S)
    with pytest.raises(OffsetsLost, match="recreated"):
        query.tick()


def test_made_anew_before_the_hourly_renewal(cluster: Cluster, query: Query) -> None:
    """Renewing all offsets does not write old ones beside a new topic."""
    query.planner._discovery._looked = query.clock.now() + RECOMMIT_S
    cluster.remake(10)
    query.clock.sleep(RECOMMIT_S)
    query.planner._monitor._checked = query.clock.now() + 1
    with pytest.raises(OffsetsLost, match="recreated"):
        query.tick()
    assert KEY not in cluster.offsets


def test_a_drain_looks_before_it_says_that_nothing_is_left(cluster: Cluster, query: Query) -> None:
    """A topic made anew with as many records is not taken for one that is delivered."""
    cluster.remake(10)
    query.planner.drain()
    with pytest.raises(OffsetsLost, match="recreated"):
        query.tick()


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_seen_gone_and_there_again(cluster: Cluster, state: SqliteStore, reset: Any) -> None:
    """A topic that comes back is read from its first record, without a new start of the query."""
    cluster.make("items", 0)
    query = Query(cluster, state, Clock(1_000_000.0), **WATCHFUL, offset_reset=reset)
    due_and_committed(query)
    cluster.delete("orders")
    query.tick()
    assert "orders" not in query.planner._plans._context.ids.by_topic
    cluster.make("orders", 20)
    due_and_committed(query)
    assert {(cluster.topics["orders"].number, offset) for offset in range(20)} <= query.delivered
    assert (cluster.stands().offset, cluster.stands().topic_id) == (20, cluster.id())


def test_seen_gone_and_there_again_with_its_old_offset(cluster: Cluster, state: SqliteStore) -> None:
    """When Kafka kept the old topic's offset the loss is named."""
    query = Query(cluster, state, Clock(1_000_000.0), **WATCHFUL)
    cluster.delete("orders", forget=False)
    query.tick()
    cluster.make("orders", 20)
    with pytest.raises(OffsetsLost, match="recreated"):
        query.tick()


def test_a_query_that_starts_again_reads_new_topics_from_their_first_record(
    cluster: Cluster, state: SqliteStore
) -> None:
    """With auto.offset.reset=latest only what is there when the connector starts is passed over."""
    query = Query(cluster, state, Clock(1_000_000.0), offset_reset="latest")
    assert query.start == {KEY: 10}
    cluster.remake(7)
    query.again()
    assert query.start == {KEY: 0}


def test_made_anew_while_the_start_is_looked_up(cluster: Cluster, state: SqliteStore) -> None:
    """The id is asked for first: a start of the new topic never counts as one of the old, only the other way round."""
    cluster.make("orders", 30, first=25)
    cluster.between["ends"] = lambda: cluster.remake(40)
    query = Query(cluster, state, Clock(1_000_000.0))
    with pytest.raises(OffsetsLost, match="recreated"):
        due_range(query)


def test_a_topic_that_is_being_made_is_waited_for(cluster: Cluster, state: SqliteStore) -> None:
    """A topic that some broker lists and another does not know yet costs time at a start, and no failure."""
    clock = Clock(1_000_000.0)
    answers = [None, done(code=KafkaError.UNKNOWN_TOPIC_OR_PART)]
    cluster.answer = lambda name: answers.pop(0) if answers else None
    before = clock.now()
    assert Query(cluster, state, clock).start == {KEY: 0}
    assert clock.now() == before + 1


def busy(cluster: Cluster, state: SqliteStore, **kafka: Any) -> Query:
    """A query of two topics, which just got 20 records each."""
    cluster.offsets.clear()
    for name in ("orders", "items"):
        cluster.make(name, 10)
    query = Query(cluster, state, Clock(1_000_000.0), **{**WATCHFUL, **kafka})
    due_and_committed(query)
    for name in ("orders", "items"):
        cluster.topics[name].count = 30
    cluster.calls.clear()
    return query


NAMED: dict[str, Any] = {"topics": ("orders", "items"), "topics_regex": None}


@pytest.mark.parametrize("forget", [True, False])
@pytest.mark.parametrize("kafka", [{}, NAMED])
def test_a_topic_that_is_deleted_is_let_go(
    cluster: Cluster, state: SqliteStore, caplog: pytest.LogCaptureFixture, forget: bool, kafka: dict[str, Any]
) -> None:
    """Before whichever request it goes, the others go on without a new start, and the log says once what went."""
    query = busy(cluster, state, **kafka)
    calls = calls_of(cluster, lambda: due_and_committed(query))
    for number in range(1, len(calls) + 1):
        query = busy(cluster, state, **kafka)
        caplog.clear()
        cluster.at_call = {number: lambda: cluster.delete("items", forget=forget)}
        due_and_committed(query)
        due_and_committed(query)
        orders = cluster.topics["orders"].number
        assert {(orders, offset) for offset in range(30)} <= query.delivered
        assert cluster.stands().offset == 30
        assert caplog.text.count("topic items, topic-partition 0 is gone") == 1
        assert query.starts == 1


def test_what_goes_with_a_topic_is_said(cluster: Cluster, state: SqliteStore, caplog: pytest.LogCaptureFixture) -> None:
    """Offsets that were seen and not delivered are named; of what is delivered nothing is."""
    query = busy(cluster, state)
    query.tick()
    cluster.delete("items")
    query.tick()
    assert_says(caplog.text, "topic items, topic-partition 0", "not delivered", "lost", "0 offsets 10 to 29")
    caplog.clear()
    due_and_committed(query)
    cluster.delete("orders")
    query.tick()
    assert_says(caplog.text, "topic orders, topic-partition 0", "all that was seen", "is delivered")
    assert "lost" not in caplog.text
    lost = [one for one in state.events_after(0).events if isinstance(one, OffsetsPassedOver)]
    assert [(one.topic, one.start, one.end, one.cause) for one in lost] == [("items", 10, 30, "deleted")]


def test_a_topic_that_the_connector_names_is_waited_for(
    cluster: Cluster, state: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    """While it is away the log says so now and then, and a start of the query does not fail for it."""
    query = busy(cluster, state, **NAMED)
    cluster.delete("items")
    due_and_committed(query)
    query.clock.sleep(MISSING_LOG_S)
    due_and_committed(query)
    waits = [message for message in caplog.messages if "not there: items." in message]
    assert len(waits) == 2
    assert_says(waits[0], "waits for them", "Create them", "correct [topics]")
    query.again()
    cluster.make("items", 7)
    due_and_committed(query)
    assert {(cluster.topics["items"].number, offset) for offset in range(7)} <= query.delivered


@pytest.mark.parametrize("of_records", [False, True], ids=["files", "records"])
def test_a_first_start_wants_all_topics_that_it_names(cluster: Cluster, state: SqliteStore, of_records: bool) -> None:
    """A topic that never was there is an error in the configuration, of any sink."""
    kafka, clock = replace(KAFKA, topics=("orders", "items")), Clock(1_000_000.0)
    sink = FileSinkSettings("/nowhere/out.txt", None, "host")
    settings = RecordSinkSettings("list", kafka, DeliverySettings(), sink, "/nowhere")
    planner = planner_on(cluster, settings if of_records else replace(SETTINGS, kafka=kafka), state, clock)
    said = ("Topic items", "does not exist", "localhost:9092", "Create the topic", "correct [topics]")
    with pytest.raises(TopicGone, match=saying(*said)):
        planner.begin()


@pytest.mark.parametrize("coming", ["others", "", None])
def test_no_other_topic_may_come_later(cluster: Cluster, state: SqliteStore, coming: str | None) -> None:
    """Than those that a source of the same program makes."""
    state.set(COMING, coming)
    clock = Clock(1_000_000.0)
    named = replace(SETTINGS, kafka=replace(KAFKA, **NAMED))
    with pytest.raises(TopicGone, match=saying("Topic items", "does not exist")):
        planner_on(cluster, named, state, clock).begin()


@pytest.mark.parametrize("coming", ["items", "items,others"])
def test_a_topic_that_a_source_makes_may_come_later(cluster: Cluster, state: SqliteStore, coming: str) -> None:
    """The source of a quick start makes the topic of the sink beside it with its first record."""
    state.set(COMING, coming)
    query = Query(cluster, state, Clock(1_000_000.0), **{**WATCHFUL, **NAMED})
    due_and_committed(query)
    assert missing_of(state) == [(("items",), "")]
    cluster.make("items", 7)
    due_and_committed(query)
    assert {(cluster.topics["items"].number, offset) for offset in range(7)} <= query.delivered


def missing_of(state: SqliteStore) -> list[tuple[tuple[str, ...], str]]:
    """What was told of topics that are not there, in order."""
    events = state.events_after(0).events
    return [(event.topics, event.unmatched) for event in events if isinstance(event, TopicsMissing)]


@pytest.mark.parametrize("restarted", [False, True])
def test_other_processes_are_told_which_topic_is_missing(cluster: Cluster, state: SqliteStore, restarted: bool) -> None:
    """When it goes, by a query that starts again, and when it is back; nothing while nothing changes."""
    query = busy(cluster, state, **NAMED)
    due_and_committed(query)
    assert missing_of(state) == []
    cluster.delete("items")
    due_and_committed(query)
    due_and_committed(query)
    assert missing_of(state) == [(("items",), "")]
    if restarted:
        query.again()
        due_and_committed(query)
    cluster.make("items", 7)
    due_and_committed(query)
    assert missing_of(state) == [(("items",), "")] * (1 + restarted) + [((), "")]


def test_a_pattern_that_no_topic_matches_is_warned_about(
    cluster: Cluster, state: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    """At the start and when the last one goes; a topic that matches later is read, and nothing is warned about then."""
    pattern: dict[str, Any] = {**WATCHFUL, "topics": (), "topics_regex": "item.*"}
    query = Query(cluster, state, Clock(1_000_000.0), **pattern)
    due_and_committed(query)
    assert missing_of(state) == [((), "item.*")]
    (told,) = [message for message in caplog.messages if "[topics.regex]" in message]
    assert_says(told, "no topic matches", '"item.*"', "again and again", "Create one", "correct [topics.regex]")
    cluster.make("items", 7)
    due_and_committed(query)
    assert {(cluster.topics["items"].number, offset) for offset in range(7)} <= query.delivered
    cluster.delete("items")
    due_and_committed(query)
    assert missing_of(state) == [((), "item.*"), ((), ""), ((), "item.*")]


@pytest.mark.parametrize("pattern", ["item.*", "orders"])
def test_a_drain_without_a_topic_says_so(
    cluster: Cluster, state: SqliteStore, caplog: pytest.LogCaptureFixture, pattern: str
) -> None:
    """It is caught up with nothing, which must not look like a delivery."""
    query = Query(cluster, state, Clock(1_000_000.0), **{**WATCHFUL, "topics": (), "topics_regex": pattern})
    query.planner.drain()
    due_and_committed(query)
    assert caplog.text.count("it has no topic to deliver") == (pattern == "item.*")
    assert bool(query.delivered) == (pattern == "orders")


def test_an_offset_that_is_gone_without_its_topic(cluster: Cluster, query: Query) -> None:
    """When only the group's offset was deleted the query starts again: it may be meant to be read anew."""
    cluster.forget("orders")
    with pytest.raises(KafkaFailed, match=saying("was 10", "is gone")) as found:
        due_and_committed(query)
    assert not isinstance(found.value, TopicGone)


def test_back_where_no_ids_are_told(cluster: Cluster, state: SqliteStore) -> None:
    """An offset that was there before its topic went away is not believed if nobody can say whose it is."""
    cluster.make("items", 0)
    cluster.answer = lambda name: done(code=KafkaError.TOPIC_AUTHORIZATION_FAILED)
    query = Query(cluster, state, Clock(1_000_000.0), **WATCHFUL, lost_offsets="CONTINUE")
    due_and_committed(query)
    cluster.delete("orders", forget=False)
    query.tick()
    cluster.make("orders", 20)
    due_and_committed(query)
    assert {(cluster.topics["orders"].number, offset) for offset in range(20)} <= query.delivered


def test_an_idle_tick_asks_for_no_id(cluster: Cluster, query: Query) -> None:
    """One request when a range is taken, one when it is committed, one every few seconds, none otherwise."""
    query.planner._monitor._checked = query.clock.now()
    cluster.calls.clear()
    query.tick()
    assert cluster.calls == ["ends"]
    cluster.topics["orders"].count = 30
    cluster.calls.clear()
    while KEY not in query.tick():
        query.planner._monitor._checked = query.clock.now()
    query.tick()
    assert cluster.calls.count("ids") == 2
    query.planner._monitor._checked = query.planner._discovery._looked = query.clock.now()
    cluster.calls.clear()
    query.clock.sleep(CHECK_S)
    query.tick()
    assert cluster.calls == ["ids", "read", "ends"]


@pytest.mark.parametrize("code", [None, KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._UNSUPPORTED_FEATURE])
def test_a_cluster_that_tells_no_ids(
    cluster: Cluster, state: SqliteStore, caplog: pytest.LogCaptureFixture, code: int | None
) -> None:
    """All goes on without, which the log says once."""
    cluster.stand(5, "another")
    untold = (
        done(SimpleNamespace(topic_id=Uuid(0, 0), partitions=[SimpleNamespace(id=0)]))
        if code is None
        else done(code=code)
    )
    cluster.answer = lambda name: untold
    query = Query(cluster, state, Clock(1_000_000.0), topics_regex="orders")
    assert query.start == {KEY: 5}
    due_range(query)
    assert (cluster.stands().offset, cluster.stands().topic_id) == (10, "")
    (told,) = [message for message in caplog.messages if "no ids" in message]
    assert_says(told, "1 topics", "orders is one", "deleted and recreated")


def test_no_answer_is_no_id(cluster: Cluster) -> None:
    """A broker that is away is waited for, and not taken for one without ids."""
    cluster.answer = lambda name: done(code=KafkaError._TIMED_OUT)
    with pytest.raises(BrokerAway, match="Topic orders"):
        KafkaCluster(KAFKA, build=cluster.client).topic_ids(["orders"])
    assert KafkaCluster(KAFKA, build=cluster.client).topic_ids([]) == {}


@pytest.mark.parametrize(
    ("before", "now", "expected"), [("a", "b", True), ("a", "a", False), ("", "b", False), ("a", "", False)]
)
def test_ids_that_are_not_told_are_no_difference(before: str, now: str, expected: bool) -> None:
    """Only two different ids are two topics."""
    assert is_another_topic(before, now) is expected


def test_offsets_are_committed_with_their_epoch(cluster: Cluster, state: SqliteStore) -> None:
    """It is the one that was told with the end of the range: an offset keeps it when it is signed again."""
    cluster.topics["orders"].epoch = 3
    query = Query(cluster, state, Clock(1_000_000.0))
    assert cluster.epochs[KEY] is None
    query.tick()
    cluster.topics["orders"].epoch = 5
    query.tick()
    assert (cluster.stands().offset, cluster.epochs[KEY]) == (10, 3)
    query.clock.sleep(RECOMMIT_S)
    query.tick()
    cluster.topics["orders"].count = 20
    while KEY not in query.tick():
        pass
    assert [one.epoch for one in query.planner.in_flight] == [3]  # another leader came
    assert (cluster.stands().offset, cluster.epochs[KEY]) == (10, 3)
    query.tick()
    assert (cluster.stands().offset, cluster.epochs[KEY]) == (20, 5)
    again = Query(cluster, state, Clock(1_000_000.0))
    assert (cluster.epochs[KEY], again.planner._plans._context.epochs.committed) == (5, {KEY: 5})


@pytest.mark.parametrize("epoch", [4, None])
def test_an_epoch_is_of_the_leader_that_came_back(cluster: Cluster, state: SqliteStore, epoch: int | None) -> None:
    """What a topic-partition got while it was away is not committed with the epoch of the leader before."""
    cluster.topics["orders"].epoch = cluster.make("items", 10).epoch = 3
    query = Query(cluster, state, Clock(1_000_000.0), at_once, topics=("orders", "items"))
    due_and_committed(query)
    assert cluster.epochs[KEY] == 3
    cluster.topics["orders"].away = True
    due_range(query)
    cluster.topics["orders"] = replace(cluster.topics["orders"], away=False, count=110, epoch=epoch)
    while KEY not in query.tick():
        query.clock.sleep(ASK_S)
    query.tick()
    assert (cluster.stands().offset, cluster.epochs[KEY]) == (110, epoch)


def test_an_epoch_is_of_its_offset(cluster: Cluster, state: SqliteStore) -> None:
    """What an operator sets has none; nor has the start of a topic made anew, nor one that begins after a loss."""
    cluster.topics["orders"].epoch = 3
    query = Query(cluster, state, Clock(1_000_000.0), lost_offsets="CONTINUE")
    due_and_committed(query)
    assert cluster.epochs[KEY] == 3
    cluster.offsets[KEY], cluster.epochs[KEY] = (4, ""), None
    assert Query(cluster, state, Clock(1_000_000.0)).planner._plans._context.epochs.committed == {}
    query = Query(cluster, state, Clock(1_000_000.0), lost_offsets="CONTINUE")
    due_and_committed(query)
    cluster.remake(30, forget=False)
    with pytest.raises(KafkaFailed, match="Going on"):
        due_range(query)
    assert (cluster.stands().offset, cluster.epochs[KEY]) == (0, None)


OPERATOR = ""
"""What kafka-consumer-groups writes beside an offset: nothing."""
YOUNGER = commit_metadata(Instance("younger", "host-b", 2, "later"))


def calls_of(cluster: Cluster, act: Callable[[], object]) -> list[str]:
    """The requests that something makes."""
    cluster.calls.clear()
    act()
    return list(cluster.calls)


def hand(cluster: Cluster, signed: str, offset: int = 3) -> Callable[[], None]:
    """Another hand sets the group's offset."""
    return lambda: cluster.offsets.update({KEY: (offset, signed)})


def before_each(calls: Sequence[str]) -> list[int]:
    """Numbers of requests before which another hand must be noticed: between the last look and its commit none can."""
    found = [number for number, name in enumerate(calls, 1) if name != "commit"]
    assert found, calls
    return found


@pytest.mark.parametrize("signed", [OPERATOR, YOUNGER])
def test_a_start_does_not_write_over_another_hand(cluster: Cluster, state: SqliteStore, signed: str) -> None:
    """What an operator or another instance sets while a start is looked up is where it starts."""
    cluster.stand(8)
    calls = calls_of(cluster, lambda: Query(cluster, state, Clock(1_000_000.0)))
    for number in before_each(calls):
        cluster.stand(8)
        cluster.calls.clear()
        cluster.at_call = {number: hand(cluster, signed)}
        assert Query(cluster, state, Clock(1_000_000.0)).start == {KEY: 3}, (number, calls)
        assert (cluster.stands().offset, cluster.stands().is_from(ME)) == (3, True)


@pytest.mark.parametrize("signed", [OPERATOR, YOUNGER])
def test_the_hourly_renewal_does_not_write_over_another_hand(cluster: Cluster, state: SqliteStore, signed: str) -> None:
    """It looks at once before it signs, whenever it looked last."""

    def hour() -> Query:
        query = Query(cluster, state, Clock(1_000_000.0))
        due_and_committed(query)
        query.clock.sleep(RECOMMIT_S)
        query.planner._monitor._checked = query.clock.now() + 1
        query.planner._discovery._looked = query.clock.now() + 1
        cluster.calls.clear()
        return query

    query = hour()
    calls = calls_of(cluster, query.tick)
    assert "commit" in calls
    for number in before_each(calls[: calls.index("commit")]):
        query = hour()
        cluster.at_call = {number: hand(cluster, signed)}
        with pytest.raises(AnotherInstance):
            query.tick()
        assert cluster.stands() == Committed(3, signed)


@pytest.mark.parametrize("signed", [OPERATOR, YOUNGER])
def test_taking_in_does_not_write_over_another_hand(cluster: Cluster, state: SqliteStore, signed: str) -> None:
    """The same for a topic that is found while the connector runs: what was set meanwhile is where it starts."""

    def found() -> Query:
        cluster.delete("orders")
        if "items" not in cluster.topics:
            cluster.make("items", 0)
        query = Query(cluster, state, Clock(1_000_000.0), **WATCHFUL)
        query.planner._monitor._checked = query.clock.now() + 5
        cluster.make("orders", 10)
        cluster.calls.clear()
        return query

    query = found()
    calls = calls_of(cluster, query.tick)
    for number in before_each(calls[: calls.index("commit")]):
        query = found()
        cluster.at_call = {number: hand(cluster, signed)}
        due_and_committed(query)
        assert query.delivered == {(cluster.topics["orders"].number, offset) for offset in range(3, 10)}
        assert (cluster.stands().offset, cluster.stands().is_from(ME)) == (10, True)


@pytest.mark.parametrize("signed", [OPERATOR, YOUNGER])
@pytest.mark.parametrize("count", [3, 40])
def test_going_on_after_a_loss_does_not_write_over_another_hand(
    cluster: Cluster, state: SqliteStore, signed: str, count: int
) -> None:
    """With CONTINUE the group is set to the new topic's start, unless somebody else has set it since."""

    def recreated() -> Query:
        cluster.remake(10)
        query = Query(cluster, state, Clock(1_000_000.0), lost_offsets="CONTINUE")
        due_and_committed(query)
        cluster.remake(count, forget=False)
        query.planner._monitor._checked = 0.0
        cluster.calls.clear()
        return query

    query = recreated()
    with pytest.raises(KafkaFailed, match="Going on"):
        due_range(query)
    calls = list(cluster.calls)
    for number in before_each(calls[: calls.index("commit")]):
        query = recreated()
        cluster.at_call = {number: hand(cluster, signed)}
        with pytest.raises(AnotherInstance):
            due_range(query)
        assert cluster.stands() == Committed(3, signed)


ACTIONS = st.one_of(
    st.tuples(st.just("produce"), st.integers(1, 30)),
    st.tuples(st.just("remake"), st.integers(0, 40), st.booleans()),
    st.tuples(st.just("delete"), st.booleans()),
    st.tuples(st.just("forget")),
)
STEPS = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 9), ACTIONS), max_size=6)
"""Ticks that pass, then the call of the next tick before which something happens, and what."""


def happen(cluster: Cluster, action: Sequence[Any]) -> None:
    """An action of the property below. A topic that was deleted is made again by what comes next."""
    kind, *how = action
    if kind == "delete":
        cluster.delete("orders", forget=how[0])
    elif kind == "forget":
        cluster.forget("orders")
    elif kind == "remake" or "orders" not in cluster.topics:
        cluster.delete("orders", forget=how[-1] is True)
        cluster.make("orders", how[0])
    else:
        cluster.topics["orders"].count += how[0]


def live(query: Query, ticks: int) -> None:
    """So many ticks; after a failure the query starts again, and an operator lets it go on who must."""
    for _ in range(ticks):
        try:
            query.tick()
        except OffsetsLost:
            query.cluster.forget("orders")
            restart_at(query)
        except KafkaFailed:
            restart_at(query)


def restart_at(query: Query) -> None:
    """Until it starts: the topic may be away, or be made anew meanwhile."""
    for _ in range(5):
        try:
            query.again()
        except OffsetsLost:
            query.cluster.forget("orders")
        except KafkaFailed:
            if "orders" not in query.cluster.topics:
                query.cluster.make("orders", 2)
        else:
            return
    raise AssertionError("it does not start")


def check_promise(query: Query) -> None:
    """An offset that names the topic that is there stands above no record that was not delivered."""
    topic = query.cluster.topics.get("orders")
    if topic is not None and KEY in query.cluster.offsets:
        found = query.cluster.stands()
        if found.topic_id == id_of(topic):
            assert {(topic.number, offset) for offset in range(found.offset)} <= query.delivered


@settings(
    suppress_health_check=FIXTURES_SHARED,
    max_examples=examples(70),
    deadline=None,
)
@given(
    STEPS,
    st.sampled_from(["STOP", "CONTINUE"]),
    st.sampled_from(["earliest", "latest"]),
    st.sampled_from([{}, WATCHFUL]),
)
def test_whatever_happens_to_a_topic_its_records_arrive(
    steps: list[tuple[int, int, Any]], policy: Any, reset: Any, more: dict[str, Any]
) -> None:
    """Deleted, made anew, forgotten before any request: all records of the topic that is there in the end arrive."""
    cluster, clock = Cluster(), Clock(1_000_000.0)
    cluster.make("orders", 0)
    with tempfile.TemporaryDirectory() as folder, closing(SqliteStore(Path(folder) / "state.db")) as state:
        query = Query(cluster, state, clock, lost_offsets=policy, offset_reset=reset, **more)
        for ticks, call, action in steps:
            live(query, ticks)
            cluster.at_call = {len(cluster.calls) + call: lambda action=action: happen(cluster, action)}
            live(query, 1)
            cluster.at_call = {}
            check_promise(query)
        if "orders" not in cluster.topics:
            cluster.make("orders", 5)
        live(query, int(METADATA_S) * 3)
        check_promise(query)
        topic = cluster.topics["orders"]
        assert {(topic.number, offset) for offset in range(topic.count)} <= query.delivered
