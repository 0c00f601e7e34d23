"""Bytes of a file to its lines, each with the place behind it; a line without an end is held back."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_END: Final = re.compile(rb"\n|\r\n|\r(?=[^\n])")
"""The end of a line. A carriage return that comes last tells nothing yet: the line feed may follow."""
EDGE: Final = 1024
"""Bytes by which a place in a file is known again: so many at its beginning, and so many before the place."""


class Line(NamedTuple):
    """content: without its end. end: where in the file the next line begins, in bytes."""

    content: bytes
    end: int


class Lines:
    """The lines from a place in a file on. edge: the bytes right before that place, `EDGE` of them at most."""

    def __init__(self, position: int = 0, edge: bytes = b"") -> None:
        self.position = position
        self.edge = edge
        self._held = bytearray()
        self._looked = 0
        self._taken = b""

    @property
    def read(self) -> int:
        """Where in the file the next bytes are from."""
        return self.position + len(self._held)

    @property
    def held(self) -> int:
        """Bytes that are in no line yet."""
        return len(self._held)

    @property
    def latest(self) -> bytes:
        """The bytes right before `read`, `EDGE` of them at most."""
        return (self.edge + bytes(self._held[-EDGE:]))[-EDGE:]

    def edge_at(self, position: int) -> bytes:
        """The bytes right before a place in what was taken last, `EDGE` of them at most."""
        end = len(self._taken) - (self.position - position)
        return self._taken[max(end - EDGE, 0) : end]

    def feed(self, data: bytes) -> None:
        """The file's next bytes."""
        self._held += data

    def take(self, most: int) -> list[Line]:
        """The next lines that have an end, `most` of them at most."""
        found = list(self._ended(most))
        self._advance(found[-1].end - self.position if found else 0)
        if len(found) < most:
            self._looked = max(len(self._held) - 1, 0)  # the last byte may be half of an end
        return found

    def rest(self) -> list[Line]:
        """What is held, as the last line of a file that nobody writes any more; nothing when nothing is held."""
        content = bytes(self._held)
        if not content:
            return []
        self._advance(len(content))
        return [Line(content.removesuffix(b"\r"), self.position)]

    def _ended(self, most: int) -> Iterator[Line]:
        begin = 0
        for _, end in zip(range(most), _END.finditer(self._held, self._looked), strict=False):
            yield Line(bytes(self._held[begin : end.start()]), self.position + end.end())
            begin = end.end()

    def _advance(self, length: int) -> None:
        if length:
            self._taken = self.edge + bytes(self._held[:length])
            self.edge = self._taken[-EDGE:]
            del self._held[:length]
            self.position += length
            self._looked = 0
