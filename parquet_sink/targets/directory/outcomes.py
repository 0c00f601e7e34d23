"""What came of an attempt to put a file into a folder, in words with the cure. key: of the setting that names it."""

import errno
import os
import uuid
from contextlib import suppress
from typing import Final

from parquet_sink.files.storage import free_space
from parquet_sink.targets.directory.storing import NotSynced, OutOfTime, Stored
from parquet_sink.targets.outcome import Health, Outcome, ProbeResult, Verdict, of_another_content

_CURES: Final = {
    errno.ENOSPC: "Free space on that file system",
    errno.EDQUOT: "Raise the disk quota of this user",
    errno.ENOENT: "Make the folder, mount what it is on, or correct {key}",
    errno.EACCES: "Give this user the right to write there, or set {key} to another folder",
    errno.EPERM: "Give this user the right to write there, or set {key} to another folder",
    errno.EROFS: "The file system is read-only: mount it anew, or set {key} to another folder",
    errno.ENOTDIR: "Set {key} to a folder",
    errno.ELOOP: "Set {key} to a folder",
    errno.EFBIG: "Raise the limit on the size of a file (ulimit -f), or lower connect.ems.commit.size.bytes",
    errno.ENAMETOOLONG: "The topic's name is too long for a file of this file system: choose another place for it",
}
_REFUSED: Final = frozenset(_CURES) - {errno.ENOSPC, errno.EDQUOT, errno.ENOENT}
"""Trouble that would be the same again; all other may pass."""


def unusable(folder: str, key: str) -> str | None:
    """Why files cannot be put there, with the cure, as far as it can be told without writing; None when nothing is."""
    if not os.path.isdir(folder):
        number = errno.ENOTDIR if os.path.lexists(folder) else errno.ENOENT
    elif not os.access(folder, os.W_OK | os.X_OK):
        number = errno.EACCES
    else:
        return None
    return f"{folder}: {os.strerror(number)}. {_CURES[number].format(key=key)}."


def probed(folder: str, key: str) -> ProbeResult:
    """Whether files can be put there: a small one is written and removed."""
    path = os.path.join(folder, f".parquet-sink-check-{uuid.uuid4().hex}")
    try:
        try:
            with open(path, "xb") as file:
                file.write(b"parquet-sink")
        finally:
            with suppress(OSError):
                os.unlink(path)
    except OSError as error:
        outcome = of_trouble(error, folder, key)
        health = Health.WARNING if error.errno in (errno.ENOSPC, errno.EDQUOT) else Health.FAILED
        return ProbeResult(health, f"{outcome.cause}. {outcome.cure}.")
    return ProbeResult(Health.OK, f"{folder} can be written, {free_space(folder)}")


def of_trouble(error: OutOfTime | NotSynced | OSError, folder: str, key: str) -> Outcome:
    """What an exception of `store` comes to."""
    if isinstance(error, OutOfTime):
        cause = f"{folder} did not take the whole file in time; no half of it is there"
        return Outcome(Verdict.RETRIABLE, cause, "Check the disk, or raise connect.ems.sink.put.timeout.ms")
    if isinstance(error, NotSynced):
        cause = f"{folder} has the file, but it may not survive a power failure: {_words(error.__cause__)}"
        return Outcome(Verdict.UNKNOWN, cause, "Check the disk")
    verdict = Verdict.REFUSED if error.errno in _REFUSED else Verdict.RETRIABLE
    cause = f"{folder} does not take the file: {_words(error)} ({free_space(folder)})"
    cure = _CURES.get(error.errno or 0, "Check the folder and the disk it is on").format(key=key)
    return Outcome(verdict, cause, cure)


def of_stored(stored: Stored, local: str, there: str, elsewhere: str) -> Outcome:
    """What storing came to. there: the whole path that was wanted. elsewhere: what to set where another file has it."""
    if stored is not Stored.OTHER:
        return Outcome(Verdict.ACCEPTED, "stored" if stored is Stored.NEW else "was stored before")
    return of_another_content(there, local, elsewhere)


def _words(error: BaseException | None) -> str:
    number = getattr(error, "errno", None)
    return os.strerror(number) if number else str(error)
