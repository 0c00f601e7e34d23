"""Asking a worker over HTTP: a question, its answer as JSON, or why there is none in words for an operator."""

import json
import logging
import os
import ssl
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol, Self
from urllib.parse import quote, urlencode

from requests import Request
from requests.auth import HTTPBasicAuth

from parquet_sink import __version__
from parquet_sink.cli.worker_api.settings import (
    FILE_VARIABLE,
    PASSWORD_VARIABLE,
    USER_VARIABLE,
    ApiSettings,
    settings_of,
)
from parquet_sink.config.files import read_configuration, this_machine
from parquet_sink.config.report import printable
from parquet_sink.config.secret import Secret
from parquet_sink.errors import InvalidConfiguration, SetupError, WorkerRefused
from parquet_sink.net.exchange import Answer, FailureKind, Limits, RequestFailed
from parquet_sink.net.redaction import excerpt
from parquet_sink.net.session import HttpSession
from parquet_sink.net.tls import Authorities, OwnCertificate, environment_authorities, tls_context

MOST_ANSWER_BYTES: Final = 64 * 1024 * 1024
CONNECT_S: Final = 10.0
KEPT_S: Final = 2.0
"""Shorter than servers keep idle connections: one that they close just then would break a request."""
REBALANCE_TRIES: Final = 30
REBALANCE_PAUSE_S: Final = 1.0
_MOST_MESSAGE: Final = 20_000
_UNREACHABLE: Final = {
    FailureKind.CONNECT: "nobody answers there",
    FailureKind.CONNECT_TIMEOUT: f"no connection within {CONNECT_S:g} s",
    FailureKind.TLS: "TLS failed",
}
_RUNS: Final = "Check that it runs and has listeners, and name its address with --url or PARQUET_SINK_URL."
_TRUST: Final = (
    "Name the authority that signed its certificate as tls.ca.file in a --client-file, and with --url an address that "
    "the certificate is for."
)
_IDENTIFY: Final = " If it wants certificates of its clients, name one as tls.certificate.file in a --client-file."
_MOMENTARY: Final = (b"rebalance", b"momentarily due to stale configuration", b"being changed by another request")
"""Words of refusals after which nothing was done, and which do not last."""
_NO_JSON: Final = object()
log = logging.getLogger(__name__)


class Sender(Protocol):
    """What exchanges: `net.session.HttpSession`."""

    def exchange(self, request: Request, limits: Limits) -> Answer: ...
    def close(self) -> None: ...


class WorkerApi:
    """One worker, or one after the other of a group. Not for threads to share; `close` it, or use it in a `with`.

    Every method raises SetupError when the worker cannot be reached or does not know us, WorkerRefused when it says no
    or is silent. What is refused for a moment only, while workers rebalance say, is asked again, for half a minute.
    """

    def __init__(self, settings: ApiSettings, sender: Sender, pause: Callable[[float], None] = time.sleep) -> None:
        self.url, self._others = settings.url, list(settings.others)
        self._sender, self._pause = sender, pause
        self._limits = Limits(
            settings.timeout_s, min(CONNECT_S, settings.timeout_s), settings.timeout_s, MOST_ANSWER_BYTES
        )
        self._headers = {"Accept": "application/json", "User-Agent": f"parquet-sink/{__version__}"}
        self._auth = _auth(settings)
        self._anonymous = self.url.startswith("https:") and settings.certificate_file is None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._sender.close()

    def get(self, *path: str, **query: str | Sequence[str]) -> Any:
        """The JSON at a path, given in segments."""
        return self.ask("GET", path, query)

    def ask(
        self,
        method: str,
        path: Sequence[str],
        query: Mapping[str, str | Sequence[str]] | None = None,
        content: object = None,
    ) -> Any:
        """The JSON of the answer to one request, None for an empty one. content: is sent as JSON, None for no body."""
        target = f"/{'/'.join(map(segment, path))}"
        if query:
            target += "?" + urlencode(query, doseq=True)
        for again in reversed(range(REBALANCE_TRIES)):
            answer = self._exchange(method, target, content)
            if not (again and _momentary(answer)):
                break
            self._pause(REBALANCE_PAUSE_S)
        return self._content(answer)

    def _exchange(self, method: str, target: str, content: object) -> Answer:
        """By the next worker where one has seen nothing of the request; by each of them once."""
        for left in reversed(range(len(self._others) + 1)):
            request = Request(method, self.url + target, headers=self._headers, json=content, auth=self._auth)
            try:
                return self._sender.exchange(request, self._limits)
            except RequestFailed as error:
                failure = self._failed(error, changes=method != "GET")
                if not left or error.kind not in _UNREACHABLE:
                    raise failure from None
                log.info("%s The next worker is asked.", failure)
                self._others.append(self.url)
                self.url = self._others.pop(0)
        raise AssertionError

    def _failed(self, error: RequestFailed, *, changes: bool) -> SetupError | WorkerRefused:
        detail = f" ({printable(error.detail)})" if error.detail else ""
        if (why := _UNREACHABLE.get(error.kind)) is not None:
            cure = _TRUST if error.kind is FailureKind.TLS else _RUNS
            return SetupError(f"The worker at {self.url} cannot be reached: {why}{detail}. {cure}")
        why = "it did not answer in time" if error.kind is FailureKind.NO_ANSWER else f"the connection broke{detail}"
        done = "; it may have done what it was asked for" if changes else ""
        hint = _IDENTIFY if self._anonymous and error.kind is not FailureKind.NO_ANSWER else ""
        return WorkerRefused(f"The worker at {self.url}: {why}{done}.{hint}")

    def _content(self, answer: Answer) -> Any:
        if not answer.complete:
            what = "is longer than 64 MiB" if answer.too_long else "broke off"
            raise WorkerRefused(f"The worker at {self.url}: its answer {what}.", answer.status)
        content = _json(answer.body)
        if 200 <= answer.status < 300 and content is not _NO_JSON:
            return content
        raise self._refusal(answer, content)

    def _refusal(self, answer: Answer, content: Any) -> SetupError | WorkerRefused:
        if answer.status == 401:
            return SetupError(
                f"The worker at {self.url} wants another user or password: set {USER_VARIABLE} and "
                f"{PASSWORD_VARIABLE}, or give a --client-file with username and password."
            )
        if isinstance(content, dict) and isinstance(content.get("message"), str):
            return WorkerRefused(_lines(content["message"]), answer.status)
        said = f": {excerpt(answer.body[:200])}" if answer.body else ""
        return WorkerRefused(
            f"What answers at {self.url} is no REST API of Kafka Connect's: status {answer.status}{said}. "
            "Correct --url.",
            answer.status,
        )


