"""States of the config and status topics: a record changes what its key stands for, in whatever portions they come."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.distributed import records
from parquet_sink.distributed.assignment import Assignment, Release
from parquet_sink.distributed.records import (
    Assigned,
    ClusterNamed,
    ConnectorConfig,
    ConnectorReport,
    Foreign,
    Leaving,
    LoggerLevel,
    Released,
    Reported,
    RestartAsked,
    SessionKey,
    Target,
    TopicUsed,
)
from parquet_sink.distributed.state import ConfigState, Entry, StatusState
from parquet_sink.worker.herder.values import State, TargetState
from tests.messages import assert_says

ASSIGNMENT = Assignment(1, "w:8083", 5, {}, {})
REPORT = ConnectorReport(State.RUNNING, "", "w:8083", 1)


def test_a_target_state_that_precedes_its_connector_is_kept() -> None:
    """`initial_state` is written before the configuration."""
    state = ConfigState().apply(Target("a", TargetState.STOPPED), 0).apply(ConnectorConfig("a", {"name": "a"}), 1)
    assert (state.connectors, state.targets, state.offset) == ({"a": {"name": "a"}}, {"a": TargetState.STOPPED}, 2)


def test_a_deleted_connector_is_gone_with_what_was_written_of_it() -> None:
    """A tombstone removes what its own key stands for, and a second one finds nothing to remove."""
    state = ConfigState().apply(ConnectorConfig("a", {}), 0).apply(Target("a", TargetState.PAUSED), 1)
    without = state.apply(ConnectorConfig("a", None), 2)
    assert (without.connectors, without.targets) == ({}, {"a": TargetState.PAUSED})
    assert without.apply(Target("a", None), 3).apply(Target("a", None), 4).targets == {}
    assert state.connectors == {"a": {}}, "a state never changes"


def test_the_last_request_to_restart_counts_with_its_offset() -> None:
    """By the offset a worker knows whether it has done so already."""
    asked = RestartAsked("a", include_tasks=True, only_failed=True)
    state = ConfigState().apply(RestartAsked("a", include_tasks=False, only_failed=False), 3).apply(asked, 8)
    assert state.restarts == {"a": RestartAsked("a", include_tasks=True, only_failed=True, offset=8)}


def test_the_topic_is_of_the_cluster_that_was_named_last() -> None:
    """Until the record is removed."""
    state = ConfigState().apply(ClusterNamed("a"), 0).apply(ClusterNamed("b"), 1).apply(Foreign(), 2)
    assert (state.cluster, state.apply(ClusterNamed(""), 3).cluster) == ("b", "")


def test_what_only_kafka_connect_writes_is_noticed() -> None:
    """Where it stands; that a connector has no tasks any more is ours, too."""
    entries = [
        Entry(b"commit-a", b'{"tasks":2}', 4),
        Entry(b"commit-a", b'{"tasks":0}', 5),
        Entry(b"task-a-0", None, 6),
    ]
    assert (ConfigState().foreign, ConfigState().fold(entries).foreign) == (-1, 4)


def test_assignment_session_key_and_loggers_are_those_written_last() -> None:
    """A session key stays until the next; the others can be removed."""
    key = SessionKey(b"k", "HmacSHA256", 1)
    state = ConfigState().apply(key, 0).apply(LoggerLevel("root", "DEBUG"), 1).apply(Assigned(ASSIGNMENT), 2)
    loggers = {"root": LoggerLevel("root", "DEBUG", 1)}
    assert (state.session_key, state.loggers, state.assignment) == (key, loggers, ASSIGNMENT)
    after = state.apply(Foreign(), 3).apply(LoggerLevel("root", None), 4).apply(Assigned(None), 5)
    assert (after.session_key, after.loggers, after.assignment) == (key, {}, None)


def test_statuses_of_connectors_tasks_and_topics_come_and_go() -> None:
    """What has nothing left is absent."""
    state = StatusState().apply(Reported("a", None, REPORT)).apply(Reported("a", 0, REPORT))
    state = state.apply(Reported("a", 1, REPORT))
    state = state.apply(TopicUsed("a", "t2", used=True)).apply(TopicUsed("a", "t1", used=True))
    assert (state.connectors, state.tasks) == ({"a": REPORT}, {"a": {0: REPORT, 1: REPORT}})
    assert state.topics == {"a": ("t1", "t2")}
    for record in (Reported("a", 0, None), TopicUsed("a", "t1", used=False)):
        state = state.apply(record)
    assert (state.tasks, state.topics) == ({"a": {1: REPORT}}, {"a": ("t2",)})
    for record in (Reported("a", None, None), Reported("a", 1, None), TopicUsed("a", "t2", used=False)):
        state = state.apply(record)
    assert state == StatusState()


def test_releases_and_leaving_workers_come_and_go() -> None:
    """The last word of each connector, and of each worker."""
    release = Release("w:8083", "m-1", 4)
    state = StatusState().apply(Released("a", release)).apply(Leaving("w:8083", "m-1"))
    assert (state.releases, state.leaving) == ({"a": release}, {"w:8083": "m-1"})
    assert state.apply(Released("a", None)).apply(Leaving("w:8083", None)) == StatusState()


def test_what_cannot_be_read_is_logged_once_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """An assignment of a later release leaves the last one that was understood, until one comes that is."""
    caplog.set_level(logging.WARNING)
    before = ConfigState().apply(Assigned(ASSIGNMENT), 0)
    newer = [Entry(records.ASSIGNMENT_KEY, b'{"version":2}', offset) for offset in (1, 2)]
    state = before.fold(newer[:1]).fold(newer[1:])
    assert (state.assignment, state.offset) == (ASSIGNMENT, 3)
    assert list(state.unreadable) == ["parquet-sink.assignment"]
    assert_says(state.unreadable["parquet-sink.assignment"], "version 2", "knows 1")
    (message,) = [record.getMessage() for record in caplog.records]
    assert_says(message, "'parquet-sink.assignment'", "offset 1", "the config topic", "skipped", "version 2", "knows 1")
    assert_says(message, "Run the release", "write it again", "remove it")
    again = state.fold([Entry(records.ASSIGNMENT_KEY, records.assignment_value(ASSIGNMENT), 3)])
    assert again.unreadable == {}


KEYS = [b"connector-a", b"connector-b", b"target-state-a", b"status-task-a-0", b"status-task-a-1", b"garbage"]
VALUES = [None, b"{}", b'{"properties":{}}', b'{"state":"PAUSED","worker_id":"w","generation":1}']
ENTRIES = st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(VALUES))).map(
    lambda pairs: [Entry(key, value, offset) for offset, (key, value) in enumerate(pairs)]
)


@given(ENTRIES, st.integers(0, 10))
def test_portions_change_nothing(entries: list[Entry], cut: int) -> None:
    """Workers that read the same records in other portions have the same state."""
    assert ConfigState().fold(entries[:cut]).fold(entries[cut:]) == ConfigState().fold(entries)
    assert StatusState().fold(entries[:cut]).fold(entries[cut:]) == StatusState().fold(entries)


@given(ENTRIES)
def test_compaction_changes_nothing(entries: list[Entry]) -> None:
    """Where earlier records of a key were removed, the state is the same but for what cannot be read any more."""
    readable = [one for one in entries if ConfigState().fold([one]).unreadable == {}]
    last = {one.key: one for one in readable}
    assert ConfigState().fold([one for one in readable if last[one.key] is one]) == ConfigState().fold(readable)
