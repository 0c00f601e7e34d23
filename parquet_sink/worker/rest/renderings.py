"""What the worker reports, as Kafka Connect's JSON: names and order of fields are its own. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, fields
from typing import Any, Final, TypeVar

from parquet_sink import __version__
from parquet_sink.connectors import connector_class
from parquet_sink.connectors.class_keys import keys_of
from parquet_sink.connectors.connector_class import DEFAULT_CLASS, find_class
from parquet_sink.connectors.hidden import hide, hide_more
from parquet_sink.errors import WorkerRefused
from parquet_sink.plugins import PluginUnusable
from parquet_sink.worker.herder.values import (
    ConnectorInfo,
    ConnectorProgress,
    ConnectorStatus,
    Flushing,
    FlushReport,
    LastError,
    LastUpload,
    LiveWarning,
    PartitionProgress,
    State,
    StoredOffset,
    TaskStatus,
    WarningKind,
    Workers,
)
from parquet_sink.worker_config.rest.roles import Role

CLASS: Final = "connector.class"
T = TypeVar("T")


def type_of(config: Mapping[str, str]) -> str:
    """`sink` or `source`; `unknown` where the class is not there any more."""
    try:
        return connector_class.type_of(find_class(config.get(CLASS, "").strip() or DEFAULT_CLASS))
    except PluginUnusable:
        return "unknown"


def config_of(config: Mapping[str, str], role: Role) -> dict[str, str]:
    """The configuration without its passwords; for a viewer without all that may be sensitive."""
    return (hide_more if role is Role.VIEWER else hide)(config, keys_of(config))


def info(found: ConnectorInfo, role: Role) -> dict[str, Any]:
    """A connector, as `GET /connectors/{name}` has it."""
    return {
        "name": found.name,
        "config": config_of(found.config, role),
        "tasks": [_task_id(found.name, number) for number in range(found.tasks)],
        "type": type_of(found.config),
    }


def changed(found: ConnectorInfo, role: Role) -> dict[str, Any]:
    """The answer to who made or changed it: Kafka Connect's, and what is warned about, where there is anything."""
    return info(found, role) | ({"warnings": list(found.warnings)} if found.warnings else {})


def tasks(found: ConnectorInfo, role: Role) -> list[dict[str, Any]]:
    """The connector's tasks, each with the connector's configuration."""
    config = config_of(found.config, role)
    return [{"id": _task_id(found.name, number), "config": config} for number in range(found.tasks)]


def tasks_config(found: ConnectorInfo, role: Role) -> dict[str, Any]:
    """The connector's configuration by task."""
    config = config_of(found.config, role)
    return {f"{found.name}-{number}": config for number in range(found.tasks)}


def status(found: ConnectorStatus, type_: str) -> dict[str, Any]:
    """States and traces, without a trace where there is none."""
    return {
        "name": found.name,
        "connector": _state(found.state, found.worker_id, found.trace),
        "tasks": [task(one) for one in found.tasks],
        "type": type_,
    }


def task(found: TaskStatus) -> dict[str, Any]:
    """One task's state."""
    return {"id": found.id, **_state(found.state, found.worker_id, found.trace)}


def offsets(found: Sequence[StoredOffset], *, ends: bool) -> dict[str, Any]:
    """Where a connector goes on; with the ends of topic-partitions, which Kafka Connect does not report, if asked."""
    listed = [{"partition": one.partition, "offset": one.offset} for one in found]
    return {"offsets": [{**one, "end": of.end} for one, of in zip(listed, found, strict=True)] if ends else listed}


def progress(found: Sequence[ConnectorProgress]) -> list[dict[str, Any]]:
    """How connectors stand, in the field names of `worker.herder.values`."""
    return [asdict(one) for one in found]


def flush(found: FlushReport) -> dict[str, Any]:
    """How far a flush got, in the field names of `worker.herder.values`."""
    return asdict(found)


def workers(found: Workers) -> dict[str, Any]:
    """All workers and what each has, in the field names of `worker.herder.values`."""
    return asdict(found)


def read_progress(found: Iterable[Mapping[str, Any]]) -> list[ConnectorProgress]:
    """Raises WorkerRefused when it is something else."""
    try:
        return [_connector(one) for one in found]
    except (KeyError, TypeError, ValueError) as error:
        raise WorkerRefused(
            f"The worker's answer is not understood ({type(error).__name__}: {error}): it is of another version."
        ) from None


def _connector(one: Mapping[str, Any]) -> ConnectorProgress:
    upload, error, flushing = one.get("last_upload"), one.get("last_error"), one.get("flushing")
    return _made(
        ConnectorProgress,
        one,
        status=_status(one["status"]),
        last_upload=None if upload is None else _made(LastUpload, upload),
        last_error=None if error is None else _made(LastError, error),
        flushing=None if flushing is None else _made(Flushing, flushing),
        partitions=tuple(_made(PartitionProgress, partition) for partition in one["partitions"]),
        live_warnings=tuple(
            _made(LiveWarning, found, kind=WarningKind(found["kind"])) for found in one.get("live_warnings", ())
        ),
    )


def _status(one: Mapping[str, Any]) -> ConnectorStatus:
    tasks = tuple(_made(TaskStatus, task, state=State(task["state"])) for task in one["tasks"])
    return _made(ConnectorStatus, one, state=State(one["state"]), tasks=tasks)


def _made(kind: type[T], content: Mapping[str, Any], /, **read: Any) -> T:
    """A value of a class from fields of the same name, but for those that were read already."""
    known = {one.name for one in fields(kind) if one.default is MISSING or one.name in content}  # type: ignore[arg-type]
    return kind(**{name: read[name] if name in read else content[name] for name in known})


def _task_id(connector: str, number: int) -> dict[str, Any]:
    return {"connector": connector, "task": number}


def _state(state: State, worker_id: str, trace: str) -> dict[str, Any]:
    known = {"state": state.value, "worker_id": worker_id, "version": __version__}
    return {**known, "trace": trace} if trace else known
