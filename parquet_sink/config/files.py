"""The one place of this package that touches files, the environment and the machine."""

import errno
import os
import socket
import stat
import tempfile
from pathlib import Path

from parquet_sink.config.file_syntax import parse_file
from parquet_sink.config.machine import Machine
from parquet_sink.config.properties import RUNNING, Parsed
from parquet_sink.config.report import printable
from parquet_sink.errors import InvalidConfiguration

LARGEST_BYTES = 1024 * 1024
"""Of a configuration file."""
_MEMORY_DIR = "/dev/shm"
_MEMORY_FOLDER = "parquet-sink"


def this_machine() -> Machine:
    """What validation must know of the machine this process runs on."""
    writable = os.path.isdir(_MEMORY_DIR) and os.access(_MEMORY_DIR, os.W_OK | os.X_OK)
    return Machine(
        tmp_dir=tempfile.gettempdir(),
        memory_dir=os.path.join(_MEMORY_DIR, _MEMORY_FOLDER) if writable else None,
        working_dir=os.getcwd(),
        is_file=os.path.isfile,
        read_text=lambda path: _read(Path(path)).decode("utf-8-sig"),
        environ=dict(os.environ),
        host_name=socket.gethostname(),
        no_standard_input=_no_standard_input(),
        stdout=f"/proc/{os.getpid()}/fd/1",
    )


def _no_standard_input() -> str:
    """Why nobody could give it anything; empty where somebody could."""
    try:
        found = os.fstat(0)
        if stat.S_ISCHR(found.st_mode) and found.st_rdev == os.stat(os.devnull).st_rdev:
            return f"it is {os.devnull}"
        if os.isatty(0) and os.tcgetpgrp(0) != os.getpgrp():
            return "the program runs in the background of its terminal"
    except OSError:
        return "it is closed"
    return ""


def read_configuration(path: str) -> Parsed:
    """The keys of a connector or worker file. Raises InvalidConfiguration naming the file and the cause.

    A connector that is to be paused or stopped at first needs a worker that can be told to resume it.
    """
    parsed = read_new_connector(path)
    if parsed.initial_state != RUNNING:
        problem = f"Invalid [initial_state]. {parsed.initial_state} is for a worker: give the file to parquet-sink "
        raise InvalidConfiguration([f"{problem}connectors create, or remove it."])
    return parsed


def read_new_connector(path: str) -> Parsed:
    """As `read_configuration`, of a connector whose first state the reader honours."""
    return parse_file(read_named(path), path)


def read_named(path: str) -> bytes:
    """The bytes of a configuration file. Raises InvalidConfiguration naming the file and the cause."""
    try:
        return _read(Path(path))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidConfiguration(
            [f"Invalid file [{printable(path)}]. It cannot be read ({reason}); correct the path."]
        ) from None


def _read(path: Path) -> bytes:
    """Raises OSError; also for a file too large to be a configuration."""
    with path.open("rb") as file:
        data = file.read(LARGEST_BYTES + 1)
    if len(data) > LARGEST_BYTES:
        raise OSError(errno.EFBIG, f"it is larger than {LARGEST_BYTES} bytes")
    return data
