"""Records of the config and status topics: Kafka Connect's byte for byte, ours there and back, garbage without harm."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.distributed import records
from parquet_sink.distributed.assignment import Assignment, MemberInfo, Placement, Release
from parquet_sink.distributed.records import (
    Assigned,
    ClusterNamed,
    ConnectorConfig,
    ConnectorReport,
    Foreign,
    Leaving,
    LoggerLevel,
    OfConnect,
    Released,
    Reported,
    RestartAsked,
    SessionKey,
    Target,
    TopicUsed,
    Unreadable,
    parse_config,
    parse_status,
)
from parquet_sink.worker.herder.values import State, TargetState
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

CONNECT_CONFIG = {
    b"connector-sink": (
        b'{"properties":{"name":"sink","topics":"orders"}}',
        ConnectorConfig("sink", {"name": "sink", "topics": "orders"}),
    ),
    b"target-state-sink": (b'{"state":"PAUSED","state.v2":"STOPPED"}', Target("sink", TargetState.STOPPED)),
    b"target-state-old": (b'{"state":"PAUSED"}', Target("old", TargetState.PAUSED)),
    b"restart-connector-sink": (
        b'{"include-tasks":true,"only-failed":false}',
        RestartAsked("sink", include_tasks=True, only_failed=False),
    ),
    b"session-key": (
        b'{"key":"c2VjcmV0","algorithm":"HmacSHA256","creation-timestamp":1700000000000}',
        SessionKey(b"secret", "HmacSHA256", 1_700_000_000_000),
    ),
    b"logger-cluster-org.apache": (b'{"level":"DEBUG"}', LoggerLevel("org.apache", "DEBUG")),
    b"task-sink-0": (b'{"properties":{"task.class":"T"}}', OfConnect()),
    b"commit-sink": (b'{"tasks":0}', Foreign()),
    b"commit-other": (b'{"tasks":2}', OfConnect()),
    b"tasks-fencing-sink": (b'{"task-count":1}', OfConnect()),
}
"""As Kafka Connect 4.1 writes them."""
CONNECT_STATUS = {
    b"status-connector-a-b": (
        b'{"state":"RUNNING","trace":null,"worker_id":"w:8083","generation":7}',
        Reported("a-b", None, ConnectorReport(State.RUNNING, "", "w:8083", 7)),
    ),
    b"status-task-a-1-0": (
        b'{"state":"FAILED","trace":"why","worker_id":"w:8083","generation":7}',
        Reported("a-1", 0, ConnectorReport(State.FAILED, "why", "w:8083", 7)),
    ),
    b"status-topic-orders:connector-a": (
        b'{"topic":{"name":"orders","connector":"a","task":0,"discoverTimestamp":1700000000000}}',
        TopicUsed("a", "orders", used=True),
    ),
}


@pytest.mark.parametrize("key", CONNECT_CONFIG)
def test_what_kafka_connect_wrote_in_its_config_topic_is_read(key: bytes) -> None:
    """A cluster of Kafka Connect's can be taken over with what its config topic has."""
    value, meant = CONNECT_CONFIG[key]
    assert parse_config(key, value) == meant


@pytest.mark.parametrize("key", CONNECT_STATUS)
def test_what_kafka_connect_wrote_in_its_status_topic_is_read(key: bytes) -> None:
    """Names of connectors may have hyphens, and numbers behind them."""
    value, meant = CONNECT_STATUS[key]
    assert parse_status(key, value) == meant


def test_records_are_written_as_kafka_connect_writes_them() -> None:
    """Byte for byte, so that tools that read its topics read ours."""
    running = records.status_value(State.RUNNING, "", "w:8083", 7), records.status_key("a-b")
    used = records.topic_value("orders", "a", 0, 1_700_000_000_000), records.topic_key("orders", "a")
    failed = records.status_value(State.FAILED, "why", "w:8083", 7), records.status_key("a-1", 0)
    assert {key: value for value, key in (running, failed, used)} == {k: v for k, (v, _) in CONNECT_STATUS.items()}
    written = {
        records.connector_key("sink"): records.config_value({"name": "sink", "topics": "orders"}),
        records.target_key("sink"): records.target_value(TargetState.STOPPED),
        records.restart_key("sink"): records.restart_value(include_tasks=True, only_failed=False),
        records.tasks_key("sink"): records.no_tasks_value(),
        records.SESSION_KEY: records.session_value(SessionKey(b"secret", "HmacSHA256", 1_700_000_000_000)),
        records.logger_key("org.apache"): records.logger_value("DEBUG"),
    }
    assert written == {key: CONNECT_CONFIG[key][0] for key in written}


