"""Starts and ends the fork server, beside the program."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from parquet_sink.process import logs
from parquet_sink.spark.forks.client import ADDRESS, PYTHON, ports_folder

SCRIPT: Final = Path(__file__).resolve().with_name("python")
LONGEST_ADDRESS: Final = 100
"""Bytes of a path that a Unix socket can have, nearly."""
ENVIRONMENT: Final = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""NumPy and Arrow start no threads when they are imported."""
ROOM: Final = 100
"""Blanks at the end of the server's command, which a fork writes its own over."""
END_S: Final = 5.0


class ForkServer:
    """From `start` to `end`; ends by itself when the program does. folder: private, for its socket."""

    def __init__(self, folder: Path) -> None:
        self._address = str(folder / "forks")
        self._ports = Path(ports_folder(self._address))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id while it is to run."""
        return self._process.pid if self._process else None

    def start(self) -> str:
        """Starts it, without waiting; the command that Spark is to take for Python.

        That is Python itself where there can be no server: the script cannot be run, or the folder's path is too long.
        """
        if not os.access(SCRIPT, os.X_OK) or len(os.fsencode(self._address)) > LONGEST_ADDRESS:
            return sys.executable
        self._ports.mkdir(exist_ok=True)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "parquet_sink.spark.forks.server", self._address, " " * ROOM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **ENVIRONMENT},
            start_new_session=True,
        )
        assert self._process.stdout is not None
        logs.relay(self._process.stdout)
        os.environ |= {PYTHON: sys.executable, ADDRESS: self._address}
        return str(SCRIPT)

    def take_ports(self) -> set[int]:
        """Where processes were told to connect to since the last call; none where there is no server."""
        found: set[int] = set()
        with suppress(OSError):
            for entry in list(self._ports.iterdir()):
                entry.unlink()
                found.add(int(entry.name))
        return found

    def end(self) -> None:
        """Closes its input, upon which it ends."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
