"""A cache that forgets what was used longest ago, bounded in number and in weight.

Ours and not cachetools' LRUCache, because that bounds one measure and not two, refuses a value that is heavier than the
cache alone, and does not tell in which order its items were used, which `first` needs.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """At most `max_items`, and with `weigh` at most `max_weight` in all. Not for several threads."""

    def __init__(self, max_items: int, *, weigh: Callable[[V], int] = lambda _: 0, max_weight: int = 0) -> None:
        self._max_items, self._weigh, self._max_weight = max(1, max_items), weigh, max_weight
        self._weight = 0
        self._items: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: K) -> V | None:
        """The item, which counts as used then; None when there is none."""
        if (found := self._items.get(key)) is not None:
            self._items.move_to_end(key)
        return found

    def first(self, fits: Callable[[V], bool]) -> V | None:
        """The item used last of those that fit; it counts as used then."""
        for key, value in reversed(self._items.items()):
            if fits(value):
                self._items.move_to_end(key)
                return value
        return None

    def put(self, key: K, value: V) -> None:
        """The newest item stays, be it too heavy alone."""
        before = self._items.pop(key, None)
        self._weight += self._weigh(value) - (self._weigh(before) if before is not None else 0)
        self._items[key] = value
        while len(self._items) > self._max_items or (self._weight > self._max_weight and len(self._items) > 1):
            self._weight -= self._weigh(self._items.popitem(last=False)[1])
