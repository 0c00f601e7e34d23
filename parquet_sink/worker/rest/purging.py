"""`DELETE /connectors/{connector}?purge=true`: what a connector left goes with it, on each worker of the group.

Order: each worker looks whether it has something that is nowhere else; the connector is stopped; each worker removes
what it has; the connector is deleted. What is refused leaves it stopped, so that the request may be sent again.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote

from parquet_sink.worker.herder.errors import Elsewhere, NotLeader, NotPurged
from parquet_sink.worker.herder.protocol import Herder
from parquet_sink.worker.herder.values import State, TargetState, WorkerInfo
from parquet_sink.worker.rest.call import Call, Endpoint, Reply, RestError, as_rest_errors
from parquet_sink.worker_config.rest.roles import Role

STOP_S: Final = 60.0
"""How long the flush in progress may take to end."""
LOOK_S: Final = 0.1
_LEFT: Final = "/connectors/{connector}/left"
"""What it left on one worker: GET looks, DELETE removes it."""
_NOTHING: Final = "{error} Nothing was deleted."
_STOPPED: Final = "Connector {name} is stopped, and not deleted. {error}"
_ENDS: Final = "Connector {} is stopped, and has not ended yet, so nothing was removed; ask again."
_SILENT: Final = (
    "Worker {} does not answer: what connector {} left there stays. Remove its folder below connect.ems.tmp.dir on "
    "that machine."
)
AskWorker = Callable[[Elsewhere, str, str], Reply]
"""Asks another worker by method and path. Raises RestError where it does not answer."""


class Purging:
    """Of one worker, for whoever asks it and, by `endpoints`, for the others of its group."""

    def __init__(self, herder: Herder, ask: AskWorker) -> None:
        self._herder, self._ask = herder, ask

    def endpoints(self) -> list[Endpoint]:
        """What other workers alone may ask."""
        return [
            Endpoint("GET", _LEFT, self._look, "Whether what it left here may be removed", Role.ADMIN),
            Endpoint("DELETE", _LEFT, self._remove, "Remove what it left here", Role.ADMIN, pool="commands"),
        ]

    def _look(self, call: Call) -> Reply:
        with as_rest_errors():
            return Reply({"left": self._herder.purge(call.connector, only_look=True)})

    def _remove(self, call: Call) -> Reply:
        with as_rest_errors():
            return Reply({"left": self._herder.purge(call.connector)})

    def purge(self, name: str) -> dict[str, list[str]]:
        """What stays, and warnings of workers that do not answer. Raises HerderError, NotLeader and NotPurged too."""
        workers = self._herder.workers().workers
        leader = next((one for one in workers if one.leads), None)
        if leader is None or leader.worker_id != self._herder.worker_id:
            raise NotLeader(None if leader is None else leader.url)
        others = [one for one in workers if one is not leader]
        gone = [holder.worker_id for holder in self._herder.find_holders(name) if not holder.answers]
        with _refused(_NOTHING, name):
            self._herder.purge(name, only_look=True)
            answer = [one for one in others if self._asked(one, "GET", name) is not None]
        self._stop(name)
        with _refused(_STOPPED, name):
            left = {one.worker_id: self._asked(one, "DELETE", name) for one in answer}
            own = self._herder.purge(name)
        self._herder.delete(name)
        silent = [*(one.worker_id for one in others if left.get(one.worker_id) is None), *gone]
        found = {**left, leader.worker_id: own}
        return {
            "left": [f"{one}: {path}" if others else path for one, paths in found.items() for path in paths or ()],
            "warnings": [_SILENT.format(one, name) for one in silent],
        }

    def _asked(self, worker: WorkerInfo, method: str, name: str) -> list[str] | None:
        """What stays there; None where it does not answer, or does not know what is asked. Raises NotPurged."""
        try:
            reply = self._ask(Elsewhere(worker.url, worker.worker_id), method, _LEFT.format(connector=quote(name, "")))
        except RestError:
            return None
        found: dict[str, Any] = json.loads(reply.content)
        if reply.status == 409:
            raise NotPurged(f"Worker {worker.worker_id}: {found['message']}")
        return list(found["left"]) if reply.status == 200 else None

    def _stop(self, name: str) -> None:
        """Returns once it runs nowhere. Raises NotPurged."""
        self._herder.set_target(name, TargetState.STOPPED)
        deadline_s = time.monotonic() + STOP_S
        while self._herder.status(name).state is not State.STOPPED:
            if time.monotonic() >= deadline_s:
                raise NotPurged(_ENDS.format(name))
            time.sleep(LOOK_S)


@contextmanager
def _refused(text: str, name: str) -> Iterator[None]:
    """Within, what a worker refuses to remove is told with what was done."""
    try:
        yield
    except NotPurged as error:
        raise NotPurged(text.format(name=name, error=error)) from None
