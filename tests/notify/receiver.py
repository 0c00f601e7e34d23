"""A webhook that tests post notices to."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class Receiver(ThreadingHTTPServer):
    """Answers with what `answers` has, the last one for ever, after `wait_s`.

    got: headers and body of each request. taken: id and data of each notice that was answered with 2xx.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[tuple[int, dict[str, str]]] = [(204, {})]
        self.wait_s = 0.0
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.taken: list[tuple[str, dict[str, Any]]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/notices"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
        time.sleep(self.server.wait_s)
        status, headers = self.server.answers[0] if len(self.server.answers) == 1 else self.server.answers.pop(0)
        if 200 <= status < 300:
            self.server.taken.append((self.headers["ce-id"], json.loads(body)))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base class
        """Says nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """One of this test."""
    made = Receiver()
    yield made
    made.shutdown()
    made.server_close()
