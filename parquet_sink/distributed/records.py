"""Records of the config and status topics: keys and values as Kafka Connect writes them, and those of our own.

Values are JSON without schemas; a value of None, a tombstone, removes what its key stands for. The config topic has

    connector-NAME            {"properties": {...}}
    target-state-NAME         {"state": "PAUSED", "state.v2": "STOPPED"}
    commit-NAME               {"tasks": 0}
    restart-connector-NAME    {"include-tasks": false, "only-failed": false}
    session-key               {"key": BASE64, "algorithm": "HmacSHA256", "creation-timestamp": ms}
    logger-cluster-NAMESPACE  {"level": "DEBUG"}
    parquet-sink.cluster      {"version": 1, "group": GROUP.ID}
    parquet-sink.assignment   {"version": 1, "epoch": n, "leader", "at_ms", "members": {...}, "placements": {...}}

and the status topic

    status-connector-NAME, status-task-NAME-i  {"state", "trace", "worker_id", "generation"}
    status-topic-TOPIC:connector-NAME          {"topic": {"name", "connector", "task", "discoverTimestamp"}}
    parquet-sink.release-NAME                  {"version": 1, "worker", "member", "epoch"}
    parquet-sink.leaving-WORKER                {"version": 1, "member"}

`parse_config` and `parse_status` never raise: a record of Kafka Connect's that has no meaning here is `Foreign`, and
what cannot be read, such as a version that a later release wrote, is `Unreadable`.
"""

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from parquet_sink.distributed.assignment import FORM, Assignment, MemberInfo, Placement, Release
from parquet_sink.worker.herder.values import State, TargetState

NOT_READ: Final = -1

R = TypeVar("R")

_CONNECTOR: Final = "connector-"
_TARGET: Final = "target-state-"
_RESTART: Final = "restart-connector-"
_SESSION_KEY: Final = "session-key"
_LOGGER: Final = "logger-cluster-"
_ASSIGNMENT: Final = "parquet-sink.assignment"
_CLUSTER: Final = "parquet-sink.cluster"
_TASKS: Final = "commit-"
_OF_CONNECT: Final = ("task-", _TASKS, "tasks-fencing-")
"""Tasks of Kafka Connect's: here a connector's tasks are made by its own process."""

_STATUS: Final = "status-connector-"
_TASK: Final = "status-task-"
_TOPIC: Final = "status-topic-"
_OF_CONNECTOR: Final = ":connector-"
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_RELEASE: Final = "parquet-sink.release-"
_LEAVING: Final = "parquet-sink.leaving-"


@dataclass(frozen=True)
class ConnectorConfig:
    """config: None once the connector is deleted."""

    name: str
    config: Mapping[str, str] | None = field(repr=False)


@dataclass(frozen=True)
class Target:
    """What a connector is to do. state: None once that was removed."""

    name: str
    state: TargetState | None


@dataclass(frozen=True)
class Assigned:
    """assignment: None once it was removed."""

    assignment: Assignment | None


@dataclass(frozen=True)
class RestartAsked:
    """A restart of a connector. offset: of its record in the config topic, NOT_READ before it was read from there."""

    name: str
    include_tasks: bool
    only_failed: bool
    offset: int = NOT_READ


@dataclass(frozen=True)
class SessionKey:
    """Signs requests among workers. algorithm: Java's name of it. created_ms: epoch milliseconds."""

    key: bytes = field(repr=False)
    algorithm: str
    created_ms: int


@dataclass(frozen=True)
class LoggerLevel:
    """namespace: a logger's name. level: by Kafka Connect's name; None once it was removed.

    offset: as of RestartAsked.
    """

    namespace: str
    level: str | None
    offset: int = NOT_READ


@dataclass(frozen=True)
class ConnectorReport:
    """What a connector or task does, as its worker says. trace: why it failed; empty when it did not.

    generation: of the assignment (its epoch) by which the worker had it.
    """

    state: State
    trace: str
    worker_id: str
    generation: int


@dataclass(frozen=True)
class Reported:
    """task: None for the connector itself. report: None once it was removed."""

    name: str
    task: int | None
    report: ConnectorReport | None


@dataclass(frozen=True)
class TopicUsed:
    """A connector's active topic; used: False once that was removed."""

    name: str
    topic: str
    used: bool


