"""What a schema registry's answer, or its silence, means: not registered, worth another try, or never."""

import ssl
from dataclasses import dataclass
from typing import Final

import httpx2
from confluent_kafka.schema_registry.error import SchemaRegistryError

from parquet_sink.convert.registry.http import BadAnswer

_PASSING: Final = frozenset({408, 429, 500, 502, 503, 504})
_ADDRESS: Final = "Check schema.registry.url; Apicurio's ends in a path such as /apis/ccompat/v7"
_RUNS: Final = "Check schema.registry.url, and that the registry runs and can be reached from here"
_CREDENTIALS: Final = "Correct basic.auth.user.info or bearer.auth.token"
_RIGHTS: Final = "Let this user read schemas, or name another user"
_TLS: Final = (
    "Check schema.registry.ssl.truststore (the CA of the registry's certificate), schema.registry.ssl.keystore (our "
    "own certificate, where the registry asks for one) and the host name in schema.registry.url"
)
_TROUBLE: Final = "Look into the registry's log"
_MOST_SAID: Final = 200

QUESTIONABLE: Final = (
    SchemaRegistryError,
    BadAnswer,
    httpx2.HTTPError,
    httpx2.InvalidURL,
    ValueError,
    TypeError,
    AttributeError,
    KeyError,
    RecursionError,
)
"""What Confluent's client raises: its own error, the network's, and whatever an unexpected answer does to its code."""


@dataclass(frozen=True)
class Failure:
    """Why a question has no answer. cause: a sentence's middle. passing: asking again may help."""

    cause: str
    cure: str
    passing: bool = False


def is_not_registered(error: Exception) -> bool:
    """Whether the registry itself says that it has no such schema, subject or version (40401 to 40403)."""
    if not isinstance(error, SchemaRegistryError) or error.http_status_code != 404:
        return False
    return error.error_code in (40401, 40402, 40403)


def failure_of(error: Exception) -> Failure:
    """What one of `QUESTIONABLE` means, `is_not_registered` apart."""
    if isinstance(error, SchemaRegistryError):
        return _of_status(error.http_status_code, _said(error))
    if isinstance(error, BadAnswer):
        return Failure(f"gave {error}", _ADDRESS)
    if isinstance(error, httpx2.TimeoutException):
        waiting = "no connection" if isinstance(error, httpx2.ConnectTimeout) else "no answer"
        return Failure(f"{waiting} in time", _RUNS, passing=True)
    if isinstance(error, httpx2.HTTPError):
        return _of_network(error)
    return Failure("gave an answer that no schema registry gives", _ADDRESS)


def _of_status(status: int, said: str) -> Failure:
    answered = f"answered {status}{said}"
    if 300 <= status < 400:
        return Failure(f"{answered}: a redirect, and those are never followed", _ADDRESS)
    cures = {401: _CREDENTIALS, 403: _RIGHTS, 404: _ADDRESS, 405: _ADDRESS, 407: _ADDRESS}
    return Failure(answered, cures.get(status, _TROUBLE), passing=status in _PASSING)


def _said(error: SchemaRegistryError) -> str:
    """The registry's own words, when they came in its own form."""
    if not isinstance(error.error_message, str) or error.error_code in (None, SchemaRegistryError.UNKNOWN):
        return ""
    text = error.error_message.encode("unicode_escape").decode()
    shown = text if len(text) <= _MOST_SAID else text[:_MOST_SAID] + "..."
    return f" ({error.error_code}: {shown})"


def _of_network(error: httpx2.HTTPError) -> Failure:
    cause = _ssl_error(error)
    if cause is None or isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return Failure(f"no answer: {str(error).rstrip('.')}", _RUNS, passing=True)
    words = getattr(cause, "verify_message", "") or getattr(cause, "reason", "") or str(cause)
    return Failure(f"TLS failed: {words}", _TLS)


def _ssl_error(error: BaseException) -> ssl.SSLError | None:
    """The error of TLS that is behind another one."""
    seen: BaseException | None = error
    for _ in range(8):
        if seen is None or isinstance(seen, ssl.SSLError):
            return seen
        seen = seen.__cause__ or seen.__context__
    return None
