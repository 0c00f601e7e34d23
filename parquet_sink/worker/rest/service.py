"""What is not about one connector: `/`, `/health`, `/progress`, `/workers`, `/metrics`, and `/admin/loggers`."""

import time
from collections.abc import Callable
from typing import Any, Final

from parquet_sink import __version__
from parquet_sink.worker.herder import log_levels
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
    command,
    endpoint,
    object_of,
    read,
    texts_of,
)
from parquet_sink.worker_config.rest.roles import Role

_SCOPE: Final = Parameter(
    "scope", "string", "Of this worker, or of all; then the answer is empty.", ("worker", "cluster"), "worker"
)
_OWN: Final = Parameter(
    "scope", "string", "Of which connectors: those of all workers, or of this one.", ("cluster", "worker"), "cluster"
)
_LEVEL_SET: Final = {200: "Names", 204: None, 400: "Error", 404: "Error"}
_PATH: Final = "/admin/loggers/{logger}"


class Loggers:
    """The endpoints, each a method that may be called from any thread. now: epoch seconds."""

    def __init__(self, herder: Herder, now: Callable[[], float] = time.time) -> None:
        self._herder, self._now = herder, now

    @endpoint("GET", "/admin/loggers", "Loggers whose level is set", {200: "Loggers"}, role=Role.VIEWER)
    def all(self, call: Call) -> Reply:
        """Those whose level was set; all others follow the next of these above them."""
        return Reply({name: _shown(found) for name, found in log_levels.loggers().items()})

    @read(_PATH, "Level of a logger", "Logger")
    def get(self, call: Call) -> Reply:
        with as_rest_errors():
            return Reply(_shown(log_levels.logger(call.path["logger"])))

    @command(
        "PUT",
        _PATH,
        "Set the level of a logger and those below it",
        _LEVEL_SET,
        takes="Level",
        role=Role.ADMIN,
        query=(_SCOPE,),
    )
    def set(self, call: Call) -> Reply:
        """For the logger and those below it, in this worker or in all."""
        given = texts_of(object_of(call.body, "the level"), "the body")
        text = given.get("level")
        if text is None:
            raise RestError(400, "Desired 'level' parameter was not specified in request.")
        level = text.upper()
        if level not in log_levels.LEVELS:
            raise RestError(404, f"invalid log level '{text}'.")
        with as_rest_errors():
            name = log_levels.require(call.path["logger"])
            if call.query.get("scope", "").lower() == "cluster":
                self._herder.set_log_level(name, level)
                return Reply(status=204)
            return Reply(log_levels.set_level(name, level, int(self._now() * 1000)))


def _shown(found: log_levels.LoggerInfo) -> dict[str, Any]:
    return {"level": found.level, "last_modified": found.changed_ms}


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

    @endpoint("GET", "/", "Version and Kafka cluster", {200: "Server"}, role=Role.VIEWER, pool="cluster")
    def root(self, call: Call) -> Reply:
        """No cluster id while no broker answers: the worker is there all the same."""
        try:
            cluster: str | None = self._herder.kafka_cluster_id()
        except TimedOut:
            cluster = None
        commit = f"parquet-sink {__version__}"
        return Reply({"version": CONNECT_VERSION, "commit": commit, "kafka_cluster_id": cluster})

    @endpoint(
        "GET", "/health", "Whether the worker can do what it is asked for", _HEALTH, role=Role.VIEWER, pool="health"
    )
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

    @endpoint(
        "GET",
        "/progress",
        "How all connectors stand",
        {200: "Progress"},
        role=Role.VIEWER,
        query=(_OWN,),
        pool="cluster",
    )
    def progress(self, call: Call) -> Reply:
        """With `scope=worker` of the connectors alone that this worker has."""
        own = call.query.get("scope", "").lower() == "worker"
        with as_rest_errors():
            return Reply(renderings.progress(self._herder.own_progress() if own else self._herder.progress()))

    @endpoint("GET", "/workers", "All workers, and what each has", {200: "Workers"}, role=Role.VIEWER)
    def workers(self, call: Call) -> Reply:
        with as_rest_errors():
            return Reply(renderings.workers(self._herder.workers()))

    @command(
        "DELETE",
        "/workers/{worker}",
        "Forget a worker that is gone for good, with what it had",
        {204: None, 404: "Error", 409: "Error"},
        role=Role.ADMIN,
    )
    def forget(self, call: Call) -> Reply:
        with as_rest_errors():
            self._herder.forget_worker(call.path["worker"])
        return Reply(status=204)

    @endpoint("GET", "/metrics", "Figures for Prometheus", {200: "Metrics", 404: "Error"}, role=Role.VIEWER)
    def metrics(self, call: Call) -> Reply:
        text, media_type = self._metrics()
        return Reply(text, media_type=media_type)


def _health(status: str, message: str, code: int) -> Reply:
    return Reply({"status": status, "message": message}, code)
