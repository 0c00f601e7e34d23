"""A schema registry for tests and benchmarks: Confluent's protocol over real HTTP, misbehaving to order.

It answers as Confluent's does, as far as clients that register, look up and read schemas go; the same below
`/apis/ccompat/v7`, as Apicurio does. What is posted is stored as it is: no compatibility is checked, nothing is
normalised, and a Protobuf schema is its .proto text.
"""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from parquet_sink.addons.devkit.target.server import CuttableProtocol

APICURIO: Final = "/apis/ccompat/v7"
KINDS: Final = ("JSON", "PROTOBUF", "AVRO")
_MEDIA: Final = "application/vnd.schemaregistry.v1+json"
_START_S: Final = 20.0


@dataclass(frozen=True)
class Stored:
    """A schema as it was posted. references: (name, subject, version)."""

    kind: str
    text: str
    references: tuple[tuple[str, str, int], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """As Confluent's registry shows it: AVRO and no references go without saying."""
        shown: dict[str, Any] = {"schema": self.text}
        if self.kind != "AVRO":
            shown["schemaType"] = self.kind
        if self.references:
            names = ("name", "subject", "version")
            shown["references"] = [dict(zip(names, each, strict=True)) for each in self.references]
        return shown


@dataclass(frozen=True)
class Trouble:
    """What goes wrong with a request. size: of a body that goes on and on; cut: the connection, without an answer."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    size: int = 0
    delay_s: float = 0.0
    cut: bool = False
    answers: bool = True

    def response(self) -> Response:
        """The answer instead of the registry's."""
        body = self.body or b'{"schema":"' + b" " * self.size + b'"}'
        return Response(body, self.status, {"content-type": _MEDIA, **self.headers})


class _Unfit(Exception):
    """An answer in Confluent's form: status, code, message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    def response(self) -> Response:
        status = self.code if self.code < 1000 else self.code // 100
        return _answer({"error_code": self.code, "message": str(self)}, status)


def _answer(content: Any, status: int = 200) -> Response:
    return JSONResponse(content, status, media_type=_MEDIA)


class Registered:
    """Schemas by id, and the versions of subjects. One schema has one id, whichever subjects it is in."""

    def __init__(self) -> None:
        self.schemas: dict[int, Stored] = {}
        self.subjects: dict[str, list[int]] = {}
        self.deleted: set[str] = set()
        self._lock = threading.Lock()

    def register(self, subject: str, schema: Stored) -> int:
        """The id, new or known. Raises _Unfit for what is no schema."""
        if schema.kind not in KINDS:
            raise _Unfit(42201, f"Invalid schema type {schema.kind}")
        if schema.kind != "PROTOBUF" and not _is_json(schema.text):
            raise _Unfit(42201, "Invalid schema")
        for _, other, version in schema.references:
            self.version(other, str(version), deleted=False)
        with self._lock:
            known = next((id_ for id_, one in self.schemas.items() if one == schema), None)
            schema_id = known or len(self.schemas) + 1
            self.schemas[schema_id] = schema
            versions = self.subjects.setdefault(subject, [])
            if schema_id not in versions:
                versions.append(schema_id)
            self.deleted.discard(subject)
            return schema_id

    def by_id(self, schema_id: int) -> Stored:
        if schema_id not in self.schemas:
            raise _Unfit(40403, f"Schema {schema_id} not found")
        return self.schemas[schema_id]

    def version(self, subject: str, version: str, *, deleted: bool) -> dict[str, Any]:
        """One version of a subject; `latest` or -1 for the last one."""
        ids = self._ids(subject, deleted=deleted)
        number = len(ids) if version in ("latest", "-1") else int(version)
        if not 1 <= number <= len(ids):
            raise _Unfit(40402, f"Version {version} not found.")
        return self._shown(subject, number)

    def lookup(self, subject: str, schema: Stored) -> dict[str, Any]:
        """The version of a subject that has this schema."""
        ids = self._ids(subject, deleted=False)
        for number, schema_id in enumerate(ids, 1):
            if self.schemas[schema_id] == schema:
                return self._shown(subject, number)
        raise _Unfit(40403, "Schema not found")

    def _ids(self, subject: str, *, deleted: bool) -> list[int]:
        if subject not in self.subjects or (subject in self.deleted and not deleted):
            raise _Unfit(40401, f"Subject '{subject}' not found.")
        return self.subjects[subject]

    def _shown(self, subject: str, number: int) -> dict[str, Any]:
        schema_id = self.subjects[subject][number - 1]
        return {"subject": subject, "version": number, "id": schema_id, **self.schemas[schema_id].as_json()}


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


class _Handlers:
    """The registry's requests."""

    def __init__(self, registered: Registered) -> None:
        self._registered = registered

    def routes(self) -> list[Route]:
        return [
            Route("/", self.nothing),
            Route("/schemas/types", self.kinds),
            Route("/schemas/ids/{id}", self.by_id),
            Route("/subjects", self.subjects),
            Route("/subjects/{subject:path}/versions/{version}", self.version),
            Route("/subjects/{subject:path}/versions", self.register, methods=["POST"]),
            Route("/subjects/{subject:path}/versions", self.versions),
            Route("/subjects/{subject:path}", self.lookup, methods=["POST"]),
            Route("/subjects/{subject:path}", self.delete, methods=["DELETE"]),
            Route("/config", self.config),
            Route("/config/{subject}", self.config),
        ]

    async def nothing(self, request: Request) -> Response:
        return _answer({})

    async def kinds(self, request: Request) -> Response:
        return _answer(list(KINDS))

    async def by_id(self, request: Request) -> Response:
        text = request.path_params["id"]
        if not text.isdecimal():
            raise _Unfit(404, "HTTP 404 Not Found")
        return _answer(self._registered.by_id(int(text)).as_json())

    async def subjects(self, request: Request) -> Response:
        return _answer([name for name in self._registered.subjects if name not in self._registered.deleted])

    async def register(self, request: Request) -> Response:
        return _answer({"id": self._registered.register(request.path_params["subject"], await _posted(request))})

    async def lookup(self, request: Request) -> Response:
        return _answer(self._registered.lookup(request.path_params["subject"], await _posted(request)))

    async def delete(self, request: Request) -> Response:
        subject = request.path_params["subject"]
        numbers = range(1, len(self._registered.subjects.get(subject, ())) + 1)
        self._registered.deleted.add(subject)
        return _answer(list(numbers))

    async def versions(self, request: Request) -> Response:
        ids = self._registered.subjects.get(request.path_params["subject"], [])
        return _answer(list(range(1, len(ids) + 1)))

    async def version(self, request: Request) -> Response:
        deleted = request.query_params.get("deleted") == "true"
        return _answer(
            self._registered.version(request.path_params["subject"], request.path_params["version"], deleted=deleted)
        )

    async def config(self, request: Request) -> Response:
        return _answer({"compatibilityLevel": "NONE"})


async def _posted(request: Request) -> Stored:
    body = await request.json()
    references = tuple((each["name"], each["subject"], each["version"]) for each in body.get("references") or ())
    return Stored(body.get("schemaType") or "AVRO", body["schema"], references)


@dataclass(frozen=True)
class Asked:
    """A request that came in."""

    method: str
    path: str
    headers: Mapping[str, str]


class _Gate:
    """Notes requests, asks for credentials, and makes trouble, before the registry sees anything."""

    def __init__(self, app: ASGIApp, authorization: str | None) -> None:
        self._app, self._authorization = app, authorization
        self.asked: list[Asked] = []
        self.troubles: list[Trouble] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        self.asked.append(Asked(request.method, request.url.path, dict(request.headers)))
        trouble = self.troubles.pop(0) if self.troubles else None
        if trouble is not None:
            await asyncio.sleep(trouble.delay_s)
            if trouble.cut:
                scope["state"]["transport"].abort()
                return
            if trouble.answers:
                await trouble.response()(scope, receive, send)
                return
        if self._authorization is not None and request.headers.get("authorization") != self._authorization:
            await _Unfit(401, "Unauthorized").response()(scope, receive, send)
            return
        await self._app(scope, receive, send)


class RegistryServer:
    """A registry on loopback, in a thread; as a context manager it runs from start to end of the context.

    authorization: the header that every request must have, `Basic ...` or `Bearer ...`. certificate: PEM file of a
    certificate with its key, for https. client_ca: PEM file of the CA that the client's certificate must be of.
    """

    def __init__(
        self, *, authorization: str | None = None, certificate: str | None = None, client_ca: str | None = None
    ) -> None:
        self.registered = Registered()
        routes = _Handlers(self.registered).routes()
        app = Starlette(
            routes=[Mount(APICURIO, routes=routes), *routes],
            exception_handlers={_Unfit: _of_unfit, 404: _of_unknown_path},
        )
        self._gate = _Gate(app, authorization)
        self._scheme = "http" if certificate is None else "https"
        self._server = uvicorn.Server(_config(self._gate, certificate, client_ca))
        self._thread = threading.Thread(target=self._run, name="test registry", daemon=True)
        # Only with the protocol named does asyncio set TCP_NODELAY on what it accepts; else an answer may wait 40 ms.
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self.url = ""

    def __enter__(self) -> Self:
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(128)
        self.url = f"{self._scheme}://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread.start()
        ends = time.monotonic() + _START_S
        while not self._server.started:
            assert self._thread.is_alive(), "the registry did not start"
            assert time.monotonic() < ends, "the registry takes too long to start"
            time.sleep(0.005)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.should_exit = True
        self._thread.join(_START_S)
        self._listener.close()

    def _run(self) -> None:
        self._server.run(sockets=[self._listener])

    @property
    def asked(self) -> list[Asked]:
        """All requests so far, with those that met trouble."""
        return list(self._gate.asked)

    def count(self, path: str = "") -> int:
        """How many requests named this in their path."""
        return sum(path in each.path for each in self.asked)

    def trouble(self, *troubles: Trouble) -> None:
        """What the next requests meet, one each."""
        self._gate.troubles.extend(troubles)

    def register(
        self, subject: str, text: str, kind: str = "AVRO", references: Sequence[tuple[str, str, int]] = ()
    ) -> int:
        """The id of a schema that is registered past HTTP. references: (name, subject, version)."""
        return self.registered.register(subject, Stored(kind, text, tuple(references)))


def _config(app: ASGIApp, certificate: str | None, client_ca: str | None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=CuttableProtocol,
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=1,
        ssl_certfile=certificate,
        ssl_ca_certs=client_ca,
        ssl_cert_reqs=2 if client_ca else 0,
    )


def _of_unfit(request: Request, error: Exception) -> Response:
    assert isinstance(error, _Unfit)
    return error.response()


def _of_unknown_path(request: Request, error: Exception) -> Response:
    return _Unfit(404, "HTTP 404 Not Found").response()
