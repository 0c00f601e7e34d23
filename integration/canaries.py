"""Secrets that can be found again: one for each place, and a search of whatever a run left or said.

They are searched for as they are, encoded as in forms and addresses, in base 64 at any alignment, in hexadecimal and in
UTF-16; in files as they lie there, unpacked, and read as Parquet.
"""

import base64
import gzip
import os
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

_MAGIC: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}


class Canaries:
    """Makes secrets, and finds them."""

    def __init__(self) -> None:
        self._forms: dict[bytes, str] = {}
        self.places: list[str] = []

    def __call__(self, place: str) -> str:
        """A new secret for a place, whose name is told where the secret is found."""
        text = f"canary+{place}={uuid.uuid4().hex}"
        self.places.append(place)
        self.add(place, text)
        return text

    def add(self, place: str, text: str) -> None:
        """Another text that is to be found nowhere, of a place that has one."""
        for form in _forms(text):
            self._forms[form] = place

    def within(self, data: bytes | str) -> set[str]:
        """The places whose secrets are in it."""
        raw = data.encode(errors="replace") if isinstance(data, str) else data
        return {place for form, place in self._forms.items() if form in raw}

    def below(self, folder: Path, passed_over: Callable[[Path], bool] = lambda path: False) -> list[str]:
        """Files that hold some, with their places; names of files count as well."""
        found = []
        for path in sorted(folder.rglob("*")):
            places = self.within(os.fsencode(path))
            if path.is_file() and not path.is_symlink() and not passed_over(path):
                places |= self.in_file(path)
            if places:
                found.append(f"{path}: {', '.join(sorted(places))}")
        return found

    def in_file(self, path: Path) -> set[str]:
        """The places whose secrets are in a file, whatever packs it."""
        places: set[str] = set()
        with suppress(FileNotFoundError):  # a running program has many files that come and go
            data = path.read_bytes()
            for form in (data, *_unpacked(data), *_rows(path, data)):
                places |= self.within(form)
        return places

    def open_to_others(self, folder: Path, base: Path) -> list[str]:
        """Files below a folder that hold some and that another user could read, whose way leads through `base`."""
        return [
            f"{path}: {', '.join(sorted(places))}"
            for path in sorted(folder.rglob("*"))
            if path.is_file() and (places := self.in_file(path)) and not _private(path, base)
        ]


def _forms(text: str) -> Iterator[bytes]:
    raw = text.encode()
    yield raw
    yield text.replace("+", " ").encode()
    yield quote(text, safe="").encode()
    yield quote(text, safe="").lower().encode()
    yield raw.hex().encode()
    yield raw.hex().upper().encode()
    yield text.encode("utf-16-le")
    for shift in range(3):  # what stands before it moves its bits; its own first and last characters share theirs
        yield base64.b64encode(b"x" * shift + raw)[4 if shift else 0 : -4]
        yield base64.urlsafe_b64encode(b"x" * shift + raw)[4 if shift else 0 : -4]


def _unpacked(data: bytes) -> Iterator[bytes]:
    codec = next((name for magic, name in _MAGIC.items() if data.startswith(magic)), None)
    if codec == "gzip":
        with suppress(OSError, EOFError):
            yield gzip.decompress(data)
    elif codec is not None:
        with suppress(OSError), pa.CompressedInputStream(pa.BufferReader(data), codec) as stream:
            yield stream.read()


def _rows(path: Path, data: bytes) -> Iterator[bytes]:
    if data.startswith(b"PAR1"):
        with suppress(pa.ArrowException, OSError):
            table = pq.read_table(path, memory_map=False)
            yield repr(table.to_pylist()).encode()
            yield repr(table.schema.metadata).encode()


def _private(path: Path, base: Path) -> bool:
    """Whether it, or a folder on the way to it below `base`, is for its owner alone."""
    steps = [path, *path.parents]
    return any(
        step.is_relative_to(base) and not stat.S_IMODE(step.lstat().st_mode) & (stat.S_IRWXG | stat.S_IRWXO)
        for step in steps
        if step != base
    )
