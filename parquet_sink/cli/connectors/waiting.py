"""Until the worker reports that a connector is as it was told to be."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Any, Final

from parquet_sink.cli.worker_api.api import WorkerApi
from parquet_sink.errors import WorkerRefused

LOOK_S: Final = 0.25
STALE_S: Final = 5.0
"""How long after a restart a FAILED may be the one from before."""


class Wanted(StrEnum):
    """What is waited for."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


def wait_until(
    api: WorkerApi,
    name: str,
    wanted: Wanted,
    most_s: float,
    *,
    stale: bool = False,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Mapping[str, Any]:
    """The status, once connector and tasks are so. Raises WorkerRefused when it failed, or after that many seconds.

    stale: it may have failed before, and be reported so for a moment.
    """
    start = clock()
    while True:
        status = _status(api, name)
        if status is not None and _is(status, wanted):
            return status
        waited = clock() - start
        if status is not None and not (stale and waited < STALE_S) and (why := _failure(status)) is not None:
            raise WorkerRefused(f"it failed: {why}")
        if waited >= most_s:
            raise WorkerRefused(f"it is not {wanted} after {most_s:g} s, but {_told(status)}{_reason(api, name)}")
        pause(min(LOOK_S, most_s))


def wait_until_gone(
    api: WorkerApi,
    name: str,
    most_s: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Until the worker has no status of it. Raises WorkerRefused after that many seconds."""
    start = clock()
    while (status := _status(api, name)) is not None:
        if clock() - start >= most_s:
            raise WorkerRefused(f"it is not gone after {most_s:g} s, but {_told(status)}")
        pause(min(LOOK_S, most_s))


def _status(api: WorkerApi, name: str) -> Mapping[str, Any] | None:
    """None while the worker has none, or none yet."""
    try:
        found: Mapping[str, Any] = api.get("connectors", name, "status")
    except WorkerRefused as error:
        if error.status == 404:
            return None
        raise
    return found


def _reason(api: WorkerApi, name: str) -> str:
    """What it waits for, of a worker that says so: those of Kafka Connect do not."""
    with suppress(WorkerRefused, KeyError, TypeError):
        for one in api.get("progress"):
            if one["status"]["name"] == name and one["status"]["waits_for"]:
                return f": {one['status']['waits_for']}"
    return ""


def _is(status: Mapping[str, Any], wanted: Wanted) -> bool:
    if status["connector"]["state"] != wanted:
        return False
    if wanted is Wanted.STOPPED:
        return not status["tasks"]
    return bool(status["tasks"]) and all(task["state"] == wanted for task in status["tasks"])


def _failure(status: Mapping[str, Any]) -> str | None:
    """The first line of why connector or task failed; None when none did."""
    return next((_first_line(one) for one in _all(status) if one["state"] == "FAILED"), None)


def _first_line(one: Mapping[str, Any]) -> str:
    lines = str(one.get("trace", "")).splitlines()
    return lines[0] if lines else "no trace; see its status"


def _told(status: Mapping[str, Any] | None) -> str:
    if status is None:
        return "unknown to the worker"
    return ", ".join(dict.fromkeys(str(one["state"]) for one in _all(status)))


def _all(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield status["connector"]
    yield from status["tasks"]