@contextmanager
def understanding(api: WorkerApi) -> Iterator[None]:
    """Within, JSON of another shape than Kafka Connect's becomes WorkerRefused: what answers may be anything."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        log.debug("the worker's answer is not understood", exc_info=True)
        raise WorkerRefused(
            f"What answers at {api.url} is no REST API of Kafka Connect's, or of another version: its JSON is not "
            f"understood ({type(error).__name__}: {printable(str(error))}). Correct --url."
        ) from error


def open_api(settings: ApiSettings) -> WorkerApi:
    """A client over real connections. Raises InvalidConfiguration for a certificate that cannot be used."""
    return WorkerApi(settings, HttpSession(_context(settings), keepalive_seconds=KEPT_S))


def _context(settings: ApiSettings) -> ssl.SSLContext:
    """For TLS; reading the system's authorities takes time, and is for nothing without it."""
    if settings.url.startswith("http:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ca, own = settings.ca_file, settings.certificate_file
    return tls_context(
        Authorities(ca, "tls.ca.file") if ca else environment_authorities(os.environ),
        OwnCertificate(own, "tls.certificate.file", settings.key_file, settings.key_password) if own else None,
    )


def segment(text: str) -> str:
    """A name as a segment of a path. Raises InvalidConfiguration for one that no path can hold."""
    if text in (".", ".."):
        raise InvalidConfiguration([f'Invalid name ["{text}"]. No address can hold it; the worker cannot be asked.'])
    return quote(text, safe="")


def _json(body: bytes) -> Any:
    """The content, None for an empty body, `_NO_JSON` for what is none."""
    try:
        return json.loads(body) if body else None
    except (ValueError, RecursionError):
        return _NO_JSON


def _auth(settings: ApiSettings) -> HTTPBasicAuth | None:
    if settings.username is None:
        return None
    password = (settings.password or Secret("")).reveal()
    return HTTPBasicAuth(settings.username.encode(), password.encode())  # of texts it would make Latin-1


def _momentary(answer: Answer) -> bool:
    """Whether nothing was done, and for a moment only, for one because workers share out their connectors again."""
    return answer.status in (409, 500) and any(words in answer.body for words in _MOMENTARY)


def _lines(text: str) -> str:
    """A worker's message, its lines kept, nothing else of it raw on a terminal."""
    return "\n".join(printable(line) for line in text[:_MOST_MESSAGE].splitlines())


def open_worker(args: Namespace) -> WorkerApi:
    """The client; warnings about its file go to standard error. Raises InvalidConfiguration."""
    path = args.client_file or os.environ.get(FILE_VARIABLE) or ""
    parsed = read_configuration(path) if path else None
    settings, warnings = settings_of(args, this_machine(), parsed, path)
    for warning in warnings:
        print(warning, file=sys.stderr)
    return open_api(settings)
