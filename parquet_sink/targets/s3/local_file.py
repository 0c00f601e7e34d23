"""The local side of an object: a file that was verified, and pieces of it as bodies of requests."""

import base64
import io
import os
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from parquet_sink.errors import StorageFailed
from parquet_sink.files.storage import storage_trouble

_PIECE_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class LocalFile:
    """size_bytes: as it was verified. sha256: of its bytes, hexadecimal."""

    path: str
    size_bytes: int
    sha256: str


class FileSlice:
    """Bytes [start, start + size_bytes) of a file, read as a body; `seek` as botocore needs it to sign or repeat.

    Reading raises StorageFailed when the file cannot be read or is shorter than it was.
    """

    def __init__(self, path: str, start: int, size_bytes: int) -> None:
        self._path, self._start, self._size = path, start, size_bytes
        self._at = 0
        with storage_trouble(os.path.dirname(path), "read a finished file"):
            self._file = open(path, "rb", buffering=0)  # noqa: SIM115 - closed by `close`

    def __len__(self) -> int:
        return self._size

    def read(self, size: int | None = -1, /) -> bytes:
        """At most so many bytes; all that are left for None or -1."""
        left = self._size - self._at
        wanted = left if size is None or size < 0 else min(size, left)
        if wanted <= 0:
            return b""
        with storage_trouble(os.path.dirname(self._path), "read a finished file"):
            piece = os.pread(self._file.fileno(), wanted, self._start + self._at)
        if not piece:
            raise StorageFailed(
                f"File {self._path} is {left:,} bytes shorter than when it was verified: something changed it. "
                f"It is not sent. Keep other programs out of connect.ems.tmp.dir."
            )
        self._at += len(piece)
        return piece

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        self._file.close()

    def digest(self) -> bytes:
        """SHA-256 of these bytes; it stands at their start afterwards."""
        found = sha256()
        self.seek(0)
        while piece := self.read(_PIECE_BYTES):
            found.update(piece)
        self.seek(0)
        return found.digest()


def in_base64(digest: bytes) -> str:
    """A digest as S3's headers have it."""
    return base64.b64encode(digest).decode("ascii")
