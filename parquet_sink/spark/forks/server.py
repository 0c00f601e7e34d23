"""The fork server: imports what Spark's Python processes need, then forks one for each that Spark would start.

It has one thread when it forks, and no clients, files or connections of its own: libraries that start threads when they
are imported are told not to (`host.ENVIRONMENT`), and if one does all the same, the server ends, and Spark starts its
processes as ever. It runs nothing itself, and ends with the program, at the end of its input.
"""

import gc
import os
import runpy
import select
import signal
import socket
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

from parquet_sink.process.signals import ignore_stops
from parquet_sink.spark.forks.client import GO, STREAMS, exactly

MODULES: Final = (
    "pyspark.worker",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark.sql.worker.python_streaming_sink_runner",
    "parquet_sink.spark.daemon",
    "parquet_sink.spark.source",
    "parquet_sink.spark.sink",
    "parquet_sink.planner.planner",
    "parquet_sink.task.task",
    "parquet_sink.spark.early_events",
    "parquet_sink.convert.decoders",
    "parquet_sink.targets.push.target",
    "numpy.ma",  # Arrow loads it when it sees the first NumPy array
)
"""What Spark runs, and what of ours these run: in a fork they are there already."""
MOST_BYTES: Final = 4 << 20
WAIT_S: Final = 5.0


@dataclass(frozen=True)
class Asked:
    """What a client asks for: the arguments of Python, the working folder, the environment."""

    arguments: tuple[str, ...]
    folder: str
    environment: dict[bytes, bytes]

    @classmethod
    def parse(cls, text: bytes) -> "Asked":
        """Of `client.request`. Raises ValueError."""
        count, *parts = text.split(b"\0")
        arguments, (folder, *variables) = parts[: int(count)], parts[int(count) :]
        pairs = (variable.partition(b"=") for variable in variables)
        return cls(tuple(map(os.fsdecode, arguments)), os.fsdecode(folder), {key: value for key, _, value in pairs})


def main(address: str) -> None:
    """Serves until the end of standard input; in a fork, runs what was asked for, and ends with it."""
    ignore_stops()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forks are nobody's to wait for: the client hears of their end
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(address)
        listener.listen(1024)  # who asks while we import waits
        for module in MODULES:
            import_module(module)
        if threads() != 1:
            sys.exit(f"the fork server has {threads()} threads after its imports, and must have one")
        gc.collect()
        gc.freeze()  # a collection in a fork leaves shared pages alone
        found = serve(listener)
    if found is not None:
        _run(*found)


def threads() -> int:
    """Threads of this process, those of libraries included."""
    return len(os.listdir("/proc/self/task"))


def serve(listener: socket.socket) -> tuple[Asked, socket.socket] | None:
    """Forks for each client. In a fork, what it is to run and its client; None in the server, at its end."""
    while True:
        ready, _, _ = select.select([0, listener.fileno()], [], [])
        if 0 in ready and not os.read(0, 1):
            return None
        if listener.fileno() in ready:
            connection, _ = listener.accept()
            if (asked := _forked(connection)) is not None:
                return asked, connection
            connection.close()


def _forked(connection: socket.socket) -> Asked | None:
    """In the fork what it is to run; None in the server. A client that gets no fork helps itself."""
    try:
        asked, streams = _read(connection)
    except (OSError, ValueError, EOFError):
        return None
    try:
        if os.fork() == 0:
            _take_over(asked, streams)
            return asked
    except OSError:  # no process can be had, or no memory
        pass
    for stream in streams:
        os.close(stream)
    return None


def _read(connection: socket.socket) -> tuple[Asked, Sequence[int]]:
    """The request, and the three streams of the client. Raises OSError, ValueError, EOFError."""
    connection.settimeout(WAIT_S)
    head, streams, _, _ = socket.recv_fds(connection, 4, len(STREAMS))
    try:
        return _request(connection, head, streams), streams
    except BaseException:
        for stream in streams:
            os.close(stream)
        raise


def _request(connection: socket.socket, head: bytes, streams: Sequence[int]) -> Asked:
    size = int.from_bytes(head)
    if len(head) != 4 or len(streams) != len(STREAMS) or size > MOST_BYTES:
        raise ValueError("no request of ours")
    return Asked.parse(exactly(connection, size))


def _take_over(asked: Asked, streams: Sequence[int]) -> None:
    """Makes this fork what the client is: streams, folder, environment, where modules are looked for."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environb.clear()
    os.environb.update(asked.environment)
    with suppress(OSError):  # it was removed; the client's Python would not mind either
        os.chdir(asked.folder)
    roots = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [root for root in roots if root and root not in sys.path]
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _run(asked: Asked, connection: socket.socket) -> None:
    """Runs the module that was asked for once the client says so: one that gave up runs it by itself."""
    connection.settimeout(WAIT_S)
    try:
        connection.sendall(os.getpid().to_bytes(4))
        if connection.recv(1) != GO:
            return
    except OSError:
        return
    os.register_at_fork(after_in_child=connection.close)
    dash_m, module, *arguments = asked.arguments
    assert dash_m == "-m"
    sys.argv = [module, *arguments]
    _show([sys.executable, *asked.arguments])
    status = 1
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*found in sys.modules", RuntimeWarning)
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        raise
    finally:
        with suppress(OSError):
            connection.sendall(b"%d\n" % (status & 0xFF))


def _show(command: Sequence[str]) -> None:
    """Makes `ps` show this command: a fork has that of the server, in memory that has `host.ROOM` bytes to spare."""
    with suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = int(fields[45]), int(fields[46])
        words = "\0".join(command).encode()[: end - start - 1]
        with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
            memory.seek(start)
            memory.write(words.ljust(end - start, b"\0"))


if __name__ == "__main__":
    main(sys.argv[1])
