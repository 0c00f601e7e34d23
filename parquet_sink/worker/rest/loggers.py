"""`/admin/loggers`: how much the program says, in the levels of Kafka Connect's log4j.

Only loggers of this program are there: libraries say at DEBUG what may not be said, passwords among it.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import Any, Final

from parquet_sink.worker.rest.call import Call, Parameter, Reply, RestError, endpoint, object_of, read, texts_of

_ROOT: Final = "root"
_OURS: Final = ("parquet_sink", "spark")
_LEVELS: Final[Mapping[str, int]] = {
    "ALL": 1,
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": logging.CRITICAL + 10,
}
_NAMES: Final = {number: name for name, number in _LEVELS.items()}
_SCOPE: Final = Parameter(
    "scope", "string", "With `cluster` the answer is empty; there is one worker.", ("worker", "cluster"), "worker"
)
_LEVEL_SET: Final = {200: "Names", 204: None, 400: "Error", 404: "Error"}
_PATH: Final = "/admin/loggers/{logger}"


class Loggers:
    """The endpoints, each a method that may be called from any thread. now: epoch seconds."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._changed_ms: dict[str, int] = {}
        self._lock = Lock()

    @endpoint("GET", "/admin/loggers", "Loggers whose level is set", {200: "Loggers"})
    def all(self, call: Call) -> Reply:
        """Those whose level was set; all others follow the next of these above them."""
        found = {name: self._shown(name, one) for name, one in _known() if one.level}
        return Reply(dict(sorted(found.items())))

    @read(_PATH, "Level of a logger", "Logger")
    def get(self, call: Call) -> Reply:
        name = call.path["logger"]
        return Reply(self._shown(*_find(name)))

    @endpoint("PUT", _PATH, "Set the level of a logger and those below it", _LEVEL_SET, takes="Level", query=(_SCOPE,))
    def set(self, call: Call) -> Reply:
        """For the logger and those below it."""
        given = texts_of(object_of(call.body, "the level"), "the body")
        text = given.get("level")
        if text is None:
            raise RestError(400, "Desired 'level' parameter was not specified in request.")
        if text.upper() not in _LEVELS:
            raise RestError(404, f"invalid log level '{text}'.")
        changed = self._set(call.path["logger"], _LEVELS[text.upper()])
        if call.query.get("scope", "").lower() == "cluster":
            return Reply(status=204)
        return Reply(changed)

    def _set(self, requested: str, level: int) -> list[str]:
        with self._lock:
            name, _ = _find(requested)
            below = f"{name}."
            concerned = [(one, it) for one, it in _known() if name in (_ROOT, one) or one.startswith(below)]
            for one, it in concerned:
                if it.getEffectiveLevel() != level:
                    self._changed_ms[one] = int(self._now() * 1000)
                it.setLevel(level)
        return sorted(one for one, _ in concerned)

    def _shown(self, name: str, found: logging.Logger) -> dict[str, Any]:
        return {"level": _name(found.getEffectiveLevel()), "last_modified": self._changed_ms.get(name)}


def _known() -> Iterator[tuple[str, logging.Logger]]:
    """The root logger, and those of this program, by name."""
    yield _ROOT, logging.getLogger()
    for name, found in sorted(logging.Logger.manager.loggerDict.items()):
        if isinstance(found, logging.Logger) and name.partition(".")[0] in _OURS:
            yield name, found


def _find(name: str) -> tuple[str, logging.Logger]:
    """A logger that is there, or one of ours that stands above some. Raises RestError."""
    known = dict(_known())
    requested = _ROOT if name.lower() == _ROOT else name
    if requested in known:
        return requested, known[requested]
    if any(one.startswith(f"{requested}.") for one in known):
        return requested, logging.getLogger(requested)
    raise RestError(404, f"Logger {name} not found.")


def _name(level: int) -> str:
    """The nearest of log4j's levels that lets as much through."""
    return _NAMES[max((number for number in _NAMES if number <= level), default=1)]
