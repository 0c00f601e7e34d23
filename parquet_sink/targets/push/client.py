"""The push API as its client: one attempt to send one file.

The request is the reference connector's: POST to the configured address, parameters in a fixed order, one multipart
part. What it comes to is classified in `outcome`; trying again is the business of `retry`.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

import requests
import urllib3

from parquet_sink import __version__
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.net.deadline import AttemptDeadline
from parquet_sink.net.failures import failure_of
from parquet_sink.net.tls import tls_context
from parquet_sink.net.transport import open_session
from parquet_sink.targets import outcome
from parquet_sink.targets.outcome import Answer, Failure, Outcome
from parquet_sink.targets.push.body import EmptyForm, MultipartFile
from parquet_sink.targets.push.settings import PushSettings

MOST_ANSWER_BYTES: Final = 64 * 1024
MOST_CLIENTS: Final = 16


class PushClient:
    """Sends files to one target through pooled connections; threads may share it.

    Raises InvalidConfiguration when the CA file cannot be read.
    """

    def __init__(
        self, settings: PushSettings, client_version: str = __version__, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._settings = settings
        self._url = push_url(settings, client_version)
        self._session = open_session(settings, tls_context(settings.ca_file, environment))
        self._session.headers.clear()
        self._session.headers.update(_headers(settings, client_version))
        self._secrets = _secrets(settings)

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        """One attempt, within `seconds_left`. Raises StorageFailed when the file cannot be read; nothing else."""
        return self._attempt(MultipartFile(file.path, file.name, file.size_bytes), seconds_left)

    def probe(self, seconds_left: float) -> Outcome:
        """What the target says to a form without a file; a push target refuses it with 400. Stores nothing."""
        return self._attempt(EmptyForm(), seconds_left)

    def _attempt(self, body: MultipartFile | EmptyForm, seconds_left: float) -> Outcome:
        watch = AttemptDeadline(seconds_left, self._settings.response_timeout_ms / 1000)
        try:
            with watch:
                answer = self._post(body, watch)
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            failure, detail = failure_of(error, body_started=body.started)
            if watch.fired:
                failure, detail = (Failure.NO_ANSWER if body.started else Failure.CONNECT_TIMEOUT), ""
            return outcome.of_failure(failure, detail, self._secrets)
        if watch.fired and 200 <= answer.status < 300:
            return outcome.of_failure(Failure.NO_ANSWER)
        return outcome.of_answer(answer, self._secrets)

    def close(self) -> None:
        """Closes idle connections."""
        self._session.close()

    def _post(self, body: MultipartFile | EmptyForm, watch: AttemptDeadline) -> Answer:
        connect_seconds = min(self._settings.connect_timeout_ms / 1000, watch.seconds_left())
        response = self._session.post(
            self._url,
            data=body,
            headers={"Content-Type": body.content_type},
            timeout=(connect_seconds, watch.answer_seconds),
            allow_redirects=False,
            stream=True,
        )
        with response:
            content, complete = _read(response)
        return Answer(
            status=response.status_code,
            body=content,
            content_type=response.headers.get("Content-Type", ""),
            retry_after=response.headers.get("Retry-After"),
            complete=complete,
        )


def push_url(settings: PushSettings, client_version: str) -> str:
    """The configured address with the query of the push API, its parameters in the reference's order."""
    query = [("targetName", settings.target_table)]
    if settings.connection_id:
        query.append(("connectionId", settings.connection_id))
    query.append(("clientId", f"Kafka2Ems {client_version}"))
    if settings.fallback_varchar_length is not None:
        query.append(("fallbackVarcharLength", str(settings.fallback_varchar_length)))
    if settings.primary_keys:
        query.append(("primaryKeys", ",".join(settings.primary_keys)))
        if settings.order_column:
            query.append(("duplicateRemovalOrderColumn", settings.order_column))
    joint = "&" if "?" in settings.endpoint else "?"
    return f"{settings.endpoint}{joint}{urlencode(query)}"


_clients: OrderedDict[tuple[int, PushSettings, str], PushClient] = OrderedDict()
_clients_lock = threading.Lock()


def client_for(settings: PushSettings, client_version: str = __version__) -> PushClient:
    """The process's client for these settings: made when there is none, kept for later micro-batches.

    The process id is part of the key, because connections must not be shared with a forked process.
    """
    key = (os.getpid(), settings, client_version)
    with _clients_lock:
        client = _clients.pop(key, None) or PushClient(settings, client_version)
        _clients[key] = client
        if len(_clients) > MOST_CLIENTS:
            _clients.popitem(last=False)  # not closed: another thread may be sending with it
        return client


def _headers(settings: PushSettings, client_version: str) -> dict[str, str]:
    headers = {
        "Authorization": settings.authorization.reveal(),
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": f"parquet-sink/{client_version}",
    }
    if settings.pool_explicit_close or settings.pool_max_idle <= 0:
        headers["Connection"] = "Close"
    return headers


def _read(response: requests.Response) -> tuple[bytes, bool]:
    """At most 64 KiB of the body, and whether that is all of it. What came before trouble is kept."""
    parts: list[bytes] = []
    size = 0
    try:
        while size < MOST_ANSWER_BYTES:
            part = response.raw.read1(MOST_ANSWER_BYTES - size, decode_content=True)
            if not part:
                return b"".join(parts), True
            parts.append(part)
            size += len(part)
    except (urllib3.exceptions.HTTPError, OSError):
        pass
    return b"".join(parts), False


def _secrets(settings: PushSettings) -> tuple[str, ...]:
    found = [settings.authorization.reveal()]
    if settings.proxy is not None and settings.proxy.password is not None:
        found.append(settings.proxy.password.reveal())
    return tuple(found)
