"""What is not about one connector: `/`, `/health`, `/progress`, `/metrics`."""

from collections.abc import Callable
from typing import Final

from parquet_sink import __version__
from parquet_sink.worker.herder.errors import ShuttingDown, TimedOut
from parquet_sink.worker.herder.protocol import Herder
from parquet_sink.worker.rest import renderings
from parquet_sink.worker.rest.call import SHUTTING_DOWN, Call, Reply, as_rest_errors, endpoint

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

    @endpoint("GET", "/progress", "How all connectors stand", {200: "Progress"})
    def progress(self, call: Call) -> Reply:
        with as_rest_errors():
            return Reply(renderings.progress(self._herder.progress()))

    @endpoint("GET", "/metrics", "Figures for Prometheus", {200: "Metrics", 404: "Error"})
    def metrics(self, call: Call) -> Reply:
        text, media_type = self._metrics()
        return Reply(text, media_type=media_type)


def _health(status: str, message: str, code: int) -> Reply:
    return Reply({"status": status, "message": message}, code)
