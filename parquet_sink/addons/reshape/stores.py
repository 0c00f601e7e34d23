"""Raw files in file stores, and what a reshape notes in one: names say what is in a file; it is fetched to be read."""

import fnmatch
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from typing import Final

import pyarrow as pa

from parquet_sink.addons.reshape.marks import FOLDER, Mark
from parquet_sink.addons.reshape.reading import NotRaw, look, tables
from parquet_sink.addons.reshape.spans import RawFile
from parquet_sink.errors import StorageFailed
from parquet_sink.files.naming import parts_of
from parquet_sink.targets.outcome import Verdict
from parquet_sink.targets.store import NO_METADATA, FileStore, LocalFile, StoreUnusable

SECONDS: Final = 300.0
"""For one mark, with all attempts."""


def is_stored(address: str) -> bool:
    """Whether it names a place in a file store, and not a path of this machine."""
    return "://" in address


def split(address: str) -> tuple[str, str]:
    """The root of a file store, such as `s3://bucket`, and the rest."""
    scheme, _, rest = address.partition("://")
    host, _, below = rest.partition("/")
    return f"{scheme}://{host}", below


def find(address: str, store: FileStore) -> tuple[list[RawFile], list[str]]:
    """Raw files below a prefix, or of a pattern; and files whose names do not say what is in them.

    store: at the address' root. Raises StoreUnusable.
    """
    root, rest = split(address)
    files: list[RawFile] = []
    unnamed: list[str] = []
    for found in store.files(_fixed(rest)):
        path = f"{root}/{found.name}"
        if not found.name.endswith(".parquet") or not _meant(rest, found.name):
            continue
        named = parts_of(found.name.rpartition("/")[2])
        if named is None:
            unnamed.append(path)
        else:
            files.append(
                RawFile(
                    path=path,
                    topic=named.topic,
                    partition=named.partition,
                    first=named.first_offset,
                    last=named.last_offset,
                    rows=named.records,
                )
            )
    return files, unnamed


def _fixed(rest: str) -> str:
    return rest.partition("*")[0]


def _meant(rest: str, name: str) -> bool:
    """A pattern is all of a name; a prefix ends at a slash, or is a name."""
    if "*" in rest:
        return fnmatch.fnmatchcase(name, rest)
    folder = f"{rest.rstrip('/')}/"
    return name == rest or not rest or name.startswith(folder)


class Reader:
    """Records of files wherever they are. opened: gives the store of a root. work: the folder for what is fetched."""

    def __init__(self, opened: Callable[[str], FileStore], work: str) -> None:
        self._opened, self._work = opened, work

    def tables(self, file: RawFile) -> Iterator[pa.Table]:
        """As `reading.tables`; a stored file is here only while it is read. Raises StorageFailed."""
        if not is_stored(file.path):
            yield from tables(file)
            return
        root, name = split(file.path)
        local = os.path.join(self._work, f"{sha256(file.path.encode()).hexdigest()}.raw")
        os.makedirs(self._work, exist_ok=True)
        try:
            fetched = self._opened(root).fetch(name, local)
            yield from tables(_checked(look(local) if fetched else None, file))
        except (StoreUnusable, NotRaw) as error:
            raise StorageFailed(f"File {file.path} is not there as a whole raw file: {error}") from None
        finally:
            with suppress(OSError):
                os.unlink(local)


def _checked(found: RawFile | None, named: RawFile) -> RawFile:
    if found is None or (found.topic, found.partition, found.first, found.last, found.rows) != (
        *(named.topic, named.partition, named.first, named.last, named.rows),
    ):
        raise NotRaw("its records are not those that its name says")
    return found


class StoreMarks:
    """Marks below a prefix that ends with a slash, or is empty. work: the folder for an empty file."""

    def __init__(self, store: FileStore, prefix: str, work: str) -> None:
        self._store, self._prefix, self._work = store, prefix, work

    def read(self) -> list[Mark]:
        """Raises StoreUnusable."""
        found = self._store.files(f"{self._prefix}{FOLDER}/")
        return [Mark.read(one.name.rpartition("/")[2]) for one in found]

    def in_the_way(self) -> bool:
        """Whether anything is there but marks. Raises StoreUnusable."""
        marks = f"{self._prefix}{FOLDER}/"
        return any(not one.name.startswith(marks) for one in self._store.files(self._prefix))

    def add(self, marks: Iterable[Mark]) -> None:
        """Raises StoreUnusable, StorageFailed."""
        os.makedirs(self._work, exist_ok=True)
        path = os.path.join(self._work, "mark")
        with open(path, "wb"):
            pass
        for mark in marks:
            file = LocalFile(path, 0, sha256(b"").hexdigest())
            outcome = self._store.put(file, f"{self._prefix}{FOLDER}/{mark.name}", NO_METADATA, SECONDS)
            if outcome.verdict is not Verdict.ACCEPTED:
                raise StoreUnusable(f"{outcome.cause}. {outcome.cure}.")
