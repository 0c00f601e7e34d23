"""A bucket: files are put there, listed and read back; as a target each gets a name by a template."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import quote

from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.naming import is_sent_name
from parquet_sink.files.parquet import sha256_of
from parquet_sink.files.storage import storage_trouble
from parquet_sink.targets.outcome import Health, Outcome, ProbeResult
from parquet_sink.targets.s3.calls import S3Failed
from parquet_sink.targets.s3.client import connect
from parquet_sink.targets.s3.multipart import LocalFile as Verified
from parquet_sink.targets.s3.objects import Objects
from parquet_sink.targets.s3.prefix import DATE_FIELDS, FIELD, fixed_part
from parquet_sink.targets.s3.settings import BUCKET, PREFIX, BucketSettings, BucketStore, S3Settings
from parquet_sink.targets.store import LocalFile, StoredFile, StoreUnusable

READ_S: Final = 300.0
"""How long a list's page, or a file, may take to be read, with attempts and waits."""
_CHECK: Final = ".parquet-sink-check"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_START_AGAIN: Final = "; then start the connector again"


class S3Store:
    """Implements `targets.store.FileStore`; threads and processes may put files side by side.

    Raises InvalidConfiguration for a CA file or profile that cannot be used, SetupError without boto3.
    """

    def __init__(self, settings: BucketStore) -> None:
        self.name, self._key = settings.address, settings.key
        self._below = f"{settings.prefix}/" if settings.prefix else ""
        self._bucket = _Bucket(settings.bucket)

    def put(self, file: LocalFile, name: str, metadata: Mapping[str, str], seconds_left: float) -> Outcome:
        folder, slash, _ = name.partition("/")
        outcome = self._bucket.put(
            file, self._below + name, metadata, self._below + folder + slash if slash else self._below, seconds_left
        )
        return replace(outcome, cure=self._by_its_key(outcome.cure))

    def probe(self, below: str, seconds_left: float) -> ProbeResult:
        name = f"{below}/{_CHECK}" if below else _CHECK
        return self._bucket.probe(self._below + name, seconds_left, "files can be kept there", self._words)

    def files(self, prefix: str = "") -> Iterator[StoredFile]:
        with self._readable():
            for one in self._bucket.objects.list(self._below + prefix, READ_S):
                yield StoredFile(one.key.removeprefix(self._below), one.size_bytes)

    def digest(self, name: str) -> str | None:
        with self._readable():
            return self._bucket.objects.digest(self._below + name, READ_S)

    def fetch(self, name: str, path: str) -> bool:
        with self._readable():
            if self._bucket.objects.look(self._below + name, READ_S) is None:
                return False
            self._bucket.objects.download(self._below + name, path, READ_S)
        return True

    def close(self) -> None:
        self._bucket.objects.close()

    def _by_its_key(self, cure: str) -> str:
        """What is said of the target's keys, where another names the place."""
        return cure.replace(BUCKET, self._key).replace(PREFIX, self._key) if self._key else cure

    def _words(self, error: S3Failed) -> str:
        """For a command: nothing is started again."""
        cure = self._by_its_key(error.outcome.cure).replace(_START_AGAIN, "; then try again")
        return f"{error.outcome.cause}. {cure}." if cure else f"{error.outcome.cause}."

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except S3Failed as error:
            raise StoreUnusable(self._words(error)) from None


class S3Target:
    """Implements `targets.settings.Target`; threads and processes may put files side by side. Raises as `S3Store`."""

    def __init__(self, settings: S3Settings) -> None:
        self._settings, self._common = settings, fixed_part(settings.prefix)
        self._bucket = _Bucket(settings.bucket)

    @property
    def name(self) -> str:
        """Bucket and prefix, with a star for what differs from file to file."""
        return self._settings.address

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        """One attempt. Raises StorageFailed when the file cannot be read; nothing else."""
        table = file.table or self._settings.target_table
        origin = Origin(file.topic, file.partition, file.first_offset, table, file.first_ms)
        key = object_key(self._settings.prefix, origin, file.name)
        local = LocalFile(file.path, file.size_bytes, file.digest)
        return self._bucket.put(local, key, _metadata(file), self._common, seconds_left)

    def probe(self, seconds_left: float) -> ProbeResult:
        return self._probe(self._common + _CHECK, seconds_left)

    def probe_topic(self, topic: str, table: str, seconds_left: float) -> ProbeResult:
        """As `probe`, under the name that a file of this topic has today: rights may be for such names alone."""
        origin = Origin(topic, 0, 0, table or self._settings.target_table, int(time.time() * 1000))
        return self._probe(object_key(self._settings.prefix, origin, _CHECK), seconds_left)

    def _probe(self, key: str, seconds_left: float) -> ProbeResult:
        return self._bucket.probe(key, seconds_left, "files can be put there", str)

    def close(self) -> None:
        """Closes idle connections."""
        self._bucket.objects.close()


