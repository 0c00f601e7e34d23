"""Anything before any request: topics go and come back, other hands set offsets, brokers are unavailable."""

import tempfile
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parquet_sink.errors import AnotherInstance, KafkaFailed, OffsetsLost
from parquet_sink.kafka.group.committed import Committed, commit_metadata
from parquet_sink.model.instance import Instance
from parquet_sink.planner.discovery import METADATA_S
from parquet_sink.state.sqlite import SqliteStore
from tests.factories import Clock
from tests.kafka.simulation import KEY, WATCHFUL, Cluster, Query, count_as_very_many, done, id_of
from tests.thorough import FIXTURES_SHARED, examples

YOUNGER = Instance("younger", "host-b", 2, "later")
NO_ANSWER = KafkaError._TIMED_OUT


@dataclass
class Moody(Cluster):
    """A cluster that does not answer the next `away` requests; a commit may have been made all the same."""

    away: int = 0
    made_all_the_same: bool = False

    def _silent(self) -> bool:
        self.away = max(self.away - 1, -1)
        return self.away >= 0

    def _answers(self, answers: "dict[Any, Future[Any]]") -> "dict[Any, Future[Any]]":
        return {one: done(code=NO_ANSWER) for one in answers} if self._silent() else answers

    def _raise(self) -> None:
        if self._silent():
            raise KafkaException(KafkaError(NO_ANSWER))

    def describe_topics(self, asked: Any, request_timeout: float) -> "dict[str, Future[Any]]":
        return self._answers(super().describe_topics(asked, request_timeout))

    def list_offsets(self, asked: dict[Any, Any], isolation_level: Any, request_timeout: float) -> "dict[Any, Any]":
        return self._answers(super().list_offsets(asked, isolation_level, request_timeout))

    def offsets_for_times(self, asked: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        found = super().offsets_for_times(asked, timeout)
        self._raise()
        return found

    def list_topics(self, timeout: float) -> Any:
        found = super().list_topics(timeout)
        self._raise()
        return found

    def committed(self, asked: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        found = super().committed(asked, timeout)
        self._raise()
        return found

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
        if self.away > 0 and not self.made_all_the_same:
            self._called("commit")
            self._raise()
        made = super().commit(offsets, asynchronous)
        self._raise()
        return made


ACTIONS = st.one_of(
    st.tuples(st.just("produce"), st.integers(1, 30)),
    st.tuples(st.just("remake"), st.integers(0, 40), st.booleans()),
    st.tuples(st.just("delete"), st.booleans()),
    st.tuples(st.just("set"), st.integers(0, 40)),
    st.tuples(st.just("younger")),
    st.tuples(st.just("away"), st.integers(1, 9), st.booleans()),
)
STEPS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 16), ACTIONS), max_size=6)
"""Records that come, the request after that before which something happens, and what."""


PLAIN: dict[str, Any] = {"policy": "CONTINUE", "reset": "earliest", "more": {}, "idle": False}


def happen(cluster: Moody, query: Query, action: Sequence[Any]) -> None:
    """What is set between a look at the group and its commit is lost: Kafka knows no commit on condition.

    What is set names no topic, and is believed of whichever has the name: so here Kafka forgets it with its topic.
    It is set back, never on to what this topic has not delivered.
    """
    kind, *how = action
    topic, unsigned = cluster.topics.get("orders"), cluster.offsets.get(KEY, (0, "signed"))[1] == ""
    if kind == "away":
        cluster.away, cluster.made_all_the_same = how
    elif kind == "delete":
        cluster.delete("orders", forget=how[0] or unsigned)
    elif kind == "remake" or topic is None:
        cluster.delete("orders", forget=how[-1:] == [True] or unsigned)
        cluster.make("orders", how[0] if how else 3)
    elif kind == "produce":
        topic.count += how[0]
    elif KEY in cluster.offsets and cluster.calls[-1:] != ["commit"]:
        stands = Committed(*cluster.offsets[KEY])
        reached = stands.offset if stands.topic_id in ("", id_of(topic)) else 0  # else the topic before got so far
        offset = min(reached, how[0]) if kind == "set" else reached
        signed = "" if kind == "set" else commit_metadata(YOUNGER, topic_id=id_of(topic))
        cluster.offsets[KEY], cluster.epochs[KEY] = (offset, signed), None
        query.delivered -= {one for one in query.delivered if one[1] >= offset}


def live(query: Query, ticks: int) -> None:
    """So many ticks; when the connector ends it is started again, by an operator if need be."""
    for _ in range(ticks):
        try:
            query.tick()
        except OffsetsLost:
            query.cluster.forget("orders")
            restart_at(query)
        except (KafkaFailed, AnotherInstance):
            restart_at(query)


def restart_at(query: Query) -> None:
    """Until it starts: the topic may be away, or be made anew meanwhile."""
    for _ in range(9):
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


@example(
    steps=[(0, 1, ("younger",)), (0, 1, ("produce", 1)), (0, 6, ("younger",)), (0, 1, ("remake", 1, False))], **PLAIN
)
@example(steps=[(1, 13, ("remake", 1, False)), (0, 1, ("set", 1))], **PLAIN)
@example(steps=[(1, 14, ("set", 1)), (0, 3, ("delete", False))], policy="STOP", reset="earliest", more={}, idle=False)
@settings(
    suppress_health_check=FIXTURES_SHARED,
    max_examples=examples(80),
    deadline=None,
)
@given(
    STEPS,
    st.sampled_from(["STOP", "CONTINUE"]),
    st.sampled_from(["earliest", "latest"]),
    st.sampled_from([{}, WATCHFUL]),
    st.booleans(),
)
def test_whatever_happens_the_records_arrive(
    steps: list[tuple[int, int, Any]], policy: Any, reset: Any, more: dict[str, Any], idle: bool
) -> None:
    """All records of the topic that is there in the end arrive, and those again that somebody set the group back to.

    idle: whether one topic-partition counts as very many, and as idle at once.
    """
    cluster, clock = Moody(), Clock(1_000_000.0)
    cluster.make("orders", 0)
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(SqliteStore(Path(folder) / "state.db")) as state,
        pytest.MonkeyPatch.context() as patch,
    ):
        if idle:
            count_as_very_many(patch)
        query = Query(cluster, state, clock, lost_offsets=policy, offset_reset=reset, **more)
        for records, call, action in steps:
            if "orders" in cluster.topics:
                cluster.topics["orders"].count += records
            cluster.at_call = {len(cluster.calls) + call: lambda action=action: happen(cluster, query, action)}
            live(query, 8)
            cluster.at_call = {}
        if "orders" not in cluster.topics:
            cluster.make("orders", 5)
        live(query, int(METADATA_S) * 3)
        topic = cluster.topics["orders"]
        assert {(topic.number, offset) for offset in range(topic.count)} <= query.delivered
        assert cluster.offsets[KEY][0] == topic.count
