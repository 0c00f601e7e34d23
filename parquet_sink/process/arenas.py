"""Few arenas: glibc gives threads memory from up to eight for each core, and each keeps the most that it ever needed.

A query that is started again needs some threads for a moment (Kafka clients, its start), each time other ones. What
they free stays in their arenas, which nobody else takes from, until all of them have grown.
"""

import ctypes
import os
from typing import Final

MOST: Final = 2
"""As Spark's processes have it (`spark.session`): a program that waits needs no more."""
_M_ARENA_MAX: Final = -8


def bound() -> None:
    """For this process, before it has threads. Nothing happens without glibc, or where the operator set a bound."""
    if "MALLOC_ARENA_MAX" in os.environ or "glibc.malloc.arena_max" in os.environ.get("GLIBC_TUNABLES", ""):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return  # another C library
    mallopt(_M_ARENA_MAX, MOST)
