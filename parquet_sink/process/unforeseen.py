"""What nobody foresaw, as log lines: exceptions that end a thread or the program, and warnings of libraries.

Python writes these to standard error itself, on several lines each, which a collector of JSON lines cannot read.
"""

import logging
import sys
import threading
from types import TracebackType

log = logging.getLogger(__name__)


def to_the_log() -> None:
    """From now on, in this process."""
    logging.captureWarnings(True)
    sys.excepthook = _ended
    sys.unraisablehook = _ignored
    threading.excepthook = _thread_ended


def _ended(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    log.error("the program ends: %s: %s", kind.__name__, error, exc_info=(kind, error, trace))


def _ignored(found: "sys.UnraisableHookArgs") -> None:
    log.error("an error was ignored: %s: %s", found.exc_type.__name__, found.exc_value, exc_info=found.exc_value)


def _thread_ended(found: threading.ExceptHookArgs) -> None:
    if not issubclass(found.exc_type, SystemExit):
        name = found.thread.name if found.thread is not None else "?"
        words = "the thread %s ended: %s: %s"
        log.error(words, name, found.exc_type.__name__, found.exc_value, exc_info=found.exc_value)
