"""Stands where Spark started a Python process: asks the fork server for it, and lives as long as that process does.

Run by path and without site-packages (see the script `python`), so that it costs 20 ms: standard library only. Once
there is a fork it becomes a shell, which takes less memory than Python for as long as the fork lives.
"""

import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

PYTHON: Final = "PARQUET_SINK_PYTHON"
ADDRESS: Final = "PARQUET_SINK_FORKS"
PATIENCE_S: Final = 6.0
"""For the fork to come; Spark gives a Python process 10 s to connect back."""
GO: Final = b"g"
STAND_IN: Final = f"""trap 'kill -TERM "$1"; interrupted=1' TERM
printf {GO.decode()} >&0
until read -r status; do
  [ "$interrupted" ] || exit 1
  interrupted=
done
exit "$status"
"""
"""Arguments: the process id of the fork, then what it runs, for `ps`. Standard input: the connection to the fork.

Java ends a process by SIGTERM; whether the fork listens to it is for the fork to say. So the fork is told to go once
SIGTERM is listened to. It tells its exit status in a line; a signal that ended it is status 1. A read that SIGTERM
interrupted is begun again."""
PORT: Final = "PYTHON_WORKER_FACTORY_PORT"
"""Spark's word for where the process is to connect to; a daemon has none."""
STREAMS: Final = (0, 1, 2)


def main(arguments: Sequence[str]) -> None:
    """Does not return: becomes the stand-in of a fork, or Python itself when none came."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    pid = _forked(server, os.environ.get(ADDRESS, ""), arguments)
    if pid is None:
        server.close()
        python = os.environ[PYTHON]
        os.execv(python, [python, *arguments])  # noqa: S606 - by its path, no shell
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a shell cannot listen to what is ignored when it begins
    server.setblocking(True)
    devnull = os.open(os.devnull, os.O_RDWR)
    for stream, ours in zip(STREAMS, (server.fileno(), devnull, devnull), strict=True):
        os.dup2(ours, stream)  # they are the fork's; whoever reads them is to see that it ended
    os.execv("/bin/sh", ["sh", "-c", STAND_IN, __file__, str(pid), *arguments])  # noqa: S606 - a script of ours


def request(arguments: Sequence[str], folder: str) -> bytes:
    """What the server is asked for: the number of arguments, these, the working folder, the environment."""
    environment = (key + b"=" + value for key, value in os.environb.items())
    return b"\0".join([str(len(arguments)).encode(), *map(os.fsencode, arguments), os.fsencode(folder), *environment])


def _forked(server: socket.socket, address: str, arguments: Sequence[str]) -> int | None:
    """The process id of the fork, which waits to be told to go; None when no fork came: then none will run."""
    note_port(address)
    server.settimeout(PATIENCE_S)
    try:
        server.connect(address)
        asked = request(arguments, os.getcwd())
        socket.send_fds(server, [len(asked).to_bytes(4)], STREAMS)
        server.sendall(asked)
        return int.from_bytes(exactly(server, 4))
    except (OSError, EOFError):
        return None


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


if __name__ == "__main__":
    main(sys.argv[1:])
