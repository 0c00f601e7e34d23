"""Why a streaming query ended, in words.

What a process of Spark's raises comes to the program as text within layers of other text: the query's description, the
Java exception, and at the bottom a Python traceback. Only the bottom says what happened.
"""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final

from parquet_sink.errors import Defect, MachineBusy, SinkError, StorageFailed, failure_named
from parquet_sink.model.receipts import Failure

LONGEST: Final = 600
"""Characters of a foreign error that an operator sees; all of it goes to the log at DEBUG."""

_TRACEBACK: Final = "Traceback (most recent call last):\n"
_OURS: Final = re.compile(r"parquet_sink\.errors\.(\w+): (.*)", re.DOTALL)
_DISK: Final = re.compile(r"sqlite3\.\w+: (.*)", re.DOTALL)
_CALLING: Final = re.compile(r"^An error occurred while calling \S+ ?: ")
_CLASS: Final = re.compile(r"^(?:Caused by: |: )?(?:[a-z][\w$]*\.)+[\w$]+: ")
_TELLING: Final = re.compile(r"\bError\b|Exception|Invalid|Unrecognized|insufficient", re.IGNORECASE)
_GOES_ON: Final = "initialization of VM"
"""The next line says why."""
_LATE: Final = "Timed out while waiting for the Python worker to connect back"
_GIVEN_UP: Final = "Cannot call methods on a stopped SparkContext"
_NO_MASTER: Final = (
    "no master answered there for a minute, or it turned the program away; it must run, with the same version of "
    "Spark, and be asked by the address that its own log gives"
)
_ENDS: Final = ("=== Streaming Query ===", "Driver stacktrace:", " SQLSTATE: ")


def failure_of(error: BaseException, tmp_dir: str) -> Failure:
    """The failure at the bottom of what Spark says. tmp_dir: the folder that holds the connector's state."""
    if isinstance(error, SinkError):
        return error.failure()
    text = _own_words(error) or _words(list(_layers(error)))
    if ours := _OURS.match(text):
        return failure_named(ours[1], ours[2])
    if disk := _DISK.match(text):
        return StorageFailed(
            f"Could not use the connector's state file in folder {tmp_dir} (connect.ems.tmp.dir): {disk[1]}. Check the "
            f"disk it is on, or set connect.ems.tmp.dir to another folder. Nothing is lost: what was not committed is "
            f"sent again at the next start."
        ).failure()
    if _LATE in text:
        busy = "This machine is too busy: a Python process of Spark's did not start within 10 s."
        return MachineBusy(busy).failure()
    return Defect(text[:LONGEST]).failure()


def _own_words(error: BaseException) -> str:
    """What went wrong in the program itself with a file, in the form in which a Python traceback ends."""
    if isinstance(error, OSError | sqlite3.Error):
        return f"{type(error).__module__}.{type(error).__qualname__}: {error}".removeprefix("builtins.")
    return ""


def message_of(error: BaseException) -> str:
    """What an error of Spark's or Java's says, in one line without traces and names of classes."""
    words = " ".join(_words(list(_layers(error))).split())
    if _GIVEN_UP in words:  # while it starts: the reason went to Java's log alone
        return _NO_MASTER
    return _CLASS.sub("", _CALLING.sub("", words))[:LONGEST].strip()


def java_message(lines: Sequence[str]) -> str:
    """The line that says most of what Java wrote before it gave up; empty when it wrote nothing."""
    kept = [line for line in lines if not line.lstrip().startswith("at ")]
    first = next((index for index, line in enumerate(kept) if _TELLING.search(line)), len(kept) - 1)
    parts = kept[first : first + 1 + (first >= 0 and kept[first].endswith(_GOES_ON))]
    return " ".join(": ".join(parts).split())[:LONGEST]


def _layers(error: BaseException) -> Iterator[str]:
    """The texts, outermost first. PySpark keeps the cause of a Java exception in an attribute of its own."""
    cause: object = error
    while isinstance(cause, BaseException):
        yield str(cause)
        cause = getattr(cause, "_cause", None) or cause.__cause__


def _words(layers: list[str]) -> str:
    """The innermost Python error if there is one, else the innermost text, without its trace."""
    with_python = [text for text in layers if _TRACEBACK in text]
    if with_python:
        return _raised(with_python[-1].rpartition(_TRACEBACK)[2])
    lines = [line.strip() for line in _cut(layers[-1]).splitlines()]
    return " ".join(line for line in lines if line and not line.startswith("at "))


def _raised(trace: str) -> str:
    """What a Python traceback ends with: the class and its words, which may have several lines."""
    lines = _cut(trace).splitlines()
    first = next((index for index, line in enumerate(lines) if line and not line[0].isspace()), 0)
    return "\n".join(line for line in lines[first:] if not line.lstrip().startswith("at ")).strip()


def _cut(text: str) -> str:
    for end in _ENDS:
        text = text.partition(end)[0]
    return text
