"""REST endpoints: how a method becomes one, what it gets, gives and raises, and the JSON of bodies."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, NoReturn
from urllib.parse import quote

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from parquet_sink.config.report import quoted
from parquet_sink.worker.herder.errors import (
    ConnectorExists,
    Elsewhere,
    FlushRefused,
    HerderError,
    InvalidConnector,
    NotPurged,
    NotReadable,
    NotStopped,
    OffsetsBusy,
    OffsetsRefused,
    ShuttingDown,
    StoreFailed,
    TimedOut,
    UnknownConnector,
    UnknownFlush,
    UnknownLogger,
    UnknownPartitions,
    UnknownTask,
    UnknownWorker,
    WorkerAnswers,
)
from parquet_sink.worker_config.rest.roles import Role

NOT_FOUND: Final = "Connector {} not found"
NO_STATUS: Final = "No status found for connector {}"
UNKNOWN: Final = "Unknown connector {}"
UNKNOWN_TO_RESTART: Final = "Unknown connector: {}"
TIMED_OUT: Final = (
    "Request timed out. The worker did not get to it in time; it may still do it, so look before you repeat it."
)
SHUTTING_DOWN: Final = "Worker is shutting down. Nothing was changed; send the request again when it is back."
_SEE: Final = (
    "\nYou can also find the above list of errors at the endpoint `/connector-plugins/{connectorType}/config/validate`"
)
_STATUS: Final[Mapping[type[HerderError], int]] = {
    UnknownTask: 404,
    UnknownWorker: 404,
    WorkerAnswers: 409,
    UnknownLogger: 404,
    UnknownFlush: 404,
    UnknownPartitions: 404,
    FlushRefused: 409,
    ConnectorExists: 409,
    NotStopped: 400,
    TimedOut: 500,
    ShuttingDown: 503,
    OffsetsBusy: 409,
    NotPurged: 409,
    NotReadable: 409,
    OffsetsRefused: 500,
    StoreFailed: 500,
}
_MESSAGES: Final[Mapping[type[HerderError], str]] = {TimedOut: TIMED_OUT, ShuttingDown: SHUTTING_DOWN}
_ENDPOINT: Final = "endpoint"
ONE: Final = "/connectors/{connector}"
MOST_BYTES: Final = 1024 * 1024
"""As large as a connector file may be."""
BODY_S: Final = 30.0
"""How long a client may take to send a body."""
_UNREADABLE: Final = 500
"""Kafka Connect's status for what it cannot read; its clients know no other."""


LARGEST: Final = (1 << 63) - 1
_MOST_DIGITS: Final = 19
NO_BODY: Final[Any] = object()
"""Stands for the body of a request that has none."""


