"""Records of the config and status topics: Kafka Connect's byte for byte, ours there and back, garbage without harm."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.distributed import records
from parquet_sink.distributed.assignment import Assignment, MemberInfo, Placement, Release
from parquet_sink.distributed.records import (
    CONFIG_KINDS,
    STATUS_KINDS,
    ConnectorReport,
    Entry,
    Record,
    Records,
    RestartAsked,
    SessionKey,
    Unreadable,
    parse,
)
from parquet_sink.distributed.state import ConfigState, StatusState
from parquet_sink.worker.herder.values import State, TargetState
from tests.distributed.group_doubles import folded
from tests.messages import assert_says

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAME = TEXT.filter(bool)
WHOLE = st.integers(min_value=0, max_value=2**53)
ASSIGNMENTS = st.builds(
    Assignment,
    epoch=WHOLE,
    leader=TEXT,
    at_ms=WHOLE,
    members=st.lists(st.builds(MemberInfo, TEXT, TEXT, TEXT, WHOLE)).map(lambda all_: {m.worker_id: m for m in all_}),
    placements=st.dictionaries(NAME, st.builds(Placement, TEXT, TEXT, TEXT, WHOLE, WHOLE)),
)
REPORTS = st.builds(ConnectorReport, st.sampled_from(State), TEXT, TEXT, WHOLE)

OF_CONNECT = object()
"""Stands for what only Kafka Connect writes."""
CONNECT_CONFIG = {
    b"connector-sink": (
        b'{"properties":{"name":"sink","topics":"orders"}}',
        (records.CONNECTOR, "sink", {"name": "sink", "topics": "orders"}),
    ),
    b"target-state-sink": (
        b'{"state":"PAUSED","state.v2":"STOPPED"}',
        (records.TARGET, "sink", TargetState.STOPPED),
    ),
    b"target-state-old": (b'{"state":"PAUSED"}', (records.TARGET, "old", TargetState.PAUSED)),
    b"restart-connector-sink": (
        b'{"include-tasks":true,"only-failed":false}',
        (records.RESTART, "sink", RestartAsked(include_tasks=True, only_failed=False)),
    ),
    b"session-key": (
        b'{"key":"c2VjcmV0","algorithm":"HmacSHA256","creation-timestamp":1700000000000}',
        (records.SESSION_KEY, "", SessionKey(b"secret", "HmacSHA256", 1_700_000_000_000)),
    ),
    b"logger-cluster-org.apache": (b'{"level":"DEBUG"}', (records.LOGGER, "org.apache", "DEBUG")),
    b"task-sink-0": (b'{"properties":{"task.class":"T"}}', OF_CONNECT),
    b"commit-sink": (b'{"tasks":0}', None),
    b"commit-other": (b'{"tasks":2}', OF_CONNECT),
    b"tasks-fencing-sink": (b'{"task-count":1}', OF_CONNECT),
}
"""As Kafka Connect 4.1 writes them, and what they say; None: nothing that has a meaning here."""
CONNECT_STATUS = {
    b"status-connector-a-b": (
        b'{"state":"RUNNING","trace":null,"worker_id":"w:8083","generation":7}',
        (records.STATUS, "a-b", ConnectorReport(State.RUNNING, "", "w:8083", 7)),
    ),
    b"status-task-a-1-0": (
        b'{"state":"FAILED","trace":"why","worker_id":"w:8083","generation":7}',
        (records.TASK_STATUS, "a-1-0", ConnectorReport(State.FAILED, "why", "w:8083", 7)),
    ),
    b"status-topic-orders:connector-a": (
        b'{"topic":{"name":"orders","connector":"a","task":0,"discoverTimestamp":1700000000000}}',
        (
            records.TOPIC,
            "orders:connector-a",
            {"topic": {"name": "orders", "connector": "a", "task": 0, "discoverTimestamp": 1_700_000_000_000}},
        ),
    ),
}


def parsed(key: bytes | None, value: bytes | None) -> Record | None:
    """What a record of the topic that has such keys says."""
    ours = (b"parquet-sink.release", b"parquet-sink.leaving", b"parquet-sink.folders")
    of_status = (key or b"").startswith((b"status", *ours))
    return parse(STATUS_KINDS if of_status else CONFIG_KINDS, Entry(key, value, 0))


def read_again(written: Records) -> Record | None:
    """One record that was written."""
    ((key, value),) = written.items()
    return parsed(key, value)


@pytest.mark.parametrize("key", CONNECT_CONFIG)
def test_what_kafka_connect_wrote_in_its_config_topic_is_read(key: bytes) -> None:
    """A cluster of Kafka Connect's can be taken over with what its config topic has."""
    value, meant = CONNECT_CONFIG[key]
    found = parsed(key, value)
    if meant is OF_CONNECT:
        assert found is not None
        assert found.kind in records.OF_CONNECT
    else:
        assert found == meant


