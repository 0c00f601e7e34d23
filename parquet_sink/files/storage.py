"""Local folders and files: made ready, swept of what dead attempts left, and failures of the disk with their cure.

Only files that this program made are removed, known by their name, in folders of its own. Symbolic links are never
followed, neither for a folder nor for a file. A file whose upload outcome is unknown, or whose worker was killed, stays
until the topic-partition's next attempt, or the connector's next start: then its records are read and sent again.
"""

import errno
import logging
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from parquet_sink.errors import RunFilesLost, StorageFailed
from parquet_sink.files import durable_state, naming

logger = logging.getLogger(__name__)

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
    except _troubles() as error:
        raise storage_failed(folder, doing, error, purpose) from error


def _troubles() -> tuple[type[Exception], ...]:
    """OSError, and Arrow's own in a process that has loaded it: no other can raise one."""
    arrow = sys.modules.get("pyarrow")
    return (OSError,) if arrow is None else (OSError, arrow.ArrowException)


def storage_failed(folder: str, doing: str, error: BaseException, purpose: Purpose = TEMPORARY) -> StorageFailed:
    """StorageFailed that says what could not be done in `folder`, why, and the cure.

    RunFilesLost where a temporary file or folder of ours is not there: both are made again.
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


def is_file_of(path: str | Path, descriptor: int) -> bool:
    """Whether the file of this name is the one that is open here."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except (FileNotFoundError, NotADirectoryError):
        return False


def free_space(folder: str) -> str:
    """Free space at `folder`, or at its nearest existing parent, for a message."""
    place = os.path.abspath(folder)
    while not os.path.isdir(place) and place != os.path.dirname(place):
        place = os.path.dirname(place)
    try:
        return f"{shutil.disk_usage(place).free:,} bytes free"
    except OSError:
        return "free space unknown"


def prepare(tmp_dir: str) -> None:
    """Makes `tmp.dir` with its parents if absent, and proves that a file can be written. Raises StorageFailed."""
    with storage_trouble(tmp_dir, "make the folder for temporary files"):
        os.makedirs(tmp_dir, exist_ok=True)
    probe = os.path.join(tmp_dir, f".parquet-sink-probe-{os.getpid()}-{os.urandom(4).hex()}")
    with storage_trouble(tmp_dir, "write a file"):
        try:
            with open(probe, "xb") as file:
                file.write(bytes(4096))
        finally:
            with suppress(FileNotFoundError):
                os.unlink(probe)


def prepare_connector(tmp_dir: str, connector: str) -> str:
    """Makes the connector's own folder with the marker file; returns its path. Raises StorageFailed.

    A folder that is a symbolic link or belongs to another user is refused: `tmp.dir` may be open to everybody.
    """
    prepare(tmp_dir)
    folder = naming.connector_folder(tmp_dir, connector)
    with storage_trouble(folder, "make the connector's folder"):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        found = os.lstat(folder)
        if stat.S_ISLNK(found.st_mode) or found.st_uid != os.geteuid():
            raise StorageFailed(
                f"Folder {folder} is a symbolic link or belongs to another user, so it is not used. "
                f"Remove it, or set connect.ems.tmp.dir to a folder of your own."
            )
        Path(folder, naming.MARKER_FILE).touch(mode=0o600)
    return folder


def remove_leftovers(tmp_dir: str, connector: str) -> int:
    """Removes unfinished and unsent files of dead attempts; returns how many. Call it with the connector's lock held.

    What cannot be removed is logged and left: it does no harm but take space.
    """
    folder = Path(naming.connector_folder(tmp_dir, connector))
    if folder.is_symlink() or not (folder / naming.MARKER_FILE).is_file():
        return 0
    topics = _folders(folder, connector)
    removed = sum(_remove_own(partition) for topic in topics for partition in _folders(topic, connector))
    if removed:
        logger.info("connector %s: removed %d files that an earlier run left in %s", connector, removed, folder)
    return removed


def sweep(folder: str) -> int:
    """Removes what dead attempts left in the folder of one topic-partition; returns how many files.

    Whoever calls it owns the topic-partition, so that nobody else writes or sends a file there. A folder that is a
    symbolic link, or lies below one of ours that is, or belongs to another user, is left alone.
    """
    topic = os.path.dirname(folder)
    if not all(map(_is_our_folder, (folder, topic, os.path.dirname(topic)))):
        return 0
    removed = _remove_own(folder)
    if removed:
        what = "connector %s: removed %d files that a worker which was killed, or failed, left in %s"
        logger.info(what, _connector_of(Path(folder)), removed, folder)
    return removed


def after_acceptance(path: str, kept_name: str, keep: bool) -> None:
    """Deletes an accepted file, or with `connect.ems.debug.keep.parquet.files` renames it to `kept_name`.

    Trouble is logged, not raised: the file has been accepted.
    """
    try:
        if keep:
            os.replace(path, os.path.join(os.path.dirname(path), kept_name))
        else:
            os.unlink(path)
    except OSError as error:
        what = "connector %s: accepted file %s could not be %s: %s"
        whose = _connector_of(Path(path).parent)
        logger.warning(what, whose, path, "renamed" if keep else "removed", error.strerror)


def purge(tmp_dir: str, connector: str) -> list[str]:
    """Removes what the connector of this name left below `tmp.dir`; returns what of its folder stays, for a message.

    Only what this program makes is removed, by its names, and folders that are empty then. Call it with the connector's
    lock held. Kept Parquet files stay: they are there for people to read.
    """
    folder = Path(naming.connector_folder(tmp_dir, connector))
    if not _is_our_folder(folder):
        return []
    remove_leftovers(tmp_dir, connector)
    for name in durable_state.OWN_FOLDERS:
        if _is_our_folder(folder / name):
            shutil.rmtree(folder / name, ignore_errors=True)
    for entry in sorted(folder.iterdir()):
        if durable_state.is_own_file(entry.name) and not entry.is_dir():
            _removed(str(entry))
    remove_empty(str(folder))
    return [str(path) for path in sorted(folder.rglob("*")) if not path.is_dir()] if folder.exists() else []


def remove_empty(folder: str) -> None:
    """Removes a folder and those below it, as far as nothing is in them; for when nobody makes files there any more."""
    for path, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            os.rmdir(path)


def remove_unsent(path: str) -> None:
    """Removes a finished file that will not be sent; a file that is gone already is fine."""
    if naming.is_own_name(os.path.basename(path)):
        with suppress(OSError):
            os.unlink(path)


def _is_our_folder(path: str | Path) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _remove_own(partition: str | Path) -> int:
    """Removes files that `naming.attempt_name` named; the list is made before anything is removed."""
    try:
        with os.scandir(partition) as entries:
            own = [e.path for e in entries if e.is_file(follow_symlinks=False) and naming.is_own_name(e.name)]
    except OSError as error:
        whose = _connector_of(Path(partition))
        logger.warning("connector %s: folder %s could not be listed: %s", whose, partition, error.strerror)
        return 0
    return sum(map(_removed, own))


def _removed(path: str) -> bool:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        whose = _connector_of(Path(path).parent)
        logger.warning("connector %s: left-over file %s could not be removed: %s", whose, path, error.strerror)
        return False
    return True


def _connector_of(partition: Path) -> str:
    """Whose a topic-partition's folder is, as `naming.partition_folder` made it."""
    return unquote(partition.parents[1].name)


def _folders(folder: Path, connector: str) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError as error:
        logger.warning("connector %s: folder %s could not be listed: %s", connector, folder, error.strerror)
        return []
