"""A front between the sink and the reference target: it misbehaves by a script, and else passes everything on.

So what the sink is told may be wrong, and what the target holds is still the truth that the oracle judges. Bodies are
passed on as they come, in pieces: files of any size take constant memory.
"""

import hashlib
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from integration.scripted_target import Behaviour, Connection, Request, Server, read_head
from parquet_sink.addons.devkit.target.contract import UPLOAD_PATH

PIECE_BYTES: Final = 1 << 18
IDLE_S: Final = 60.0
_NAME: Final = re.compile(rb'filename="([^"]*)"')


@dataclass
class Attempt:
    """One request that arrived. digest: of the file's bytes, None when not all of them came. at: monotonic seconds."""

    at: float
    name: str = ""
    digest: str | None = None


class Flow(Connection):
    """A request whose body is read once, and passed on to `upstream` if that is given."""

    def __init__(
        self, accepted: socket.socket, server: "Front", request: Request, rest: bytes, attempt: Attempt
    ) -> None:
        super().__init__(accepted, server, request, rest)
        self.attempt = attempt
        self.upstream: socket.socket | None = None
        self._left = int(request.headers.get("content-length", "0"))
        self._sum = hashlib.sha256()
        self._head: bytes | None = b""
        self._tail = b""

    def read_body(self, limit: int | None = None) -> None:
        """Reads the rest of the body, or its first bytes; what was read is not kept."""
        left = self._left if limit is None else min(limit, self._left)
        while left > 0:
            piece = self.rest or self.socket.recv(PIECE_BYTES)
            if not piece:
                raise ConnectionError("the client went away in the middle of the body")
            self.rest = b""
            left -= len(piece)
            self._left -= len(piece)
            self._note(piece)
            if self.upstream is not None:
                self.upstream.sendall(piece)
        if self._left == 0 and self._tail:
            self.attempt.digest = self._sum.hexdigest()

    def _note(self, piece: bytes) -> None:
        """Digests what lies between the part's own head and the closing boundary."""
        if self._head is not None:
            self._head += piece
            head, found, piece = self._head.partition(b"\r\n\r\n")
            if not found:
                return
            named = _NAME.search(head)
            self.attempt.name = named[1].decode() if named else "?"
            self._head = None
        after = len(self.request.headers.get("content-type", "").partition("boundary=")[2]) + 8
        text = self._tail + piece
        self._sum.update(text[:-after])
        self._tail = text[-after:]


class Front(Server):
    """script: a behaviour for each attempt, None: the file is passed on; after them all are.

    upstream: port of the target on loopback. contexts: TLS for each connection, the last one for all further ones,
    empty: none.
    """

    def __init__(
        self, upstream: int, script: Sequence[Behaviour | None] = (), contexts: Sequence[ssl.SSLContext] = ()
    ) -> None:
        super().__init__()
        self._upstream, self._script, self._contexts = upstream, list(script), list(contexts)
        self._lock = threading.Lock()
        self.attempts: list[Attempt] = []
        self.connections = 0

    @property
    def endpoint(self) -> str:
        return f"http{'s' if self._contexts else ''}://127.0.0.1:{self.port}{UPLOAD_PATH.format(pool='demo')}"

    def mend(self, context: ssl.SSLContext) -> None:
        """From now on this is the certificate."""
        self._contexts = [context]

    def behave(self) -> None:
        """From now on everything is passed on."""
        with self._lock:
            self._script = []

    def handle(self, accepted: socket.socket) -> None:
        accepted.settimeout(IDLE_S)
        with self._lock:
            number, self.connections = self.connections, self.connections + 1
        if self._contexts:
            context = self._contexts[min(number, len(self._contexts) - 1)]
            accepted = context.wrap_socket(accepted, server_side=True)
        with accepted:
            while (head := read_head(accepted)) is not None:
                self._serve(Flow(accepted, self, *head, self._arrived()))
                if accepted.fileno() < 0 or self._contexts:
                    return

    def _arrived(self) -> Attempt:
        with self._lock:
            self.attempts.append(Attempt(time.monotonic()))
            return self.attempts[-1]

    def _serve(self, flow: Flow) -> None:
        with self._lock:
            behave = self._script.pop(0) if self._script else None
        if behave is None:
            flow.send(self.passed_on(flow))
        else:
            behave(flow)

    def passed_on(self, flow: Flow) -> bytes:
        """The target's answer to the whole request."""
        with socket.create_connection(("127.0.0.1", self._upstream), timeout=IDLE_S) as upstream:
            headers = {**flow.request.headers, "connection": "close"}
            lines = [flow.request.line, *(f"{name}: {value}" for name, value in headers.items()), "", ""]
            upstream.sendall("\r\n".join(lines).encode("latin-1"))
            flow.upstream = upstream
            flow.read_body()
            answer = b""
            while piece := upstream.recv(PIECE_BYTES):
                answer += piece
        return answer


def kept(behave: Behaviour) -> Behaviour:
    """The target takes the file, and the sink is told something else."""

    def both(connection: Connection) -> None:
        assert isinstance(connection, Flow)
        assert isinstance(connection.server, Front)
        connection.server.passed_on(connection)
        connection.upstream = None
        behave(connection)

    return both


def closes(behave: Behaviour, then: Callable[["Front"], None] | None = None) -> Behaviour:
    """Ends the connection after the answer, so that the next attempt makes a new one; then: done before that."""

    def both(connection: Connection) -> None:
        assert isinstance(connection.server, Front)
        connection.read_body()
        if then is not None:
            then(connection.server)
        behave(connection)
        with suppress(OSError):
            connection.socket.shutdown(socket.SHUT_RDWR)
        connection.socket.close()

    return both
