"""Local storage trouble as one kind of error, with folder, cause, free space and cure."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from parquet_sink.errors import RunFilesLost, StorageFailed

_CURES: Final = {
    errno.ENOSPC: "Free space on that file system, or set {key} to a folder with more",
    errno.EDQUOT: "Raise the disk quota of this user, or set {key} to another file system",
    errno.EFBIG: "Raise the limit on the size of a file (ulimit -f), or lower {size_key}",
    errno.EROFS: "The file system is read-only: set {key} to a folder that can be written",
    errno.EACCES: "Give this user the right to write there, or set {key} to another folder",
    errno.EPERM: "Give this user the right to write there, or set {key} to another folder",
    errno.EMFILE: "Raise the limit on open files (ulimit -n)",
    errno.ENOENT: "Something removed the folder while the connector ran: keep others out of {key}",
}


@dataclass(frozen=True)
class Purpose:
    """What a folder is for, in messages. key: names it. size_key: bounds files there. kept: where records still are."""

    key: str
    size_key: str
    kept: str


TEMPORARY: Final = Purpose(
    "connect.ems.tmp.dir",
    "connect.ems.commit.size.bytes",
    "Nothing is lost: the records are still in Kafka, and are read again at the next start.",
)


@contextmanager
def storage_trouble(folder: str, doing: str, purpose: Purpose = TEMPORARY) -> Iterator[None]:
    """Turns OSError and Arrow's errors within the block into StorageFailed; `doing` completes 'Could not ...'."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise storage_failed(folder, doing, error, purpose) from error


def storage_failed(folder: str, doing: str, error: BaseException, purpose: Purpose = TEMPORARY) -> StorageFailed:
    """StorageFailed that says what could not be done in `folder`, why, and the cure.

    RunFilesLost where a temporary file or folder of ours is not there: both are made anew.
    """
    number = getattr(error, "errno", None)
    cause = os.strerror(number) if number else str(error).splitlines()[0] if str(error) else type(error).__name__
    cure = _CURES.get(number or 0, "Check {key} and the disk it is on")
    lost = purpose is TEMPORARY and number in (errno.ENOENT, errno.ESTALE)
    return (RunFilesLost if lost else StorageFailed)(
        f"Could not {doing} in folder {folder} ({purpose.key}): {cause}; {free_space(folder)}. "
        f"{cure.format(key=purpose.key, size_key=purpose.size_key)}. {purpose.kept}"
    )


def sync_folder(folder: str) -> None:
    """Makes names in a folder survive a power failure. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: str) -> None:
    """Makes a file's bytes survive a power failure. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def free_space(folder: str) -> str:
    """Free space at `folder`, or at its nearest existing parent, for a message."""
    place = os.path.abspath(folder)
    while not os.path.isdir(place) and place != os.path.dirname(place):
        place = os.path.dirname(place)
    try:
        return f"{shutil.disk_usage(place).free:,} bytes free"
    except OSError:
        return "free space unknown"
