"""What the program sets up for its own process: standard streams, no core dumps, few arenas, the plug-in path.

Standard streams may be closed, full, gone, or without our characters.
"""

import ctypes
import io
import os
import resource
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, TextIO, cast

MOST_ARENAS: Final = 2
"""As Spark's processes have it (`spark.session`): a program that waits needs no more."""
_M_ARENA_MAX: Final = -8


def bound_arenas() -> None:
    """For this process, before it has threads. Nothing happens without glibc, or where the operator set a bound.

    glibc gives threads memory from up to eight arenas for each core, and each keeps the most that it ever needed. A
    query that is started again needs some threads for a moment (Kafka clients, its start), each time other ones; what
    they free stays in their arenas, which nobody else takes from, until all of them have grown.
    """
    if "MALLOC_ARENA_MAX" in os.environ or "glibc.malloc.arena_max" in os.environ.get("GLIBC_TUNABLES", ""):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return  # another C library
    mallopt(_M_ARENA_MAX, MOST_ARENAS)


def add_plugin_path(folders: Sequence[str]) -> list[str]:
    """Adds folders with a user's own packages behind what is installed, for this process and all that it starts.

    Returns those that are no folders, which are left out.
    """
    missing = [folder for folder in folders if not os.path.isdir(folder)]
    found = [os.path.abspath(folder) for folder in folders if folder not in missing]
    sys.path += [folder for folder in found if folder not in sys.path]
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if found:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, dict.fromkeys([*before, *found])))
    return missing


def forbid_core_dumps() -> None:
    """No core dumps of this process and those that it starts from now on, because memory holds secrets and records.

    An operator can raise the limit again (`prlimit`); systemd-coredump and the kernel's own files respect it. Where it
    cannot be set nothing happens.
    """
    with suppress(OSError, ValueError):
        _, most = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, most))


class LenientStream:
    """A text stream that loses what it cannot write: `2> /dev/full`, `| head`, a terminal that was closed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


@contextmanager
def lenient_streams() -> Iterator[None]:
    """Standard output and error lose what they cannot write, also at the end of the process.

    A character that a terminal's encoding has not (LC_ALL=C) is written as an escape.
    """
    open_closed_streams()
    before = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = (stream and cast(TextIO, LenientStream(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in filter(None, before):
            _flush(stream)


def open_closed_streams() -> None:
    """A process without a standard stream would write its words into the next file that it opens."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest that is free


def _flush(stream: TextIO) -> None:
    """What is left is written or thrown away: Python would try once more, and end with a status of its own."""
    try:
        stream.flush()
    except OSError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