class _Bucket:
    """One bucket as both have it."""

    def __init__(self, settings: BucketSettings) -> None:
        self._multipart_bytes = settings.multipart_bytes
        self.objects = Objects(settings, connect(settings))

    def put(self, file: LocalFile, key: str, metadata: Mapping[str, str], swept: str, seconds_left: float) -> Outcome:
        """swept: the prefix below which what was never finished is removed, before anything is sent in parts."""
        end = time.monotonic() + seconds_left
        with storage_trouble(os.path.dirname(file.path), "read a finished file"):
            local = Verified(file.path, file.size_bytes, file.digest or sha256_of(file.path))
        if file.size_bytes >= self._multipart_bytes:
            self.objects.sweep(swept, _is_ours, seconds_left)
        return self.objects.put(key, local, metadata, end - time.monotonic())

    def probe(self, key: str, seconds_left: float, fine: str, words: Callable[[S3Failed], str]) -> ProbeResult:
        """Begins an upload and takes it back, which needs the rights of a real one; and looks for an object."""
        try:
            may_look = self.objects.try_out(key, seconds_left)
        except S3Failed as error:
            return ProbeResult(Health.FAILED, words(error) + _tried(error, key))
        if may_look is not None:
            text = f"{fine}, but not looked for: {words(may_look)}{_tried(may_look, key)}"
            return ProbeResult(Health.WARNING, text)
        return ProbeResult(Health.OK, f"{fine} and looked for; nothing was stored")


def _tried(error: S3Failed, key: str) -> str:
    """The name that rights were missing for, to compare with a policy."""
    return f" It was tried with the object {key}." if error.outcome.status == 403 else ""


def _metadata(file: FinishedFile) -> dict[str, str]:
    """What stands beside an object, in ASCII as headers need it."""
    return {
        "topic": quote(file.topic, safe=""),
        "partition": str(file.partition),
        "first-offset": str(file.first_offset),
        "last-offset": str(file.last_offset),
        "rows": str(file.rows),
        "records": str(file.records),
    }


def _is_ours(key: str) -> bool:
    return is_sent_name(key.rpartition("/")[2])


@dataclass(frozen=True)
class Origin:
    """Of which records a file is. first_ms: timestamp of the first one, epoch milliseconds; None when it has none."""

    topic: str
    partition: int
    first_offset: int
    table: str
    first_ms: int | None


def object_key(template: str, origin: Origin, name: str) -> str:
    """The whole name of an object. Of a first record without a timestamp the date is that of 1970-01-01."""
    path = FIELD.sub(lambda found: _value(found[1], origin), template).strip("/")
    return f"{path}/{name}" if path else name


def _value(field: str, origin: Origin) -> str:
    if field in DATE_FIELDS:
        return _date_part(field, origin.first_ms or 0)
    value = {
        "topic": origin.topic,
        "partition": str(origin.partition),
        "first_offset": f"{origin.first_offset:020d}",
        "table": origin.table,
    }[field]
    return "%2E" * len(value) if value in (".", "..") else quote(value, safe="")


def _date_part(field: str, epoch_ms: int) -> str:
    try:
        moment = _EPOCH + timedelta(milliseconds=epoch_ms)
    except OverflowError:  # a producer's timestamp may be anything
        moment = _EPOCH
    return {
        "yyyy": f"{moment.year:04d}",
        "MM": f"{moment.month:02d}",
        "dd": f"{moment.day:02d}",
        "HH": f"{moment.hour:02d}",
    }[field]
