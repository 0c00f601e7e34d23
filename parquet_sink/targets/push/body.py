"""The body of an upload: one multipart part, streamed from disk.

It is sent with Content-Length: the length is known, a target or proxy can refuse too large a file before it is sent,
a cut body can never pass for a whole one, and no proxy has to collect chunks or answer 411.
"""

import os
import uuid
from collections.abc import Iterator
from typing import Final, Protocol

from parquet_sink.errors import StorageFailed
from parquet_sink.files.storage import storage_trouble

PIECE_BYTES: Final = 256 * 1024


class MultipartFile:
    """Iterable of bytes with a known length; make a fresh one for each attempt.

    Iterating raises StorageFailed when the file cannot be read or is shorter than it was.
    """

    def __init__(self, path: str, name: str, size_bytes: int) -> None:
        self._path, self._size = path, size_bytes
        boundary = uuid.uuid4().hex
        self.content_type = f"multipart/form-data; boundary={boundary}"
        self._head = (
            f"--{boundary}\r\n"
            f'Content-Disposition: form-data; name="file"; filename="{_quoted(name)}"\r\n'
            f"Content-Transfer-Encoding: binary\r\n\r\n"
        ).encode()
        self._tail = f"\r\n--{boundary}--\r\n".encode()

    def __len__(self) -> int:
        return len(self._head) + self._size + len(self._tail)

    def __iter__(self) -> Iterator[bytes]:
        left = self._size
        with storage_trouble(os.path.dirname(self._path), "read a finished file"):
            file = open(self._path, "rb", buffering=0)  # noqa: SIM115 - closed below; sending is not storage trouble
        with file:
            yield self._head
            while left > 0:
                with storage_trouble(os.path.dirname(self._path), "read a finished file"):
                    piece = file.read(min(PIECE_BYTES, left))
                if not piece:
                    raise StorageFailed(
                        f"File {self._path} is {left:,} bytes shorter than when it was verified: something changed it. "
                        f"It is not sent. Keep other programs out of connect.ems.tmp.dir."
                    )
                left -= len(piece)
                yield piece
        yield self._tail


class Form(Protocol):
    """A body of pieces, of a known length in all."""

    content_type: str

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[bytes]: ...


class EmptyForm:
    """A form without a file, for trying a target: a push target refuses it, so nothing is stored."""

    def __init__(self) -> None:
        boundary = uuid.uuid4().hex
        self.content_type = f"multipart/form-data; boundary={boundary}"
        part = f'--{boundary}\r\nContent-Disposition: form-data; name="check"\r\n\r\nno file\r\n--{boundary}--\r\n'
        self._body = part.encode()

    def __len__(self) -> int:
        return len(self._body)

    def __iter__(self) -> Iterator[bytes]:
        yield self._body


def _quoted(name: str) -> str:
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
