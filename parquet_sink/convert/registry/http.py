"""Asks one address of a schema registry over HTTP: the answer as JSON, or a failure.

An answer may be anything: it is bounded in time and size, never decompressed, and taken for a registry's only when it
is JSON. Proxies, `.netrc` and redirects are not followed, and no connection is kept: a schema is asked for once, and an
idle connection would stay for months, for each worker and connector.
"""

import base64
import json
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from requests import Request

from parquet_sink import __version__
from parquet_sink.config.secret import Secret
from parquet_sink.convert.registry.addresses import Address, parse
from parquet_sink.convert.registry.settings import RegistrySettings
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.net.exchange import Answer, FailureKind, Limits, RequestFailed
from parquet_sink.net.session import HttpSession
from parquet_sink.net.tls import Authorities, OwnCertificate, tls_context

CONNECT_S: Final = 10.0
"""So that one of several addresses that swallows packets does not use up the time for the others."""
MOST_ANSWER_BYTES: Final = 8 * 1024 * 1024
_MEDIA: Final = "application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json, application/json"


class BadAnswer(Exception):
    """An answer that no schema registry gives; the text says what is wrong with it."""


class ErrorAnswer(Exception):
    """An answer whose status is not 2xx. code, text: the registry's own, when it came in the registry's form."""

    def __init__(self, status: int, code: int | None = None, text: str = "") -> None:
        super().__init__(status, code, text)
        self.status, self.code, self.text = status, code, text


def address_of(url: str, settings: RegistrySettings) -> Address:
    """Where a registry is, with the settings' credentials or else its own. Raises InvalidConfiguration for no URL."""
    try:
        found = parse(url)
    except ValueError as error:
        raise InvalidConfiguration([f"Invalid [schema.registry.url]. An address {error}"]) from None
    if settings.username is None:
        return found
    return replace(found, username=settings.username, password=settings.password or Secret(""))


class RegistryEndpoint:
    """One address of a registry. Not for threads to share. Raises InvalidConfiguration for a token no header has."""

    def __init__(self, address: Address, settings: RegistrySettings, context: ssl.SSLContext) -> None:
        self.url = address.url
        self._headers = {
            "Accept": _MEDIA,
            "Accept-Encoding": "identity",
            "Connection": "close",
            "User-Agent": f"parquet-sink/{__version__}",
            **_authorization(address, settings),
        }
        self._http = HttpSession(context)

    def schema(self, schema_id: int, seconds: float) -> dict[str, Any]:
        """The schema of an id, as the registry has it. Raises as `_get`."""
        return _object(self._get(f"/schemas/ids/{schema_id}", seconds))

    def version(self, subject: str, version: int, seconds: float) -> dict[str, Any]:
        """A version of a subject, -1 for the latest; also when it was deleted since. Raises as `_get`."""
        return _object(self._get(f"/subjects/{quote(subject, safe='')}/versions/{version}?deleted=true", seconds))

    def kinds(self, seconds: float) -> Any:
        """The kinds of schemas that it knows; whatever JSON comes. Raises as `_get`."""
        return self._get("/schemas/types", seconds)

    def _get(self, path: str, seconds: float) -> Any:
        """Within so many seconds. Raises RequestFailed, ErrorAnswer, BadAnswer."""
        if seconds <= 0:
            raise RequestFailed(FailureKind.NO_ANSWER)
        limits = Limits(seconds, min(seconds, CONNECT_S), seconds, MOST_ANSWER_BYTES)
        try:
            answer = self._http.exchange(Request("GET", self.url + path, headers=self._headers), limits)
        finally:
            self._http.close()
        return _content(answer)


def _content(answer: Answer) -> Any:
    """The JSON of an answer."""
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise BadAnswer("a compressed answer, which was not asked for")
    if answer.broken is not None:
        raise RequestFailed(answer.broken)
    if answer.too_long:
        raise BadAnswer(f"an answer of more than {MOST_ANSWER_BYTES // 1024**2} MiB")
    if not 200 <= answer.status < 300:
        raise _error(answer)
    return _parsed(answer)


def _parsed(answer: Answer) -> Any:
    try:
        return json.loads(answer.body)
    except (ValueError, RecursionError):
        raise BadAnswer("an answer that no schema registry gives") from None


def _error(answer: Answer) -> ErrorAnswer:
    content: Any = None
    with suppress(BadAnswer):
        content = _parsed(answer)
    code, text = (content.get("error_code"), content.get("message")) if isinstance(content, Mapping) else (None, None)
    if not isinstance(code, int) or not isinstance(text, str):
        return ErrorAnswer(answer.status)
    return ErrorAnswer(answer.status, code, text)


def _object(content: Any) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise BadAnswer("an answer that no schema registry gives")
    return content


def _authorization(address: Address, settings: RegistrySettings) -> dict[str, str]:
    if settings.bearer_token is not None:
        return {"Authorization": f"Bearer {_token(settings.bearer_token)}"}
    if address.credentials is not None:
        return {"Authorization": f"Basic {basic(*address.credentials)}"}
    return {}


def basic(user: str, password: Secret) -> str:
    """User and password as basic authentication has them."""
    return base64.b64encode(f"{user}:{password.reveal()}".encode()).decode()


def _token(token: Secret) -> str:
    text = token.reveal()
    if not text or not all("!" <= character <= "~" for character in text):
        raise InvalidConfiguration(["Invalid [bearer.auth.token]. It must be printable ASCII without blanks."])
    return text


def registry_context(settings: RegistrySettings) -> ssl.SSLContext:
    """A verifying context: the CA of the settings alone, else the system's; with the client's certificate, if any.

    Raises InvalidConfiguration when a file cannot be read.
    """
    ca, own = settings.ca_file, settings.certificate_file
    return tls_context(
        None if ca is None else Authorities(ca, "schema.registry.ssl.truststore.location"),
        None
        if own is None
        else OwnCertificate(own, "schema.registry.ssl.keystore.location", settings.key_file, settings.key_password),
    )
