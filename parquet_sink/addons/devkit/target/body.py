"""The body of an upload: exactly one multipart part `file`, streamed and never held whole.

`UploadBody` reads the part's head first (a fault may ask for the file's name), then hands on the rest.
"""

from collections.abc import AsyncIterator
from typing import Final, Protocol

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from parquet_sink.addons.devkit.target.contract import MAX_NAME_LENGTH, BadUpload, Problem

MAX_HEAD_BYTES: Final = 16_384
_HEAD_END: Final = b"\r\n\r\n"


class ByteSink(Protocol):
    """Takes the file's bytes as they come."""

    def write(self, data: bytes | memoryview) -> None: ...


def boundary_of(content_type: str | None) -> bytes:
    """The boundary that a Content-Type header names. Raises BadUpload when it is not multipart/form-data."""
    kind, options = parse_options_header(content_type)
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not 1 <= len(boundary) <= 70:
        raise BadUpload(Problem("Content-Type", "must be multipart/form-data with a boundary of 1 to 70 characters"))
    return boundary


def file_name_of(head: bytes, boundary: bytes) -> str:
    """The file name in the first part's head (boundary and header lines). Raises BadUpload, also for another part."""
    lines = head.lstrip(b"\r\n").split(b"\r\n")
    if lines[0].rstrip() != b"--" + boundary:
        raise BadUpload(Problem("file", "the body does not begin with a multipart part", "missing"))
    for line in lines[1:]:
        header, _, value = line.partition(b":")
        if header.strip().lower() == b"content-disposition":
            return _named_file(value)
    raise BadUpload(Problem("file", "the part has no Content-Disposition", "missing"))


def _named_file(disposition: bytes) -> str:
    kind, options = parse_options_header(disposition.strip().decode("latin-1"))
    name = options.get(b"filename", b"").decode("utf-8", "replace")
    if kind != b"form-data" or options.get(b"name") != b"file" or not name:
        raise BadUpload(Problem("file", "the body must be one part named file, with a filename", "missing"))
    if len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise BadUpload(Problem("file", f"the filename must be at most {MAX_NAME_LENGTH} printable characters"))
    return name


class UploadBody:
    """One upload's body: `head()`, then either `copy_to(sink)`, `measure()` or `drain()`."""

    def __init__(self, chunks: AsyncIterator[bytes], boundary: bytes) -> None:
        self._chunks = chunks
        self._boundary = boundary
        self._first = b""

    async def head(self) -> str:
        """Read up to the end of the first part's headers; returns the file name. Raises BadUpload."""
        while _HEAD_END not in self._first and len(self._first) <= MAX_HEAD_BYTES:
            chunk = await anext(self._chunks, None)
            if chunk is None:
                break
            self._first += chunk
        head, found, _ = self._first.partition(_HEAD_END)
        if not found:
            raise BadUpload(Problem("file", "the body holds no multipart part named file", "missing"))
        return file_name_of(head, self._boundary)

    async def copy_to(self, sink: ByteSink) -> None:
        """Write the file's bytes to the sink. Raises BadUpload for more than one part and for a body cut short."""
        parser = _SinglePart(self._boundary, sink)
        try:
            parser.feed(self._first)
            async for chunk in self._chunks:
                parser.feed(chunk)
        except FormParserError as reason:
            raise BadUpload(Problem("file", f"the body is not valid multipart: {reason}")) from reason
        if not parser.ended:
            raise _cut_short()

    async def measure(self) -> int:
        """Read to the end and count the file's bytes without looking at them. Raises BadUpload for a body cut short."""
        closing = b"\r\n--" + self._boundary + b"--"
        total, tail = len(self._first), self._first[-128:]
        async for chunk in self._chunks:
            total += len(chunk)
            tail = chunk[-128:] if len(chunk) >= 128 else (tail + chunk)[-128:]
        start = tail.rfind(closing)
        if start < 0:
            raise _cut_short()
        return total - (len(tail) - start) - self._first.index(_HEAD_END) - len(_HEAD_END)

    async def drain(self) -> None:
        """Read to the end and forget."""
        async for _ in self._chunks:
            pass


def _cut_short() -> BadUpload:
    return BadUpload(Problem("file", "the body ends before the closing boundary"))


class _SinglePart:
    """Feeds the data of the only part to a sink."""

    def __init__(self, boundary: bytes, sink: ByteSink) -> None:
        self._sink = sink
        self._parts = 0
        self.ended = False
        self._parser = MultipartParser(
            boundary, {"on_part_begin": self._begin, "on_part_data": self._data, "on_end": self._end}
        )

    def feed(self, data: bytes) -> None:
        if data:
            self._parser.write(data)

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > 1:
            raise BadUpload(Problem("file", "the body must be exactly one part"))

    def _data(self, data: bytes, start: int, end: int) -> None:
        self._sink.write(memoryview(data)[start:end])

    def _end(self) -> None:
        self.ended = True