@dataclass(frozen=True)
class Released:
    """release: None once it was removed."""

    name: str
    release: Release | None


@dataclass(frozen=True)
class Leaving:
    """A worker was asked to stop. member_id: by which it is in the group; None once that was removed."""

    worker_id: str
    member_id: str | None


@dataclass(frozen=True)
class ClusterNamed:
    """Whose topic it is. group: its `group.id`; empty once the record was removed."""

    group: str


@dataclass(frozen=True)
class Foreign:
    """Has no meaning here."""


@dataclass(frozen=True)
class OfConnect:
    """Only Kafka Connect's leader writes it: tasks that a connector has."""


@dataclass(frozen=True)
class Unreadable:
    """why: in words without what the value holds, which may be secret."""

    why: str


ConfigRecord = (
    ConnectorConfig
    | Target
    | Assigned
    | RestartAsked
    | SessionKey
    | LoggerLevel
    | ClusterNamed
    | OfConnect
    | Foreign
    | Unreadable
)
StatusRecord = Reported | TopicUsed | Released | Leaving | Foreign | Unreadable


def connector_key(name: str) -> bytes:
    """Of a connector's configuration."""
    return f"{_CONNECTOR}{name}".encode()


def config_value(config: Mapping[str, str]) -> bytes:
    """Of a connector's configuration as it is to be stored."""
    return _dumped({"properties": dict(config)})


def target_key(name: str) -> bytes:
    """Of what a connector is to do."""
    return f"{_TARGET}{name}".encode()


def target_value(state: TargetState) -> bytes:
    """Workers of Kafka Connect before 3.5 know no STOPPED, and read PAUSED in its place."""
    older = TargetState.PAUSED if state is TargetState.STOPPED else state
    return _dumped({"state": older.value, "state.v2": state.value})


def tasks_key(name: str) -> bytes:
    """Of how many of the task configurations in the topic are a connector's, which Kafka Connect alone writes."""
    return f"{_TASKS}{name}".encode()


def no_tasks_value() -> bytes:
    """None are: a worker of Kafka Connect that reads it makes them anew, and begins nothing by those of before."""
    return _dumped({"tasks": 0})


def restart_key(name: str) -> bytes:
    """Of a request to restart a connector."""
    return f"{_RESTART}{name}".encode()


def restart_value(*, include_tasks: bool, only_failed: bool) -> bytes:
    """Of a request to restart a connector."""
    return _dumped({"include-tasks": include_tasks, "only-failed": only_failed})


SESSION_KEY: Final = _SESSION_KEY.encode()


def session_value(key: SessionKey) -> bytes:
    """Of the key that signs requests among workers."""
    encoded = base64.b64encode(key.key).decode()
    return _dumped({"key": encoded, "algorithm": key.algorithm, "creation-timestamp": key.created_ms})


def logger_key(namespace: str) -> bytes:
    """Of the level of a logger in all workers."""
    return f"{_LOGGER}{namespace}".encode()


def logger_value(level: str) -> bytes:
    """Of the level of a logger in all workers."""
    return _dumped({"level": level})


CLUSTER_KEY: Final = _CLUSTER.encode()


def cluster_value(group: str) -> bytes:
    """Of the name of the cluster whose topic it is, which its leader writes first; its form stays."""
    return _dumped({"version": 1, "group": group})


ASSIGNMENT_KEY: Final = _ASSIGNMENT.encode()


def assignment_value(assignment: Assignment) -> bytes:
    """Of the assignment."""
    members = {
        name: {"member": one.member_id, "url": one.url, "since_ms": one.since_ms}
        for name, one in assignment.members.items()
    }
    placements = {
        name: {
            "worker": one.worker,
            "from": one.source,
            "reason": one.reason,
            "epoch": one.epoch,
            "since_ms": one.since_ms,
        }
        for name, one in assignment.placements.items()
    }
    named = {"epoch": assignment.epoch, "leader": assignment.leader, "at_ms": assignment.at_ms}
    return _dumped({"version": assignment.form, **named, "members": members, "placements": placements})


def status_key(name: str, task: int | None = None) -> bytes:
    """Of the status of a connector, or of one of its tasks."""
    return (f"{_STATUS}{name}" if task is None else f"{_TASK}{name}-{task}").encode()


