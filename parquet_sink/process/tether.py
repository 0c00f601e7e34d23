"""Children that never outlive this process, however it ends."""

import subprocess
from pathlib import Path
from typing import Final

# Waits for a line. At the end of its input, which is the end of the process that holds the other side of the pipe, it
# ends the child, and removes the folder that nobody else can remove any more. A service manager may signal it as well.
_SCRIPT: Final = (
    'trap "" HUP INT TERM; '
    'read -r line || { kill -KILL "$1" 2> /dev/null; [ -z "$2" ] || { sleep 1; rm -rf -- "$2"; }; }'
)


class Tether:
    """A small shell that kills process `pid`, then removes `folder`, should this process end without `release`."""

    def __init__(self, pid: int, folder: Path | None = None) -> None:
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT, "sh", str(pid), str(folder or "")],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def release(self) -> None:
        """The child has ended and was reaped: in this order its process id cannot be another's."""
        if self._process.returncode is None:
            self._process.communicate(b"\n")
