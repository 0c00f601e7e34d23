"""Logging of every process: lines as text or JSON, uncaught errors and warnings included; what is quiet.

Spark's JVM and Python's worker processes write to their standard error, which is a pipe to the program. Lines that our
code logs in a worker carry their level, logger and connector behind a mark, so that the program can log them as its
own. What else comes, errors and traces of Spark and of Python, is for DEBUG: what it means is told by us, in words.
"""

import json
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType
from typing import IO, Any, Final

from parquet_sink.errors import InvalidConfiguration
from parquet_sink.process.signals import restore_sigterm

log = logging.getLogger(__name__)

TEXT: Final = "text"
JSON: Final = "json"
FORMATS: Final = (TEXT, JSON)
_BEGINS: Final = "connector %s"
"""How messages of our own begin that are about a connector; its name is their first argument."""
_concerned: Final[ContextVar[str | None]] = ContextVar("concerned", default=None)
ABOUT: Final = "about"
"""The attribute of a log record that has more to say than its message: names and values."""
MARK: Final = "\x1e"
"""ASCII record separator: level, logger, connector and message of a worker's log record stand behind one each."""
_PARTS: Final = 4
LINE_END: Final = "\x1d"
"""Stands for the ends of lines within one message of a worker."""
SPARK: Final = "spark: "
"""Before each line that is not ours."""
VARIABLE: Final = "PARQUET_SINK_RELAY"
LEVEL_VARIABLE: Final = "PARQUET_SINK_LOG_LEVEL"
FORMAT_VARIABLE: Final = "PARQUET_SINK_LOG_FORMAT"
LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")
CHATTY: Final = ("urllib3", "pyspark", "boto3", "botocore")
"""Libraries that tell each request; what goes wrong there is told by us."""
NOISE: Final = (
    "WARNING: Using incubator modules",
    "Using Spark's default log4j profile",
    "Setting default log level to",
    "To adjust logging level use",
    "Setting Spark log level to",
)
spark_log = logging.getLogger("spark")


def about(**values: Any) -> dict[str, Any]:
    """For `extra=` of a logging call: what the line is about, which is written as fields where lines are JSON."""
    return {ABOUT: values}


@contextmanager
def concerning(connector: str) -> Iterator[None]:
    """Lines that this thread logs within are about the connector, those of libraries, too, that do not know it."""
    token = _concerned.set(connector)
    try:
        yield
    finally:
        _concerned.reset(token)


def connector_of(record: logging.LogRecord) -> str | None:
    """The connector that a record is about, as far as it says so, or whoever logs it now."""
    given = getattr(record, ABOUT, {}).get("connector")
    if given is not None:
        return str(given)
    if isinstance(record.msg, str) and record.msg.startswith(_BEGINS) and isinstance(record.args, tuple):
        return str(record.args[0]) if record.args else None
    return _concerned.get()


class TextLines(logging.Formatter):
    """Time, level and message, for people."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")


class JsonLines(logging.Formatter):
    """One object a line: `time` (UTC), `level`, `logger`, `message`, `connector`, `trace`, and what it is about.

    Whatever it is, it is written: what is not JSON as its text, and what is no Unicode as an escape.
    """

    def format(self, record: logging.LogRecord) -> str:
        trace = self.formatException(record.exc_info) if record.exc_info else None
        told = {"connector": connector_of(record), "trace": trace}
        values = {**getattr(record, ABOUT, {}), **{name: value for name, value in told.items() if value is not None}}
        return json_line(record.levelname, record.getMessage(), record.created, record.name, values)


def json_line(
    level: str,
    message: str,
    epoch_s: float | None = None,
    logger: str = "parquet_sink",
    values: Mapping[str, Any] | None = None,
) -> str:
    """One object, without the end of the line. epoch_s: None for now. values: what it is about."""
    at_s = time.time() if epoch_s is None else epoch_s
    at = datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
    fields = {"time": at, "level": level, "logger": logger, "message": message}
    return json.dumps({**fields, **{k: v for k, v in (values or {}).items() if k not in fields}}, default=str)


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


def level() -> str:
    """The level that the operator asked for, INFO otherwise. Raises InvalidConfiguration."""
    asked = os.environ.get(LEVEL_VARIABLE) or "INFO"
    if asked.upper() not in LEVELS:
        raise InvalidConfiguration(
            [f"Invalid [{LEVEL_VARIABLE}]. {asked!r} is not a level; use one of {', '.join(LEVELS)}"]
        )
    return asked.upper()


def log_format(asked: str | None = None) -> str:
    """What was asked for by an option, else by the environment, else text. Raises InvalidConfiguration."""
    found = asked or os.environ.get(FORMAT_VARIABLE) or TEXT
    if found.lower() not in FORMATS:
        raise InvalidConfiguration(
            [f"Invalid [{FORMAT_VARIABLE}]. {found!r} is not a format of log lines; use one of {', '.join(FORMATS)}"]
        )
    return found.lower()


def configure_program(written_as: str = TEXT) -> None:
    """Log lines of the program go to standard error, as text with time and level, or each as a JSON object."""
    logging.raiseExceptions = False  # a line that cannot be written is no event: standard error may be gone or full
    logging.basicConfig(level=level())
    for handler in logging.getLogger().handlers:
        if type(handler) is logging.StreamHandler:
            handler.setFormatter(JsonLines() if written_as == JSON else TextLines())
    if written_as == JSON:
        to_the_log()
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_not_of_py4j)
    _quieten()


def beside_program() -> bool:
    """Whether this process is one of Spark's on the machine of the program, which relays its log lines."""
    return bool(os.environ.get(VARIABLE))


