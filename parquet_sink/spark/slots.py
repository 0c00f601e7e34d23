"""How many Spark tasks run at once, and how connectors share them."""

from typing import Final

LEAST_SLOTS: Final = 4
"""Spark tasks at once when local: more than cores, because uploads wait on the network, not on a core."""
ATTEMPTS: Final = 4
"""Times a task is tried: `local[N]` alone never retries."""


def local_master(connectors: int) -> str:
    """A slot for each connector, and as many more as one alone has: none waits for the uploads of another."""
    return f"local[{LEAST_SLOTS + max(connectors - 1, 0)},{ATTEMPTS}]"


def share(slots: int, connectors: int) -> int:
    """Of so many slots, those that one connector may take at once: one is left for each of the others."""
    return max(slots - connectors + 1, 1)
