"""Raw files in buckets, and what a reshape notes in one: names tell what is in a file, which is fetched to be read."""

import fnmatch
import os
from collections.abc import Iterable, Iterator, Mapping
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
from parquet_sink.targets.s3.failures import S3Failed
from parquet_sink.targets.s3.local_file import LocalFile
from parquet_sink.targets.s3.objects import Objects

SCHEME: Final = "s3://"
SECONDS: Final = 300.0
"""For one object, or a page of a list, with all attempts."""


def split(address: str) -> tuple[str, str]:
    """Bucket and the rest of an address that begins with SCHEME."""
    bucket, _, rest = address.removeprefix(SCHEME).partition("/")
    return bucket, rest


def find(address: str, objects: Objects) -> tuple[list[RawFile], list[str]]:
    """Raw files below a prefix, or of a pattern; and objects whose names do not tell what is in them.

    Raises S3Failed.
    """
    bucket, rest = split(address)
    files: list[RawFile] = []
    unnamed: list[str] = []
    for found in objects.list(_fixed(rest), SECONDS):
        path = f"{SCHEME}{bucket}/{found.key}"
        if not found.key.endswith(".parquet") or not _meant(rest, found.key):
            continue
        told = parts_of(found.key.rpartition("/")[2])
        if told is None:
            unnamed.append(path)
        else:
            files.append(
                RawFile(
                    path=path,
                    topic=told.topic,
                    partition=told.partition,
                    first=told.first_offset,
                    last=told.last_offset,
                    rows=told.records,
                )
            )
    return files, unnamed


def _fixed(rest: str) -> str:
    return rest.partition("*")[0]


def _meant(rest: str, key: str) -> bool:
    """A pattern is all of a key; a prefix ends at a slash, or is a key."""
    if "*" in rest:
        return fnmatch.fnmatchcase(key, rest)
    folder = f"{rest.rstrip('/')}/"
    return key == rest or not rest or key.startswith(folder)


class Reader:
    """Records of files wherever they are. buckets: by name. work: the folder for what is fetched."""

    def __init__(self, buckets: Mapping[str, Objects], work: str) -> None:
        self._buckets, self._work = buckets, work

    def tables(self, file: RawFile) -> Iterator[pa.Table]:
        """As `reading.tables`; an object is here only while it is read. Raises StorageFailed."""
        if not file.path.startswith(SCHEME):
            yield from tables(file)
            return
        bucket, key = split(file.path)
        local = os.path.join(self._work, f"{sha256(file.path.encode()).hexdigest()}.raw")
        os.makedirs(self._work, exist_ok=True)
        try:
            self._buckets[bucket].download(key, local, SECONDS)
            yield from tables(_checked(look(local), file))
        except (S3Failed, NotRaw) as error:
            raise StorageFailed(f"File {file.path} is not there as a whole raw file: {error}") from None
        finally:
            with suppress(OSError):
                os.unlink(local)


def _checked(found: RawFile | None, told: RawFile) -> RawFile:
    if found is None or (found.topic, found.partition, found.first, found.last, found.rows) != (
        *(told.topic, told.partition, told.first, told.last, told.rows),
    ):
        raise NotRaw("its name tells of other records than it has")
    return found


class BucketMarks:
    """Marks below a prefix that ends with a slash, or is empty. work: the folder for an empty file."""

    def __init__(self, objects: Objects, prefix: str, work: str) -> None:
        self._objects, self._prefix, self._work = objects, prefix, work

    def read(self) -> list[Mark]:
        """Raises S3Failed."""
        found = self._objects.list(f"{self._prefix}{FOLDER}/", SECONDS)
        return [Mark.read(one.key.rpartition("/")[2]) for one in found]

    def in_the_way(self) -> bool:
        """Whether anything is there but marks. Raises S3Failed."""
        marks = f"{self._prefix}{FOLDER}/"
        return any(not one.key.startswith(marks) for one in self._objects.list(self._prefix, SECONDS))

    def add(self, marks: Iterable[Mark]) -> None:
        """Raises S3Failed, StorageFailed."""
        os.makedirs(self._work, exist_ok=True)
        path = os.path.join(self._work, "mark")
        with open(path, "wb"):
            pass
        for mark in marks:
            file = LocalFile(path, 0, sha256(b"").hexdigest())
            outcome = self._objects.put(f"{self._prefix}{FOLDER}/{mark.name}", file, {}, SECONDS)
            if outcome.verdict is not Verdict.ACCEPTED:
                raise S3Failed(outcome)
