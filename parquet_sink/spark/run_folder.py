"""The private folder of one run, or PySpark program: for settings, checkpoints, temporary files of Spark and Java.

It is in memory where that lasts: at the end of a user's last session systemd removes what it has in shared memory, but
nothing of system users. A run that is killed at once cannot remove its folder, so the next run on the machine does.
Each holds a lock on its folder, which the operating system releases however the process ends; cleaners of temporary
files respect it.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

MEMORY_FOLDER: Final = Path("/dev/shm")
LAST_SYSTEM_USER: Final = 999
"""Whose shared memory no logout clears (`RemoveIPC` of systemd's logind)."""
PREFIX: Final = "parquet-sink-run-"


class RunFolder:
    """A fresh folder (mode 0700) below `base`, ours by a lock. base: None chooses."""

    def __init__(self, base: Path | None = None) -> None:
        sweep(base)
        self.path, self._lock = _make(base or _base())
        self._below: list[Path] = []

    def remember(self) -> None:
        """What folders there are now is what `repair` creates again."""
        self._below = [path for path in self.path.rglob("*") if path.is_dir()]

    def repair(self) -> None:
        """Creates the folder again when somebody removed it, with the folders below that were remembered, empty.

        Processes that have temporary files there go on with new ones. Raises OSError.
        """
        if self.path.exists():
            return
        self.path.mkdir(mode=0o700)
        lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        _locked(lock)
        os.close(self._lock)
        self._lock = lock
        for folder in self._below:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def remove(self) -> None:
        """With all its content; the lock goes last."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


@contextmanager
def run_folder(base: Path | None = None) -> Iterator[RunFolder]:
    """A run folder that is removed at the end."""
    folder = RunFolder(base)
    try:
        yield folder
    finally:
        folder.remove()


def _base() -> Path:
    lasts = os.getuid() <= LAST_SYSTEM_USER and os.access(MEMORY_FOLDER, os.W_OK)
    return MEMORY_FOLDER if lasts else Path(tempfile.gettempdir())


def _make(base: Path) -> tuple[Path, int]:
    """The folder and the descriptor that holds its lock. A sweep may come between making and locking: then again."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            if _locked(descriptor) and folder.exists():
                return folder, descriptor
            os.close(descriptor)


def sweep(base: Path | None = None) -> None:
    """Removes this user's folders whose process is gone. base: None for every place where there may be some."""
    bases = [base] if base is not None else [MEMORY_FOLDER, Path(tempfile.gettempdir())]
    for left in (left for folder in bases for left in folder.glob(f"{PREFIX}*")):
        try:
            descriptor = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:  # another user's, or removed meanwhile
            continue
        try:
            if os.fstat(descriptor).st_uid == os.getuid() and _locked(descriptor):
                shutil.rmtree(left, ignore_errors=True)
        finally:
            os.close(descriptor)


def _locked(descriptor: int) -> bool:
    """Takes the lock; False when another process has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
