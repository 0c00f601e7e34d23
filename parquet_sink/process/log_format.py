"""How a log record is written: as text, or as one JSON object a line with what it is about."""

import json
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final

TEXT: Final = "text"
JSON: Final = "json"
FORMATS: Final = (TEXT, JSON)

_BEGINS: Final = "connector %s"
"""How messages of our own begin that are about a connector; its name is their first argument."""
_concerned: Final[ContextVar[str | None]] = ContextVar("concerned", default=None)
ABOUT: Final = "about"
"""The attribute of a log record that has more to say than its message: names and values."""


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

    Whatever it is, it is written: what is no JSON as its text, and what is no Unicode as an escape.
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
