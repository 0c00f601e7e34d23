"""A job of a worker (`worker.jobs`), in a process of its own: a command with settings that come over a pipe.

Standard input: one line of JSON with the command's words and the settings; then `stop`, or its end, stops the command
as Ctrl-C does. Standard output: one JSON object a line, what the command writes and how far it is.
"""

import io
import json
import os
import signal
import sys
import threading
from argparse import Namespace
from collections.abc import Callable
from typing import Any, BinaryIO

from parquet_sink.cli import progress
from parquet_sink.cli.main import parser_for, run_parsed
from parquet_sink.config.secret import load_with_secrets
from parquet_sink.process.program import forbid_core_dumps

Say = Callable[[dict[str, Any]], None]


class Lines(io.TextIOBase):
    """A text stream that hands on whole lines."""

    def __init__(self, take: Callable[[str], None]) -> None:
        super().__init__()
        self._take, self._begun = take, ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._take(line)
        return len(text)

    def close(self) -> None:
        """With what has no end of line."""
        if self._begun:
            self._take(self._begun)
            self._begun = ""
        super().close()


def main() -> int:
    """The command's exit status."""
    forbid_core_dumps()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have let the worker ignore it
    say = _sayer(os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)  # what a library writes there is none of ours
    try:
        order = json.loads(io.FileIO(0, closefd=False).readline())
        given = Namespace(given=(load_with_secrets(order["settings"]),), others=order["others"])
        return _run(order["words"], given, say)
    except KeyboardInterrupt:
        return 130


def _run(words: list[str], given: Namespace, say: Say) -> int:
    threading.Thread(target=_stop_when_told, daemon=True).start()
    sys.stdout = out = Lines(lambda line: say({"line": line, "error": False}))
    sys.stderr = err = Lines(lambda line: say({"line": line, "error": True}))
    progress.listener = lambda done, total, told: say({"progress": [done, total, told]})
    try:
        return run_parsed(parser_for(words).parse_args(words, given))
    finally:
        out.close()
        err.close()


def _sayer(stream: BinaryIO) -> Say:
    lock = threading.Lock()

    def say(what: dict[str, Any]) -> None:
        with lock:
            stream.write(json.dumps(what).encode() + b"\n")
            stream.flush()

    return say


def _stop_when_told() -> None:
    """At whatever comes, and at the end: who asks twice means at once. By no stream, whose lock would outlive us."""
    while os.read(0, 1024):
        os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main())
