"""What a process makes once for each of its settings, and keeps from micro-batch to micro-batch."""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

MOST_KEPT: Final = 16

K = TypeVar("K")
V = TypeVar("V")


class PerProcess(Generic[K, V]):
    """Makes a value where there is none for a key, and forgets what was used longest ago; threads may share it.

    make: may raise; then nothing is kept. A forked process makes values of its own, because connections must not be
    shared with it, and a lock that was held while forking is never released. What is forgotten is not closed: another
    thread may be using it.
    """

    def __init__(self, make: Callable[[K], V], most: int = MOST_KEPT) -> None:
        self._make, self._most = make, most
        self._kept: OrderedDict[tuple[int, K], V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V:
        """The value of a key, which counts as used then. Raises what `make` raises."""
        at = (os.getpid(), key)
        with self._lock:
            if at not in self._kept:
                self._kept[at] = self._make(key)
                if len(self._kept) > self._most:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(at)
            return self._kept[at]
