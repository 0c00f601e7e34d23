"""The answer of `/progress` as values. Fields that a newer worker adds are passed over."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from parquet_sink.errors import WorkerRefused
from parquet_sink.worker.herder.values import (
    ConnectorProgress,
    ConnectorStatus,
    Flushing,
    LastError,
    LastUpload,
    PartitionProgress,
    State,
    TaskStatus,
)

T = TypeVar("T")


def read_progress(found: Iterable[Mapping[str, Any]]) -> list[ConnectorProgress]:
    """Raises WorkerRefused when it is something else."""
    try:
        return [_connector(one) for one in found]
    except (KeyError, TypeError, ValueError) as error:
        raise WorkerRefused(
            f"The worker's answer is not understood ({type(error).__name__}: {error}): it is of another version."
        ) from None


def all_well(progress: Sequence[ConnectorProgress]) -> bool:
    """Whether no connector and no task failed."""
    return not any(state is State.FAILED for one in progress for state in _states(one))


def _states(one: ConnectorProgress) -> Iterator[State]:
    yield one.status.state
    yield from (task.state for task in one.status.tasks)


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
    )


def _status(one: Mapping[str, Any]) -> ConnectorStatus:
    tasks = tuple(_made(TaskStatus, task, state=State(task["state"])) for task in one["tasks"])
    return _made(ConnectorStatus, one, state=State(one["state"]), tasks=tasks)


def _made(kind: type[T], content: Mapping[str, Any], **read: Any) -> T:
    """A value of a class from fields of the same name, but for those that were read already."""
    known = {one.name for one in fields(kind) if one.default is MISSING or one.name in content}  # type: ignore[arg-type]
    return kind(**{name: read[name] if name in read else content[name] for name in known})
