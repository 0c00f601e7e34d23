"""A front between the sink and an S3 server: requests that it was told of misbehave, all others are passed on."""

import base64
import re
import socket
import ssl
import threading
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from integration.scripted_target import Behaviour, Connection, Request, Server, answer, read_head

IDLE_S: Final = 60.0
_PIECE_BYTES: Final = 1 << 18


@dataclass
class Fault:
    """What happens to the next `times` requests whose line matches: `PUT /b/k?partNumber=1&…`."""

    pattern: str
    behave: Behaviour
    times: int = 1


class S3Front(Server):
    """upstream: port of the S3 server on loopback. tls: what clients must speak; none by default.

    Of faults the first that matches a request and is left happens. checksums: whether answers have the SHA-256 of what
    was stored, as those of AWS have, and moto's have not.
    """

    def __init__(self, upstream: int, *faults: Fault, tls: ssl.SSLContext | None = None) -> None:
        super().__init__()
        self._tls = tls
        self._upstream, self._faults, self._lock = upstream, list(faults), threading.Lock()
        self.checksums = False
        self.requests: list[Request] = []
        self.live: set[socket.socket] = set()

    @property
    def endpoint(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}"

    def asked(self, pattern: str) -> int:
        """How many requests' lines matched."""
        return sum(re.search(pattern, request.line) is not None for request in self.requests)

    def handle(self, accepted: socket.socket) -> None:
        accepted.settimeout(IDLE_S)
        if self._tls is not None:
            accepted = self._tls.wrap_socket(accepted, server_side=True)
        self.live.add(accepted)
        try:
            with accepted:
                if (head := read_head(accepted)) is not None:
                    connection = Connection(accepted, self, *head)
                    self._fault_of(connection.request)(connection)
        finally:
            self.live.discard(accepted)

    def _fault_of(self, request: Request) -> Behaviour:
        with self._lock:
            self.requests.append(request)
            fault = next((one for one in self._faults if one.times and re.search(one.pattern, request.line)), None)
            if fault is None:
                return self.pass_on
            fault.times -= 1
        return fault.behave

    def linger(self, line: str) -> None:
        """What it does before a request is passed on."""

    def pass_on(self, connection: Connection) -> None:
        """The server's answer to the whole request; then the connection ends."""
        connection.send(self.answer_of(connection))

    def answer_of(self, connection: Connection) -> bytes:
        """What the server says; of what a client sent half of it hears nothing. Raises ConnectionError."""
        connection.read_body()
        if len(connection.request.body) < int(connection.request.headers.get("content-length", "0")):
            raise ConnectionError("the client went away in the middle of the body")
        self.linger(connection.request.line)
        headers = {**connection.request.headers, "connection": "close"}
        lines = [connection.request.line, *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        with socket.create_connection(("127.0.0.1", self._upstream), timeout=IDLE_S) as upstream:
            upstream.sendall("\r\n".join(lines).encode("latin-1") + connection.request.body)
            answer = b""
            while piece := upstream.recv(_PIECE_BYTES):
                answer += piece
        return _with_checksum(connection.request, answer) if self.checksums else answer


def _with_checksum(request: Request, answer: bytes) -> bytes:
    """The digest of the body that was sent, or of the digests of the parts that were put together."""
    head, _, body = answer.partition(b"\r\n\r\n")
    if not re.match(rb"HTTP/1.1 200", head):
        return answer
    if request.line.startswith("PUT") and (told := request.headers.get("x-amz-checksum-sha256")):
        head += f"\r\nx-amz-checksum-sha256: {told}".encode()
    elif body.endswith(end := b"</CompleteMultipartUploadResult>"):
        parts = re.findall(rb"<ChecksumSHA256>([^<]*)<", request.body)
        whole = base64.b64encode(sha256(b"".join(map(base64.b64decode, parts))).digest()).decode()
        body = body.removesuffix(end) + f"<ChecksumSHA256>{whole}-{len(parts)}</ChecksumSHA256>".encode() + end
        head = re.sub(rb"(?i)(content-length: )\d+", rb"\g<1>%d" % len(body), head)
    return head + b"\r\n\r\n" + body


def taken_and_cut(connection: Connection) -> None:
    """The server does what it is asked for, and the client hears nothing of it."""
    assert isinstance(connection.server, S3Front)
    connection.server.answer_of(connection)
    connection.reset()


def error(status: int, code: str, message: str = "of the test") -> Behaviour:
    """S3's answer of an error."""
    body = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{message}</Message></Error>'.encode()
    return answer(status, body, "Content-Type: application/xml", "Connection: close")
