"""Sends a file of an archive as it is: fetched, compared with the history, and handed to the target."""

import hashlib
import os
import time
from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from parquet_sink.archive.store import ArchiveStore
from parquet_sink.config.key import ems
from parquet_sink.errors import ArchiveUnusable, ConnectorError
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.cleanup import remove_unsent
from parquet_sink.files.naming import attempt_name
from parquet_sink.files.rotation import Reason
from parquet_sink.files.storage import storage_trouble
from parquet_sink.model.ranges import NO_TRIES
from parquet_sink.model.receipts import Receipt
from parquet_sink.replay.copies import Copy
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.delivery import Deliverer
from parquet_sink.targets.patient import PatientDeliverer
from parquet_sink.targets.s3.prefix import dated
from parquet_sink.targets.target import Target

_ATTEMPT = "0" * 32
_STAMPS: Final = (("kafkaOffset", "kafkaTimestamp"), ("offset", "timestamp"))
"""The columns of a row's offset and timestamp, epoch milliseconds: those that the sink adds, and those of raw files."""
PREFIX: Final = ems("s3.prefix")
EMBED: Final = ems("embed.kafka.metadata")


class CopySender:
    """Of one replay. settings: with a folder of its own for temporary files. target: gets the files.

    prefix: of their names in a bucket, as a template (`targets.s3.prefix`).
    """

    def __init__(
        self,
        settings: SinkSettings,
        archive: Callable[[], ArchiveStore],
        target: Target,
        sleep: Callable[[float], None] = time.sleep,
        prefix: str = "",
    ) -> None:
        self._settings, self._open, self._prefix = settings, archive, prefix
        self._deliverer = PatientDeliverer(Deliverer(settings.name, target, settings.retry, sleep=sleep), sleep)

    def send(self, copy: Copy) -> Receipt:
        """Once it is accepted. Raises ConnectorError, or ArchiveUnusable for one that is gone or altered."""
        file = self._fetched(copy)
        try:
            return self._deliverer.deliver(file, NO_TRIES, lambda: False)
        except ConnectorError:
            remove_unsent(file.path)
            raise

    def _fetched(self, copy: Copy) -> FinishedFile:
        archive, folder = self._open(), self._settings.files.tmp_dir
        path = os.path.join(folder, attempt_name(_ATTEMPT, 0))
        with storage_trouble(folder, "make the folder of a replay"):
            os.makedirs(folder, exist_ok=True)
        if not archive.fetch(copy.where, path):
            raise ArchiveUnusable(f"Archive {archive.name} no longer has {copy.where}.")
        with storage_trouble(folder, "read a file of the archive"), open(path, "rb") as file:
            digest, size_bytes = hashlib.file_digest(file, "sha256").hexdigest(), os.fstat(file.fileno()).st_size
        if size_bytes != copy.size_bytes or copy.digest not in (None, digest):
            remove_unsent(path)
            raise ArchiveUnusable(
                f"File {copy.where} of archive {archive.name} is not what was accepted, so it is not sent; "
                "parquet-sink archive verify says what is altered."
            )
        try:
            return self._finished(copy, path, digest)
        except ArchiveUnusable:
            remove_unsent(path)
            raise

    def _finished(self, copy: Copy, path: str, digest: str) -> FinishedFile:
        return FinishedFile(
            path=path,
            name=copy.name,
            topic=copy.topic,
            partition=copy.partition,
            first_offset=copy.first,
            last_offset=copy.last,
            records=copy.records,
            rows=copy.rows,
            size_bytes=copy.size_bytes,
            reason=Reason.END_OF_RANGE,
            opened_at=time.time(),
            write_seconds=0.0,
            oldest_ms=copy.oldest_ms,
            table=self._settings.tables.table(copy.topic),
            digest=digest,
            first_ms=self._first_ms(copy, path),
        )

    def _first_ms(self, copy: Copy, path: str) -> int | None:
        """As the file tells it, where the target's names need it; None for a first record that has none.

        Raises ArchiveUnusable where it tells nothing: under another date the rows would be there a second time.
        """
        if not dated(self._prefix):
            return None
        with storage_trouble(self._settings.files.tmp_dir, "read a file of the archive"):
            first_ms = _first_timestamp(path, copy.first)
        if first_ms is None:
            raise ArchiveUnusable(
                f"File {copy.where} of the archive does not tell when its first record is of, and {PREFIX}="
                f"{self._prefix} has a date: it has no column kafkaTimestamp ({EMBED}=false). It is not sent. Set a "
                "prefix without a date, or send it to another place with --target."
            )
        return first_ms if first_ms > 0 else None


def _first_timestamp(path: str, first_offset: int) -> int | None:
    """Of the first row, which is of this offset; None where no column tells. Raises OSError, or Arrow's errors."""
    with pq.ParquetFile(path) as file:
        there = {one.name for one in file.schema_arrow if one.type == pa.int64()}
        for offset, stamp in _STAMPS:
            if {offset, stamp} <= there:
                row = next(file.iter_batches(1, columns=[offset, stamp])).to_pylist()[0]
                if row[offset] == first_offset:
                    return row[stamp] or 0
    return None
