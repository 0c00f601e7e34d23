"""A bucket as a target: one attempt to put one file there, and whether it could be done."""

import os
import time
from collections.abc import Callable
from urllib.parse import quote

from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.naming import is_sent_name
from parquet_sink.files.parquet import sha256_of
from parquet_sink.files.storage import storage_trouble
from parquet_sink.targets.outcome import Health, Outcome, ProbeResult
from parquet_sink.targets.s3 import prefix
from parquet_sink.targets.s3.client import connect
from parquet_sink.targets.s3.failures import S3Failed
from parquet_sink.targets.s3.local_file import LocalFile
from parquet_sink.targets.s3.object_key import Origin, object_key
from parquet_sink.targets.s3.objects import Objects
from parquet_sink.targets.s3.settings import S3Settings


class S3Target:
    """Puts files into one bucket; threads and processes may do so side by side. monotonic: seconds.

    Raises InvalidConfiguration for a CA file or profile that cannot be used, SetupError without boto3.
    """

    def __init__(self, settings: S3Settings, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._settings, self._monotonic = settings, monotonic
        self._common = prefix.fixed_part(settings.prefix)
        self._objects = Objects(settings.bucket, connect(settings.bucket))

    @property
    def name(self) -> str:
        """Bucket and prefix, with a star for what differs from file to file."""
        return self._settings.address

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        """One attempt. Raises StorageFailed when the file cannot be read; nothing else."""
        end = self._monotonic() + seconds_left
        with storage_trouble(os.path.dirname(file.path), "read a finished file"):
            local = LocalFile(file.path, file.size_bytes, file.digest or sha256_of(file.path))
        if file.size_bytes >= self._settings.bucket.multipart_bytes:
            self._objects.sweep(self._common, _is_ours, seconds_left)
        return self._objects.put(self._key(file), local, _metadata(file), end - self._monotonic())

    def probe(self, seconds_left: float) -> ProbeResult:
        """Begins an upload and takes it back, which needs the rights of a real one; and looks for an object."""
        try:
            may_look = self._objects.try_out(f"{self._common}.parquet-sink-check", seconds_left)
        except S3Failed as error:
            return ProbeResult(Health.FAILED, str(error))
        if may_look is not None:
            return ProbeResult(Health.WARNING, f"files can be put there, but not looked for: {may_look}")
        return ProbeResult(Health.OK, "files can be put there and looked for; nothing was stored")

    def close(self) -> None:
        """Closes idle connections."""
        self._objects.close()

    def _key(self, file: FinishedFile) -> str:
        table = file.table or self._settings.target_table
        origin = Origin(file.topic, file.partition, file.first_offset, table, file.first_ms)
        return object_key(self._settings.prefix, origin, file.name)


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
