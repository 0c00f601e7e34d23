"""The push API as a target: one attempt to send one file, and what a form without a file tells about it.

The request is the reference connector's: POST to the configured address, parameters in a fixed order, one multipart
part. What an answer means is in `answers`; trying again is the business of `targets.retry`.
"""

import os
import time
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlencode

from requests import Request

from parquet_sink import __version__
from parquet_sink.config.secret import Secret
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.net.access_token import TokenFailed
from parquet_sink.net.exchange import Answer, Limits, RequestFailed
from parquet_sink.net.session import HttpSession
from parquet_sink.net.tls import tls_context
from parquet_sink.targets.outcome import Outcome, ProbeResult
from parquet_sink.targets.push.answers import of_answer
from parquet_sink.targets.push.authorization import authorization_of, proxy_secrets, signed
from parquet_sink.targets.push.body import EmptyForm, Form, MultipartFile
from parquet_sink.targets.push.probe import judge
from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.targets.push.token_answers import of_token_failure, with_token_cure
from parquet_sink.targets.push.trust import authorities
from parquet_sink.targets.reaching import of_failure

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
        self._authorization = authorization_of(settings, environment)
        self._secrets = (*self._authorization.secrets, *proxy_secrets(settings.proxy))
        self._http = HttpSession(
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
        """One attempt, within `seconds_left`. Raises StorageFailed when the file cannot be read; nothing else.

        Where the target does not take an access token the attempt goes on with a new one.
        """
        return self._attempt(lambda: MultipartFile(file.path, file.name, file.size_bytes), seconds_left, file.table)

    def probe(self, seconds_left: float) -> ProbeResult:
        """Sends a form without a file: its refusal shows that name, TLS, path and key are right, and stores nothing."""
        signed_with = "key" if isinstance(self._settings.authorization, Secret) else "token"
        return judge(self._attempt(EmptyForm, seconds_left), signed_with)

    def close(self) -> None:
        """Closes idle connections."""
        self._http.close()

    def _attempt(self, make_body: Callable[[], Form], seconds_left: float, table: str | None = None) -> Outcome:
        def send(header: str, seconds: float) -> Answer:
            body = make_body()
            headers = {**self._headers, "Authorization": header, "Content-Type": body.content_type}
            request = Request("POST", push_url(self._settings, self._version, table), headers=headers, data=body)
            return self._http.exchange(request, self._limits(seconds))

        try:
            answer, header = signed(self._authorization, seconds_left, send)
        except TokenFailed as failed:
            return of_token_failure(failed)
        except RequestFailed as error:
            return of_failure(error.kind, error.detail, self._secrets)
        outcome = of_answer(answer, (*self._secrets, header), self._now())
        return outcome if isinstance(self._settings.authorization, Secret) else with_token_cure(outcome)

    def _limits(self, seconds: float) -> Limits:
        return Limits(
            total_seconds=seconds,
            connect_seconds=self._settings.connect_timeout_ms / 1000,
            answer_seconds=self._settings.response_timeout_ms / 1000,
            answer_bytes=MOST_ANSWER_BYTES,
        )


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
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": f"parquet-sink/{client_version}",
    }
    if settings.pool_explicit_close or settings.pool_max_idle <= 0:
        headers["Connection"] = "Close"
    return headers
