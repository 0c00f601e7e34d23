"""A TCP proxy on a worker's way to Kafka, which can be cut: nothing passes then, and nobody is told.

One thread for all connections of a link: with two threads for each, a link takes half as much CPU again.
"""

import asyncio
import socket
import threading
from typing import Final, Self

BLOCK: Final = 1 << 16
END_S: Final = 10.0


class _Side(asyncio.BufferedProtocol):
    """One end of a connection: what comes in goes out at `other`, as fast as that takes it. connected: a link's."""

    transport: asyncio.Transport
    other: "_Side"

    def __init__(self, connected: "set[_Side]") -> None:
        self._connected = connected
        self._block = memoryview(bytearray(BLOCK))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._connected.add(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._block

    def buffer_updated(self, nbytes: int) -> None:
        self.other.transport.write(self._block[:nbytes])

    def pause_writing(self) -> None:
        self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connected.discard(self)
        if self.other in self._connected:
            self.other.transport.close()


class Link:
    """Passes bytes to `to`, a port of this machine that is set before anybody connects, and back; a context manager."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self.to = 0
        self._loop = asyncio.new_event_loop()
        self._sides = set[_Side]()
        self._whole = threading.Event()
        self._whole.set()
        self._thread = threading.Thread(target=self._run, name="link")

    def cut(self) -> None:
        """Nothing passes any more, either way. Connections stay, new ones are taken, as where packets are dropped."""
        self._whole.clear()
        held = threading.Event()
        self._loop.call_soon_threadsafe(self._hold, held)
        held.wait(END_S)

    def mend(self) -> None:
        """What was held back passes now."""
        self._whole.set()

    def _hold(self, held: threading.Event) -> None:
        """In the loop, which does nothing else while the link is cut."""
        held.set()
        self._whole.wait()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.mend()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(END_S)

    def _run(self) -> None:
        accepting = self._loop.create_task(self._accept())
        self._loop.run_forever()
        accepting.cancel()
        for side in self._sides:
            side.transport.abort()
        self._loop.run_until_complete(asyncio.gather(accepting, return_exceptions=True))
        self._listener.close()
        self._loop.close()

    async def _accept(self) -> None:
        while True:
            accepted, _ = await self._loop.sock_accept(self._listener)
            try:
                await self._connect(accepted)
            except OSError:
                accepted.close()

    async def _connect(self, accepted: socket.socket) -> None:
        near, far = _Side(self._sides), _Side(self._sides)
        near.other, far.other = far, near
        await self._loop.create_connection(lambda: far, "127.0.0.1", self.to)
        await self._loop.connect_accepted_socket(lambda: near, accepted)  # nothing came from Kafka, which only answers
        if far not in self._sides:
            near.transport.close()
