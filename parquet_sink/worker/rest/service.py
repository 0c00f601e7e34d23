"""What is not about one connector: `/`, `/health`, `/progress`, `/metrics`, and how much the program says.

`/admin/loggers` has the levels of Kafka Connect's log4j. Only loggers of this program are there: libraries say at DEBUG
what may not be said, passwords among it.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import Any, Final

from parquet_sink import __version__
from parquet_sink.worker.herder.errors import ShuttingDown, TimedOut
from parquet_sink.worker.herder.protocol import Herder
from parquet_sink.worker.rest import renderings
from parquet_sink.worker.rest.call import (
    SHUTTING_DOWN,
    Call,
    Parameter,
    Reply,
    RestError,
    as_rest_errors,
    endpoint,
    object_of,
    read,
    texts_of,
)

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
_OWN: Final = Parameter(
    "scope", "string", "Of which connectors: those of all workers, or of this one.", ("cluster", "worker"), "cluster"
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


CONNECT_VERSION: Final = "4.1.2"
"""Whose API this is: clients turn features on by it."""
Metrics = Callable[[], tuple[bytes, str]]
_HEALTHY: Final = "Worker has completed startup and is ready to handle requests."
_STARTING: Final = "Worker is still starting up."
_UNHEALTHY: Final = "Worker was unable to handle this request and may be unable to handle other requests."
_HEALTH: Final = {200: "Health", 500: "Health", 503: "Health"}


class Service:
    """The endpoints, each a method that may be called from any thread."""

    def __init__(self, herder: Herder, metrics: Metrics) -> None:
        self._herder, self._metrics = herder, metrics
        self._was_healthy = False

    @endpoint("GET", "/", "Version and Kafka cluster", {200: "Server"}, pool="cluster")
    def root(self, call: Call) -> Reply:
        """No cluster id while no broker answers: the worker is there all the same."""
        try:
            cluster: str | None = self._herder.kafka_cluster_id()
        except TimedOut:
            cluster = None
        commit = f"parquet-sink {__version__}"
        return Reply({"version": CONNECT_VERSION, "commit": commit, "kafka_cluster_id": cluster})

    @endpoint("GET", "/health", "Whether the worker can do what it is asked for", _HEALTH, pool="health")
    def health(self, call: Call) -> Reply:
        try:
            self._herder.ping()
        except TimedOut:
            if not self._was_healthy:
                return _health("starting", _STARTING, 503)
            return _health("unhealthy", _UNHEALTHY, 500)
        except ShuttingDown:
            return _health("unhealthy", SHUTTING_DOWN, 503)
        self._was_healthy = True
        return _health("healthy", _HEALTHY, 200)

    @endpoint("GET", "/progress", "How all connectors stand", {200: "Progress"}, query=(_OWN,), pool="cluster")
    def progress(self, call: Call) -> Reply:
        """With `scope=worker` of the connectors alone that this worker has."""
        own = call.query.get("scope", "").lower() == "worker"
        with as_rest_errors():
            return Reply(renderings.progress(self._herder.own_progress() if own else self._herder.progress()))

    @endpoint("GET", "/workers", "All workers, and what each has", {200: "Workers"})
    def workers(self, call: Call) -> Reply:
        with as_rest_errors():
            return Reply(renderings.workers(self._herder.workers()))

    @endpoint("GET", "/metrics", "Figures for Prometheus", {200: "Metrics", 404: "Error"})
    def metrics(self, call: Call) -> Reply:
        text, media_type = self._metrics()
        return Reply(text, media_type=media_type)


def _health(status: str, message: str, code: int) -> Reply:
    return Reply({"status": status, "message": message}, code)
