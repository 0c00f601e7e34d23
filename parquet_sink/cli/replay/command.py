"""`parquet-sink replay`: what a connector delivered is sent again, or elsewhere, and compared with its first time."""

import argparse
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from parquet_sink.cli.replay.options import add_arguments, selection_of

__all__ = ["add_arguments", "run"]


def run(args: argparse.Namespace) -> int:
    """0 when everything chosen was sent, 1 when something was not, 130 when it was stopped. Raises SinkError."""
    selection = selection_of(args)
    from parquet_sink.cli.replay import flow  # after the options were found right

    with _interruptible():
        if args.dry_run:
            return flow.dry_run(args, selection)
        return flow.resume(args) if args.resume else flow.begin(args, selection)


@contextmanager
def _interruptible() -> Iterator[None]:
    """The first SIGINT, SIGTERM or SIGHUP ends the replay after the files on their way; a second one at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked: list[int] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        if asked:
            os._exit(128 + number)
        asked.append(number)
        os.write(2, b"parquet-sink: stopping after the files on their way; once more ends at once\n")
        raise KeyboardInterrupt

    numbers = [one for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) != signal.SIG_IGN]
    before = {number: signal.signal(number, on_signal) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
