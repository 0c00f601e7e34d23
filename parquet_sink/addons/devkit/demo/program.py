"""A command of this program, run to its end as a user runs it; it never outlives the demo."""

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from parquet_sink.errors import DemoFailed
from parquet_sink.process.signals import ParentDeathGuard

LIMIT_S: Final = 600.0
_STOP_S: Final = 10.0
_LAST_CHARACTERS: Final = 4_000


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it printed."""

    status: int
    lines: tuple[str, ...]
    words: str


def command_line(words: Sequence[str]) -> str:
    """What a user would type."""
    return shlex.join(("parquet-sink", *words))


def run_to_end(words: Sequence[str], tmp: Path) -> Ended:
    """Run `parquet-sink WORDS`, its temporary files in `tmp`. Raises DemoFailed when it takes too long."""
    process = subprocess.Popen(
        [sys.executable, "-m", "parquet_sink", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp)},
        start_new_session=True,  # Ctrl-C is for the demo to handle, in order
    )
    guard = ParentDeathGuard(process.pid)
    try:
        printed, told = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        raise DemoFailed(f"{command_line(words)}: it did not end within {LIMIT_S:.0f} s.") from None
    finally:
        _end(process)
        guard.release()
    return Ended(process.returncode, tuple(printed.splitlines()), told[-_LAST_CHARACTERS:])


def _end(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.communicate(timeout=_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
