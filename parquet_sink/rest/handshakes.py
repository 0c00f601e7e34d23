"""TLS connections, bounded from their first byte: who is slow with a handshake, or one too many, is cut off.

uvicorn counts a connection only after its handshake; here whoever connects is counted at once. `asyncio.sslproto` is
what asyncio itself makes for a server with TLS.
"""

import asyncio
import ssl
from asyncio import sslproto
from collections.abc import Callable
from typing import Final

HANDSHAKE_S: Final = 10.0


class Handshakes:
    """Makes protocols for new connections. most: how many may be there at once, those in their handshake included."""

    def __init__(self, context: ssl.SSLContext, make: Callable[[], asyncio.Protocol], most: int) -> None:
        self._context, self._make, self.most = context, make, most
        self.there: set[asyncio.BaseProtocol] = set()

    def __call__(self) -> asyncio.BaseProtocol:
        return _Secured(asyncio.get_running_loop(), self._make(), self._context, self)


class _Secured(sslproto.SSLProtocol):
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        inner: asyncio.Protocol,
        context: ssl.SSLContext,
        all_of_them: Handshakes,
    ) -> None:
        super().__init__(loop, inner, context, None, server_side=True, ssl_handshake_timeout=HANDSHAKE_S)  # type: ignore[arg-type]
        self._all = all_of_them

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if len(self._all.there) >= self._all.most:
            transport.abort()
            return
        self._all.there.add(self)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._all.there.discard(self)
        super().connection_lost(exc)
