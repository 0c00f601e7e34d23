"""How a file is known again, whatever it is called by now, and what a task remembers of the files that it follows."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from parquet_sink.addons.sources.file.lines import EDGE
from parquet_sink.addons.sources.task import Memory

_FILENAME: Final = "filename"
_INODE: Final = "inode"
_HEAD: Final = "head"
_EDGE: Final = "edge"
_WAITING: Final = "waiting"
_OF: Final = "of "
"""Before the name of a file that is not followed now: what was remembered of it, as JSON."""


@dataclass(frozen=True)
class Mark:
    """inode: of the file. head, edge: digests of its first bytes, and of those before a place, `EDGE` at most."""

    inode: int
    head: str
    edge: str

    @classmethod
    def at(cls, descriptor: int, position: int) -> "Mark":
        """Of a place in an open file. Raises OSError."""
        return cls(os.fstat(descriptor).st_ino, digest(head(descriptor, position)), digest(edge(descriptor, position)))

    def holds(self, descriptor: int, position: int) -> bool:
        """Whether what stands before a place is what stood there when the mark was made. Raises OSError."""
        if os.fstat(descriptor).st_size < position:
            return False
        return digest(head(descriptor, position)) == self.head and digest(edge(descriptor, position)) == self.edge


@dataclass(frozen=True)
class Sighted:
    """A file that had the name, and of which nothing is sent yet. head: digest of its first `length` bytes."""

    inode: int
    length: int
    head: str

    @classmethod
    def of(cls, descriptor: int) -> "Sighted":
        """An open file that has something in it. Raises OSError."""
        found = os.fstat(descriptor)
        first = head(descriptor, found.st_size)
        return cls(found.st_ino, len(first), digest(first))

    def holds(self, descriptor: int) -> bool:
        """Whether a file begins as this one did. Raises OSError."""
        return digest(head(descriptor, self.length)) == self.head


@dataclass(frozen=True)
class Known:
    """What is remembered of a file that is followed. mark: of the place that is stored; None: nothing is.

    waiting: files that had the name since, in order, without the one that the mark is of.
    """

    mark: Mark | None = None
    waiting: tuple[Sighted, ...] = ()

    @classmethod
    def of_memory(cls, memory: Mapping[str, object], name: str) -> "Known":
        """What a task remembered of the file of that name. Earlier versions did not say of which file a mark is."""
        if memory.get(_FILENAME, name) == name:
            return cls._of(memory)
        return cls._of(_parsed(memory.get(_OF + name)))

    @classmethod
    def _of(cls, memory: Mapping[str, object]) -> "Known":
        inode, first, before = (memory.get(key) for key in (_INODE, _HEAD, _EDGE))
        mark = None
        if isinstance(inode, int) and isinstance(first, str) and isinstance(before, str):
            mark = Mark(inode, first, before)
        try:
            found = json.loads(str(memory.get(_WAITING, "[]")))
            return cls(mark, tuple(Sighted(int(one[0]), int(one[1]), str(one[2])) for one in found))
        except (ValueError, TypeError, IndexError, RecursionError):
            return cls(mark)

    def to_memory(self, name: str, before: Memory) -> Memory:
        """As a task remembers it. before: what it remembered, of which that of other files is kept."""
        kept = {key: value for key, value in before.items() if key.startswith(_OF) and key != _OF + name}
        other = before.get(_FILENAME)
        if isinstance(other, str) and other != name:
            kept[_OF + other] = json.dumps(Known.of_memory(before, other).flat())
        mine = self.flat()
        return {_FILENAME: name, **mine, **kept} if mine or kept else {}

    def flat(self) -> dict[str, str | int]:
        """As a flat JSON object, which does not say of which file it is."""
        found: dict[str, str | int] = {}
        if self.mark is not None:
            found |= {_INODE: self.mark.inode, _HEAD: self.mark.head, _EDGE: self.mark.edge}
        if self.waiting:
            found[_WAITING] = json.dumps([[one.inode, one.length, one.head] for one in self.waiting])
        return found


def _parsed(text: object) -> Mapping[str, object]:
    try:
        found = json.loads(str(text))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def digest(data: bytes) -> str:
    """What stands for some bytes of a file."""
    return hashlib.sha256(data).hexdigest()[:32]


def edge(descriptor: int, position: int) -> bytes:
    """The bytes before a place in an open file. Raises OSError."""
    begin = max(position - EDGE, 0)
    return os.pread(descriptor, position - begin, begin)


def head(descriptor: int, position: int) -> bytes:
    """The first bytes of an open file, none from a place on. Raises OSError."""
    return os.pread(descriptor, min(position, EDGE), 0)