def status_value(state: State, trace: str, worker_id: str, generation: int) -> bytes:
    """Of a status. Kafka Connect writes null where there is no trace."""
    body = {"state": state.value, "trace": trace or None, "worker_id": worker_id, "generation": generation}
    return _dumped(body)


def topic_key(topic: str, name: str) -> bytes:
    """Of an active topic of a connector."""
    return f"{_TOPIC}{topic}{_OF_CONNECTOR}{name}".encode()


def topic_value(topic: str, name: str, task: int, discovered_ms: int) -> bytes:
    """Of an active topic of a connector. task: that used it first. discovered_ms: epoch milliseconds."""
    body = {"name": topic, "connector": name, "task": task, "discoverTimestamp": discovered_ms}
    return _dumped({"topic": body})


def release_key(name: str) -> bytes:
    """Of the last release of a connector."""
    return f"{_RELEASE}{name}".encode()


def release_value(release: Release, form: int = FORM) -> bytes:
    """Of a release. form: of the assignment that asks for it."""
    named = {"worker": release.worker_id, "member": release.member_id, "epoch": release.epoch}
    return _dumped({"version": form, **named})


def leaving_key(worker_id: str) -> bytes:
    """Of a worker that was asked to stop."""
    return f"{_LEAVING}{worker_id}".encode()


def leaving_value(member_id: str, form: int = FORM) -> bytes:
    """Of a worker that was asked to stop. member_id: what it says holds for this stay in the group alone."""
    return _dumped({"version": form, "member": member_id})


