"""A door to a broker that, when it is told to, names no broker any more in what it says of the cluster.

So a broker answers that joins its cluster again after a pause: topics, and nobody who has them. A client that takes it
at its word has nobody left to ask.
"""

import socket
import struct
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, Self

from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.ports import free_port

HOST: Final = "127.0.0.1"
_NAME: Final = "DOOR"
_METADATA: Final = 3
_FLEXIBLE: Final = 9
"""From this version of the answer on lists and texts are compact."""


class Brokerless:
    """Use as a context manager. hidden: set it to name no broker. hid: in how many answers none was named."""

    def __init__(self) -> None:
        self._door = socket.create_server((HOST, 0))
        self.port: int = self._door.getsockname()[1]
        self.to, self.hid, self.hidden = 0, 0, threading.Event()

    def broker(self, properties: Mapping[str, str] | None = None) -> Broker:
        """Not started yet; it names the door to whoever came through it, and `to` is its own port."""
        port = free_port()
        named = f"PLAINTEXT://{HOST}:{port},{_NAME}://{HOST}:{self.port}"
        own = {**(properties or {}), "advertised.listeners": named}
        made = Broker(port=port, properties=own, listeners={_NAME: "PLAINTEXT"})
        self.to = int(made.address(_NAME).rpartition(":")[2])
        return made

    @property
    def address(self) -> str:
        """For clients."""
        return f"{HOST}:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, name="brokerless", daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._door.accept()
                broker = socket.create_connection((HOST, self.to))
                versions: dict[int, int] = {}
                for carry in (self._carry_requests, self._carry_answers):
                    threading.Thread(target=carry, args=(client, broker, versions), daemon=True).start()

    def _carry_requests(self, client: socket.socket, broker: socket.socket, versions: dict[int, int]) -> None:
        with suppress(OSError), client, broker:
            while message := _message(client):
                key, version, number = struct.unpack(">hhi", message[:8])
                if key == _METADATA and version >= _FLEXIBLE:
                    versions[number] = version
                broker.sendall(_framed(message))

    def _carry_answers(self, client: socket.socket, broker: socket.socket, versions: dict[int, int]) -> None:
        with suppress(OSError), client, broker:
            while message := _message(broker):
                asked = versions.pop(struct.unpack(">i", message[:4])[0], None) is not None
                if asked and self.hidden.is_set():
                    message = without_brokers(message)
                    self.hid += 1
                client.sendall(_framed(message))


def without_brokers(answer: bytes) -> bytes:
    """An answer about the cluster (Metadata, version 9 or newer) with an empty list of brokers."""
    start = 4 + 1 + 4  # its number, no tags, how long it was throttled
    count, at = _varint(answer, start)
    for _ in range(count - 1):
        at = _text_end(answer, at + 4)  # node, host
        at = _text_end(answer, at + 4)  # port, rack
        tags, at = _varint(answer, at)
        assert tags == 0
    return answer[:start] + b"\x01" + answer[at:]


def _text_end(data: bytes, at: int) -> int:
    size, at = _varint(data, at)
    return at + max(size - 1, 0)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return value, at


def _framed(message: bytes) -> bytes:
    return struct.pack(">i", len(message)) + message


def _message(connection: socket.socket) -> bytes:
    """The next one without its size, b"" at the end."""
    size = _exactly(connection, 4)
    return _exactly(connection, struct.unpack(">i", size)[0]) if size else b""


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        if not (more := connection.recv(count - len(data))):
            return b""
        data += more
    return bytes(data)
