"""States of the config and status topics: a record changes what its key stands for, in whatever portions they come."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.distributed import records
from parquet_sink.distributed.assignment import EMPTY, Assignment, Release
from parquet_sink.distributed.records import ConnectorReport, Entry, Records, RestartAsked, SessionKey
from parquet_sink.distributed.state import ConfigState, StatusState
from parquet_sink.worker.herder.values import State, TargetState
from tests.distributed.group_doubles import folded
from tests.messages import assert_says

ASSIGNMENT = Assignment(1, "w:8083", 5, {}, {})
REPORT = ConnectorReport(State.RUNNING, "", "w:8083", 1)


def test_a_target_state_that_precedes_its_connector_is_kept() -> None:
    """`initial_state` is written before the configuration."""
    state = folded(
        ConfigState(), records.TARGET.record("a", TargetState.STOPPED), records.CONNECTOR.record("a", {"name": "a"})
    )
    assert (state.connectors, state.targets, state.offset) == ({"a": {"name": "a"}}, {"a": TargetState.STOPPED}, 2)


def test_a_deleted_connector_is_gone_with_what_was_written_of_it() -> None:
    """A tombstone removes what its own key stands for, and a second one finds nothing to remove."""
    state = folded(ConfigState(), records.CONNECTOR.record("a", {}), records.TARGET.record("a", TargetState.PAUSED))
    without = folded(state, records.CONNECTOR.record("a", None), offset=2)
    assert (without.connectors, without.targets) == ({}, {"a": TargetState.PAUSED})
    assert folded(without, *[records.TARGET.record("a", None)] * 2, offset=3).targets == {}
    assert state.connectors == {"a": {}}, "a state never changes"


def test_the_last_request_to_restart_counts_with_its_offset() -> None:
    """By the offset a worker knows whether it has done so already; a tombstone takes nothing back."""
    first, last = (
        RestartAsked(include_tasks=False, only_failed=False),
        RestartAsked(include_tasks=True, only_failed=True),
    )
    state = folded(ConfigState(), records.RESTART.record("a", first), offset=3)
    state = folded(state, records.RESTART.record("a", last), records.RESTART.record("a", None), offset=8)
    assert (state.of(records.RESTART), state.offset_of(records.RESTART, "a")) == ({"a": last}, 8)
    assert ConfigState().offset_of(records.RESTART, "a") == -1


def test_the_topic_is_of_the_cluster_that_was_named_last() -> None:
    """Until the record is removed."""
    state = folded(ConfigState(), records.CLUSTER.record("", "a"), records.CLUSTER.record("", "b"))
    assert (state.cluster, folded(state, records.CLUSTER.record("", None), offset=3).cluster) == ("b", "")


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
    state = folded(
        ConfigState(),
        records.SESSION_KEY.record("", key),
        records.LOGGER.record("root", "DEBUG"),
        records.ASSIGNMENT.record("", ASSIGNMENT),
    )
    assert (state.session_key, state.of(records.LOGGER), state.assignment) == (key, {"root": "DEBUG"}, ASSIGNMENT)
    assert state.offset_of(records.LOGGER, "root") == 1
    removed = [kind.record(name, None) for kind, name in ((records.SESSION_KEY, ""), (records.LOGGER, "root"))]
    after = folded(state, *removed, records.ASSIGNMENT.record("", None), offset=3)
    assert (after.session_key, after.of(records.LOGGER), after.assignment) == (key, {}, EMPTY)


def _reported(report: ConnectorReport | None, *numbers: int) -> list[Records]:
    """Of a connector and these tasks."""
    tasks = [records.TASK_STATUS.record(records.task_name("a", number), report) for number in numbers]
    return [records.STATUS.record("a", report), *tasks]


def _unused(topic: str) -> Records:
    return records.TOPIC.record(records.topic_name(topic, "a"), None)


def test_statuses_of_connectors_tasks_and_topics_come_and_go() -> None:
    """What has nothing left is absent."""
    used = [records.topic_used(topic, "a", 0, 1) for topic in ("t2", "t1")]
    state = folded(StatusState(), *_reported(REPORT, 0, 1), *used)
    assert (state.connectors, state.tasks) == ({"a": REPORT}, {"a": {0: REPORT, 1: REPORT}})
    assert state.topics == {"a": ("t1", "t2")}
    state = folded(state, _reported(None, 0)[1], _unused("t1"))
    assert (state.tasks, state.topics) == ({"a": {1: REPORT}}, {"a": ("t2",)})
    state = folded(state, *_reported(None, 1), _unused("t2"))
    assert (state.connectors, state.tasks, state.topics) == ({}, {}, {})


def test_releases_and_leaving_workers_come_and_go() -> None:
    """The last word of each connector, and of each worker."""
    release = Release("w:8083", "m-1", 4)
    state = folded(StatusState(), records.RELEASE.record("a", release), records.LEAVING.record("w:8083", "m-1"))
    assert (state.releases, state.leaving) == ({"a": release}, {"w:8083": "m-1"})
    gone = folded(state, records.RELEASE.record("a", None), records.LEAVING.record("w:8083", None))
    assert (gone.releases, gone.leaving) == ({}, {})


def test_what_cannot_be_read_is_logged_once_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """An assignment of a later release leaves the last one that was understood, until one comes that is."""
    caplog.set_level(logging.WARNING)
    before = folded(ConfigState(), records.ASSIGNMENT.record("", ASSIGNMENT))
    newer = [Entry(records.ASSIGNMENT.key(), b'{"version":2}', offset) for offset in (1, 2)]
    state = before.fold(newer[:1]).fold(newer[1:])
    assert (state.assignment, state.offset) == (ASSIGNMENT, 3)
    assert list(state.unreadable) == ["parquet-sink.assignment"]
    assert_says(state.unreadable["parquet-sink.assignment"], "version 2", "knows 1")
    (message,) = [record.getMessage() for record in caplog.records]
    assert_says(message, "'parquet-sink.assignment'", "offset 1", "the config topic", "skipped", "version 2", "knows 1")
    assert_says(message, "Run the release", "write it again", "remove it")
    again = folded(state, records.ASSIGNMENT.record("", ASSIGNMENT), offset=3)
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
