"""What a schema registry's answer, or its silence, means: not registered, worth another try, or never."""

from dataclasses import dataclass
from typing import Final

from parquet_sink.convert.registry.http import BadAnswer, ErrorAnswer
from parquet_sink.net.exchange import FailureKind, RequestFailed
from parquet_sink.net.redaction import printable

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
_LONGEST_TEXT: Final = 200

UNANSWERED: Final = (RequestFailed, ErrorAnswer, BadAnswer)
"""Ways for a question to end without what was asked for."""
_NOT_REGISTERED: Final = (40401, 40402, 40403)


@dataclass(frozen=True)
class RegistryFailure:
    """Why a question has no answer. cause: a sentence's middle. passing: asking again may help."""

    cause: str
    cure: str
    passing: bool = False


def is_not_registered(error: Exception) -> bool:
    """Whether the registry itself says that it has no such schema, subject or version (40401 to 40403)."""
    return isinstance(error, ErrorAnswer) and error.status == 404 and error.code in _NOT_REGISTERED


def failure_of(error: Exception) -> RegistryFailure:
    """What one of `UNANSWERED` means, `is_not_registered` apart."""
    if isinstance(error, ErrorAnswer):
        return _of_status(error.status, _own_words(error))
    if isinstance(error, RequestFailed):
        return _of_network(error)
    return RegistryFailure(f"gave {error}", _ADDRESS)


def _of_status(status: int, words: str) -> RegistryFailure:
    answered = f"answered {status}{words}"
    if 300 <= status < 400:
        return RegistryFailure(f"{answered}: a redirect, and those are never followed", _ADDRESS)
    cures = {401: _CREDENTIALS, 403: _RIGHTS, 404: _ADDRESS, 405: _ADDRESS, 407: _ADDRESS}
    return RegistryFailure(answered, cures.get(status, _TROUBLE), passing=status in _PASSING)


def _own_words(error: ErrorAnswer) -> str:
    """The registry's own words, when they came in its own form."""
    if error.code is None:
        return ""
    text = error.text.encode("unicode_escape").decode()
    shown = text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + "..."
    return f" ({error.code}: {shown})"


def _of_network(error: RequestFailed) -> RegistryFailure:
    if error.kind is FailureKind.TLS:
        return RegistryFailure(f"TLS failed: {printable(error.detail)}", _TLS)
    if error.kind is FailureKind.CONNECT_TIMEOUT:
        return RegistryFailure("no connection in time", _RUNS, passing=True)
    if error.kind is FailureKind.NO_ANSWER:
        return RegistryFailure("no answer in time", _RUNS, passing=True)
    detail = printable(error.detail).rstrip(".") or "the connection broke"
    return RegistryFailure(f"no answer: {detail}", _RUNS, passing=True)
