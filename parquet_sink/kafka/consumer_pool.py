"""Consumers that wait for their next range: they fetch nothing for long, and hoard nothing that they say.

Nobody polls a consumer between two ranges, and one that is assigned to something can only be polled for its records.
"""

import logging
import threading
import time
from typing import Final, Protocol, TypeVar

from confluent_kafka import Consumer

IDLE_S: Final = 10.0
"""After which a consumer is taken off its topic-partition; what it fetched ahead is forgotten."""
LOOK_S: Final = 5.0


class Position(Protocol):
    """A consumer, and where it stands; `offset` is -1 when that is not known. `idle_since`: seconds that never jump."""

    consumer: Consumer
    offset: int
    idle_since: float


log = logging.getLogger(__name__)

P = TypeVar("P", bound=Position)
_started = threading.Event()


def look_after(positions: dict[int, P]) -> None:
    """From now on `sweep` is done every few seconds, in a thread that keeps no process alive. Once."""
    if not _started.is_set():
        _started.set()
        threading.Thread(target=_sweeps, args=(positions,), name="idle-consumers", daemon=True).start()


def _sweeps(positions: dict[int, P]) -> None:
    while True:
        time.sleep(LOOK_S)
        try:
            sweep(positions, time.monotonic())
        except Exception:  # who needs the consumer will tell
            log.debug("idle consumers", exc_info=True)


def sweep(positions: dict[int, P], now: float) -> None:
    """Looks after those that wait. Whoever takes one out of `positions` owns it, here as elsewhere."""
    for key in list(positions):
        if (position := positions.pop(key, None)) is None:
            continue
        if now - position.idle_since >= IDLE_S:
            if position.offset >= 0:
                position.consumer.unassign()
                position.offset = -1
            position.consumer.poll(0)
        if positions.setdefault(key, position) is not position:  # another was made meanwhile
            position.consumer.close()
