"""What validation must know of the machine, handed in as values and functions so that it stays pure.

`config.files.this_machine()` makes the real one; the default knows nothing, as a test wants it.
"""

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from parquet_sink.config.provider import Provider


def _no_file(path: str) -> bool:
    return False


def _no_text(path: str) -> str:
    raise FileNotFoundError(2, "No such file or directory", path)


@dataclass(frozen=True)
class Machine:
    """Folders, files and environment of the process that runs the connectors.

    memory_dir: the folder for files in memory, which need not exist; None where no memory-backed folder is writable.
    read_text: the file's text as UTF-8, raises OSError or UnicodeDecodeError. environ is kept out of the repr: it
    holds secrets. providers: config providers by name, where the worker file names none; None: Kafka's own three.
    stdout: a path by which other processes of this machine reach its standard output. no_standard_input: why standard
    input cannot be read; empty when it can.
    """

    tmp_dir: str = "/tmp"
    memory_dir: str | None = None
    working_dir: str = "/"
    is_file: Callable[[str], bool] = field(default=_no_file, repr=False)
    read_text: Callable[[str], str] = field(default=_no_text, repr=False)
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    providers: Mapping[str, Provider] | None = field(default=None, repr=False)
    host_name: str = "localhost"
    no_standard_input: str = ""
    stdout: str = "/dev/stdout"

    def absolute(self, path: str) -> str:
        """A path as this process takes it."""
        return posixpath.normpath(posixpath.join(self.working_dir, path))
