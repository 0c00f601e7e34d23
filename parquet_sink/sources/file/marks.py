"""How a file is known again, whatever it is called by now, and whether a place in it is still the same place."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from parquet_sink.sources.file.lines import EDGE

_INODE: Final = "inode"
_HEAD: Final = "head"
_EDGE: Final = "edge"


@dataclass(frozen=True)
class Mark:
    """inode: of the file. head, edge: digests of its first bytes, and of those before a place, `EDGE` at most."""

    inode: int
    head: str
    edge: str

    def to_memory(self) -> dict[str, str | int]:
        """As a task remembers it."""
        return {_INODE: self.inode, _HEAD: self.head, _EDGE: self.edge}

    @classmethod
    def of_memory(cls, memory: Mapping[str, object]) -> "Mark | None":
        """What a task remembered; None for anything else."""
        inode, head, edge = (memory.get(name) for name in (_INODE, _HEAD, _EDGE))
        if isinstance(inode, int) and isinstance(head, str) and isinstance(edge, str):
            return cls(inode, head, edge)
        return None


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


def holds(descriptor: int, position: int, mark: Mark) -> bool:
    """Whether what stands before a place is what stood there when the mark was made. Raises OSError."""
    return digest(head(descriptor, position)) == mark.head and digest(edge(descriptor, position)) == mark.edge
