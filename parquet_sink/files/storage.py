"""Local storage: errors with folder, cause, free space and cure; folders checked before use; files synced."""

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from parquet_sink.errors import RunFilesLost, StorageFailed
from parquet_sink.files import naming

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


def unusable(tmp_dir: str, connector: str) -> str | None:
    """Why `tmp.dir`, or the connector's folder in it, cannot be used, with the cure; None when nothing speaks against.

    A disk that is full now is no reason: that may pass.
    """
    return _base(tmp_dir) or _own(naming.connector_folder(tmp_dir, connector))


def may_be_emptied(tmp_dir: str) -> str | None:
    """A warning for a folder that the system empties, as it does with what is below /tmp; None for another one."""
    if os.path.realpath(tmp_dir).split(os.sep)[1:2] != ["tmp"]:
        return None
    return (
        f"{tmp_dir} holds the connector's lock, state and history, and many systems remove what is below /tmp when "
        "they start, or when it is some days old. Name a folder that stays, such as one below /var/lib."
    )


def _base(tmp_dir: str) -> str | None:
    place = os.path.abspath(tmp_dir)
    while not os.path.lexists(place) and place != os.path.dirname(place):
        place = os.path.dirname(place)
    if not os.path.isdir(place):
        return f"{place} is not a folder; name a folder, or one that can be made."
    if not os.access(place, os.W_OK | os.X_OK):
        what = "Folder" if place == os.path.abspath(tmp_dir) else f"Folder {tmp_dir} is not there, and"
        return f"{what} {place} cannot be written by this user; make it writable, or name another folder."
    return None


def _own(folder: str) -> str | None:
    """`tmp.dir` may be open to everybody, so what others have put there is not used."""
    try:
        found = os.lstat(folder)
    except OSError:
        return None
    if stat.S_ISLNK(found.st_mode):
        return f"{folder} is a symbolic link, so it is not used; remove it, or name a folder of your own."
    if not stat.S_ISDIR(found.st_mode):
        return f"{folder} is not a folder; remove it, or name another folder."
    if found.st_uid != os.geteuid():
        return f"{folder} belongs to another user, so it is not used; remove it, or name a folder of your own."
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"{folder} cannot be written; give this user the right to, or name another folder."
    return None


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
