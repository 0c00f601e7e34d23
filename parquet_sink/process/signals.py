"""Signals that end the program in order, or at once; and the guard that ends children when it dies.

`timeout` and others signal the program and right after it its process group, so signals that come together are one
stop_request. Standard error may be gone or full when a signal comes: a wish counts also when nobody can be told.
"""

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final

# Waits for a line. At the end of its input, which is the end of the process that holds the other side of the pipe, it
# ends the child, and removes the folder that nobody else can remove any more. A service manager may signal it as well.
_SCRIPT: Final = (
    'trap "" HUP INT TERM; '
    'read -r line || { kill -KILL "$1" 2> /dev/null; [ -z "$2" ] || { sleep 1; rm -rf -- "$2"; }; }'
)
SAME_REQUEST_S: Final = 1.0
"""Signals within so many seconds of the first one are the same stop_request."""
_STOPS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_AT_ONCE: Final = "ending at once; unfinished files are sent again at the next start"
DEAF: Final = "PARQUET_SINK_DEAF"
"""Set in the environment of processes that stay deaf to SIGTERM."""


class ParentDeathGuard:
    """A small shell that kills process `pid`, then removes `folder`, should this process end without `release`."""

    def __init__(self, pid: int, folder: Path | None = None) -> None:
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT, "sh", str(pid), str(folder or "")],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def release(self) -> None:
        """The child has ended and was reaped: in this order its process id cannot be another's."""
        if self._process.returncode is None:
            self._process.communicate(b"\n")


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

    def request(self) -> None:
        """As a first signal asks for it. May be called from any thread."""
        if self.requested_at_s is None:
            self.requested_at_s = self._clock()

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
