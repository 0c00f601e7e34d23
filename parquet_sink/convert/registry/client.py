"""Client of a schema registry that speaks Confluent's protocol: schemas are asked for once and kept in the process.

Several addresses are asked in turn, beginning with the one that answered last; when none answers and it may pass, all
are asked again after a pause. What one schema takes, with its references, is bounded in time and in size.
"""

import logging
import random
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar, get_args

from parquet_sink import plugins
from parquet_sink.convert.decoded import Decoder
from parquet_sink.convert.invalid import InvalidValue, show
from parquet_sink.convert.registry.addresses import Address
from parquet_sink.convert.registry.converter import RegistryConverter
from parquet_sink.convert.registry.folder import SCHEME, FolderRegistry
from parquet_sink.convert.registry.http import (
    BadAnswer,
    ErrorAnswer,
    RegistryEndpoint,
    address_of,
    basic,
    registry_context,
)
from parquet_sink.convert.registry.registered import Referenced, RegisteredDecoder, RegisteredSchema, Schemas
from parquet_sink.convert.registry.settings import RegistrySettings, SchemaKind
from parquet_sink.errors import RegistryAway, RegistryFailed
from parquet_sink.net.exchange import FailureKind, RequestFailed
from parquet_sink.net.redaction import printable
from parquet_sink.process.lru_cache import LruCache
from parquet_sink.process.per_process import PerProcess

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
        return _of_status(error)
    if isinstance(error, RequestFailed):
        return _of_network(error)
    return RegistryFailure(f"gave {error}", _ADDRESS)


def _of_status(error: ErrorAnswer) -> RegistryFailure:
    """With the registry's own words, when they came in its own form."""
    status, answered = error.status, f"answered {error.status}"
    if error.code is not None:
        text = error.text.encode("unicode_escape").decode()
        answered += f" ({error.code}: {text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + '...'})"
    if 300 <= status < 400:
        return RegistryFailure(f"{answered}: a redirect, and those are never followed", _ADDRESS)
    cures = {401: _CREDENTIALS, 403: _RIGHTS, 404: _ADDRESS, 405: _ADDRESS, 407: _ADDRESS}
    return RegistryFailure(answered, cures.get(status, _TROUBLE), passing=status in _PASSING)


def _of_network(error: RequestFailed) -> RegistryFailure:
    if error.kind is FailureKind.TLS:
        return RegistryFailure(f"TLS failed: {printable(error.detail)}", _TLS)
    late = {FailureKind.CONNECT_TIMEOUT: "no connection in time", FailureKind.NO_ANSWER: "no answer in time"}
    detail = printable(error.detail).rstrip(".") or "the connection broke"
    return RegistryFailure(late.get(error.kind, f"no answer: {detail}"), _RUNS, passing=True)


MOST_REFERENCES: Final = 1_000
DEEPEST: Final = 100
MOST_CHARACTERS: Final = 32 * 1024 * 1024


@dataclass(frozen=True)
class Reference:
    """How a schema names another one. version: -1 for the latest."""

    name: str
    subject: str
    version: int

    def __str__(self) -> str:
        return f"subject {show((self.subject,))} version {self.version}"


@dataclass(frozen=True)
class StoredSchema:
    """A schema as the registry gives it."""

    kind: str
    text: str
    references: tuple[Reference, ...] = ()


def resolve(references: Sequence[Reference], ask: Callable[[Reference], StoredSchema]) -> tuple[Referenced, ...]:
    """All schemas below, each after those that it refers to itself; of equal names the first, as Confluent's.

    Raises InvalidValue when they go round in a circle, or are too many, too deep or too large.
    """
    found: list[Referenced] = []
    names: set[str] = set()
    characters = 0

    def enter(below: Sequence[Reference], above: tuple[Reference, ...]) -> None:
        nonlocal characters
        for reference in below:
            if reference in above:
                raise InvalidValue(f"its references go round in a circle, by {reference}")
            if reference.name in names:
                continue
            names.add(reference.name)
            if len(names) > MOST_REFERENCES or len(above) >= DEEPEST:
                raise InvalidValue(f"it has more than {MOST_REFERENCES} references, or they are deeper than {DEEPEST}")
            answer = ask(reference)
            characters += len(answer.text)
            if characters > MOST_CHARACTERS:
                raise InvalidValue(f"its references have more than {MOST_CHARACTERS // 1024**2} Mi characters")
            enter(answer.references, (*above, reference))
            found.append(Referenced(reference.name, answer.text))

    enter(references, ())
    return tuple(found)


FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 20.0
PATIENCE: Final = 2
"""How many times `timeout_ms` everything for one schema may take: addresses, pauses, references."""
MOST_KEPT_CHARACTERS: Final = 64 * 1024 * 1024
_KINDS: Final = {kind: kind for kind in get_args(SchemaKind)}

log = logging.getLogger(__name__)
T = TypeVar("T")
Question = Callable[[RegistryEndpoint, float], T]
"""Asks one address, within so many seconds."""


class NotRegistered(Exception):
    """The registry says that it has no such thing."""


class Registry:
    """The schemas of one registry; threads may share it. Raises InvalidConfiguration for settings that cannot be.

    clock, sleep: seconds.
    """

    def __init__(
        self,
        settings: RegistrySettings,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings, self._clock, self._sleep = settings, clock, sleep
        addresses = [address_of(url, settings) for url in settings.urls]
        secure = any(address.secure for address in addresses)
        context = registry_context(settings) if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._endpoints = [RegistryEndpoint(address, settings, context) for address in addresses]
        self._secrets = _secrets(settings, addresses)
        self._lock = threading.Lock()
        self._known: LruCache[int, RegisteredSchema] = LruCache(
            settings.cache_size, weigh=lambda schema: schema.size, max_weight=MOST_KEPT_CHARACTERS
        )

    @property
    def name(self) -> str:
        """The addresses, without credentials."""
        return ", ".join(sorted(endpoint.url for endpoint in self._endpoints))

    def get(self, schema_id: int) -> RegisteredSchema:
        """The schema with all that it refers to. Waits at most twice `timeout_ms`, and once in a process for each id.

        Raises InvalidValue when the id is not registered or its schema cannot be put together, RegistryFailed when
        the registry does not say.
        """
        with self._lock:
            found = self._known.get(schema_id)
            if found is None:
                found = self._fetch(schema_id)
                self._known.put(schema_id, found)
            return found

    def probe(self) -> str:
        """Asks for one schema, whichever it is, and for the kinds of schemas. Raises RegistryFailed."""
        with self._lock:
            until = self._until()
            with suppress(NotRegistered):  # that it looked is all we want to know
                self._ask("a schema", lambda endpoint, seconds: endpoint.schema(1, seconds), until)
            kinds = self._kinds(until)
        known = f", and knows schemas of {', '.join(kinds)}" if kinds else ""
        return f"answers when asked for a schema{known}"

    def _kinds(self, until: float) -> list[str]:
        """Which the registry has; empty when it is too old to say."""
        try:
            kinds = self._ask("its kinds of schemas", lambda endpoint, seconds: endpoint.kinds(seconds), until)
        except (NotRegistered, RegistryFailed):
            return []
        return sorted({str(kind)[:20] for kind in kinds[:10]}) if isinstance(kinds, list) else []

    def _until(self) -> float:
        return self._clock() + PATIENCE * self._settings.timeout_ms / 1000

    def _fetch(self, schema_id: int) -> RegisteredSchema:
        until = self._until()
        what = f"schema id {schema_id}"
        try:
            answer = self._ask(what, lambda endpoint, seconds: _stored(endpoint.schema(schema_id, seconds)), until)
        except NotRegistered:
            hint = ". An id of 0 may be the first half of one that has 8 bytes" if schema_id == 0 else ""
            raise InvalidValue(f"{what} is not registered at {self.name}{hint}") from None
        kind = _KINDS.get(answer.kind)
        if kind is None:
            raise InvalidValue(f"{what} is registered as neither of {', '.join(_KINDS)}")
        try:
            references = resolve(answer.references, lambda one: self._ask_reference(one, what, until))
        except InvalidValue as error:
            raise InvalidValue(f"{what}: {error}") from None
        return RegisteredSchema(schema_id, kind, answer.text, references)

    def _ask_reference(self, reference: Reference, what: str, until: float) -> StoredSchema:
        def question(endpoint: RegistryEndpoint, seconds: float) -> StoredSchema:
            return _stored(endpoint.version(reference.subject, reference.version, seconds))

        try:
            return self._ask(f"{what}, {reference}", question, until)
        except NotRegistered:
            raise InvalidValue(f"it refers to {reference}, which is not registered at {self.name}") from None

    def _ask(self, what: str, question: Question[T], until: float) -> T:
        """The answer of the first address that has one. Raises NotRegistered, RegistryFailed, RegistryAway."""
        failures: dict[str, RegistryFailure] = {}
        pause = FIRST_PAUSE_S
        for attempt in range(self._settings.max_retries + 1):
            for endpoint in tuple(self._endpoints):
                if attempt and self._clock() >= until:
                    break
                answer = self._ask_one(endpoint, question, until)
                if not isinstance(answer, RegistryFailure):
                    self._prefer(endpoint)
                    return answer
                failures[endpoint.url] = answer
            left = until - self._clock()
            if attempt == self._settings.max_retries or left <= 0 or not any(f.passing for f in failures.values()):
                break
            log.warning("%s", self._message(what, failures))
            self._sleep(min(pause * random.uniform(0.5, 1.0), left))  # noqa: S311 -- spreads load, guards nothing
            pause = min(pause * 2, LONGEST_PAUSE_S)
        kind = RegistryAway if any(failure.passing for failure in failures.values()) else RegistryFailed
        raise kind(self._message(what, failures))

    def _ask_one(self, endpoint: RegistryEndpoint, question: Question[T], until: float) -> T | RegistryFailure:
        seconds = min(self._settings.timeout_ms / 1000, until - self._clock())
        try:
            return question(endpoint, seconds)
        except UNANSWERED as error:
            if is_not_registered(error):
                self._prefer(endpoint)
                raise NotRegistered from None
            return failure_of(error)

    def _prefer(self, endpoint: RegistryEndpoint) -> None:
        while self._endpoints[0] is not endpoint:
            self._endpoints.append(self._endpoints.pop(0))

    def _message(self, what: str, failures: dict[str, RegistryFailure]) -> str:
        causes = "; ".join(f"{url}: {failure.cause}" for url, failure in failures.items())
        cures = dict.fromkeys(failure.cure for failure in failures.values())
        for secret in self._secrets:
            causes = causes.replace(secret, "*****")
        return f"The schema registry did not give {what}. {causes}. {'. '.join(cures)}."


def _opened(settings: RegistrySettings) -> Schemas:
    if settings.urls and settings.urls[0].startswith(SCHEME):
        return FolderRegistry(settings.urls[0].removeprefix(SCHEME))
    return Registry(settings)


_registries: Final = PerProcess(_opened)


def registry_for(settings: RegistrySettings) -> Schemas:
    """The process's registry for these settings: made when there is none, kept for later micro-batches."""
    return _registries.get(settings)


def decoder(settings: RegistryConverter) -> Decoder:
    """Of records that name a schema in the registry.

    Raises InvalidConfiguration when the registry's settings name files that cannot be read.
    """
    registry, make = settings.registry, plugins.named(settings.payloads)
    return RegisteredDecoder(
        registry_for(registry),
        settings.schemas,
        lambda schema: make(schema, settings),
        registry.id_bytes,
        registry.cache_size,
        clock=time.monotonic,
    )


def probe(settings: RegistrySettings) -> str:
    """What the registry says to a cheap question. Raises RegistryFailed, or InvalidConfiguration."""
    return Registry(settings).probe()


def shown(settings: RegistrySettings) -> str:
    """The addresses for a message, without credentials. Raises InvalidConfiguration for what is not a URL."""
    return ", ".join(address_of(url, settings).url for url in settings.urls)


def _stored(found: Mapping[str, Any]) -> StoredSchema:
    """A schema as the registry shows it: AVRO goes without saying. Raises BadAnswer."""
    text, kind = found.get("schema"), found.get("schemaType") or "AVRO"
    if not isinstance(text, str) or not isinstance(kind, str):
        raise BadAnswer("an answer without a schema")
    references = found.get("references") or ()
    if not isinstance(references, list | tuple):
        raise BadAnswer("an answer with references that are no list")
    return StoredSchema(kind, text, tuple(_reference(each) for each in references))


def _reference(found: Any) -> Reference:
    parts = found if isinstance(found, Mapping) else {}
    name, subject, version = parts.get("name"), parts.get("subject"), parts.get("version")
    if not isinstance(name, str) or not isinstance(subject, str) or not isinstance(version, int):
        raise BadAnswer("an answer with a reference that names no schema")
    return Reference(name, subject, version)


def _secrets(settings: RegistrySettings, addresses: list[Address]) -> tuple[str, ...]:
    """Whatever may not be in a message, also when a registry echoes it."""
    found = [settings.bearer_token.reveal()] if settings.bearer_token else []
    for address in addresses:
        if address.credentials is not None:
            found += [basic(*address.credentials), address.credentials[1].reveal()]
    return tuple(filter(None, found))