@given(NAME, st.dictionaries(TEXT, TEXT), st.sampled_from(TargetState), ASSIGNMENTS)
def test_what_is_written_to_the_config_topic_is_read_again(
    name: str, config: Mapping[str, str], state: TargetState, assignment: Assignment
) -> None:
    """Whatever the names and texts are."""
    assert parse_config(records.connector_key(name), records.config_value(config)) == ConnectorConfig(name, config)
    assert parse_config(records.target_key(name), records.target_value(state)) == Target(name, state)
    assert parse_config(records.ASSIGNMENT_KEY, records.assignment_value(assignment)) == Assigned(assignment)


@given(NAME, st.integers(0, 999_999_999), REPORTS, st.builds(Release, TEXT, TEXT, WHOLE))
def test_what_is_written_to_the_status_topic_is_read_again(
    name: str, task: int, report: ConnectorReport, release: Release
) -> None:
    """Whatever the names and texts are."""
    value = records.status_value(report.state, report.trace, report.worker_id, report.generation)
    assert parse_status(records.status_key(name), value) == Reported(name, None, report)
    assert parse_status(records.status_key(name, task), value) == Reported(name, task, report)
    assert parse_status(records.release_key(name), records.release_value(release)) == Released(name, release)
    assert parse_status(records.leaving_key(name), records.leaving_value("m-1")) == Leaving(name, "m-1")


def test_tombstones_remove_what_their_key_stands_for() -> None:
    """Of a request, which is over, and of the session key nothing is to be removed."""
    assert parse_config(b"connector-a", None) == ConnectorConfig("a", None)
    assert parse_config(b"target-state-a", None) == Target("a", None)
    assert parse_config(b"logger-cluster-a", None) == LoggerLevel("a", None)
    assert parse_config(b"parquet-sink.assignment", None) == Assigned(None)
    assert parse_config(b"restart-connector-a", None) == parse_config(b"session-key", None) == Foreign()
    assert parse_status(b"status-connector-a", None) == Reported("a", None, None)
    assert parse_status(b"status-task-a-3", None) == Reported("a", 3, None)
    assert parse_status(b"status-topic-t:connector-a", None) == TopicUsed("a", "t", used=False)
    assert parse_status(b"parquet-sink.release-a", None) == Released("a", None)
    assert parse_status(b"parquet-sink.leaving-w", None) == Leaving("w", None)


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
}


@pytest.mark.parametrize(("key", "value"), UNREADABLE)
def test_a_record_that_cannot_be_read_says_why(key: bytes | None, value: bytes | None) -> None:
    """In words without its value, which may be secret."""
    of_status = (key or b"").startswith((b"status", b"parquet-sink.release", b"parquet-sink.leaving"))
    found = (parse_status if of_status else parse_config)(key, value)
    assert isinstance(found, Unreadable)
    assert_says(found.why, *UNREADABLE[key, value])
    assert not any(word in found.why for word in ("ASLEEP", "DESTROYED", "[[["))


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
    """Whatever somebody wrote to these topics, a worker goes on."""
    assert parse_config(key, value) is not None
    assert parse_status(key, value) is not None


def test_secrets_are_not_shown() -> None:
    """Configurations and keys do not get into logs by way of their records."""
    shown = repr((ConnectorConfig("a", {"password": "hush"}), SessionKey(b"hush", "HmacSHA256", 1)))
    assert "hush" not in shown


@given(TEXT)
def test_the_name_of_the_cluster_comes_back(group: str) -> None:
    """What was written is what is read; without a value the topic is nobody's."""
    assert parse_config(records.CLUSTER_KEY, records.cluster_value(group)) == ClusterNamed(group)
    assert parse_config(records.CLUSTER_KEY, None) == ClusterNamed("")


def test_earlier_forms_are_read_and_later_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a program that knows two; fields that it does not know it passes over in both."""
    monkeypatch.setattr(records, "FORM", 2)
    release = Release("w", "m", 4)
    for form in (1, 2):
        value = records.release_value(release, form).replace(b"{", b'{"more":[{}],', 1)
        assert parse_status(records.release_key("a"), value) == Released("a", release)
        assert parse_status(records.leaving_key("w"), records.leaving_value("m", form)) == Leaving("w", "m")
        found = Assignment(1, "w", 5, {}, {}, form)
        assert parse_config(records.ASSIGNMENT_KEY, records.assignment_value(found)) == Assigned(found)
    later = parse_status(records.release_key("a"), records.release_value(release, 3))
    assert isinstance(later, Unreadable)
    assert_says(later.why, "version 3", "knows 2")
    assert isinstance(parse_config(b"parquet-sink.quotas", b"[1]"), Unreadable)
