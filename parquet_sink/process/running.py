"""Whether another process holds a lock file, without touching the lock: an attempt at it could turn its owner away."""

import os
from pathlib import Path

LOCKS = Path("/proc/locks")


def is_locked(path: str, locks: Path = LOCKS) -> bool:
    """Whether any process of this machine holds an flock of the file; False where that cannot be known."""
    try:
        inode = os.stat(path).st_ino
        lines = locks.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return False
    held = (line.split() for line in lines if "->" not in line)
    return any(len(one) > 5 and one[1] == "FLOCK" and one[5].rpartition(":")[2] == str(inode) for one in held)
