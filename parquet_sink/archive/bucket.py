"""A bucket of S3 as an archive."""

import posixpath
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from parquet_sink.archive.layout import connector_folder
from parquet_sink.archive.settings import URL, BucketPlace
from parquet_sink.archive.store import ArchivedFile
from parquet_sink.archive.store import LocalFile as ToKeep
from parquet_sink.errors import ArchiveUnusable
from parquet_sink.files.naming import is_sent_name, parts_of
from parquet_sink.files.parquet import sha256_of
from parquet_sink.files.storage import storage_trouble
from parquet_sink.targets.outcome import Health, Outcome, ProbeResult
from parquet_sink.targets.s3.client import connect
from parquet_sink.targets.s3.failures import S3Failed
from parquet_sink.targets.s3.local_file import LocalFile
from parquet_sink.targets.s3.objects import Objects
from parquet_sink.targets.s3.settings import BUCKET, PREFIX

READ_S: Final = 300.0
"""How long a list's page, or a file, may take to be read, with attempts and waits."""
_START_AGAIN: Final = "; then start the connector again"


class BucketArchive:
    """Implements `archive.store.ArchiveStore`. monotonic: seconds. Raises as `targets.s3.target.S3Target`."""

    def __init__(self, place: BucketPlace, connector: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.name = place.address
        self._base = posixpath.join(place.prefix, connector_folder(connector))
        self._multipart_bytes, self._monotonic = place.bucket.multipart_bytes, monotonic
        self._objects = Objects(place.bucket, connect(place.bucket))

    def keep(self, file: ToKeep, seconds_left: float) -> Outcome:
        end = self._monotonic() + seconds_left
        with storage_trouble(posixpath.dirname(file.path), "read a finished file"):
            local = LocalFile(file.path, file.size_bytes, file.digest or sha256_of(file.path))
        if file.size_bytes >= self._multipart_bytes:
            self._objects.sweep(f"{self._base}/", _is_ours, seconds_left)
        return _of_archive(self._objects.put(self._key(file.where), local, _metadata(file), end - self._monotonic()))

    def probe(self, seconds_left: float) -> ProbeResult:
        try:
            may_look = self._objects.try_out(self._key(".parquet-sink-check"), seconds_left)
        except S3Failed as error:
            return ProbeResult(Health.FAILED, _words(error))
        if may_look is not None:
            return ProbeResult(Health.WARNING, f"files can be kept there, but not looked for: {_words(may_look)}")
        return ProbeResult(Health.OK, "files can be kept there and looked for; nothing was stored")

    def files(self) -> Iterator[ArchivedFile]:
        with self._readable():
            for one in self._objects.list(f"{self._base}/", READ_S):
                yield ArchivedFile(one.key[len(self._base) + 1 :], one.size_bytes)

    def digest(self, where: str) -> str | None:
        with self._readable():
            return self._objects.digest(self._key(where), READ_S)

    def fetch(self, where: str, path: str) -> bool:
        with self._readable():
            if self._objects.look(self._key(where), READ_S) is None:
                return False
            self._objects.download(self._key(where), path, READ_S)
        return True

    def close(self) -> None:
        self._objects.close()

    def _key(self, where: str) -> str:
        return posixpath.join(self._base, where)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except S3Failed as error:
            raise ArchiveUnusable(f"Archive {self.name} cannot be read: {_words(error)}") from None


def _of_archive(outcome: Outcome) -> Outcome:
    """What is said of the target's keys, where the archive's own names the place."""
    return replace(outcome, cure=_own(outcome.cure))


def _own(cure: str) -> str:
    return cure.replace(BUCKET, URL).replace(PREFIX, URL)


def _words(error: S3Failed) -> str:
    """For a command: nothing is started again."""
    outcome = _of_archive(error.outcome)
    cure = outcome.cure.replace(_START_AGAIN, "; then try again")
    return f"{outcome.cause}. {cure}." if cure else f"{outcome.cause}."


def _metadata(file: ToKeep) -> dict[str, str]:
    """What the name tells, in ASCII as headers need it."""
    parts = parts_of(posixpath.basename(file.where))
    if parts is None:
        return {}
    return {
        "topic": quote(parts.topic, safe=""),
        "partition": str(parts.partition),
        "first-offset": str(parts.first_offset),
        "last-offset": str(parts.last_offset),
        "records": str(parts.records),
    }


def _is_ours(key: str) -> bool:
    return is_sent_name(posixpath.basename(key))