@pytest.mark.parametrize("key", CONNECT_STATUS)
def test_what_kafka_connect_wrote_in_its_status_topic_is_read(key: bytes) -> None:
    """Names of connectors may have hyphens, and numbers behind them."""
    value, meant = CONNECT_STATUS[key]
    assert parsed(key, value) == meant


def test_records_are_written_as_kafka_connect_writes_them() -> None:
    """Byte for byte, so that tools that read its topics read ours."""
    failed = ConnectorReport(State.FAILED, "why", "w:8083", 7)
    written = {
        **records.STATUS.record("a-b", ConnectorReport(State.RUNNING, "", "w:8083", 7)),
        **records.TASK_STATUS.record(records.task_name("a-1", 0), failed),
        **records.topic_used("orders", "a", 0, 1_700_000_000_000),
    }
    assert written == {key: value for key, (value, _) in CONNECT_STATUS.items()}
    written = {
        **records.CONNECTOR.record("sink", {"name": "sink", "topics": "orders"}),
        **records.TARGET.record("sink", TargetState.STOPPED),
        **records.RESTART.record("sink", RestartAsked(include_tasks=True, only_failed=False)),
        **records.TASKS.record("sink", 0),
        **records.SESSION_KEY.record("", SessionKey(b"secret", "HmacSHA256", 1_700_000_000_000)),
        **records.LOGGER.record("org.apache", "DEBUG"),
    }
    assert written == {key: CONNECT_CONFIG[key][0] for key in written}


@given(NAME, st.dictionaries(TEXT, TEXT), st.sampled_from(TargetState), ASSIGNMENTS)
def test_what_is_written_to_the_config_topic_is_read_again(
    name: str, config: Mapping[str, str], state: TargetState, assignment: Assignment
) -> None:
    """Whatever the names and texts are."""
    assert read_again(records.CONNECTOR.record(name, config)) == (records.CONNECTOR, name, config)
    assert read_again(records.TARGET.record(name, state)) == (records.TARGET, name, state)
    assert read_again(records.ASSIGNMENT.record("", assignment)) == (records.ASSIGNMENT, "", assignment)


@given(NAME, st.integers(0, 999_999_999), REPORTS, st.builds(Release, TEXT, TEXT, WHOLE))
def test_what_is_written_to_the_status_topic_is_read_again(
    name: str, task: int, report: ConnectorReport, release: Release
) -> None:
    """Whatever the names and texts are."""
    of_task = records.task_name(name, task)
    assert read_again(records.STATUS.record(name, report)) == (records.STATUS, name, report)
    assert read_again(records.TASK_STATUS.record(of_task, report)) == (records.TASK_STATUS, of_task, report)
    assert records.task_of(of_task) == (name, task)
    assert read_again(records.RELEASE.record(name, release)) == (records.RELEASE, name, release)
    assert read_again(records.LEAVING.record(name, "m-1")) == (records.LEAVING, name, "m-1")


def test_tombstones_remove_what_their_key_stands_for() -> None:
    """Of a request, which is over, and of the session key nothing is to be removed."""
    assert parsed(b"connector-a", None) == (records.CONNECTOR, "a", None)
    assert parsed(b"target-state-a", None) == (records.TARGET, "a", None)
    assert parsed(b"logger-cluster-a", None) == (records.LOGGER, "a", None)
    assert parsed(b"parquet-sink.assignment", None) == (records.ASSIGNMENT, "", None)
    assert parsed(b"restart-connector-a", None) is parsed(b"session-key", None) is None
    assert parsed(b"task-a-0", None) is parsed(b"commit-a", None) is parsed(b"tasks-fencing-a", None) is None
    assert parsed(b"status-connector-a", None) == (records.STATUS, "a", None)
    assert parsed(b"status-task-a-3", None) == (records.TASK_STATUS, "a-3", None)
    assert parsed(b"status-topic-t:connector-a", None) == (records.TOPIC, "t:connector-a", None)
    assert records.topic_of("t:connector-a") == ("t", "a")
    assert parsed(b"parquet-sink.release-a", None) == (records.RELEASE, "a", None)
    assert parsed(b"parquet-sink.leaving-w", None) == (records.LEAVING, "w", None)
    folders = frozenset({"a", "b"})
    assert read_again(records.FOLDERS.record("w", folders)) == (records.FOLDERS, "w", folders)


