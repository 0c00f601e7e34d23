"""Which file to go on in: the one of that name, or one that had the name before and is not read to its end.

| what stands under the name | what is read |
|---|---|
| the same file, its content up to the place unchanged | from the place on |
| another one, and the old one is found in the folder, by its inode | the rest of that, what had the name since, this |
| another content, and a copy of the old one is found, whose name begins alike | the same, the copy in its place |
| another file with the same content before the place, and the old one is nowhere | from the place on: it was put back |
| another content, and the old one is nowhere | from its beginning, with a warning: what was not read is lost |
| nothing, and the old one is found in the folder | the rest of the old one |

A place of which nothing is remembered is taken for one in the file of that name, with a warning, if that is as long.
"""

import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from parquet_sink.addons.sources.file.lines import EDGE
from parquet_sink.addons.sources.file.marks import Known, Mark, Sighted
from parquet_sink.errors import SourceFailed

log = logging.getLogger(__name__)

_ENDS = (b"\n", b"\r")
_STEP = 1 << 16


@dataclass
class Opened:
    """An open file. position: where to go on in it, in bytes. waiting: what had the name after it, in order."""

    descriptor: int
    position: int = 0
    waiting: tuple[Sighted, ...] = ()

    @property
    def inode(self) -> int:
        return os.fstat(self.descriptor).st_ino

    @property
    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    @property
    def is_unlinked(self) -> bool:
        """Whether it has no name any more, in any folder."""
        return os.fstat(self.descriptor).st_nlink == 0

    def close(self) -> None:
        os.close(self.descriptor)


def find(path: str, position: int, known: Known) -> Opened | None:
    """The file to go on in; None while there is nothing to read. Raises SourceFailed when it cannot be read."""
    if known.mark is not None:
        return _marked(path, position, known.mark, known.waiting)
    if position == 0 or known.waiting:
        return first(path, known.waiting)
    return _trusted(path, position)


def first(path: str, waiting: tuple[Sighted, ...]) -> Opened | None:
    """The first of those that is there, else the file of that name, from its beginning. Raises SourceFailed."""
    for index, one in enumerate(waiting):
        found = located(path, one.inode, one.holds)
        if found is not None:
            found.waiting = waiting[index + 1 :]
            return found
        log.warning(
            "file %s: one that had this name was removed, emptied or moved to another folder before it was read; its "
            "lines are lost unless they were read from a copy",
            path,
        )
    return opened(path)


def located(path: str, inode: int, holds: Callable[[int], bool]) -> Opened | None:
    """The file of that name or in its folder with that inode, else a copy, which is one whose name begins alike.

    Raises SourceFailed when it is there and cannot be read.
    """
    for name in _of_inode(path, inode):
        found = opened(name)
        if found is not None and found.inode == inode and _held(found, holds):
            return found
    for name in _alike(path):
        try:
            found = opened(name)
        except SourceFailed:
            continue
        if found is not None and _held(found, holds):
            return found
    return None


def sighted(path: str, position: int, known: Known) -> Known:
    """What is to be remembered once it was looked which file has the name. Raises OSError."""
    try:
        now = opened(path)
    except SourceFailed:  # which the task will say
        return known
    if now is None:
        return known
    try:
        return known if now.size == 0 else _sighted(now, path, position, known)
    finally:
        now.close()


def _sighted(now: Opened, path: str, position: int, known: Known) -> Known:
    if known.mark is None and position > 0 and not known.waiting:
        if _is_shorter(now, path, position):
            return Known(None, (Sighted.of(now.descriptor),))
        _warn_of_trust(path, position)
        return Known(Mark.at(now.descriptor, position))
    *before, last = known.waiting or (None,)
    if last is None:
        if known.mark is not None and _is(now, path, known.mark.inode, lambda one: _holds(known, one, position)):
            return replace(known, mark=replace(known.mark, inode=now.inode))
    elif _is(now, path, last.inode, last.holds):
        again = last if last.inode == now.inode and last.length == min(now.size, EDGE) else Sighted.of(now.descriptor)
        return replace(known, waiting=(*filter(None, before), again))
    return replace(known, waiting=(*known.waiting, Sighted.of(now.descriptor)))


def _holds(known: Known, descriptor: int, position: int) -> bool:
    return known.mark is not None and known.mark.holds(descriptor, position)


def _is(now: Opened, path: str, inode: int, holds: Callable[[int], bool]) -> bool:
    """Whether the file of that name is the one that is meant, or a copy in its place."""
    if not holds(now.descriptor):
        return False
    found = now.inode == inode or located(path, inode, holds)
    if isinstance(found, bool) or found is None:
        return bool(found)
    try:
        return found.inode == now.inode
    finally:
        found.close()


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
    return Opened(descriptor)


