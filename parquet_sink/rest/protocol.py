"""One connection: uvicorn's HTTP/1.1 with an end to everything that a client can draw out."""

import asyncio
import json
import re
import sys
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS: Final = 512
MOST_HEAD_BYTES: Final = 32 * 1024
_BYTES: Final = re.compile(r"""bytearray\((b'(?:[^'\\]|\\.)*'|b"(?:[^"\\]|\\.)*")\)""")
"""How Python shows what h11 quotes of a request; its reader sent text."""
_HEAD_PIECE_BYTES: Final = 4 * 1024
HEAD_S: Final = 10.0
"""From the first byte of a request, or the connection, to the end of its headers."""
LINGER_S: Final = 2.0
"""How long the rest of a body that nobody reads is let in, so that the client gets to read its answer."""
WRITE_S: Final = 30.0
"""How long a client may take nothing of an answer."""
IDLE_S: Final = 30.0
"""Between two requests."""


class BoundedProtocol(H11Protocol):
    """Ends a connection whose client is slow, silent or one too many."""

    _head: asyncio.TimerHandle | None = None
    _write: asyncio.TimerHandle | None = None
    _linger: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
            return
        self._head = self.loop.call_later(HEAD_S, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._head, self._write, self._linger):
            if timer is not None:
                timer.cancel()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """A head goes on in pieces: h11 bounds those that are not whole, and takes any length that comes at once."""
        while data and self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            super().data_received(data[:_HEAD_PIECE_BYTES])
            data = data[_HEAD_PIECE_BYTES:]
        if data and not self.transport.is_closing():
            super().data_received(data)
        self._watch_head()

    def _watch_head(self) -> None:
        """The timer runs while a part of a request's head is there."""
        waits = self.conn.their_state is h11.IDLE
        if self._head is not None and not waits:
            self._head.cancel()
            self._head = None
        elif self._head is None and waits and self.conn.trailing_data[0]:
            self._head = self.loop.call_later(HEAD_S, self.transport.abort)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY and not self.transport.is_closing():
            self._linger = self.loop.call_later(LINGER_S, self._end_unread)
        self._watch_head()

    def _end_unread(self) -> None:
        if self.conn.their_state is h11.SEND_BODY and self.conn.our_state is h11.DONE:
            self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write = self.loop.call_later(WRITE_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write is not None:
            self._write.cancel()
            self._write = None

    def send_400_response(self, msg: str) -> None:
        """In the form of all other errors; what was not HTTP is said by h11."""
        error = sys.exception()
        status = getattr(error, "error_status_hint", 400)
        why = _BYTES.sub(r"\1", str(error or msg))
        message = "The request's head is too large." if status == 431 else f"This is no HTTP request: {why}."
        body = json.dumps({"error_code": status, "message": message}).encode()
        headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            for event in (h11.Response(status_code=status, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
