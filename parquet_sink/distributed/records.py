"""Kinds of records in the config and status topics: keys and values as Kafka Connect has them, and those of our own.

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
    parquet-sink.folders-WORKER                {"version": 1, "connectors": [...]}

To add one: a `Kind` below, and its place in CONFIG_KINDS or STATUS_KINDS.
"""

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Generic, NamedTuple, TypeVar

from parquet_sink.distributed.assignment import FORM, Assignment, MemberInfo, Placement, Release
from parquet_sink.worker.herder.values import State, TargetState

_OURS: Final = "parquet-sink."
_OF_CONNECTOR: Final = ":connector-"
_IS_NOT: Final = {str: "not text", int: "not a whole number", bool: "neither true nor false", list: "not a list"}
_TASK_NAME: Final = re.compile(r"(.*)-([0-9]{1,9})", re.DOTALL)
E = TypeVar("E", bound=StrEnum)
V = TypeVar("V")
Records = Mapping[bytes, bytes | None]
"""As they are written: values by key; None removes one."""


class Entry(NamedTuple):
    """A record as it stands in a topic. value: None is a tombstone."""

    key: bytes | None
    value: bytes | None
    offset: int


class Unreadable(Exception):
    """Why a record cannot be read: in words without what its value holds, which may be secret."""


class Body:
    """A JSON object, read by name and type. Raises Unreadable. Names that nobody asks for are passed over."""

    def __init__(self, body: Any, what: str = "its value") -> None:
        if not isinstance(body, dict):
            raise Unreadable(f"{what} is not a JSON object")
        self.fields: Final[dict[str, Any]] = body

    def of(self, kind: type[V], name: str) -> V:
        """Text, a whole number, a flag, or a list."""
        found = self.fields.get(name)
        if type(found) is not kind:
            raise Unreadable(f'its "{name}" is {_IS_NOT[kind]}')
        return found

    def text(self, name: str) -> str:
        return self.of(str, name)

    def optional(self, name: str) -> str:
        """Text; empty where there is none, or null."""
        return "" if self.fields.get(name) is None else self.text(name)

    def one_of(self, states: type[E], name: str) -> E:
        if (found := self.text(name)) not in states.__members__:
            raise Unreadable("it names no state that this program knows")
        return states(found)

    def inner(self, name: str) -> "Body":
        return Body(self.fields.get(name), f'its "{name}"')

    def each(self, name: str) -> "list[tuple[str, Body]]":
        """Objects by their names."""
        found = self.inner(name)
        return [(one, found.inner(one)) for one in found.fields]


@dataclass(frozen=True, eq=False)
class Kind(Generic[V]):
    """A kind of records, each the value of a name.

    prefix: of keys, before the name. It ends with a hyphen, or is all of the only key: then the name is "".
    write: what the JSON object of a value has. read: the value again; None: it means nothing here. Raises Unreadable.
    stays: whether a tombstone changes nothing. check_name: raises Unreadable for what is no name of this kind.
    Our own kinds also have the version of their form; one that a later release wrote may mean something else.
    """

    prefix: str
    write: Callable[[V], Mapping[str, object]]
    read: Callable[[Body], V | None]
    stays: bool = False
    check_name: Callable[[str], object] = str

    @property
    def is_ours(self) -> bool:
        return self.prefix.startswith(_OURS)

    def key(self, name: str = "") -> bytes:
        return f"{self.prefix}{name}".encode()

    def record(self, name: str, value: V | None, form: int = 1) -> Records:
        """What gives a name this value; None removes it. form: of a kind of our own, that all in the group read."""
        if value is None:
            return {self.key(name): None}
        version = {"version": form} if self.is_ours else {}
        return {self.key(name): json.dumps({**version, **self.write(value)}, separators=(",", ":")).encode()}


class Record(NamedTuple):
    """What was read. value: None for one that was removed."""

    kind: Kind[Any]
    name: str
    value: Any


def parse(kinds: Sequence[Kind[Any]], entry: Entry) -> Record | None:
    """What a record of a topic with these kinds says; None: nothing that has a meaning here. Raises Unreadable."""
    kind, name = _kind_of(kinds, entry.key or b"")
    kind.check_name(name)
    if entry.value is None:
        return None if kind.stays else Record(kind, name, None)
    try:
        body = Body(json.loads(entry.value))
    except (ValueError, RecursionError):
        raise Unreadable("its value is not JSON") from None
    if kind.is_ours and not 1 <= (version := body.of(int, "version")) <= FORM:
        raise Unreadable(f"it is of version {version}, and this program knows {FORM}")
    value = kind.read(body)
    return None if value is None else Record(kind, name, value)


