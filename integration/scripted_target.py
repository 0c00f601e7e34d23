"""A push target on a raw socket that misbehaves as told, and proxies that remember who signed in."""

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

ACCEPTED = b'{"id":"1","fileName":"f","bucketId":"b","flushStatus":"NEW","clientId":null,"upsertStrategy":null}'


@dataclass
class Request:
    """One request as it arrived; `body` is what came of it."""

    line: str
    headers: dict[str, str]
    body: bytes = b""


Behaviour = Callable[["Connection"], None]


@dataclass
class Connection:
    """What a behaviour works with."""

    socket: socket.socket
    server: "Server"
    request: Request
    rest: bytes

    def read_body(self, limit: int | None = None) -> None:
        """Reads the body, or its first bytes."""
        wanted = int(self.request.headers.get("content-length", "0"))
        wanted = wanted if limit is None else min(limit, wanted)
        body = bytearray(self.rest)
        while len(body) < wanted and (piece := self.socket.recv(1 << 16)):
            body += piece
        self.request.body = bytes(body)

    def send(self, data: bytes) -> None:
        """Sends, whether or not anybody still listens."""
        with contextlib.suppress(OSError):
            self.socket.sendall(data)

    def reset(self) -> None:
        """Ends the connection with RST in place of FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


class Server:
    """Accepts connections in threads on a loopback port; a context manager."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.closing = threading.Event()
        self._threads: list[threading.Thread] = []

    def handle(self, accepted: socket.socket) -> None:
        """Serves one connection."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._begin()
        return self

    def down(self) -> None:
        """Nobody listens any more; connections that there are go on."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def up(self) -> None:
        """Listens again on the same port."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._begin()

    def _begin(self) -> None:
        thread = threading.Thread(target=self._accept)
        self._threads.append(thread)
        thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self.down()
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        while not self.closing.is_set():
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            accepted.settimeout(10)
            thread = threading.Thread(target=self._guarded, args=(accepted,))
            self._threads.append(thread)
            thread.start()

    def _guarded(self, accepted: socket.socket) -> None:
        with contextlib.suppress(OSError), accepted:
            self.handle(accepted)


@dataclass
class _State:
    requests: list[Request] = field(default_factory=list)
    connections: int = 0


class ScriptedTarget(Server):
    """Behaves by its script, one entry for each request, then always as `then`: it accepts every file."""

    def __init__(self, *script: Behaviour, tls: ssl.SSLContext | None = None, then: Behaviour | None = None) -> None:
        super().__init__()
        self._script, self._tls, self._lock = list(script), tls, threading.Lock()
        self._then = then or accept
        self.state = _State()

    @property
    def endpoint(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}/api/v1/pool/items"

    @property
    def requests(self) -> list[Request]:
        return self.state.requests

    def handle(self, accepted: socket.socket) -> None:
        self.state.connections += 1
        if self._tls is not None:
            accepted = self._tls.wrap_socket(accepted, server_side=True)
        with accepted:
            while (head := read_head(accepted)) is not None:
                request, rest = head
                with self._lock:
                    behaviour = self._script.pop(0) if self._script else self._then
                    self.state.requests.append(request)
                behaviour(Connection(accepted, self, request, rest))
                if accepted.fileno() < 0 or request.headers.get("connection", "").lower() == "close":
                    return


def read_head(accepted: socket.socket) -> tuple[Request, bytes] | None:
    """Request line and headers, and what came of the body with them; None at the end of the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        try:
            piece = accepted.recv(1 << 16)
        except OSError:
            return None
        if not piece:
            return None
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    line, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in lines)}
    return Request(line, headers), rest


def accept(connection: Connection) -> None:
    """Takes the file and says so."""
    answer(200, ACCEPTED)(connection)


def answer(status: int, body: bytes = b"", *headers: str, read: bool = True) -> Behaviour:
    """Answers with a whole body. Where that of the request is not read, the connection ends, and the answer says so."""
    ends = () if read else ("Connection: close",)  # a client that does not know may use it again

    def behave(connection: Connection) -> None:
        if read:
            connection.read_body()
        lines = [f"HTTP/1.1 {status} Reason", f"Content-Length: {len(body)}", *ends, *headers, "", ""]
        connection.send("\r\n".join(lines).encode() + body)
        if not read:
            connection.socket.shutdown(socket.SHUT_WR)
            while connection.socket.recv(1 << 16):  # a reset would swallow the answer
                pass

    return behave


def cut(after_bytes: int | None) -> Behaviour:
    """Resets the connection after some bytes of the body, None: after all of it."""

    def behave(connection: Connection) -> None:
        connection.read_body(after_bytes)
        connection.reset()

    return behave


def close_silently(connection: Connection) -> None:
    """Takes everything and closes without an answer."""
    connection.read_body()
    connection.socket.shutdown(socket.SHUT_RDWR)


def hang(connection: Connection) -> None:
    """Takes everything and never answers."""
    connection.read_body()
    connection.server.closing.wait(10)


def never_read(connection: Connection) -> None:
    """Takes the head and then nothing: the sender's buffers fill up."""
    connection.server.closing.wait(10)


def drip(head: bytes) -> Behaviour:
    """Sends `head`, then a byte every 20 ms without end."""

    def behave(connection: Connection) -> None:
        connection.read_body()
        connection.socket.sendall(head)
        while not connection.server.closing.wait(0.02):
            connection.socket.sendall(b"x")

    return behave


