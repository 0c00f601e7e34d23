"""The private folder of one run, for checkpoints, state and Spark's own files: in memory where there is such a place.

A run that is killed cannot remove its folder, and memory is dear: the next run on the machine does. Each holds a lock
on its folder, which the operating system releases however the process ends.
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
PREFIX: Final = "parquet-sink-run-"


@contextmanager
def scratch_folder(base: Path | None = None) -> Iterator[Path]:
    """A fresh folder (mode 0700) below `base`, removed at the end. base: None chooses."""
    base = base or _base()
    sweep(base)
    folder, lock = _make(base)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _base() -> Path:
    return MEMORY_FOLDER if os.access(MEMORY_FOLDER, os.W_OK) else Path(tempfile.gettempdir())


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
    """Removes this user's folders whose process is gone."""
    for left in (base or _base()).glob(f"{PREFIX}*"):
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
