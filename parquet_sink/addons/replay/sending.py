"""The sending queue of a replay: which files go to the target, at which pace, and archived files as they are."""

import hashlib
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from parquet_sink.addons.replay.copies import Copy, ReplayFile
from parquet_sink.addons.replay.pace import Pace
from parquet_sink.addons.replay.plan import ReplayRange
from parquet_sink.archive.archive import Archive
from parquet_sink.config.key import ems
from parquet_sink.errors import ArchiveUnusable, ConnectorError
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.naming import attempt_name
from parquet_sink.files.rotation import Reason
from parquet_sink.files.storage import remove_unsent, storage_trouble
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.receipts import Receipt
from parquet_sink.notify.settings import NotifySettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.outcome import Health, Outcome, ProbeResult, Verdict
from parquet_sink.targets.settings import Target, TargetSettings
from parquet_sink.targets.uploader import Deliverer

OnFile = Callable[[ReplayFile], None]
NOT_SENT = Outcome(Verdict.ACCEPTED, "not sent")
_ATTEMPT = "0" * 32
_STAMPS: Final = (("kafkaOffset", "kafkaTimestamp"), ("offset", "timestamp"))
"""The columns of a row's offset and timestamp, epoch milliseconds: those that the sink adds, and those of raw files."""
EMBED: Final = ems("embed.kafka.metadata")


class CopySender:
    """Of one replay. settings: with a folder of its own for temporary files. target: gets the files.

    dated: the key and value by which names need the timestamp of a file's first record; empty where they do not.
    """

    def __init__(
        self,
        settings: SinkSettings,
        archive: Callable[[], Archive],
        target: Target,
        sleep: Callable[[float], None] = time.sleep,
        dated: str = "",
    ) -> None:
        self._settings, self._open, self._dated = settings, archive, dated
        self._deliverer = Deliverer(settings.name, target, settings.retry, waits_here=True, sleep=sleep)

    def send(self, copy: Copy) -> Receipt:
        """Once it is accepted. Raises ConnectorError, or ArchiveUnusable for one that is gone or altered."""
        file = self._fetched(copy)
        try:
            return self._deliverer.deliver(file)
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
        if not self._dated:
            return None
        with storage_trouble(self._settings.files.tmp_dir, "read a file of the archive"):
            first_ms = _first_timestamp(path, copy.first)
        if first_ms is None:
            raise ArchiveUnusable(
                f"File {copy.where} of the archive has no timestamp of its first record, and "
                f"{self._dated} has a date: it has no column kafkaTimestamp ({EMBED}=false). It is not sent. Set a "
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


class SendingQueue:
    """Settings of a target, and the target: files that are not chosen are taken and not sent. Threads may share it.

    settings: of the target they go to; None: nothing is sent. notify: of its files notices are given again, which have
    the ids of the first ones. on_file: told of each file that was accepted, at once.
    """

    def __init__(
        self,
        settings: TargetSettings | None,
        table: str,
        pace: Pace,
        on_file: OnFile,
        notify: NotifySettings | None = None,
    ) -> None:
        self._inner: Target | None = None if settings is None else settings.open()
        if self._inner is not None and notify is not None:
            self._inner = notify.behind(self._inner)
        self.target_table, self._pace, self._on_file = table, pace, on_file
        self._wanted: dict[PartitionKey, ReplayRange] = {}
        self._sent: dict[PartitionKey, list[ReplayFile]] = {}
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Where files go, without secrets."""
        return "nowhere" if self._inner is None else self._inner.name

    def begin(self, one: ReplayRange) -> None:
        """From now on files of its topic-partition are those of this range."""
        self._wanted[one.key] = one
        self._sent[one.key] = []

    def sent(self, key: PartitionKey) -> list[ReplayFile]:
        """What was accepted of a topic-partition since its range began, in order."""
        return list(self._sent.get(key, ()))

    def open(self) -> "SendingQueue":
        return self

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        if not self._wanted[file.topic, file.partition].wants(file.first_offset, file.last_offset):
            return NOT_SENT
        outcome = NOT_SENT
        if self._inner is not None:
            with self._pace.working():
                outcome = self._inner.push(file, seconds_left)
        if outcome.verdict is Verdict.ACCEPTED:
            self._accepted(file)
        return outcome

    def _accepted(self, file: FinishedFile) -> None:
        one = ReplayFile(
            topic=file.topic,
            partition=file.partition,
            name=file.name,
            first=file.first_offset,
            last=file.last_offset,
            rows=file.rows,
            records=file.records,
            size_bytes=file.size_bytes,
            digest=file.digest,
        )
        with self._lock:
            self._sent[one.key].append(one)
            self._on_file(one)

    def probe(self, seconds_left: float) -> ProbeResult:
        return ProbeResult(Health.OK, "") if self._inner is None else self._inner.probe(seconds_left)

    def close(self) -> None:
        with suppress(OSError):
            if self._inner is not None:
                self._inner.close()
