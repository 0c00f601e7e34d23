"""The one place of this package that touches files, the environment and the machine."""

import errno
import os
import tempfile
from pathlib import Path

from parquet_sink.config.file_syntax import parse_file
from parquet_sink.config.machine import Machine
from parquet_sink.config.properties import Parsed
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
    )


def read_configuration(path: str) -> Parsed:
    """The keys of a connector or worker file. Raises InvalidConfiguration naming the file and the cause."""
    try:
        data = _read(Path(path))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidConfiguration(
            [f"Invalid file [{printable(path)}]. It cannot be read ({reason}); correct the path."]
        ) from None
    return parse_file(data, path)


def _read(path: Path) -> bytes:
    """Raises OSError; also for a file too large to be a configuration."""
    with path.open("rb") as file:
        data = file.read(_LARGEST_BYTES + 1)
    if len(data) > _LARGEST_BYTES:
        raise OSError(errno.EFBIG, f"it is larger than {_LARGEST_BYTES} bytes")
    return data