def unreadable(path: str, error: OSError) -> SourceFailed:
    """What an operator is told of a file that cannot be read."""
    return SourceFailed(
        f"File {path} [file] cannot be read: {error.strerror}. Give this user the right to read it, or name another "
        "file; the position stays where it is."
    )


def warn_of_skipped(path: str, before: Opened, after: Opened) -> None:
    """Tells of files that may have had the name between two others while nobody looked."""
    seen = {before.inode, after.inode, *(one.inode for one in after.waiting)}
    since_ns = os.fstat(before.descriptor).st_mtime_ns
    skipped = []
    for one in _files(path):
        found = one.stat()
        if one.name.startswith(os.path.basename(path)) and found.st_ino not in seen and found.st_size:
            skipped += [one.path] if one.path != path and found.st_mtime_ns >= since_ns else []
    if skipped:
        log.warning(
            "file %s was rotated more than once while nothing looked at it: lines of %s may not have been sent. See "
            "whether they are in the topic, else send them by a connector that names that file",
            path,
            ", ".join(sorted(skipped)),
        )


def _marked(path: str, position: int, mark: Mark, waiting: tuple[Sighted, ...]) -> Opened | None:
    found = located(path, mark.inode, lambda descriptor: mark.holds(descriptor, position))
    if found is not None:
        found.position = position if position == found.size else _line_start(found, position)  # read to its end
        found.waiting = waiting
        return found
    following = first(path, waiting)
    if following is None:
        return None
    if following.size == 0:
        following.close()
        return None
    if following.inode == mark.inode:
        log.warning(
            "file %s was truncated or rewritten: it is read from its beginning; what was added to it behind "
            "position %d and not read before is lost",
            path,
            position,
        )
    else:
        log.warning(
            "file %s is another one now, and the one before is not in its folder any more: what was not read of that "
            "is lost, and this one is read from its beginning",
            path,
        )
    return following


def _trusted(path: str, position: int) -> Opened | None:
    now = opened(path)
    if now is None or _is_shorter(now, path, position):
        return now
    _warn_of_trust(path, position)
    now.position = _line_start(now, position)
    return now


def _is_shorter(now: Opened, path: str, position: int) -> bool:
    if now.size >= position:
        return False
    log.warning(
        "file %s is shorter than its stored position %d: it was truncated, or is another one; it is read from its "
        "beginning, and what was not read before is lost",
        path,
        position,
    )
    return True


def _warn_of_trust(path: str, position: int) -> None:
    log.warning(
        "file %s is read from position %d on, and it is unknown whether this is the file that was read up to there: "
        "somebody set the position, Kafka Connect stored it, or the files below connect.ems.tmp.dir were lost. If the "
        "file was rotated or rewritten since, the lines before that position in it, and those that were not read of "
        "the one before, are not sent",
        path,
        position,
    )


def _line_start(file: Opened, position: int) -> int:
    """Where the line begins that a place is in: mostly the place itself, unless somebody else chose it."""
    if position == 0:
        return position
    before, behind = (os.pread(file.descriptor, 1, at) for at in (position - 1, position))
    if before in _ENDS:
        return position + 1 if (before, behind) == (b"\r", b"\n") else position
    while position > 0:
        begin = max(position - _STEP, 0)
        data = os.pread(file.descriptor, position - begin, begin)
        end = max(data.rfind(one) for one in _ENDS)
        if end >= 0:
            return begin + end + 1
        position = begin
    return 0


def _held(found: Opened, holds: Callable[[int], bool]) -> bool:
    """Whether it is the one; else it is closed. Raises OSError."""
    if holds(found.descriptor):
        return True
    found.close()
    return False


def _of_inode(path: str, inode: int) -> Iterator[str]:
    """Names of that inode, `path` first."""
    yield path
    yield from [one.path for one in _files(path) if one.inode() == inode]


def _alike(path: str) -> list[str]:
    """Files of the folder whose names begin as this one does: itself, then from the newest to the oldest."""
    names = [one for one in _files(path) if one.name.startswith(os.path.basename(path)) and one.path != path]
    return [path, *(one.path for one in sorted(names, key=lambda one: one.stat().st_mtime_ns, reverse=True))]


def _files(path: str) -> list["os.DirEntry[str]"]:
    """The files of the folder; none where it cannot be listed."""
    try:
        with os.scandir(os.path.dirname(os.path.abspath(path))) as found:
            return [one for one in found if one.is_file()]
    except OSError:
        return []
