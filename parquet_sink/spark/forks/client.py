"""Stands where Spark started a Python process: asks the fork server for it, and lives as long as that process does.

Run by path and without site-packages (see the script `python`), so that it costs 20 ms and 5 MB: standard library only.
"""

import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import Final

PYTHON: Final = "PARQUET_SINK_PYTHON"
ADDRESS: Final = "PARQUET_SINK_FORKS"
PATIENCE_S: Final = 6.0
"""For the fork to come; Spark gives a Python process 10 s to connect back."""
GO: Final = b"g"
PORT: Final = "PYTHON_WORKER_FACTORY_PORT"
"""Spark's word for where the process is to connect to; a daemon has none."""
STREAMS: Final = (0, 1, 2)


def main(arguments: Sequence[str]) -> int:
    """The exit status of the forked process; does not return when there is none: becomes Python itself."""
    status = _forked(os.environ.get(ADDRESS, ""), arguments)
    if status is None:
        python = os.environ[PYTHON]
        os.execv(python, [python, *arguments])  # noqa: S606 - by its path, no shell
    return status


def request(arguments: Sequence[str], folder: str) -> bytes:
    """What the server is asked for: the number of arguments, these, the working folder, the environment."""
    environment = (key + b"=" + value for key, value in os.environb.items())
    return b"\0".join([str(len(arguments)).encode(), *map(os.fsencode, arguments), os.fsencode(folder), *environment])


def _forked(address: str, arguments: Sequence[str]) -> int | None:
    """None when no fork came: then none will run."""
    note_port(address)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.settimeout(PATIENCE_S)
        try:
            server.connect(address)
            asked = request(arguments, os.getcwd())
            socket.send_fds(server, [len(asked).to_bytes(4)], STREAMS)
            server.sendall(asked)
            _pass_on(int.from_bytes(exactly(server, 4)))  # before it runs: no SIGTERM finds us without a handler
            server.sendall(GO)
        except (OSError, EOFError):
            return None
        return _status(server)


def ports_folder(address: str) -> str:
    """Has an empty file for each port that a process was told to connect to; the name is the number."""
    return f"{address}-ports"


def note_port(address: str) -> None:
    """Notes it, because Java may leave its socket behind: see `parquet_sink.spark.leftovers`."""
    with suppress(OSError):
        if port := os.environ.get(PORT, ""):
            os.close(os.open(os.path.join(ports_folder(address), port), os.O_CREAT | os.O_WRONLY, 0o600))


def exactly(connection: socket.socket, size: int) -> bytes:
    """So many bytes. Raises OSError, and EOFError when the other side ends before."""
    found = bytearray()
    while len(found) < size:
        part = connection.recv(size - len(found))
        if not part:
            raise EOFError
        found += part
    return bytes(found)


def _pass_on(pid: int) -> None:
    """Java ends a process by SIGTERM; whether the fork listens to it is for the fork to say."""

    def handler(number: int, frame: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)

    signal.signal(signal.SIGTERM, handler)


def _status(server: socket.socket) -> int:
    """Waits for the end of the fork, which holds the other side. 1 when a signal ended it."""
    server.settimeout(None)
    devnull = os.open(os.devnull, os.O_RDWR)
    for stream in STREAMS:  # they are the fork's; whoever reads them is to see that it ended
        os.dup2(devnull, stream)
    try:
        return exactly(server, 1)[0]
    except (OSError, EOFError):
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