NO_STATE = ("no state", "this program knows")
LATER = ("version 2", "knows 1")
UNREADABLE: dict[tuple[bytes | None, bytes | None], tuple[str, ...]] = {
    (b"connector-a", b"\xff"): ("value", "not JSON"),
    (b"connector-a", b"[" * 200_000): ("value", "not JSON"),
    (b"connector-a", b"[]"): ("value", "not a JSON object"),
    (b"connector-a", b'{"properties":{"x":1}}'): ('"x"', "not text"),
    (b"target-state-a", b'{"state":"ASLEEP"}'): NO_STATE,
    (b"restart-connector-a", b'{"include-tasks":1,"only-failed":true}'): ('"include-tasks"', "neither true nor false"),
    (b"session-key", b'{"key":"?","algorithm":"","creation-timestamp":1}'): ('"key"', "not base64"),
    (b"parquet-sink.assignment", b'{"version":2}'): LATER,
    (b"parquet-sink.cluster", b'{"version":2,"group":"g"}'): LATER,
    (b"parquet-sink.cluster", b'{"version":1}'): ('"group"', "not text"),
    (b"parquet-sink.assignment", b'{"version":true}'): ('"version"', "not a whole number"),
    (b"session-keys", b"{}"): ("no such key",),
    (b"\xff", b"{}"): ("key", "not text"),
    (None, b"{}"): ("no such key",),
    (b"status-task-a-\xc2\xb2", b"{}"): ("key", "no task"),
    (b"status-task-a", None): ("key", "no task"),
    (b"status-topic-a", None): ("key", "no connector"),
    (b"status-connector-a", b'{"state":"DESTROYED"}'): NO_STATE,
    (b"parquet-sink.release-a", b'{"version":9}'): ("version 9", "knows 1"),
    (b"parquet-sink.leaving-a", b'{"version":1}'): ('"member"', "not text"),
    (b"parquet-sink.folders-a", b'{"version":1}'): ('"connectors"', "not a list"),
}


@pytest.mark.parametrize(("key", "value"), UNREADABLE)
def test_a_record_that_cannot_be_read_says_why(key: bytes | None, value: bytes | None) -> None:
    """In words without its value, which may be secret."""
    with pytest.raises(Unreadable) as found:
        parsed(key, value)
    assert_says(str(found.value), *UNREADABLE[key, value])
    assert not any(word in str(found.value) for word in ("ASLEEP", "DESTROYED", "[[["))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["properties", "version", "members"]) | TEXT, inner)
    ),
    max_leaves=8,
)
VALUES = st.none() | st.binary() | JSON.map(lambda body: json.dumps(body).encode())
PREFIXES = [*CONNECT_CONFIG, *CONNECT_STATUS, b"parquet-sink.assignment", b"parquet-sink.release-", b"status-task-"]


@given(st.none() | st.binary() | st.sampled_from(PREFIXES), VALUES)
def test_no_record_is_an_exception(key: bytes | None, value: bytes | None) -> None:
    """Whatever somebody wrote to these topics, a worker goes on behind it."""
    assert ConfigState().fold([Entry(key, value, 7)]).offset == 8
    assert StatusState().fold([Entry(key, value, 7)]).offset == 8


def test_secrets_are_not_shown() -> None:
    """Configurations and keys do not get into logs by way of their records."""
    config, key = {"password": "hush"}, SessionKey(b"hush", "HmacSHA256", 1)
    state = folded(ConfigState(), records.CONNECTOR.record("a", config), records.SESSION_KEY.record("", key))
    assert (state.connectors, state.session_key) == ({"a": config}, key)
    assert "hush" not in repr((state, key))


@given(TEXT)
def test_the_name_of_the_cluster_comes_back(group: str) -> None:
    """What was written is what is read; without a value the topic is nobody's."""
    assert read_again(records.CLUSTER.record("", group)) == (records.CLUSTER, "", group)
    assert read_again(records.CLUSTER.record("", None)) == (records.CLUSTER, "", None)


def test_earlier_forms_are_read_and_later_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a program that knows two; fields that it does not know it passes over in both."""
    monkeypatch.setattr(records, "FORM", 2)
    release = Release("w", "m", 4)

    def with_more(written: Records) -> Record | None:
        ((key, value),) = written.items()
        return parsed(key, (value or b"").replace(b"{", b'{"more":[{}],', 1))

    for form in (1, 2):
        found = Assignment(1, "w", 5, {}, {}, form)
        kinds: list[tuple[records.Kind[Any], str, object]] = [
            (records.RELEASE, "a", release),
            (records.LEAVING, "w", "m"),
            (records.ASSIGNMENT, "", found),
        ]
        for kind, name, value in kinds:
            assert with_more(kind.record(name, value, form)) == (kind, name, value)
    with pytest.raises(Unreadable) as later:
        read_again(records.RELEASE.record("a", release, 3))
    assert_says(str(later.value), "version 3", "knows 2")
    with pytest.raises(Unreadable):
        parsed(b"parquet-sink.quotas", b"[1]")
