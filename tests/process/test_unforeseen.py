"""Where log lines are JSON, so is what Python itself would write to standard error."""

import json
import subprocess
import sys

PROGRAM = """
import threading, warnings
from parquet_sink.process import logs

class Torn:
    def __del__(self):
        raise ValueError("torn")

logs.configure_program("json")
warnings.warn("old", DeprecationWarning, stacklevel=1)
thread = threading.Thread(target=lambda: 1 / 0, name="worker 1")
thread.start()
thread.join()
Torn()
raise RuntimeError("two\\nlines")
"""


def test_what_nobody_foresaw_is_a_line() -> None:
    """A warning of a library, a thread's end, an error in a destructor, the program's end: an object each."""
    words = [sys.executable, "-W", "default", "-c", PROGRAM]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    warned, thread, torn, end = map(json.loads, done.stderr.splitlines())
    assert done.returncode == 1
    assert (warned["level"], "DeprecationWarning: old" in warned["message"]) == ("WARNING", True)
    assert thread["message"] == "the thread worker 1 ended: ZeroDivisionError: division by zero"
    assert torn["message"] == "an error was ignored: ValueError: torn"
    assert end["message"] == "the program ends: RuntimeError: two\nlines"
    assert {one["level"] for one in (thread, torn, end)} == {"ERROR"}
    assert [one["trace"].splitlines()[-1] for one in (thread, torn)] == [
        "ZeroDivisionError: division by zero",
        "ValueError: torn",
    ]
