"""Targets before an archive: `ArchivedTarget` waits for it, `ThenArchivedTarget` does not."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from parquet_sink.archive.archive import Archive, LocalFile, kept, open_archive, path_of
from parquet_sink.archive.settings import URL, ArchiveSettings
from parquet_sink.archive.waiting import WaitingFolder
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.model.receipts import Archiving
from parquet_sink.process.per_process import PerProcess
from parquet_sink.targets.outcome import Outcome, ProbeResult, Verdict
from parquet_sink.targets.settings import Target

log = logging.getLogger(__name__)

ONCE_S: Final = 10.0
"""How long an archive that is not required may hold a file up where nobody else would archive it."""
MOST: Final = 1_000
FOR_S: Final = 900.0
_Key = tuple[str, str | None, str, str | None]


class AcceptedFiles:
    """At most MOST, for FOR_S each, so that whoever resets offsets has files sent again. monotonic: seconds."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._files: dict[_Key, tuple[float, Outcome]] = {}
        self._lock = threading.Lock()

    def get(self, target: Target, file: FinishedFile) -> Outcome | None:
        """What the target said when it accepted the file; None when that is not known."""
        with self._lock:
            at_s, outcome = self._files.get(_key(target, file), (0.0, None))
        return outcome if self._monotonic() - at_s < FOR_S else None

    def add(self, target: Target, file: FinishedFile, outcome: Outcome) -> None:
        """The target accepted the file."""
        with self._lock:
            self._files[_key(target, file)] = self._monotonic(), outcome
            if len(self._files) > MOST:
                del self._files[next(iter(self._files))]

    def remove(self, target: Target, file: FinishedFile) -> None:
        """The archive has it, too."""
        with self._lock:
            self._files.pop(_key(target, file), None)


class _BeforeArchive:
    """What both have of the target before the archive."""

    def __init__(self, target: Target, archive: Archive) -> None:
        self._target, self._archive = target, archive

    @property
    def name(self) -> str:
        return self._target.name

    def probe(self, seconds_left: float) -> ProbeResult:
        return self._target.probe(seconds_left)

    def close(self) -> None:
        self._target.close()


class ArchivedTarget(_BeforeArchive):
    """Implements `targets.settings.Target`: a file counts as accepted once the archive has it, too.

    accepted: a file that the target took is not sent to it again because the archive did not.
    """

    def __init__(self, target: Target, archive: Archive, accepted: AcceptedFiles) -> None:
        super().__init__(target, archive)
        self._accepted = accepted

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        """The target's outcome, with the archive's address; or, of an accepted file, why it is not archived."""
        end = time.monotonic() + seconds_left
        outcome = self._accepted.get(self._target, file) or self._target.push(file, seconds_left)
        if outcome.verdict is not Verdict.ACCEPTED:
            return outcome
        self._accepted.add(self._target, file, outcome)
        tried = self._archive.keep(local_file(file), max(0.0, end - time.monotonic()))
        if tried.verdict is not Verdict.ACCEPTED:
            return _not_archived(tried, self._archive.name)
        self._accepted.remove(self._target, file)
        return replace(outcome, archive=_archiving(self._archive.name))


class ThenArchivedTarget(_BeforeArchive):
    """Implements `targets.settings.Target`: an accepted file is handed to the connector's program, which archives it.

    Where that is not on this machine (an executor elsewhere) it is tried once, here and now.
    """

    def __init__(self, target: Target, archive: Archive, waiting: WaitingFolder) -> None:
        super().__init__(target, archive)
        self._waiting = waiting

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        """The target's outcome. A file that will not be archived is told of, in the outcome and in the log."""
        outcome = self._target.push(file, seconds_left)
        if outcome.verdict is not Verdict.ACCEPTED:
            return outcome
        local = local_file(file)
        if self._waiting.tended:
            cause = self._waiting.put(local)
            return outcome if cause is None else replace(outcome, archive=self._failed(file, cause))
        tried = kept(self._archive, local, ONCE_S)
        if tried.verdict is Verdict.ACCEPTED:
            return replace(outcome, archive=_archiving(self._archive.name))
        return replace(outcome, archive=self._failed(file, f"{tried.cause}. {tried.cure}"))

    def _failed(self, file: FinishedFile, cause: str) -> Archiving:
        log.warning("%s: file %s is not archived in %s: %s.", file.origin, file.name, self._archive.name, cause)
        return _archiving(self._archive.name, cause)


def local_file(file: FinishedFile) -> LocalFile:
    """As an archive gets it."""
    return LocalFile(file.path, path_of(file.topic, file.name), file.size_bytes, file.digest)


def _archiving(place: str, cause: str | None = None) -> Archiving:
    return Archiving(place, round(time.time() * 1000), cause)


def _not_archived(tried: Outcome, archive: str) -> Outcome:
    """What an archive's outcome is to whoever sends the file: never one of what is in it, which the target took."""
    cause = f"{URL}: archive {archive}: {tried.cause}"
    return replace(tried, cause=cause, of_file=False, fate="was accepted, but is not archived")


def _key(target: Target, file: FinishedFile) -> _Key:
    return target.name, file.table, file.name, file.digest


def _open(settings: ArchiveSettings) -> tuple[Archive, AcceptedFiles]:
    return open_archive(settings), AcceptedFiles()


_archives: Final = PerProcess(_open)


def archived(target: Target, settings: ArchiveSettings) -> Target:
    """The target, whose accepted files are archived.

    A process keeps an archive, with what it remembers of files on their way there.
    """
    archive, accepted = _archives.get(settings)
    if settings.required:
        return ArchivedTarget(target, archive, accepted)
    return ThenArchivedTarget(target, archive, WaitingFolder(settings.waiting, settings.max_waiting_bytes))
