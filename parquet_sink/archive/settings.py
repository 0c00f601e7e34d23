"""What an archive is set up with."""

import posixpath
from dataclasses import dataclass


@dataclass(frozen=True)
class ArchiveSettings:
    """folder: absolute, and there already. connector: whose files are kept, in a folder of its own within.

    required: whether a file's offsets are committed only once it is archived; else it is archived behind that.
    waiting: the local folder in which files wait until then; max_waiting_bytes: the most that may wait there.
    """

    folder: str
    connector: str
    waiting: str
    required: bool = True
    max_waiting_bytes: int = 0

    @property
    def address(self) -> str:
        """Where it is, for people."""
        return f"directory:{self.folder}"


def why_same(archive: str, target: str) -> str | None:
    """Why a folder cannot be the archive of a target that is a folder, too; None when they are apart."""
    if archive == target:
        return f"{archive} is the target's own folder, so nothing would be kept a second time; name another one."
    if posixpath.commonpath([archive, target]) in (archive, target):
        return f"{archive} and the target's folder {target} lie one within the other; name a folder apart from it."
    return None
