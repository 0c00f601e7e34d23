"""What a worker asks of others by their REST APIs: requests sent on, and how their connectors stand."""

import json
import logging
import ssl
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Final

from requests import Request

from parquet_sink.errors import WorkerRefused
from parquet_sink.net.exchange import Answer, FailureKind, Limits, RequestFailed
from parquet_sink.net.session import HttpSession
from parquet_sink.process.threads import in_thread
from parquet_sink.worker.herder.errors import Elsewhere
from parquet_sink.worker.herder.values import ConnectorProgress
from parquet_sink.worker.rest.call import Reply, RestError
from parquet_sink.worker.rest.peers import NOT_BELIEVED, Forwarded
from parquet_sink.worker.rest.renderings import read_progress

FORWARDED_BY: Final = "X-Parquet-Sink-Forwarded-By"
"""Header with the worker that sent a request on: it is sent on once."""
_FORWARD: Final = Limits(100.0, 3.0, 95.0, 64 * 1024 * 1024)
_LOOK: Final = Limits(10.0, 3.0, 10.0, 64 * 1024 * 1024)
"""Of a request that changes nothing, and may be sent again: a worker that hangs is not waited for."""
_PROGRESS: Final = Limits(3.0, 1.0, 3.0, 64 * 1024 * 1024)
_KEPT: Final = frozenset({"content-type", "accept"})
"""Headers that a request keeps on its way to the worker, which believes the signature: who asked signed in here."""
_RETURNED: Final = ("Location", "Retry-After", "WWW-Authenticate")
_UNDONE: Final = frozenset({FailureKind.CONNECT, FailureKind.CONNECT_TIMEOUT, FailureKind.TLS})
"""Failures at which the other worker has seen nothing of the request."""
_KEEPALIVE_S: Final = 10.0
log = logging.getLogger(__name__)


class WorkerCalls:
    """Threads may share it. context: of TLS. sign: gives what proves to the worker at a URL whose request it is."""

    def __init__(
        self,
        worker_id: str,
        context: Callable[[], ssl.SSLContext],
        sign: Callable[[str, Forwarded], Mapping[str, str]],
    ) -> None:
        self._worker_id, self._context, self._sign = worker_id, context, sign
        self._sessions: dict[str, HttpSession] = {}
        self._lock = Lock()

    def _session(self, url: str) -> HttpSession:
        with self._lock:
            if url not in self._sessions:
                self._sessions[url] = HttpSession(self._context(), max_idle=4, keepalive_seconds=_KEEPALIVE_S)
            return self._sessions[url]

    def _exchange(self, url: str, asked: Forwarded, limits: Limits) -> Answer:
        headers = {**asked.headers, **self._sign(url, asked)}
        request = Request(asked.method, url + asked.target, headers=headers, data=asked.body or None)
        return self._session(url).exchange(request, limits)

    def forward(self, elsewhere: Elsewhere, request: Forwarded) -> Reply:
        """The other worker's answer, as it is. Raises RestError where there is none."""
        url, undone = elsewhere.url, RestError(409, str(elsewhere), {"Retry-After": "1"})
        if url is None or FORWARDED_BY.lower() in request.headers:
            raise undone
        kept = {name: text for name, text in request.headers.items() if name in _KEPT}
        asked = replace(request, headers={**kept, FORWARDED_BY: self._worker_id})
        try:
            answer = self._exchange(url, asked, _LOOK if request.method == "GET" else _FORWARD)
        except RequestFailed as error:
            log.info("the worker at %s did not answer: %s %s", url, error.kind, error.detail)
            raise (undone if error.kind in _UNDONE else RestError(500, _UNKNOWN.format(url))) from None
        if answer.status == 403 and NOT_BELIEVED.encode() in answer.body:
            raise undone
        found = {name: answer.headers[name.lower()] for name in _RETURNED if name.lower() in answer.headers}
        media_type = answer.headers.get("content-type", "application/json")
        return Reply(answer.body or None, answer.status, found, media_type)

    def progress(self, urls: Mapping[str, str]) -> Sequence[ConnectorProgress]:
        """Of connectors of other workers, by worker id and URL; nothing of those that do not answer in time."""
        asked = [in_thread(partial(self._progress_of, url)) for url in urls.values()]
        done, _ = wait(asked, _PROGRESS.total_seconds + 1.0)
        return [one for future in done for one in future.result()]

    def _progress_of(self, url: str) -> Sequence[ConnectorProgress]:
        try:
            asked = Forwarded("GET", "/progress?scope=worker", {"Accept": "application/json"}, b"")
            answer = self._exchange(url, asked, _PROGRESS)
            return read_progress(json.loads(answer.body)) if answer.status == 200 else ()
        except (RequestFailed, WorkerRefused, ValueError, RecursionError) as error:
            log.debug("the worker at %s does not say how its connectors stand: %s", url, error)
            return ()

    def close(self) -> None:
        """Its connections."""
        for session in self._sessions.values():
            session.close()


_UNKNOWN: Final = (
    "The worker at {} did not answer to the end; it may have done what was asked for. Look before you repeat it."
)