class RestError(Exception):
    """An answer that is an error, in Kafka Connect's form."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, dict(headers or {})


@dataclass(frozen=True)
class Call:
    """One request. path: its variable parts, decoded. body: JSON with numbers as they were written, or NO_BODY.

    base_url: how the client called this server, without a slash at its end. role: of who asks.
    """

    path: Mapping[str, str] = field(default_factory=dict)
    query: QueryParams = field(default_factory=QueryParams)
    body: Any = NO_BODY
    base_url: str = ""
    role: Role = Role.ADMIN

    @property
    def connector(self) -> str:
        return self.path["connector"]

    def flag(self, name: str, *, default: bool = False) -> bool:
        """As Java reads a boolean: `true` in any case, and nothing else, is true."""
        text = self.query.get(name)
        return default if text is None else text.lower() == "true"

    def number(self, name: str, *, least: int = 0, most: int = LARGEST) -> int | None:
        """A whole number of the query, None where there is none. Raises RestError."""
        text = self.query.get(name)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS and least <= int(text) <= most):
            raise RestError(400, f"Invalid [{name}]. {quoted(text)} is not a whole number from {least} to {most}.")
        return int(text)

    def location(self, name: str) -> str:
        return f"{self.base_url}/connectors/{quote(name, safe='')}"


@dataclass(frozen=True)
class Reply:
    """What goes back. content: JSON, or text or bytes with their own media type; None: nothing."""

    content: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "application/json"


Handler = Callable[[Call], Reply]
Method = Callable[[Any, Call], Reply]
Pool = Literal["reads", "commands", "cluster", "waits", "health"]
"""Threads that an endpoint may wait in: those of commands, or of an unavailable broker, leave the others free."""


@dataclass(frozen=True)
class Parameter:
    """One in the query."""

    name: str
    type: Literal["boolean", "integer", "number", "string", "array"]
    doc: str
    choices: tuple[str, ...] = ()
    default: object = None


@dataclass(frozen=True)
class Endpoint:
    """takes: the schema of its body, None when it has none. may_be_empty: it may be left out.

    gives: by status the schema, None for no body. role: what who asks must have, at least.
    """

    method: str
    path: str
    handler: Handler
    summary: str
    role: Role
    gives: Mapping[int, str | None] = field(default_factory=lambda: {200: None})
    takes: str | None = None
    query: tuple[Parameter, ...] = ()
    pool: Pool = "reads"
    may_be_empty: bool = False

    @property
    def tag(self) -> str:
        return self.path.split("/")[1] or "worker"


def endpoint(
    method: str,
    path: str,
    summary: str,
    gives: Mapping[int, str | None],
    *,
    role: Role,
    takes: str | None = None,
    query: tuple[Parameter, ...] = (),
    pool: Pool = "reads",
    may_be_empty: bool = False,
) -> Callable[[Method], Method]:
    """Makes a method of a class of endpoints one of them; routes and the OpenAPI document are made from this."""
    of_handler = partial(
        Endpoint,
        method,
        path,
        summary=summary,
        role=role,
        gives=gives,
        takes=takes,
        query=query,
        pool=pool,
        may_be_empty=may_be_empty,
    )

    def mark(handler: Method) -> Method:
        vars(handler)[_ENDPOINT] = of_handler
        return handler

    return mark


def read(path: str, summary: str, schema: str) -> Callable[[Method], Method]:
    """Looks at something that may not be there, and that everybody may see."""
    return endpoint("GET", path, summary, {200: schema, 404: "Error"}, role=Role.VIEWER)


command: Final = partial(endpoint, pool="commands")
"""Changes something."""


def endpoints_of(*handlers: object) -> list[Endpoint]:
    """Those of objects with such methods."""
    return [
        method.__dict__[_ENDPOINT](getattr(one, name))
        for one in handlers
        for name, method in vars(type(one)).items()
        if _ENDPOINT in getattr(method, "__dict__", ())
    ]


def require(role: Role, needed: Role) -> Role:
    """Return the role, if it is enough. Raise RestError otherwise."""
    if not role.includes(needed):
        raise RestError(403, f"This needs the role {needed}, and you have the role {role}.")
    return role


def forwarded_role(role: Role) -> str:
    """Return a role as it is sent on to another worker: "" for an admin, as all were before there were roles."""
    return "" if role is Role.ADMIN else str(role)


async def read_body(request: Request) -> bytes:
    """Return a request's body of MOST_BYTES at most, sent within BODY_S. Raise RestError, ClientDisconnect."""
    length = request.headers.get("content-length", "0")
    if length.isascii() and length.isdigit() and int(length) > MOST_BYTES:
        raise _too_large()
    received = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for part in request.stream():
                received += part
                if len(received) > MOST_BYTES:
                    raise _too_large()
    except TimeoutError:
        message = f"The body did not come within {BODY_S:g} s."
        raise RestError(408, message, {"Connection": "close"}) from None
    return bytes(received)


def _too_large() -> RestError:
    return RestError(413, f"The body is larger than {MOST_BYTES} bytes; send less.")


class NumberText(str):
    """The text of a number, which only some endpoints must tell from text."""

    __slots__ = ()


