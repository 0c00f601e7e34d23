"""A folder as a target: one attempt to put one file there, and whether it could be done."""

import errno
import os
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.naming import component
from parquet_sink.files.storage import free_space, sync_folder
from parquet_sink.targets.directory.settings import DirectorySettings
from parquet_sink.targets.directory.storing import NotSynced, OutOfTime, Source, Stored, store, sweep
from parquet_sink.targets.outcome import Health, Outcome, ProbeResult, Verdict

ENDPOINT_KEY: Final = "connect.ems.endpoint"
_CURES: Final = {
    errno.ENOSPC: "Free space on that file system",
    errno.EDQUOT: "Raise the disk quota of this user",
    errno.ENOENT: f"Make the folder, mount what it is on, or correct {ENDPOINT_KEY}",
    errno.EACCES: f"Give this user the right to write there, or set {ENDPOINT_KEY} to another folder",
    errno.EPERM: f"Give this user the right to write there, or set {ENDPOINT_KEY} to another folder",
    errno.EROFS: f"The file system is read-only: mount it anew, or set {ENDPOINT_KEY} to another folder",
    errno.ENOTDIR: f"Set {ENDPOINT_KEY} to a folder",
    errno.ELOOP: f"Set {ENDPOINT_KEY} to a folder",
    errno.EFBIG: "Raise the limit on the size of a file (ulimit -f), or lower connect.ems.commit.size.bytes",
    errno.ENAMETOOLONG: "The topic's name is too long for a file of this file system: choose another target for it",
}
_REFUSED: Final = frozenset(_CURES) - {errno.ENOSPC, errno.EDQUOT, errno.ENOENT}
"""Trouble that would be the same again; all other may pass."""


class DirectoryTarget:
    """Puts files into `<folder>/<table>/`; threads and processes may do so side by side.

    The folder must be there: where it is a mount, files would else end up below an empty mount point. monotonic, now:
    seconds.
    """

    def __init__(
        self,
        settings: DirectorySettings,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._root = settings.folder
        self._table = settings.target_table
        self._monotonic, self._now = monotonic, now
        self._swept: set[str] = set()
        self._swept_folder(None)

    @property
    def name(self) -> str:
        """The folder with the scheme."""
        return f"directory:{self._root}"

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        """One attempt. A system call that does not return (a network mount that hangs) holds up the deadline."""
        end = self._monotonic() + seconds_left
        source, folder = Source(file.path, file.size_bytes), self._swept_folder(file.table)
        try:
            self._make_folder(folder)
            stored = store(source, folder, file.name, lambda: self._monotonic() >= end)
        except OutOfTime:
            cause = f"{folder} did not take the whole file in time; no half of it is there"
            return Outcome(Verdict.RETRIABLE, cause, "Check the disk, or raise connect.ems.sink.put.timeout.ms")
        except NotSynced as error:
            cause = f"{folder} has the file, but it may not survive a power failure: {_words(error.__cause__)}"
            return Outcome(Verdict.UNKNOWN, cause, "Check the disk")
        except OSError as error:
            return _of_error(error, folder)
        return _of_stored(stored, file, folder)

    def probe(self, seconds_left: float) -> ProbeResult:
        """Writes a small file beside the others and removes it."""
        folder = self._swept_folder(None)
        folder = folder if os.path.isdir(folder) else self._root
        path = os.path.join(folder, f".parquet-sink-check-{uuid.uuid4().hex}")
        try:
            try:
                with open(path, "xb") as file:
                    file.write(b"parquet-sink")
            finally:
                with suppress(OSError):
                    os.unlink(path)
        except OSError as error:
            outcome = _of_error(error, folder)
            health = Health.WARNING if error.errno in (errno.ENOSPC, errno.EDQUOT) else Health.FAILED
            return ProbeResult(health, f"{outcome.cause}. {outcome.cure}.")
        return ProbeResult(Health.OK, f"{folder} can be written, {free_space(folder)}")

    def close(self) -> None:
        """Nothing is open between files."""

    def _swept_folder(self, table: str | None) -> str:
        """The folder of a table, None for that of the settings; what was left there is removed at its first use."""
        folder = os.path.join(self._root, component(table or self._table))
        if folder not in self._swept:
            self._swept.add(folder)
            sweep(folder, self._now())
        return folder

    def _make_folder(self, folder: str) -> None:
        if not os.path.isdir(folder):
            with suppress(FileExistsError):
                os.mkdir(folder)
            sync_folder(self._root)


def unusable(settings: DirectorySettings) -> str | None:
    """Why files cannot be put there, with the cure, as far as it can be told without writing; None when nothing is."""
    if not os.path.isdir(settings.folder):
        number = errno.ENOTDIR if os.path.lexists(settings.folder) else errno.ENOENT
    elif not os.access(settings.folder, os.W_OK | os.X_OK):
        number = errno.EACCES
    else:
        return None
    return f"{settings.folder}: {os.strerror(number)}. {_CURES[number]}."


def _of_stored(stored: Stored, file: FinishedFile, folder: str) -> Outcome:
    if stored is not Stored.OTHER:
        return Outcome(Verdict.ACCEPTED, "stored" if stored is Stored.NEW else "was stored before")
    there = os.path.join(folder, file.name)
    return Outcome(
        Verdict.REFUSED,
        f"{there} is there with another content than {file.path}, and is not overwritten",
        "Find out what wrote it, another connector perhaps; then move it away, or set connect.ems.target.table or "
        f"{ENDPOINT_KEY} to another folder",
    )


def _of_error(error: OSError, folder: str) -> Outcome:
    verdict = Verdict.REFUSED if error.errno in _REFUSED else Verdict.RETRIABLE
    cause = f"{folder} does not take the file: {_words(error)} ({free_space(folder)})"
    return Outcome(verdict, cause, _CURES.get(error.errno or 0, "Check the folder and the disk it is on"))


def _words(error: BaseException | None) -> str:
    number = getattr(error, "errno", None)
    return os.strerror(number) if number else str(error)
