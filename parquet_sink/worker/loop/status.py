"""What a connector does now, in one word, by its events."""

from enum import StrEnum
from typing import Final

from parquet_sink.model.events import (
    ConnectorFailed,
    ConnectorRunning,
    ConnectorStarting,
    ConnectorStopped,
    ConnectorStopping,
    Event,
)


class Status(StrEnum):
    """What a connector does now."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    DONE = "done"
    FAILED = "failed"


_TOLD_BY: Final[dict[type[Event], Status]] = {
    ConnectorStarting: Status.STARTING,
    ConnectorRunning: Status.RUNNING,
    ConnectorStopping: Status.STOPPING,
    ConnectorStopped: Status.DONE,
    ConnectorFailed: Status.FAILED,
}


def status_after(event: Event, before: Status | None) -> Status | None:
    """The status after an event; `before`, when it changes none.

    `ConnectorRunning` comes from another process, and may be read only after a stop was asked for.
    """
    after = _TOLD_BY.get(type(event), before)
    if after is Status.RUNNING and before in {Status.STOPPING, Status.DONE, Status.FAILED}:
        return before
    return after
