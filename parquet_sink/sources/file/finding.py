"""Which file to go on in: the one of that name, or the one that had the name before and is not read to its end.

| what stands under the name | what is read |
|---|---|
| the same file, its content up to the place unchanged | from the place on |
| the same file, shorter than the place, or with other content before it | from its beginning: it was truncated |
| another one, and the old one is found in the folder, by its inode | the rest of the old one, then this one |
| another one with the same content before the place | from the place on: it was copied, or put back |
| another one, and the old one is nowhere | from its beginning, with a warning: what was left in the old one is lost |
| nothing, and the old one is found in the folder | the rest of the old one |

A file of which nothing is remembered is taken for the same, unless it is shorter than the place.
"""

import logging
import os
from dataclasses import dataclass

from parquet_sink.errors import SourceFailed
from parquet_sink.sources.file.marks import Mark, holds

log = logging.getLogger(__name__)


@dataclass
class Opened:
    """An open file. position: where to go on in it, in bytes. aside: whether it had the name before."""

    descriptor: int
    position: int
    aside: bool = False

    @property
    def inode(self) -> int:
        return os.fstat(self.descriptor).st_ino

    @property
    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def close(self) -> None:
        os.close(self.descriptor)


def find(path: str, position: int, mark: Mark | None) -> Opened | None:
    """The file to go on in; None while there is none. Raises SourceFailed when it cannot be read."""
    now = opened(path)
    if position == 0 and mark is None:
        return now
    if now is not None and (mark is None or now.inode == mark.inode):
        return _at(now, path, position, mark)
    assert mark is not None or now is None
    before = None if mark is None else renamed(path, position, mark)
    if before is not None:
        if now is not None:
            now.close()
        return before
    return None if now is None else _another(now, path, position, mark)


def opened(path: str) -> Opened | None:
    """The file of that name, from its beginning; None when it is not there. Raises SourceFailed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable(path, error) from None
    if os.path.isdir(path):
        os.close(descriptor)
        raise SourceFailed(f"Invalid [file]. {path} is a folder; name a file.")
    return Opened(descriptor, 0)


def unreadable(path: str, error: OSError) -> SourceFailed:
    """What an operator is told of a file that cannot be read."""
    return SourceFailed(
        f"File {path} [file] cannot be read: {error.strerror}. Give this user the right to read it, or name another "
        "file; the position stays where it is."
    )


def _at(now: Opened, path: str, position: int, mark: Mark | None) -> Opened:
    if now.size >= position and (mark is None or holds(now.descriptor, position, mark)):
        now.position = position
        return now
    log.warning("file %s was truncated, or written anew: it is read from its beginning", path)
    return now


def _another(now: Opened, path: str, position: int, mark: Mark | None) -> Opened:
    if mark is not None and now.size >= position and holds(now.descriptor, position, mark):
        now.position = position
        return now
    log.warning(
        "file %s is another one now, and the one before is not in its folder any more: what was not read of that "
        "is lost, and this one is read from its beginning",
        path,
    )
    return now


def renamed(path: str, position: int, mark: Mark) -> Opened | None:
    """The file that had the name before, in the same folder; None: it is not there. Raises SourceFailed."""
    folder = os.path.dirname(os.path.abspath(path))
    try:
        names = [one.path for one in os.scandir(folder) if one.inode() == mark.inode and one.is_file()]
    except OSError:
        return None
    for name in names:
        found = opened(name)
        if found is None:
            continue
        if found.inode == mark.inode and found.size >= position and holds(found.descriptor, position, mark):
            found.position, found.aside = position, True
            return found
        found.close()
    return None