def _kind_of(kinds: Sequence[Kind[Any]], key: bytes) -> tuple[Kind[Any], str]:
    """And the name of which it has the value."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        raise Unreadable("its key is not text in UTF-8") from None
    for kind in kinds:
        if text == kind.prefix or (text.startswith(kind.prefix) and kind.prefix.endswith("-")):
            return kind, text.removeprefix(kind.prefix)
    raise Unreadable("this program has no such key")


@dataclass(frozen=True)
class RestartAsked:
    """How a connector is to be started again."""

    include_tasks: bool
    only_failed: bool


@dataclass(frozen=True)
class SessionKey:
    """Signs requests among workers. algorithm: Java's name of it. created_ms: epoch milliseconds."""

    key: bytes = field(repr=False)
    algorithm: str
    created_ms: int


@dataclass(frozen=True)
class ConnectorReport:
    """What a connector or task does, as its worker says. trace: why it failed; empty when it did not.

    generation: of the assignment (its epoch) by which the worker had it.
    """

    state: State
    trace: str
    worker_id: str
    generation: int


def _config(body: Body) -> Mapping[str, str]:
    """A key that is null is absent."""
    properties = body.inner("properties")
    return {key: properties.text(key) for key, text in properties.fields.items() if text is not None}


def _target(state: TargetState) -> Mapping[str, object]:
    """Workers of Kafka Connect before 3.5 know no STOPPED, and read PAUSED in its place."""
    older = TargetState.PAUSED if state is TargetState.STOPPED else state
    return {"state": older, "state.v2": state}


def _session_key_body(key: SessionKey) -> Mapping[str, object]:
    encoded = base64.b64encode(key.key).decode()
    return {"key": encoded, "algorithm": key.algorithm, "creation-timestamp": key.created_ms}


def _session_key(body: Body) -> SessionKey:
    try:
        key = base64.b64decode(body.text("key"), validate=True)
    except ValueError:
        raise Unreadable('its "key" is not base64') from None
    return SessionKey(key, body.text("algorithm"), body.of(int, "creation-timestamp"))


def _assignment_body(assignment: Assignment) -> Mapping[str, object]:
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
    return {**named, "members": members, "placements": placements}


def _assignment(body: Body) -> Assignment:
    members = {
        worker: MemberInfo(worker, one.text("member"), one.text("url"), one.of(int, "since_ms"))
        for worker, one in body.each("members")
    }
    placements = {
        connector: Placement(
            worker=one.text("worker"),
            source=one.text("from"),
            reason=one.text("reason"),
            epoch=one.of(int, "epoch"),
            since_ms=one.of(int, "since_ms"),
        )
        for connector, one in body.each("placements")
    }
    epoch, leader, at_ms = body.of(int, "epoch"), body.text("leader"), body.of(int, "at_ms")
    return Assignment(epoch, leader, at_ms, members, placements, body.of(int, "version"))


def _report_body(report: ConnectorReport) -> Mapping[str, object]:
    """Kafka Connect writes null where there is no trace."""
    named = {"worker_id": report.worker_id, "generation": report.generation}
    return {"state": report.state, "trace": report.trace or None, **named}


def _report(body: Body) -> ConnectorReport:
    state, trace = body.one_of(State, "state"), body.optional("trace")
    return ConnectorReport(state, trace, body.text("worker_id"), body.of(int, "generation"))


def _of_connect(prefix: str) -> Kind[object]:
    """Only Kafka Connect writes it: its tasks. That a connector has none is ours, too, and means nothing here."""
    return Kind(
        prefix,
        lambda count: {"tasks": count},
        lambda body: None if body.fields.get("tasks") == 0 else body.fields,
        stays=True,
    )


def task_name(connector: str, task: int) -> str:
    """Of a task, in keys."""
    return f"{connector}-{task}"


def task_of(name: str) -> tuple[str, int]:
    """Connector and number. Raises Unreadable."""
    if (found := _TASK_NAME.fullmatch(name)) is None:
        raise Unreadable("its key names no task")
    return found[1], int(found[2])