def read_json(raw: bytes) -> Any:
    """The content: numbers as their text, so that nothing of them is lost; NO_BODY for none. Raises RestError."""
    if not raw.strip():
        return NO_BODY
    try:
        text = raw.decode("utf-8-sig")
        found = json.loads(text, parse_int=NumberText, parse_float=NumberText, parse_constant=_refuse)
        json.dumps(found, ensure_ascii=False).encode()  # half a pair of surrogates is not text
    except UnicodeDecodeError:
        raise unreadable("it is not UTF-8; send it so") from None
    except UnicodeEncodeError:
        raise unreadable("it holds half of a pair of surrogates; write both halves") from None
    except json.JSONDecodeError as error:
        raise unreadable(f"{error.msg} in line {error.lineno}, column {error.colno}; correct it") from None
    except RecursionError:
        raise unreadable("it is nested too deeply; send what the API knows") from None
    except ValueError as error:
        raise unreadable(str(error)) from None
    return found


def unreadable(reason: str) -> RestError:
    """For a body that is not what the endpoint takes. reason: with the cure, without a full stop."""
    return RestError(_UNREADABLE, f"The request's body cannot be used: {reason}.")


def object_of(body: Any, what: str) -> dict[str, Any]:
    """The JSON object that an endpoint takes. Raises RestError."""
    if body is NO_BODY or body is None:
        raise unreadable(f"it is empty; send {what} as a JSON object")
    if not isinstance(body, dict):
        raise unreadable(f"it is not a JSON object; send {what} as one")
    return body


def texts_of(found: dict[str, Any], what: str) -> dict[str, str | None]:
    """A configuration: numbers and booleans become texts. Raises RestError for lists and objects within."""
    return {name: _text(name, value, what) for name, value in found.items()}


def _text(name: str, value: Any, what: str) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or isinstance(value, str):
        return value
    kind = "list" if isinstance(value, list) else "object"
    raise unreadable(f"{quoted(name)} of {what} is a JSON {kind}; write its value as a text")


def known_fields(found: dict[str, Any], names: tuple[str, ...]) -> None:
    """Refuses a field that the endpoint does not know. Raises RestError."""
    unknown = next((name for name in found if name not in names), None)
    if unknown is not None:
        raise unreadable(f"{quoted(unknown)} is not a field of it; the fields are {', '.join(names)}")


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON; write a number or a text")


@contextmanager
def as_rest_errors(unknown: str = NOT_FOUND) -> Iterator[None]:
    """Within, what the worker raises becomes an answer, but for Elsewhere.

    unknown: the endpoint's words, `{}` for the name.
    """
    try:
        yield
    except Elsewhere:  # who has the request whole sends it on
        raise
    except UnknownConnector as error:
        raise RestError(404, unknown.format(error.name)) from error
    except HerderError as error:
        raise _answer(error) from error


def _answer(error: HerderError) -> RestError:
    if isinstance(error, InvalidConnector):
        return invalid(error.problems)
    return RestError(_STATUS[type(error)], _MESSAGES.get(type(error), str(error)))


def invalid(problems: tuple[str, ...]) -> RestError:
    """A configuration that is refused whole."""
    listed = "\n".join(problems)
    return RestError(
        400,
        f"Connector configuration is invalid and contains the following {len(problems)} error(s):\n{listed}{_SEE}",
    )


def response_of(reply: Reply) -> Response:
    """With the content as JSON, unless it is bytes already; none for None."""
    headers = dict(reply.headers)
    if reply.content is None:
        return Response(status_code=reply.status, headers=headers)
    content = reply.content if isinstance(reply.content, bytes) else _json(reply.content)
    return Response(content, reply.status, headers, reply.media_type)


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Kafka Connect's form of an error."""
    content = {"error_code": status, "message": message}
    return response_of(Reply(content, status, dict(headers or {})))


def _json(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(
        errors="backslashreplace"
    )