def endless(status: int) -> Behaviour:
    """Sends a body without end, as fast as it is taken."""

    def behave(connection: Connection) -> None:
        connection.read_body()
        connection.socket.sendall(f"HTTP/1.1 {status} Reason\r\n\r\n".encode())
        while not connection.server.closing.is_set():
            connection.socket.sendall(b"y" * 65536)

    return behave


def truncated(connection: Connection) -> None:
    """Promises more of a good answer than it sends."""
    connection.read_body()
    connection.send(f"HTTP/1.1 200 OK\r\nContent-Length: {len(ACCEPTED) + 50}\r\n\r\n".encode() + ACCEPTED)
    connection.socket.shutdown(socket.SHUT_RDWR)


def open_ended(connection: Connection) -> None:
    """Sends a good answer of no stated length, and then neither more nor the end."""
    connection.read_body()
    connection.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + ACCEPTED)
    connection.server.closing.wait(10)


def garbage(connection: Connection) -> None:
    """Answers with something that is not HTTP."""
    connection.read_body()
    connection.send(b"220 mail.example.org ESMTP\r\n")
    connection.socket.shutdown(socket.SHUT_RDWR)


class ClearServer(Server):
    """Answers whatever comes first in clear text, as an http port does that is spoken to in TLS."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = b""

    def handle(self, accepted: socket.socket) -> None:
        self.seen += accepted.recv(1 << 16)
        accepted.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        accepted.shutdown(socket.SHUT_WR)
        self.seen += accepted.recv(1 << 16)


class ConnectProxy(Server):
    """An HTTP proxy: tunnels CONNECT, forwards plain requests, and remembers the heads it saw."""

    def __init__(self, status: int = 200) -> None:
        super().__init__()
        self.status = status
        self.heads: list[Request] = []

    def handle(self, accepted: socket.socket) -> None:
        head = read_head(accepted)
        assert head is not None
        request, rest = head
        self.heads.append(request)
        method, address, _ = request.line.split(" ")
        if self.status != 200:
            accepted.sendall(f"HTTP/1.1 {self.status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        elif method == "CONNECT":
            host, _, port = address.partition(":")
            accepted.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            relay(accepted, (host, int(port)), rest)
        else:
            place, _, path = address.removeprefix("http://").partition("/")
            host, _, port = place.partition(":")
            lines = [f"{name}: {value}" for name, value in request.headers.items() if name != "proxy-authorization"]
            line = f"{method} /{path} HTTP/1.1"  # to the server itself, as real ones do
            relay(accepted, (host, int(port)), "\r\n".join([line, *lines, "", ""]).encode() + rest)


class SocksProxy(Server):
    """SOCKS 4a and 5 with or without a password; remembers what was said."""

    def __init__(self, *, password: bytes | None = None) -> None:
        super().__init__()
        self.password = password
        self.users: list[bytes] = []
        self.seen = b""

    def handle(self, accepted: socket.socket) -> None:
        version = _exactly(accepted, 1)
        address = self._socks5(accepted) if version == b"\x05" else self._socks4(accepted)
        if address is not None:
            relay(accepted, address, b"", self._see)

    def _see(self, data: bytes) -> None:
        self.seen += data

    def _socks5(self, accepted: socket.socket) -> tuple[str, int] | None:
        methods = _exactly(accepted, _exactly(accepted, 1)[0])
        if self.password is not None:
            if b"\x02" not in methods:
                accepted.sendall(b"\x05\xff")
                return None
            accepted.sendall(b"\x05\x02")
            _exactly(accepted, 1)
            user = _exactly(accepted, _exactly(accepted, 1)[0])
            password = _exactly(accepted, _exactly(accepted, 1)[0])
            self.users.append(user)
            accepted.sendall(b"\x01\x00" if password == self.password else b"\x01\x01")
            if password != self.password:
                return None
        else:
            accepted.sendall(b"\x05\x00")
        kind = _exactly(accepted, 4)[3]
        host = (
            socket.inet_ntoa(_exactly(accepted, 4))
            if kind == 1
            else _exactly(accepted, _exactly(accepted, 1)[0]).decode()
        )
        port = struct.unpack(">H", _exactly(accepted, 2))[0]
        accepted.sendall(b"\x05\x00\x00\x01" + bytes(6))
        return host, port

    def _socks4(self, accepted: socket.socket) -> tuple[str, int]:
        _, port, number = struct.unpack(">BH4s", _exactly(accepted, 7))
        self.users.append(_until_zero(accepted))
        named = number[:3] == bytes(3) and number[3:] != b"\0"
        host = _until_zero(accepted).decode() if named else socket.inet_ntoa(number)
        accepted.sendall(b"\x00\x5a" + bytes(6))
        return host, port


def relay(
    one: socket.socket, address: tuple[str, int], first: bytes, see: Callable[[bytes], None] | None = None
) -> None:
    """Passes bytes both ways until either side ends; `see` is told what goes out."""
    with socket.create_connection(address, timeout=10) as other:
        other.sendall(first)
        back = threading.Thread(target=_pump, args=(other, one, None))
        back.start()
        _pump(one, other, see)
        back.join()


def _pump(source: socket.socket, sink: socket.socket, see: Callable[[bytes], None] | None) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            if see is not None:
                see(data)
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def _exactly(source: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count and (piece := source.recv(count - len(data))):
        data += piece
    if len(data) < count:
        raise ConnectionError("the client went away")
    return data


def _until_zero(source: socket.socket) -> bytes:
    data = b""
    while (byte := _exactly(source, 1)) != b"\0":
        data += byte
    return data


@contextmanager
def closed_port() -> Iterator[int]:
    """A port on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]
