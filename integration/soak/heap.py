"""How much of Java's heap is alive: what is left of it after a full collection."""

import re
import shutil
import subprocess
from typing import Final

PATIENCE_S: Final = 60.0
_TOTAL: Final = re.compile(r"^Total\s+\d+\s+(\d+)\s*$", re.MULTILINE)


def live_bytes(pid: int) -> int | None:
    """Bytes; None without a JDK's `jcmd`, or when Java does not answer. It makes Java collect, for some 0.1 s."""
    jcmd = shutil.which("jcmd")
    if jcmd is None:
        return None
    command = [jcmd, str(pid), "GC.class_histogram"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
    except (subprocess.SubprocessError, OSError):
        return None
    found = _TOTAL.search(told)
    return None if found is None else int(found[1])
