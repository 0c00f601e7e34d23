"""How many records to try on the fast path, and how many to take exactly where it failed.

A failed try is halved until it is small, then that neighbourhood goes the exact way, and tries grow again. Failed tries
draw on a budget, so a block in which everything fails costs at most about twice the exact path. What was learned about
the pace is kept from block to block.
"""

SMALLEST = 128
"""Below this a failed try is not halved: reading has a fixed cost worth about 50 records on the exact path."""

FEWEST = 64
"""Fewer records than this are not worth a try."""

_LARGEST_WINDOW = 4096
_WHOLE = 2**31
_GROWTH = 4
_BUDGET_PER_RECORD = 3


class Pace:
    """Asked before each step, told after."""

    def __init__(self) -> None:
        self._step = _WHOLE
        self._window = SMALLEST
        self._budget = 0
        self._exact_next = False

    def begin(self, records: int) -> None:
        """A new block."""
        self._budget = _BUDGET_PER_RECORD * records
        self._exact_next = False

    def attempt(self, remaining: int) -> int:
        """How many records to try fast; 0: take `window` records exactly."""
        if self._exact_next or self._budget <= 0 or remaining < FEWEST:
            return 0
        return min(self._step, remaining)

    def window(self, remaining: int) -> int:
        """How many records to take exactly."""
        return min(self._window, remaining)

    def failed(self, tried: int) -> None:
        """The fast path did not cover all that was tried."""
        self._budget -= tried
        self._step = max(tried // 2, SMALLEST)
        self._exact_next = tried <= SMALLEST

    def succeeded(self) -> None:
        """The fast path covered what was tried."""
        self._step = min(self._step * _GROWTH, _WHOLE)
        self._window = SMALLEST

    def took_exactly(self, news: bool) -> None:
        """A window went the exact way; news: the fast path may cover more than before."""
        self._exact_next = False
        self._step = _WHOLE if news else SMALLEST * _GROWTH
        self._window = SMALLEST if news else min(self._window * 2, _LARGEST_WINDOW)
