"""Accepting a file: what the target has answered for is on disk before the answer leaves.

Order of effects for one upload:
  1. the body streams into `incoming/<random>.part`, hashed on the way
  2. the part is synced and proven to be Parquet
  3. it is renamed to `files/<id>.parquet`, and the folder is synced
  4. a row is written to the journal and synced: from here on the file is accepted
A crash before 4 leaves a file without a row, which the next start removes; the client has no answer and sends again.
"""

import hashlib
import logging
import os
import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final
from uuid import uuid4

from parquet_sink.addons.devkit.target.contract import (
    BadUpload,
    Problem,
    RepeatedName,
    Repeats,
    StoredFile,
    UploadParameters,
)
from parquet_sink.addons.devkit.target.journal import Journal
from parquet_sink.files.storage import sync_folder

_OWN_FILE: Final = re.compile(r"[0-9a-f]{32}\.(part|parquet)")
_MAGIC: Final = b"PAR1"
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Acceptance:
    """An upload that is answered with 200; repeated: the target held this file, by name and content, already."""

    file: StoredFile
    repeated: bool


class Part:
    """One upload's bytes on their way to disk. Not accepted until `FileStore.accept` says so."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._hash = hashlib.sha256()
        self._file: BinaryIO = path.open("xb")

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def write(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        self._hash.update(data)
        self.size += len(data)

    def sync(self) -> None:
        """All bytes are on disk when this returns."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def drop(self) -> None:
        """Forget the upload; harmless after it was accepted."""
        self._file.close()
        self.path.unlink(missing_ok=True)


class FileStore:
    """The folder of accepted files and their journal, under `data_dir`. Safe to use from several threads."""

    def __init__(self, data_dir: Path, repeats: Repeats = "recognise") -> None:
        self._repeats = repeats
        self._incoming, self._files = data_dir / "incoming", data_dir / "files"
        for folder in (self._incoming, self._files):
            folder.mkdir(parents=True, exist_ok=True)
        self.journal = Journal(data_dir / "journal.sqlite")
        self._lock = threading.Lock()
        self._remove_unaccepted()

    def path(self, file: StoredFile) -> Path:
        """Where an accepted file lies."""
        return self._files / f"{file.id}.parquet"

    def scratch_path(self) -> Path:
        """A path for a passing file; the next start removes what is left there."""
        return self._incoming / f"{uuid4().hex}.part"

    def open_part(self) -> Part:
        """A fresh place for one upload's bytes."""
        return Part(self.scratch_path())

    def accept(self, part: Part, name: str, parameters: UploadParameters, received_at_ms: int) -> Acceptance:
        """Make an upload durable, or recognise it as a repetition.

        A known name with other content is another file: Kafka may have been made anew, and its offsets with it.
        Raises BadUpload when it is not Parquet, and for a known name where those are refused.
        """
        part.sync()
        rows = parquet_rows(part.path)
        with self._lock:
            known = self.journal.find(parameters.target, name)
            stored = next((file for file in known if file.sha256 == part.sha256), None)
            if known and self._repeats == "refuse":
                raise RepeatedName(name)
            if stored and self._repeats == "recognise":
                self.journal.count_repeat(stored.sequence)
                return Acceptance(stored, repeated=True)
            if known and not stored:
                _warn_of_other_content(known[-1], part)
            file_id = uuid4().hex
            part.path.rename(self._files / f"{file_id}.parquet")
            sync_folder(str(self._files))
            times = (received_at_ms, time.time_ns() // 1_000_000)
            facts = (part.size, rows, part.sha256)
            altered, again = bool(known and not stored), stored is not None
            file = self.journal.add(file_id, name, parameters, facts, times, altered=altered, again=again)
            return Acceptance(file, repeated=False)

    def clear(self) -> None:
        """Forget every accepted file."""
        with self._lock:
            self.journal.clear()
            self._remove(self._files)

    def _remove_unaccepted(self) -> None:
        self._remove(self._incoming)
        for path in self._own(self._files):
            if self.journal.file(path.stem) is None:
                path.unlink()

    def _remove(self, folder: Path) -> None:
        for path in self._own(folder):
            path.unlink(missing_ok=True)

    def _own(self, folder: Path) -> list[Path]:
        return [path for path in folder.iterdir() if _OWN_FILE.fullmatch(path.name)]


def _warn_of_other_content(known: StoredFile, part: Part) -> None:
    logger.warning(
        "file %s of target %s came again with OTHER CONTENT: %d bytes, sha256 %.12s; before: %d bytes, sha256 %.12s. "
        "It is taken as a new file. A sender whose topic was recreated does this; a real target may pass it over.",
        known.name,
        known.parameters.target,
        part.size,
        part.sha256,
        known.bytes,
        known.sha256,
    )


def parquet_rows(path: Path) -> int:
    """The row count in a Parquet file's footer. Raises BadUpload when there is no readable footer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise BadUpload(Problem("file", "is not a Parquet file: it does not begin with PAR1"))
    try:
        metadata: Any = pq.read_metadata(path)
    except (pa.ArrowException, OSError) as reason:
        raise BadUpload(Problem("file", f"is not a readable Parquet file: {reason}")) from reason
    return int(metadata.num_rows)
