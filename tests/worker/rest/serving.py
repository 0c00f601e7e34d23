"""A server on loopback over a fake herder, and a client that says what came back."""

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from ssl import SSLContext
from typing import Any

from starlette.applications import Starlette

from parquet_sink.config.machine import Machine
from parquet_sink.connectors.loading import load
from parquet_sink.worker.rest.app import make_admin_app, make_app
from parquet_sink.worker.rest.peers import Peers
from parquet_sink.worker.rest.plugins import Validate
from parquet_sink.worker.rest.server import RestServer, open_listeners
from parquet_sink.worker_config.rest.settings import RestSettings
from parquet_sink.worker_config.rest.values import Address
from parquet_sink.worker_config.worker import Worker
from tests.worker.rest.fake_herder import FakeHerder

LOOPBACK = (Address("http", "127.0.0.1", 0),)
GOOD = {
    "connector.class": "parquet_sink.EmsSink",
    "topics": "orders",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "connect.ems.endpoint": "https://example.com/push",
    "connect.ems.authorization.key": "AppKey secret-key",
    "connect.ems.target.table": "orders",
    "connect.ems.commit.size.bytes": "10000000",
    "connect.ems.commit.records": "1000",
    "connect.ems.commit.interval.ms": "1000",
}
"""A configuration without a name in which nothing is wrong."""


@dataclass(frozen=True)
class Got:
    """An answer."""

    status: int
    headers: http.client.HTTPMessage
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def error(self) -> tuple[int, str]:
        """Status and message; both say the same status."""
        body = self.json
        assert set(body) == {"error_code", "message"}
        assert body["error_code"] == self.status
        return self.status, body["message"]


class Client:
    """Asks a server; each question has a connection of its own."""

    ports: tuple[int, ...] = ()
    admin_ports: tuple[int, ...] = ()

    def __init__(self, port: int, tls: SSLContext | None = None) -> None:
        self.port, self._tls = port, tls

    def connection(self) -> http.client.HTTPConnection:
        if self._tls is not None:
            return http.client.HTTPSConnection("localhost", self.port, timeout=60, context=self._tls)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None, raw: bytes = b""
    ) -> Got:
        """body: sent as JSON, raw as it stands."""
        sent = dict(headers or {})
        data = raw or (None if body is None else json.dumps(body).encode())
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        connection = self.connection()
        try:
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            return Got(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Got:
        return self.ask("GET", path, headers=headers)


def by_keys(worker: Worker) -> Validate:
    """Validates by the tables of keys alone, on top of the worker file."""
    return lambda config: load(config, worker, source="the request")


def app_of(herder: FakeHerder, worker: Worker, settings: RestSettings, peers: Peers | None = None) -> Starlette:
    """The API with metrics of one line."""
    text = b"x 1\n", "text/plain; version=0.0.4; charset=utf-8"
    return make_app(herder, worker, settings, lambda: text, by_keys(worker), peers)


@contextmanager
def serving(
    herder: FakeHerder,
    settings: RestSettings | None = None,
    tls: SSLContext | None = None,
    peers: Peers | None = None,
) -> Iterator[Client]:
    """A client of a server that runs within. settings: loopback, any port, when None."""
    settings = settings or RestSettings(listeners=LOOPBACK)
    worker = Worker(machine=Machine(is_file=lambda path: Path(path).is_file()))
    app = app_of(herder, worker, settings, peers)
    listening = open_listeners(settings)
    server = RestServer(app, make_admin_app(herder, settings, peers), listening)
    server.start()
    try:
        client = Client(listening.settings.listeners[0].port, tls)
        client.ports = tuple(one.port for one in listening.settings.listeners)
        client.admin_ports = tuple(one.port for one in listening.settings.admin or ())
        yield client
    finally:
        server.stop()