def _dumped(body: Mapping[str, object]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


class _Wrong(Exception):
    """Why a record cannot be read."""


class _Body:
    """A JSON object, read by name and type. Raises _Wrong. Names that nobody asks for are passed over."""

    def __init__(self, body: Any, what: str = "its value") -> None:
        if not isinstance(body, dict):
            raise _Wrong(f"{what} is not a JSON object")
        self.fields: Final[dict[str, Any]] = body

    def text(self, name: str) -> str:
        found = self.fields.get(name)
        if not isinstance(found, str):
            raise _Wrong(f'its "{name}" is not text')
        return found

    def optional(self, name: str) -> str:
        """Text; empty where there is none, or null."""
        return "" if self.fields.get(name) is None else self.text(name)

    def whole(self, name: str) -> int:
        found = self.fields.get(name)
        if not isinstance(found, int) or isinstance(found, bool):
            raise _Wrong(f'its "{name}" is not a whole number')
        return found

    def flag(self, name: str) -> bool:
        found = self.fields.get(name)
        if not isinstance(found, bool):
            raise _Wrong(f'its "{name}" is neither true nor false')
        return found

    def inner(self, name: str) -> "_Body":
        return _Body(self.fields.get(name), f'its "{name}"')

    def each(self, name: str) -> "list[tuple[str, _Body]]":
        """Objects by their names."""
        found = self.inner(name)
        return [(one, found.inner(one)) for one in found.fields]

    def of_ours(self) -> "_Body":
        """Itself, if its version is known. A higher one is not read: it may mean something else."""
        version = self.whole("version")
        if not 1 <= version <= FORM:
            raise _Wrong(f"it is of version {version}, and this program knows {FORM}")
        return self


def parse_config(key: bytes | None, value: bytes | None) -> ConfigRecord:
    """What a record of the config topic says."""
    return _parsed(_CONFIG_KEYS, key, value)


def parse_status(key: bytes | None, value: bytes | None) -> StatusRecord:
    """What a record of the status topic says."""
    return _parsed(_STATUS_KEYS, key, value)


def _parsed(
    keys: "Mapping[str, Callable[[str, _Body | None], R]]", key: bytes | None, value: bytes | None
) -> R | Unreadable:
    try:
        text = (key or b"").decode()
        prefix = next((one for one in keys if text == one or (text.startswith(one) and one.endswith("-"))), None)
        if prefix is None:
            return Unreadable("this program has no such key")
        return keys[prefix](text.removeprefix(prefix), None if value is None else _Body(_loaded(value)))
    except UnicodeDecodeError:
        return Unreadable("its key is not text in UTF-8")
    except _Wrong as error:
        return Unreadable(str(error))


def _loaded(value: bytes) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise _Wrong("its value is not JSON") from None


def _of_connect(name: str, body: _Body | None) -> OfConnect | Foreign:
    """That a connector has none is ours, too."""
    return Foreign() if body is None or body.fields.get("tasks") == 0 else OfConnect()


def _config(name: str, body: _Body | None) -> ConnectorConfig:
    """A key that is null is absent."""
    if body is None:
        return ConnectorConfig(name, None)
    properties = body.inner("properties")
    return ConnectorConfig(
        name, {key: properties.text(key) for key, text in properties.fields.items() if text is not None}
    )


def _target(name: str, body: _Body | None) -> Target:
    if body is None:
        return Target(name, None)
    state = body.optional("state.v2") or body.text("state")
    if state not in TargetState.__members__:
        raise _Wrong("it names no state that this program knows")
    return Target(name, TargetState(state))


def _restart(name: str, body: _Body | None) -> RestartAsked | Foreign:
    return Foreign() if body is None else RestartAsked(name, body.flag("include-tasks"), body.flag("only-failed"))


def _session_key(name: str, body: _Body | None) -> SessionKey | Foreign:
    if body is None:
        return Foreign()
    try:
        key = base64.b64decode(body.text("key"), validate=True)
    except ValueError:
        raise _Wrong('its "key" is not base64') from None
    return SessionKey(key, body.text("algorithm"), body.whole("creation-timestamp"))


def _logger(namespace: str, body: _Body | None) -> LoggerLevel:
    return LoggerLevel(namespace, None if body is None else body.text("level"))


def _cluster(name: str, body: _Body | None) -> ClusterNamed:
    return ClusterNamed("" if body is None else body.of_ours().text("group"))


def _assigned(name: str, body: _Body | None) -> Assigned:
    if body is None:
        return Assigned(None)
    form = body.of_ours().whole("version")
    members = {
        worker: MemberInfo(worker, one.text("member"), one.text("url"), one.whole("since_ms"))
        for worker, one in body.each("members")
    }
    placements = {
        connector: Placement(
            worker=one.text("worker"),
            source=one.text("from"),
            reason=one.text("reason"),
            epoch=one.whole("epoch"),
            since_ms=one.whole("since_ms"),
        )
        for connector, one in body.each("placements")
    }
    epoch, leader, at_ms = body.whole("epoch"), body.text("leader"), body.whole("at_ms")
    return Assigned(Assignment(epoch, leader, at_ms, members, placements, form))


def _of_connector(name: str, body: _Body | None) -> Reported:
    return Reported(name, None, None if body is None else _report(body))


def _of_task(name: str, body: _Body | None) -> Reported:
    connector, _, number = name.rpartition("-")
    if not _NUMBER.fullmatch(number):
        raise _Wrong("its key names no task")
    return Reported(connector, int(number), None if body is None else _report(body))


def _report(body: _Body) -> ConnectorReport:
    state = body.text("state")
    if state not in State.__members__:
        raise _Wrong("it names no state that this program knows")
    return ConnectorReport(State(state), body.optional("trace"), body.text("worker_id"), body.whole("generation"))


def _topic(name: str, body: _Body | None) -> TopicUsed:
    topic, found, connector = name.partition(_OF_CONNECTOR)
    if not found:
        raise _Wrong("its key names no connector")
    return TopicUsed(connector, topic, body is not None)


def _released(name: str, body: _Body | None) -> Released:
    if body is None:
        return Released(name, None)
    body.of_ours()
    return Released(name, Release(body.text("worker"), body.text("member"), body.whole("epoch")))


def _leaving(worker_id: str, body: _Body | None) -> Leaving:
    return Leaving(worker_id, None if body is None else body.of_ours().text("member"))


_CONFIG_KEYS: Final[Mapping[str, Callable[[str, _Body | None], ConfigRecord]]] = {
    _CONNECTOR: _config,
    _TARGET: _target,
    _RESTART: _restart,
    _SESSION_KEY: _session_key,
    _LOGGER: _logger,
    _ASSIGNMENT: _assigned,
    _CLUSTER: _cluster,
    **dict.fromkeys(_OF_CONNECT, _of_connect),
}
"""What reads a record by the name behind its prefix; a prefix ends with a hyphen, other keys are whole."""
_STATUS_KEYS: Final[Mapping[str, Callable[[str, _Body | None], StatusRecord]]] = {
    _STATUS: _of_connector,
    _TASK: _of_task,
    _TOPIC: _topic,
    _RELEASE: _released,
    _LEAVING: _leaving,
}
