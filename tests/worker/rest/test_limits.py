"""What a client can draw out has an end: bodies, heads, connections, answers that nobody takes, requests at once."""

import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event, Semaphore

import pytest

from parquet_sink.worker.rest import app, call, server
from tests.messages import assert_says
from tests.worker.rest.fake_herder import FakeHerder, Kept
from tests.worker.rest.serving import GOOD, Client, serving

SOON_S = 0.3
LATE_S = 60
"""What a busy machine may take."""


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A server that has room for few, and waits for no next request."""
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 5)
    monkeypatch.setattr(server, "IDLE_S", 1)
    herder = FakeHerder()
    herder.kept = {f"c{number}": Kept({**GOOD, "name": f"c{number}", "big": "x" * 100_000}) for number in range(50)}
    with serving(herder) as client:
        yield client


def _connect(client: Client) -> socket.socket:
    return socket.create_connection(("127.0.0.1", client.port), timeout=LATE_S)


def _all(connection: socket.socket) -> bytes:
    """What comes until the server ends the connection."""
    found = b""
    try:
        while part := connection.recv(65536):
            found += part
    except ConnectionError:
        pass
    return found


def test_a_body_that_drips_is_given_up(hasty: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """408, and the connection ends."""
    monkeypatch.setattr(call, "BODY_S", SOON_S)
    with closing(_connect(hasty)) as connection:
        head = b"PUT /connectors/c/config HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall(head + b'Content-Length: 100\r\n\r\n{"a')
        answer = _all(connection)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error_code"] == 408


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_is_refused(hasty: Client, chunked: bool) -> None:
    """413 by what is announced, or as soon as too much has come; the client gets to read it."""
    with closing(hasty.connection()) as connection:
        headers = {"Content-Type": "application/json"}
        body: bytes | Iterator[bytes] = b"x" * (2 * 1024 * 1024)
        if chunked:
            body = iter([b"x" * 100_000] * 20)
        connection.request("POST", "/connectors", body, headers, encode_chunked=chunked)
        answer = connection.getresponse()
        assert answer.status == 413
        assert_says(answer.read().decode(), "larger than", "1048576 bytes")


def test_headers_that_are_too_large_are_refused(hasty: Client) -> None:
    """400, and the connection ends, before they are whole."""
    with closing(_connect(hasty)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 70_000)
        answer = _all(connection)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("sent", [b"\x16\x03\x01 hello", b"GET / HTTP/1.1\r\nHost: localhost\r\nno header"])
def test_what_is_no_http_is_refused(hasty: Client, sent: bytes) -> None:
    """400, and the connection ends."""
    with closing(_connect(hasty)) as connection:
        connection.sendall(sent + b"\r\n\r\n")
        assert _all(connection).startswith(b"HTTP/1.1 400 ")


def test_an_idle_connection_ends(hasty: Client) -> None:
    """Some time after its last answer."""
    with closing(_connect(hasty)) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200 OK" in _all(connection)


def test_requests_on_connections_above_the_limit_are_told_to_come_again(hasty: Client) -> None:
    """503; those that are there are answered once the others are gone."""
    others = [_connect(hasty) for _ in range(5)]
    try:
        assert _status_when(hasty, 503) == 503
    finally:
        for one in others:
            one.close()
    assert _status_when(hasty, 200) == 200


def _status_when(client: Client, status: int) -> int:
    """What `/health` is answered with, once it is this, or after some time: connections come and go beside requests."""
    until = time.monotonic() + LATE_S
    while (found := client.get("/health").status) != status and time.monotonic() < until:
        pass
    return found


def test_requests_above_the_limit_are_told_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """503 with Retry-After; those in progress end well."""
    monkeypatch.setattr(app, "MOST_AT_ONCE", 2)
    herder, go, waiting = FakeHerder(), Event(), Semaphore(0)

    def wait() -> None:
        waiting.release()
        go.wait(LATE_S)

    herder.kept["c"] = Kept(dict(GOOD))
    herder.waits = wait
    with serving(herder) as client, ThreadPoolExecutor(2) as pool:
        slow = [pool.submit(client.ask, "PUT", "/connectors/c/pause") for _ in range(2)]
        assert all(waiting.acquire(timeout=LATE_S) for _ in range(2))
        busy = client.get("/connectors")
        go.set()
        assert busy.status == 503
        assert busy.headers["Retry-After"] == "1"
        assert_says(busy.error[1], "Too many requests", "again")
        assert [one.result(LATE_S).status for one in slow] == [202, 202]


def test_slow_commands_leave_reads_and_health_free() -> None:
    """However many commands wait for the worker."""
    herder, go = FakeHerder(), Event()
    herder.kept["c"] = Kept(dict(GOOD))
    herder.waits = lambda: go.wait(LATE_S) and None
    with serving(herder) as client, ThreadPoolExecutor(80) as pool:
        slow = [pool.submit(client.ask, "PUT", "/connectors/c/pause") for _ in range(80)]
        try:
            assert client.get("/health").status == 200
            assert client.get("/connectors").json == ["c"]
        finally:
            go.set()
        assert {one.result(LATE_S).status for one in slow} == {202}


@pytest.mark.parametrize("method", [b"GET /connectors", b"PUT /connectors/c0/config", b"OPTIONS /connectors"])
def test_two_lengths_end_the_connection(hasty: Client, method: bytes) -> None:
    """What stands behind the request for a proxy that read the other one is never taken for a request."""
    smuggled = b"GET /connectors/c1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    head = method + b" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    with closing(_connect(hasty)) as connection:
        connection.sendall(head + b"Content-Length: 5\r\n\r\n0\r\n\r\n" + smuggled)
        answer = _all(connection)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"Content-Length and Transfer-Encoding" in answer
    assert answer.count(b"HTTP/1.1 ") == 1


def test_half_sent_heads_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection ends when the head of its first request, or of a later one, does not come in time."""
    monkeypatch.setattr(server, "HEAD_S", SOON_S)
    with serving(FakeHerder()) as client:
        whole = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for before, half in ((b"", b""), (b"", b"GET /health HT"), (whole, b"GET /con")):
            with socket.create_connection(("127.0.0.1", client.port), timeout=server.IDLE_S / 2) as connection:
                if before:
                    connection.sendall(before)
                    assert b"HTTP/1.1 200" in connection.recv(65536)
                    time.sleep(2 * SOON_S)  # between two requests it may take longer
                connection.sendall(half)
                while connection.recv(65536):
                    pass
