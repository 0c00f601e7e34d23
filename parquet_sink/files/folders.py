"""Whether a folder for temporary files could be used, without making or writing anything."""

import os
import stat

from parquet_sink.files import naming


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
