"""The push API as a target: one attempt to send one file, and what a form without a file tells about it.

The request is the reference connector's: POST to the configured address, parameters in a fixed order, one multipart
part. What an answer means is in `answers`; trying again is the business of `targets.retry`.
"""

import os
import time
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlencode

from parquet_sink import __version__
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.net.client import HttpClient
from parquet_sink.net.exchange import Body, Limits, Request, RequestFailed
from parquet_sink.net.tls import tls_context
from parquet_sink.targets.outcome import Outcome, ProbeResult
from parquet_sink.targets.push.answers import of_answer, of_failure
from parquet_sink.targets.push.body import EmptyForm, MultipartFile
from parquet_sink.targets.push.probe import judge
from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.targets.push.trust import authorities

MOST_ANSWER_BYTES: Final = 64 * 1024


class PushTarget:
    """Sends files to one push API through pooled connections; threads may share it.

    now: epoch seconds. Raises InvalidConfiguration when the CA file cannot be read.
    """

    def __init__(
        self,
        settings: PushSettings,
        client_version: str = __version__,
        environment: Mapping[str, str] = os.environ,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._settings, self._now = settings, now
        self._version = client_version
        self._headers = _headers(settings, client_version)
        self._secrets = _secrets(settings)
        self._http = HttpClient(
            tls_context(authorities(settings.ca_file, environment)),
            settings.proxy,
            max_idle=settings.pool_max_idle,
            keepalive_seconds=settings.pool_keepalive_ms / 1000,
        )

    @property
    def name(self) -> str:
        """The configured address."""
        return self._settings.endpoint

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        """One attempt, within `seconds_left`. Raises StorageFailed when the file cannot be read; nothing else."""
        body = MultipartFile(file.path, file.name, file.size_bytes)
        return self._attempt(body, body.content_type, seconds_left, file.table)

    def probe(self, seconds_left: float) -> ProbeResult:
        """Sends a form without a file: its refusal shows that name, TLS, path and key are right, and stores nothing."""
        body = EmptyForm()
        return judge(self._attempt(body, body.content_type, seconds_left))

    def close(self) -> None:
        """Closes idle connections."""
        self._http.close()

    def _attempt(self, body: Body, content_type: str, seconds_left: float, table: str | None = None) -> Outcome:
        limits = Limits(
            total_seconds=seconds_left,
            connect_seconds=self._settings.connect_timeout_ms / 1000,
            answer_seconds=self._settings.response_timeout_ms / 1000,
            answer_bytes=MOST_ANSWER_BYTES,
        )
        try:
            headers = {**self._headers, "Content-Type": content_type}
            url = push_url(self._settings, self._version, table)
            answer = self._http.send(Request("POST", url, headers, body), limits)
        except RequestFailed as error:
            return of_failure(error.kind, error.detail, self._secrets)
        return of_answer(answer, self._secrets, self._now())


def push_url(settings: PushSettings, client_version: str, table: str | None = None) -> str:
    """The configured address with the query of the push API, its parameters in the reference's order.

    table: None for that of the settings.
    """
    query = [("targetName", table or settings.target_table)]
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


def _secrets(settings: PushSettings) -> tuple[str, ...]:
    found = [settings.authorization.reveal()]
    if settings.proxy is not None and settings.proxy.password is not None:
        found.append(settings.proxy.password.reveal())
    return tuple(found)