def topic_name(topic: str, connector: str) -> str:
    """Of an active topic of a connector, in keys."""
    return f"{topic}{_OF_CONNECTOR}{connector}"


def topic_of(name: str) -> tuple[str, str]:
    """Topic and connector. Raises Unreadable."""
    topic, found, connector = name.partition(_OF_CONNECTOR)
    if not found:
        raise Unreadable("its key names no connector")
    return topic, connector


CONNECTOR: Final = Kind[Mapping[str, str]]("connector-", lambda config: {"properties": dict(config)}, _config)
"""The configuration of a connector."""
TARGET: Final = Kind[TargetState](
    "target-state-",
    _target,
    lambda body: body.one_of(TargetState, "state.v2" if body.optional("state.v2") else "state"),
)
"""What a connector is to do; it may come before its configuration."""
RESTART: Final = Kind[RestartAsked](
    "restart-connector-",
    lambda asked: {"include-tasks": asked.include_tasks, "only-failed": asked.only_failed},
    lambda body: RestartAsked(body.of(bool, "include-tasks"), body.of(bool, "only-failed")),
    stays=True,
)
"""The last request to start a connector again; one that was made before a worker began to read is over."""
SESSION_KEY: Final = Kind[SessionKey]("session-key", _session_key_body, _session_key, stays=True)
LOGGER: Final = Kind[str]("logger-cluster-", lambda level: {"level": level}, lambda body: body.text("level"))
"""The level of a logger in all workers, by Kafka Connect's name. A later one counts also for loggers below."""
ASSIGNMENT: Final = Kind[Assignment](f"{_OURS}assignment", _assignment_body, _assignment)
CLUSTER: Final = Kind[str](f"{_OURS}cluster", lambda group: {"group": group}, lambda body: body.text("group"))
"""The `group.id` of the cluster whose topic it is, which its leader writes first; its form stays."""
TASKS: Final = _of_connect("commit-")
"""How many of the task configurations in the topic are a connector's, for Kafka Connect, if it takes the topics over.

This program writes 0 with another configuration or a stop: tasks of before would run by what they had at first.
"""
OF_CONNECT: Final = (TASKS, _of_connect("task-"), _of_connect("tasks-fencing-"))
"""Here a connector's tasks are made by its own process."""
CONFIG_KINDS: Final[Sequence[Kind[Any]]] = (
    CONNECTOR,
    TARGET,
    RESTART,
    SESSION_KEY,
    LOGGER,
    ASSIGNMENT,
    CLUSTER,
    *OF_CONNECT,
)

STATUS: Final = Kind[ConnectorReport]("status-connector-", _report_body, _report)
TASK_STATUS: Final = Kind[ConnectorReport]("status-task-", _report_body, _report, check_name=task_of)
TOPIC: Final = Kind[Mapping[str, object]](
    "status-topic-", lambda body: {"topic": body}, lambda body: body.fields, check_name=topic_of
)
"""That a topic is an active one of a connector: see `topic_used`."""
RELEASE: Final = Kind[Release](
    f"{_OURS}release-",
    lambda release: {"worker": release.worker_id, "member": release.member_id, "epoch": release.epoch},
    lambda body: Release(body.text("worker"), body.text("member"), body.of(int, "epoch")),
)
"""The last release of a connector."""
LEAVING: Final = Kind[str](
    f"{_OURS}leaving-", lambda member_id: {"member": member_id}, lambda body: body.text("member")
)
"""A worker was asked to stop. Its value, a member id, says for which stay in the group that holds."""
FOLDERS: Final = Kind[frozenset[str]](
    f"{_OURS}folders-",
    lambda connectors: {"connectors": sorted(connectors)},
    lambda body: frozenset(map(str, body.of(list, "connectors"))),
)
"""Connectors that have a folder at a worker, by its id. It stays when the worker stops: then nobody else knows them."""
STATUS_KINDS: Final[Sequence[Kind[Any]]] = (STATUS, TASK_STATUS, TOPIC, RELEASE, LEAVING, FOLDERS)


def topic_used(topic: str, connector: str, task: int, discovered_ms: int) -> Records:
    """Of an active topic. task: that used it first. discovered_ms: epoch milliseconds."""
    body = {"name": topic, "connector": connector, "task": task, "discoverTimestamp": discovered_ms}
    return TOPIC.record(topic_name(topic, connector), body)
