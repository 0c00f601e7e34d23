"""What is in a connector's folder of parked records, whoever put it there. Nothing is changed."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from parquet_sink.parked.files import ParkedFile, inspect
from parquet_sink.parked.locks import CHANGES, REPLAY
from parquet_sink.parked.names import is_unfinished, number_in

MARKER: Final = ".parquet-sink-parked"
_OURS: Final = frozenset({MARKER, CHANGES, REPLAY})


@dataclass(frozen=True)
class Scan:
    """files: by topic, topic-partition and number. skipped: path and why, of all else; it is left as it is."""

    files: tuple[ParkedFile, ...]
    skipped: tuple[tuple[str, str], ...]

    @property
    def rows(self) -> int:
        """Records in the files."""
        return sum(one.rows for one in self.files)

    @property
    def size_bytes(self) -> int:
        """Bytes on the disk."""
        return sum(one.size_bytes for one in self.files)


def scan(folder: str) -> Scan:
    """All that is there; nothing, where there is no folder. Raises OSError when it cannot be listed."""
    files: list[ParkedFile] = []
    skipped: list[tuple[str, str]] = []
    for entry in _entries(folder):
        if entry.name in _OURS:
            continue
        if not entry.is_dir(follow_symlinks=False):
            skipped.append((entry.path, "it is not one of ours"))
            continue
        for below in _entries(entry.path):
            if not below.is_dir(follow_symlinks=False):
                skipped.append((below.path, "it is not one of ours"))
                continue
            found, others = scan_partition(below.path)
            files += found
            skipped += others
    return Scan(tuple(sorted(files, key=_order)), tuple(skipped))


def scan_partition(folder: str) -> tuple[list[ParkedFile], list[tuple[str, str]]]:
    """The files of one topic-partition in order of their numbers, and what else is there."""
    files: list[ParkedFile] = []
    skipped: list[tuple[str, str]] = []
    for entry in _entries(folder):
        if is_unfinished(entry.name):
            continue
        if number_in(entry.name) is None or not entry.is_file(follow_symlinks=False):
            skipped.append((entry.path, "it is not one of ours"))
            continue
        with suppress(FileNotFoundError):  # it was emptied meanwhile
            found = inspect(entry.path)
            if isinstance(found, str):
                skipped.append((entry.path, found))
            else:
                files.append(found)
    return sorted(files, key=_order), skipped


def used_bytes(folder: str) -> int:
    """Bytes of all files on the disk that have the name of parked ones, torn ones included."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            if number_in(name) is not None:
                with suppress(FileNotFoundError):
                    total += os.stat(os.path.join(path, name)).st_size
    return total


def _order(file: ParkedFile) -> tuple[str, int, int]:
    return file.topic, file.partition, number_in(os.path.basename(file.path)) or 0


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    yield from found