def configure_worker(connector: str = "") -> None:
    """In a process that Spark started: marks log lines for the program, if one listens, and lets Java end it.

    connector: the one that the process works for now, which lines name; workers are lent from one to the next.
    """
    restore_sigterm()
    _Marked.connector = connector or _Marked.connector
    root = logging.getLogger()
    if beside_program() and not any(isinstance(h, _Marked) for h in root.handlers):
        root.addHandler(_Marked())
        root.setLevel(level())
        _quieten()


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """It tells the end of Java in stack traces, and by the root logger; we tell it in words."""
    return f"{os.sep}py4j{os.sep}" not in record.pathname


def _quieten() -> None:
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("urllib3.connectionpool").addFilter(_not_of_full_pools)


def _not_of_full_pools(record: logging.LogRecord) -> bool:
    """Uploads side by side may have more connections than are kept idle, for a moment: each was a warning."""
    return "pool is full" not in str(record.msg)


class _Marked(logging.StreamHandler):  # type: ignore[type-arg]
    connector = ""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(message)s"))

    def format(self, record: logging.LogRecord) -> str:
        """On one line, so that none is without its mark; with the connector, where the message does not name it."""
        message = super().format(record)
        if self.connector and f"connector {self.connector}" not in message:
            message = f"connector {self.connector}: {message}"
        parts = (record.levelname, record.name, connector_of(record) or self.connector, message)
        return "".join(MARK + part.replace(MARK, " ").replace("\n", LINE_END) for part in parts)


def relay(stream: IO[bytes], last: deque[str] | None = None) -> threading.Thread:
    """A thread that logs the lines of `stream` until it ends. last: takes those that are not ours."""
    thread = threading.Thread(target=_relay, args=(stream, last), name="relay", daemon=True)
    thread.start()
    return thread


def _relay(stream: IO[bytes], last: deque[str] | None) -> None:
    with stream:
        for raw in stream:
            with suppress(Exception):  # who stops reading holds up Java
                line = raw.decode("utf-8", "replace").rstrip()
                if last is not None and line and not line.startswith((MARK, *NOISE)):
                    last.append(line)
                _log(line)


def _log(line: str) -> None:
    if line.startswith(MARK) and line.count(MARK) == _PARTS:
        _, level, logger, connector, message = line.split(MARK)
        number = logging.getLevelNamesMapping().get(level, logging.INFO)
        said = about(connector=connector.replace(LINE_END, "\n")) if connector else None
        for part in _messages(message):
            logging.getLogger(logger).log(number, "%s", part, extra=said)
    elif line and not line.startswith(NOISE):
        spark_log.debug("%s%s", SPARK, line.removeprefix(SPARK))


def _messages(message: str) -> list[str]:
    """Of several lines: a record for each as text, so that each has its time; as JSON one for all of them."""
    whole = any(isinstance(handler.formatter, JsonLines) for handler in logging.getLogger().handlers)
    return ["\n".join(message.split(LINE_END))] if whole else message.split(LINE_END)
