"""Memory that a worker process no longer needs goes back to the operating system.

Spark hands a Python worker now this task, now that one, so without it every worker grows to the sum of the largest
reading and the largest writing.
"""

import ctypes
import gc
import time
from typing import Final

import pyarrow as pa


def _trim_function() -> "ctypes._NamedFuncPointer | None":
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None  # not glibc


_malloc_trim: Final = _trim_function()

_COLLECT_AFTER: Final = (50_000, 20, 20)
"""Of Python's garbage collector. Its own (700, 10, 10) look at tens of thousands of live messages again and again."""


def collect_garbage_rarely() -> None:
    """For a process that handles records by the thousand: 0.006 µs of CPU per record instead of 0.4.

    What is not part of a cycle is freed at once, as always; cycles wait for `give_back`.
    """
    gc.set_threshold(*_COLLECT_AFTER)


BETWEEN_RANGES_S: Final = 2.0
_given_back_at: Final = [0.0]
"""When memory was given back last, in seconds that never jump."""


def give_back_at_times() -> None:
    """The same at the end of a range, where it was not done lately: of many short ranges each would cost 2.5 ms."""
    if time.monotonic() - _given_back_at[0] >= BETWEEN_RANGES_S:
        give_back()


def give_back() -> None:
    """Releases young cycles, and what Arrow's pool and the C library keep for later.

    Costs some milliseconds: once for each task.
    """
    _given_back_at[0] = time.monotonic()
    gc.collect(1)
    pa.default_memory_pool().release_unused()
    if _malloc_trim is not None:
        _malloc_trim(0)
