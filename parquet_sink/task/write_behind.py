"""Rows are written behind the records that are decoded, in a thread of its own, where a core is free for it.

Decoding takes the most (of JSON of 150 bytes 0.93 µs of CPU per record, writing 0.20); a row group is written at once,
and decoding need not wait for it. Both let go of Python's lock for most of their time.
"""

import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from parquet_sink.model.records import RecordBatch
from parquet_sink.task.range_attempt import RangeAttempt

WAITING_BYTES: Final = 8 << 20
"""Records whose rows wait at most, unless a single batch is larger: what is decoded while a row group is written."""

Item = RecordBatch | BaseException | None
Waiting = tuple[RangeAttempt, Callable[[], None], int]


class WriteBehind:
    """Decodes records where they are taken, and writes their rows in one thread, in order. Use as a context manager.

    At its end all are written; when the user fails those that wait are dropped. A defect in the thread is raised by
    the next `take`, or at the end; what waits behind it is dropped.
    """

    def __init__(self, most_bytes: int = WAITING_BYTES) -> None:
        self._most_bytes, self._bytes, self._closed = most_bytes, 0, False
        self._waiting: deque[Waiting] = deque()
        self._defect: BaseException | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="write-behind", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._closed = True
            if kind is not None:
                self._waiting.clear()
            self._changed.notify_all()
        self._thread.join()
        if kind is None and self._defect is not None:
            raise self._defect

    def take(self, flush: RangeAttempt, item: Item) -> None:
        """Waits while there is no room; what is larger than all room waits alone."""
        left = flush.staged(item)
        size = item.nbytes if isinstance(item, RecordBatch) else 0
        with self._changed:
            self._changed.wait_for(lambda: self._defect or not self._waiting or self._bytes + size <= self._most_bytes)
            if self._defect is not None:
                raise self._defect
            self._waiting.append((flush, left, size))
            self._bytes += size
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            while (found := self._next()) is not None:
                flush, left, _ = found
                if not flush.ended:
                    left()
        except BaseException as error:  # noqa: BLE001 - raised where the user is
            with self._changed:
                self._defect = error
                self._changed.notify_all()

    def _next(self) -> Waiting | None:
        """None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            if not self._waiting:
                return None
            found = self._waiting.popleft()
            self._bytes -= found[2]
            self._changed.notify_all()
            return found


class TakeInTurn:
    """All of it where records are taken."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *trouble: object) -> None:
        """Nothing is under way."""

    def take(self, flush: RangeAttempt, item: Item) -> None:
        """Likewise."""
        flush.take(item)
