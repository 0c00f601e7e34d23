"""What signals ask of the program: to stop in order, and when asked again, to end at once.

`timeout` and others signal the program and right after it its process group, so signals that come together are one
stop_request. Standard error may be gone or full when a signal comes: a wish counts also when nobody can be told.
"""

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

SAME_REQUEST_S: Final = 1.0
"""Signals within so many seconds of the first one are the same stop_request."""
_STOPS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_AT_ONCE: Final = "ending at once; unfinished files are sent again at the next start"


class StopRequest:
    """Whether the program was asked to stop. `notice`: written to standard error when it was, after "stopping".

    line_of: makes a line of what is told.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, end_at_once: Callable[[int], object] = os._exit
    ) -> None:
        self._clock, self._end_at_once = clock, end_at_once
        self.requested_at_s: float | None = None
        self.notice = ""
        self.line_of: Callable[[str], str] = lambda words: f"parquet-sink: {words}"

    def __bool__(self) -> bool:
        return self.requested_at_s is not None

    @contextmanager
    def handling(self) -> Iterator[None]:
        """SIGTERM, SIGINT and SIGHUP are requests within; not those that whoever started us had us ignore (`nohup`)."""
        handled = [number for number in _STOPS if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, self.on_signal) for number in handled}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """The handler: notes the first request, ends the process on a later one."""
        now = self._clock()
        if self.requested_at_s is None:
            self.requested_at_s = now
            _write(self.line_of(f"stopping{self.notice}"))
        elif now - self.requested_at_s >= SAME_REQUEST_S:
            _write(self.line_of(f"second signal, {_AT_ONCE}"))
            self._end_at_once(128 + number)


def _write(line: str) -> None:
    """On standard error, if it takes them: a pipe that nobody reads would hold the handler for ever."""
    with suppress(OSError, ValueError):
        if select.select([], [2], [], 0)[1]:
            os.write(2, f"{line}\n".encode())


def ignore_stops() -> None:
    """In a process whose end is the end of its input: signals that are meant for the program end nothing here."""
    for number in _STOPS:
        signal.signal(number, signal.SIG_IGN)


def restore_sigterm() -> None:
    """In a process that Spark's Java started by itself, and ends by SIGTERM: Java's deafness is not for it.

    Workers below our daemon stay deaf: it ends them otherwise.
    """
    if signal.getsignal(signal.SIGTERM) is signal.SIG_IGN and DEAF not in os.environ:
        with suppress(ValueError):  # not the main thread
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


DEAF: Final = "PARQUET_SINK_DEAF"
"""Set in the environment of processes that stay deaf to SIGTERM."""
