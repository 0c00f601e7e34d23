"""How many Spark tasks run at once, and how connectors share them."""

from typing import Final

LEAST_SLOTS: Final = 4
"""Spark tasks at once when local: more than cores, because uploads wait on the network, not on a core."""
ATTEMPTS: Final = 4
"""Times a task is tried: `local[N]` alone never retries."""


EXPECTED: Final = 8
"""Connectors for which a worker has slots at least: they come and go, and Spark's slots are fixed at its start."""


def local_master(connectors: int) -> str:
    """A slot for each connector, and as many more as one alone has: none waits for the uploads of another."""
    return f"local[{LEAST_SLOTS + max(connectors - 1, 0)},{ATTEMPTS}]"


def share(slots: int, connectors: int, most: int | None = None) -> int:
    """Of so many slots, those that one connector may take at once: one is left for each of the others.

    most: it may take, however few others there are; None: any number.
    """
    left = max(slots - connectors + 1, 1)
    return left if most is None else min(left, most)


def most_beside_others(connectors: int, cores: int) -> int:
    """Slots that one connector of a worker may take, however few others there are.

    Beside others it is one for each core but one: with more of them a backlog makes others wait for a core. Measured by
    `python -m integration.isolation` on 2 busy cores, the 99th percentile of a trickle's freshness beside a dead
    target, invalid records and a backlog of 5M records, against alone: with 1 slot each 1.1, 1.3 and 1.8 times, with 2
    slots 1.4 and 2.2 times, with 4 slots 2.7 and 3.5 times. The backlog got 57,000 records/s with 1 slot and 51,000
    with 4 (72,000 with 8); with a target that takes 1 s for each file 39,000 with 1, 53,000 with 2, 55,000 with 4.
    """
    return LEAST_SLOTS if connectors <= 1 else min(LEAST_SLOTS, max(cores - 1, 1))
