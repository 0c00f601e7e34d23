"""A TCP proxy on a worker's way to Kafka, which can be cut: nothing passes then, and nobody is told."""

import contextlib
import socket
import threading
from typing import Final

from integration.scripted_target import Server

LOOK_S: Final = 1.0
BLOCK: Final = 1 << 16


class Link(Server):
    """Passes bytes to `to`, a port of this machine that is set before anybody connects, and back."""

    def __init__(self) -> None:
        super().__init__()
        self.to = 0
        self._whole = threading.Event()
        self._whole.set()

    def cut(self) -> None:
        """Nothing passes any more, either way. Connections stay, new ones are taken, as where packets are dropped."""
        self._whole.clear()

    def mend(self) -> None:
        """What was held back passes now."""
        self._whole.set()

    def handle(self, accepted: socket.socket) -> None:
        if not self._passes():
            return
        with socket.create_connection(("127.0.0.1", self.to), timeout=10) as other:
            back = threading.Thread(target=self._pump, args=(other, accepted))
            back.start()
            self._pump(accepted, other)
            back.join()

    def _passes(self) -> bool:
        """Waits while it is cut; False once it is closed."""
        while not self._whole.wait(LOOK_S):
            if self.closing.is_set():
                return False
        return not self.closing.is_set()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        """Until either side ends, which the other is told."""
        source.settimeout(LOOK_S)
        with contextlib.suppress(OSError):
            while self._passes():
                try:
                    data = source.recv(BLOCK)
                except TimeoutError:
                    continue
                if not data or not self._passes():
                    break
                sink.sendall(data)
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
