"""Memory that a worker process no longer needs goes back to the operating system.

Spark hands a Python worker now this task, now that one, so without it every worker grows to the sum of the largest
reading and the largest writing.
"""

import ctypes
from typing import Final

import pyarrow as pa


def _trim_function() -> "ctypes._NamedFuncPointer | None":
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None  # not glibc


_malloc_trim: Final = _trim_function()


def give_back() -> None:
    """Releases what Arrow's pool and the C library keep for later. Costs some milliseconds: once for each range."""
    pa.default_memory_pool().release_unused()
    if _malloc_trim is not None:
        _malloc_trim(0)
