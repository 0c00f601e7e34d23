"""A command that a worker runs as a job: begun, followed to its end, and stopped by Ctrl-C."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Final

from rich.progress import TextColumn

from parquet_sink.cli.progress import ShownProgress
from parquet_sink.cli.worker_api.remote import RemoteConnector
from parquet_sink.config.report import printable
from parquet_sink.errors import ConnectorError

LOOK_S: Final = 0.3
_STOPPING: Final = "parquet-sink: the worker stops it after what is on its way; once more leaves it to itself"


def run_job(
    connector: RemoteConnector,
    path: Sequence[str],
    options: Mapping[str, object],
    *,
    logs: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """The exit status of the command, whose lines are printed as they come. Raises what `WorkerApi` raises.

    options: of the request; None and False are left out. logs: whether progress is logged where there is no bar.
    """
    given = {name: value for name, value in options.items() if value is not None and value is not False}
    job = connector.ask("POST", path, content=given)
    asked_to_stop = False
    with _Bar(connector.name, logs=logs) as bar:
        while True:
            try:
                job = _next(connector, job)
                bar.show(job["progress"])
                for one in job["lines"]:
                    print(printable(one["text"]), file=sys.stderr if one["error"] else sys.stdout, flush=True)
                if job["state"] == "ENDED" and not job["more"]:
                    status = int(job["exit_status"])
                    if status < 0:
                        raise ConnectorError(f"The worker's process for it was killed by signal {-status}.")
                    return status
                if not job["more"]:
                    sleep(LOOK_S)
            except KeyboardInterrupt:
                if asked_to_stop:
                    raise
                asked_to_stop = True
                print(_STOPPING, file=sys.stderr)
                connector.ask("DELETE", ("jobs", job["id"]))


def _next(connector: RemoteConnector, job: Mapping[str, Any]) -> Any:
    return connector.get("jobs", job["id"], after=job["next"])


class _Bar(AbstractContextManager["_Bar"]):
    """A bar once it is known how much there is to do."""

    def __init__(self, connector: str, *, logs: bool) -> None:
        self._connector, self._logs = connector, logs
        self._parts = ExitStack()
        self._shown: ShownProgress | None = None
        self._done = 0

    def __exit__(self, *error: object) -> None:
        self._parts.close()

    def show(self, progress: Mapping[str, Any] | None) -> None:
        """How far it is."""
        if progress is None:
            return
        if self._shown is None:
            columns = (TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.fields[told]}"))
            made = ShownProgress(f"connector {self._connector}", progress["total"], *columns, logs=self._logs)
            self._shown = self._parts.enter_context(made)
        self._shown.advance(progress["done"] - self._done, progress["told"])
        self._done = progress["done"]
