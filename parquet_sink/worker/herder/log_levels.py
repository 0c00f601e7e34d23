"""Levels of this program's loggers while it runs, by the names that Kafka Connect's log4j has for them.

Loggers of libraries are not there: at DEBUG they say what may not be said, passwords among it.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Final

from parquet_sink.worker.herder.errors import UnknownLogger

ROOT: Final = "root"
LEVELS: Final[Mapping[str, int]] = {
    "ALL": 1,
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": logging.CRITICAL + 10,
}
_OURS: Final = ("parquet_sink", "spark")
_NAMES: Final = {number: name for name, number in LEVELS.items()}
_changed_ms: Final[dict[str, int]] = {}
_lock: Final = Lock()


@dataclass(frozen=True)
class LoggerInfo:
    """level: what it has, or the next above it. changed_ms: epoch milliseconds; None: not since the start."""

    level: str
    changed_ms: int | None


def loggers() -> dict[str, LoggerInfo]:
    """Those whose level was set, by name; all others follow the next of these above them."""
    return {name: _info(name, found) for name, found in sorted(_known()) if found.level}


def logger(name: str) -> LoggerInfo:
    """One that is there, or stands above some that are. Raises UnknownLogger."""
    found = require(name)
    return _info(found, _logger(found))


def require(name: str) -> str:
    """The name of such a logger as the program has it. Raises UnknownLogger."""
    found = _own(name)
    known = [one for one, _ in _known()]
    if found not in known and not any(one.startswith(f"{found}.") for one in known):
        raise UnknownLogger(name)
    return found


def set_level(name: str, level: str, now_ms: int) -> list[str]:
    """Sets it in this process, of a logger and those below it, also those to come; their names.

    level: one of LEVELS. now_ms: epoch milliseconds. Raises UnknownLogger where it is none of this program's.
    """
    found, number = _own(name), LEVELS[level]
    with _lock:
        _logger(found)  # there from now on
        below = f"{found}."
        concerned = [(one, it) for one, it in _known() if found in (ROOT, one) or one.startswith(below)]
        for one, it in concerned:
            if it.getEffectiveLevel() != number:
                _changed_ms[one] = now_ms
            it.setLevel(number)
    return sorted(one for one, _ in concerned)


def _known() -> Iterator[tuple[str, logging.Logger]]:
    """The root logger, and those of this program, by name."""
    yield ROOT, logging.getLogger()
    for name, found in list(logging.Logger.manager.loggerDict.items()):
        if isinstance(found, logging.Logger) and name.partition(".")[0] in _OURS:
            yield name, found


def _own(name: str) -> str:
    if name.lower() == ROOT:
        return ROOT
    if name.partition(".")[0] not in _OURS:
        raise UnknownLogger(name)
    return name


def _logger(name: str) -> logging.Logger:
    return logging.getLogger() if name == ROOT else logging.getLogger(name)


def _info(name: str, found: logging.Logger) -> LoggerInfo:
    """With the nearest of log4j's levels that lets as much through."""
    effective = found.getEffectiveLevel()
    level = _NAMES[max((number for number in _NAMES if number <= effective), default=1)]
    return LoggerInfo(level, _changed_ms.get(name))
