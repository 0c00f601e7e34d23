"""The one place of this package that touches files, the environment and the machine."""

import codecs
import errno
import os
import socket
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from parquet_sink.config.file_syntax import decode, parse_file, with_numbers
from parquet_sink.config.machine import Machine
from parquet_sink.config.properties import RUNNING, Parsed
from parquet_sink.config.report import printable
from parquet_sink.errors import InvalidConfiguration

_LARGEST_BYTES = 1024 * 1024
_MEMORY_DIR = "/dev/shm"


def this_machine() -> Machine:
    """What validation must know of the machine this process runs on."""
    writable = os.path.isdir(_MEMORY_DIR) and os.access(_MEMORY_DIR, os.W_OK | os.X_OK)
    return Machine(
        tmp_dir=tempfile.gettempdir(),
        memory_dir=_MEMORY_DIR if writable else None,
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
    return parse_file(_read_named(path), path)


@dataclass(frozen=True)
class Edit:
    """What a file is to become. Texts are without the mark that UTF-8 may begin with."""

    path: str
    before: str = field(repr=False)
    after: str = field(repr=False)
    data: bytes = field(repr=False)

    def write(self) -> None:
        """Puts the new text in the file's place, whole or not at all. Raises InvalidConfiguration.

        A link stays one; permissions stay. A file that somebody else changed meanwhile is left alone.
        """
        path = os.path.realpath(self.path)
        if _read_named(self.path) != self.data:
            raise _not_written(self.path, "somebody changed it meanwhile; try again")
        mark = codecs.BOM_UTF8 if self.data.startswith(codecs.BOM_UTF8) else b""
        try:
            _replace(path, mark + self.after.encode())
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise _not_written(self.path, f"{reason}; give this user the right to write it and its folder") from None


def edited(path: str, numbers: Mapping[str, int]) -> Edit:
    """A connector file with these values, not written yet. Raises InvalidConfiguration."""
    data = _read_named(path)
    before = decode(data, path)
    return Edit(path, before, with_numbers(before, path, numbers), data)


def _replace(path: str, data: bytes) -> None:
    """Raises OSError; then the file is as it was."""
    about = os.stat(path)
    number, new = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=os.path.dirname(path))
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), stat.S_IMODE(about.st_mode))
            with suppress(PermissionError):
                os.fchown(file.fileno(), about.st_uid, about.st_gid)
            os.fsync(file.fileno())
        os.replace(new, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(new)
        raise


def _not_written(path: str, reason: str) -> InvalidConfiguration:
    return InvalidConfiguration([f"Invalid file [{printable(path)}]. It cannot be written: {reason}. It is as it was."])


def _read_named(path: str) -> bytes:
    """Raises InvalidConfiguration naming the file and the cause."""
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
        data = file.read(_LARGEST_BYTES + 1)
    if len(data) > _LARGEST_BYTES:
        raise OSError(errno.EFBIG, f"it is larger than {_LARGEST_BYTES} bytes")
    return data
