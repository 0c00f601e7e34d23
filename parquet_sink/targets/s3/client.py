"""A boto3 client for one bucket: boto3 finds credentials, signs and reads answers; our own client does the HTTP.

botocore lets an answer be given before it sends a request (its event `before-send`); so nothing of its own connections,
retries of connections or proxies of the environment is used: TLS, proxies and deadlines are those of the push API.
Nothing is tried again by botocore but a request that AWS sends to the bucket's own region; retries and their pauses are
ours, so that they keep to the connector's bounds.
"""

import io
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from requests import Request

from parquet_sink import __version__
from parquet_sink.errors import InvalidConfiguration, SetupError, install
from parquet_sink.net import tls
from parquet_sink.net.exchange import Answer, FailureKind, Limits, RequestFailed
from parquet_sink.net.session import HttpSession, proxy_secrets, session_for
from parquet_sink.targets.s3.settings import PROFILE, BucketSettings, StaticCredentials

if TYPE_CHECKING:  # it may not be installed
    from botocore.awsrequest import AWSPreparedRequest, AWSResponse

MISSING: Final = f"A bucket as the target needs boto3, which is not installed. {install('s3')}"

PIECE_BYTES: Final = 256 * 1024
MOST_ANSWER_BYTES: Final = 32 << 20
"""An answer is a piece of an object, or a page of a list; both are asked for by size."""
STATUS_HEADER: Final = "x-parquet-sink-status"
"""Under this name our transport keeps an answer's status: botocore makes 500 of a 200 whose body it cannot read."""


@dataclass(frozen=True)
class Connection:
    """A boto3 client, and what carries its requests. secrets: what no message may hold.

    of_aws: it is AWS itself, and not a server of the same protocol.
    """

    client: Any
    transport: "Transport"
    secrets: tuple[str, ...]
    of_aws: bool


def connect(settings: BucketSettings, environment: Mapping[str, str] = os.environ) -> Connection:
    """A connection of its own for the caller; nothing is sent yet.

    Raises SetupError when boto3 is not installed, InvalidConfiguration for a file or profile that cannot be used.
    """
    headers = {"Connection": "Close"} if settings.closes else {}
    http = session_for(settings, environment)
    transport = Transport(http, settings.connect_timeout_ms / 1000, settings.response_timeout_ms / 1000, headers)
    try:
        client = _client(settings)
    except ModuleNotFoundError as error:
        raise SetupError(MISSING) from error
    client.meta.events.register("before-send.s3", transport.send)
    of_aws = ".amazonaws." in client.meta.endpoint_url
    return Connection(client, transport, _secrets(settings), of_aws)


def problems(settings: BucketSettings, environment: Mapping[str, str] = os.environ) -> Iterator[str]:
    """What cannot be used of what the settings and the environment name."""
    yield from tls.problems(settings.ca_file, environment)
    try:
        connect(replace(settings, ca_file=None), {}).transport.close()
    except SetupError as error:
        yield f"Invalid [connect.ems.target.type]. {error}"
    except InvalidConfiguration as error:
        yield from error.problems


def _client(settings: BucketSettings) -> Any:
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    config = Config(
        user_agent_extra=f"parquet-sink/{__version__}",
        signature_version="s3v4",
        s3={"addressing_style": "path" if settings.path_style else "virtual"},
        retries={"mode": "legacy", "total_max_attempts": 1},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    try:
        session = boto3.session.Session(
            botocore_session=_session(),
            region_name=settings.region,
            profile_name=settings.profile,
            **_credentials(settings.credentials),
        )
        return session.client("s3", endpoint_url=settings.endpoint, config=config)
    except (BotoCoreError, ValueError) as error:
        key = PROFILE if settings.profile else "connect.ems.s3.region"
        raise InvalidConfiguration([f"Invalid [{key}]. boto3 cannot use it: {error}. Correct it."]) from error


def _session() -> Any:
    """One that reads the description of S3, a quarter of a second's work, once in a process."""
    import botocore.session

    session = botocore.session.Session()
    session.register_component("data_loader", _loader())
    return session


@cache
def _loader() -> Any:
    import botocore.loaders

    return botocore.loaders.create_loader()


def _credentials(given: StaticCredentials | None) -> dict[str, str | None]:
    if given is None:
        return {}
    return {
        "aws_access_key_id": given.access_key_id,
        "aws_secret_access_key": given.secret_access_key.reveal(),
        "aws_session_token": given.session_token.reveal() if given.session_token else None,
    }


def _secrets(settings: BucketSettings) -> tuple[str, ...]:
    own = settings.credentials
    found = () if own is None else (own.secret_access_key, own.session_token)
    return (*(one.reveal() for one in found if one is not None), *proxy_secrets(settings.proxy))


class SentBody:
    """The body of one request, of a known length. body: has `read`, from where it stands."""

    def __init__(self, body: Any, size_bytes: int) -> None:
        self._body, self._size = body, size_bytes

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        while piece := self._body.read(PIECE_BYTES):
            yield piece


class Transport:
    """Sends requests to one server; threads may share it. headers: added to each."""

    def __init__(
        self,
        http: HttpSession,
        connect_seconds: float,
        answer_seconds: float,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._http, self._headers = http, headers
        self._connect_s, self._answer_s = connect_seconds, answer_seconds
        self._end: ContextVar[float] = ContextVar("parquet_sink_s3_end")

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """All requests of the current thread herein take so many seconds at most."""
        token = self._end.set(time.monotonic() + seconds)
        try:
            yield
        finally:
            self._end.reset(token)

    def seconds_left(self) -> float:
        """Of `within`."""
        return self._end.get() - time.monotonic()

    def send(self, request: "AWSPreparedRequest", **event: Any) -> "AWSResponse":
        """One exchange. Raises RequestFailed, and what reading the body raises."""
        from botocore.awsrequest import AWSResponse

        left = self.seconds_left()
        if left <= 0:
            raise RequestFailed(FailureKind.CONNECT_TIMEOUT, "no time was left for it")
        limits = Limits(left, self._connect_s, self._answer_s, MOST_ANSWER_BYTES)
        answer = self._http.exchange(_request(request, self._headers), limits)
        if answer.broken is not None or answer.too_long:
            raise RequestFailed(answer.broken or FailureKind.BROKEN, f"of an answer with status {answer.status}")
        headers = {**answer.headers, STATUS_HEADER: str(answer.status)}
        return AWSResponse(request.url, answer.status, headers, _Raw(answer))

    def close(self) -> None:
        """Closes idle connections."""
        self._http.close()


class _Raw(io.BytesIO):
    """An answer's body as botocore reads it."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.body)

    def stream(self) -> Iterator[bytes]:
        yield self.read()


def _request(request: "AWSPreparedRequest", more: Mapping[str, str]) -> Request:
    """Without `Expect`: our client sends the body at once, and hears an early refusal all the same."""
    headers = {name: _text(value) for name, value in request.headers.items()}
    length = next((int(value) for name, value in headers.items() if name.lower() == "content-length"), 0)
    kept = {name: value for name, value in headers.items() if name.lower() not in ("content-length", "expect")}
    body = request.body
    if hasattr(body, "read"):
        body = SentBody(body, length) if length else None  # an empty stream would go out as chunks, which S3 refuses
    return Request(request.method, request.url, headers={**kept, **more}, data=body)


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value
