"""What `run` and `worker` have in common: connectors hosted in this process, and the REST API beside them."""

import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import quote

from parquet_sink.cli.beside import hosted
from parquet_sink.connectors.check import Checked
from parquet_sink.connectors.loading import Loaded, load
from parquet_sink.errors import SetupError, install
from parquet_sink.plugins import PAGE, named
from parquet_sink.process.signals import StopRequest
from parquet_sink.validate.preflight import inspect
from parquet_sink.worker.herder.store import ConfigStore
from parquet_sink.worker_config.rest.settings import RestSettings
from parquet_sink.worker_config.worker import Worker
from parquet_sink.worker_config.worker_file import LoadedWorker

if TYPE_CHECKING:
    from parquet_sink.distributed.cluster import Cluster
    from parquet_sink.worker.herder.protocol import Herder
    from parquet_sink.worker.loop.events import Listener
    from parquet_sink.worker.metrics.exposition import Metrics
    from parquet_sink.worker.rest.app import Pages
    from parquet_sink.worker.rest.peers import Peers
    from parquet_sink.worker.rest.server import Listening
    from parquet_sink.worker_config.distributed import DistributedSettings

_SERVING: Final = ("starlette", "uvicorn", "prometheus_client", "jinja2")
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
HTTP: Final = "http/protobuf"
log = logging.getLogger(__name__)


class _Page(Protocol):
    """What browsers are shown, which the registry names. listener: takes the worker's events."""

    listener: "Listener"

    def over(self, herder: "Herder") -> "Pages": ...


@dataclass(frozen=True)
class Plan:
    """How connectors are hosted. master, spark_conf: Spark's. serves: the REST API, also without connectors."""

    worker: Worker
    stop_request: StopRequest
    master: str | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    until_caught_up: bool = False
    serves: bool = False

    @property
    def distributed(self) -> bool:
        """Whether the worker is one of a group."""
        return self.worker.distributed is not None


def on_cluster(master: str | None) -> bool:
    """Whether Spark's tasks run on other machines. master: as it was given."""
    return not (master or "local").startswith("local")


def loader(plan: Plan) -> Callable[[Mapping[str, str], str], Loaded]:
    """Validates a connector that came by REST as `check` does a file: with what the machine and libraries know of."""

    def load_one(config: Mapping[str, str], name: str) -> Loaded:
        loaded = load(config, plan.worker, source=f"connector {name}")
        checked = inspect(Checked(LoadedWorker(plan.worker), (loaded,), ()), on_cluster=on_cluster(plan.master))
        (found,) = checked.connectors
        problems = (*found.problems, *checked.worker.problems, *checked.shared)
        settings = None if problems else found.settings
        again = loaded.again if problems == loaded.problems else None
        return replace(found, problems=problems, settings=settings, again=again)

    return load_one


def host(plan: Plan, store: ConfigStore, known: Mapping[str, Loaded], listeners: Sequence["Listener"]) -> int:
    """Runs until done, or a stop is requested; the exit status. known: configurations that were validated already.

    Raises SetupError, ConnectorError.
    """
    # late, after the files were found right: it takes a second
    from parquet_sink.worker.loop.connector_registry import ConnectorRegistry
    from parquet_sink.worker.loop.event_aggregator import EventAggregator
    from parquet_sink.worker.loop.events import EventDispatcher, Isolated, isolated
    from parquet_sink.worker.loop.herder import LocalHerder, brokers_of
    from parquet_sink.worker.loop.request_queue import RequestQueue
    from parquet_sink.worker.loop.worker import Worker as Host

    listening = _listening(plan.worker.rest) if plan.serves else None
    settings = plan.worker.rest if listening is None else listening.settings
    aggregator, queue = EventAggregator(), RequestQueue()
    if plan.worker.distributed is not None:
        from parquet_sink.worker_config.sealed_values import opening

        plan = replace(plan, worker=opening(_with_own_folder(plan.worker, settings.worker_id)))
    cluster = None if plan.worker.distributed is None else _cluster(plan, plan.worker.distributed, settings)
    load = loader(plan) if cluster is None else cluster.load
    registry = ConnectorRegistry(store, load, aggregator, settings.worker_id)
    local = LocalHerder(registry, queue, brokers_of(plan.worker))
    own = isolated(plan.worker.listeners)
    receiving = [*listeners, *trace_listeners(), *own, Isolated("the figures of connectors", lambda: aggregator)]
    metrics = None
    page: _Page | None = None
    if listening is not None:
        from parquet_sink.worker.metrics.exposition import Metrics

        metrics = Metrics(local)
        page = _page()
        receiving += [Isolated("the metrics", lambda: metrics), Isolated("the page", lambda: page.listener)]
    hosting = Host(
        registry,
        known,
        master=plan.master,
        spark_conf=plan.spark_conf,
        until_caught_up=plan.until_caught_up,
        stays=plan.serves,
        track_topics=settings.topic_tracking,
        observer=EventDispatcher(receiving),
        queue=queue,
        publish=local.publish,
        spark_is_up=None if cluster is None else cluster.spark_is_up,
        spark_waits=None if cluster is None else cluster.spark_waits,
        hands_over=(lambda: False) if cluster is None else cluster.hands_over,
        stop_request=plan.stop_request,
    )
    if listening is None or metrics is None or page is None:
        return hosting.run()
    if cluster is None:
        with _served(local, plan, listening, metrics, page):
            return hosting.run()
    group = cluster.running(registry, local, queue)
    with group as herder:
        metrics.herder = herder
        with _served(herder, plan, listening, metrics, page, cluster):
            return hosting.run(expected=len(herder.names()))  # all of them, when no other worker is left


def _with_own_folder(worker: Worker, worker_id: str) -> Worker:
    """Several workers of a group may run on one machine, each with folders of its own for the same connectors."""
    own = os.path.join(worker.store_folder or tempfile.gettempdir(), "workers", quote(worker_id, safe=""))
    return hosted(worker, own)


def _cluster(plan: Plan, settings: "DistributedSettings", rest: RestSettings) -> "Cluster":
    """This worker's part in its group."""
    from parquet_sink.distributed.cluster import Cluster
    from parquet_sink.worker.rest.tls import client_context

    url = f"{rest.advertised.scheme}://{rest.worker_id}"
    folder = Path(plan.worker.machine.tmp_dir, "leases")
    context = partial(client_context, rest.tls)
    elsewhere = on_cluster(plan.master)
    load, stop = loader(plan), plan.stop_request
    return Cluster(settings, rest.worker_id, url, folder, load, context, stop, executors_elsewhere=elsewhere)


def require_packages(who: str) -> None:
    """Raises SetupError, naming the first Python package of the extra `worker` that is not there, and the cure."""
    for package in _SERVING:
        if find_spec(package) is None:
            raise SetupError(f"{who} needs the Python package {package}. {install('worker')}")


def _listening(settings: RestSettings) -> "Listening":
    """Takes the addresses, before anything else is started. Raises SetupError."""
    require_packages("The REST API")
    from parquet_sink.worker.rest.server import open_listeners

    return open_listeners(settings)


@contextmanager
def _served(
    herder: "Herder",
    plan: Plan,
    listening: "Listening",
    metrics: "Metrics",
    page: "_Page",
    peers: "Peers | None" = None,
) -> Iterator[None]:
    """The REST API and the page within. peers: the other workers of the group. Raises SetupError."""
    from parquet_sink.worker.rest.app import make_admin_app, make_app
    from parquet_sink.worker.rest.server import RestServer

    load_one = loader(plan)

    def validate(config: Mapping[str, str]) -> Loaded:
        return load_one(config, config.get("name", ""))

    pages = page.over(herder)
    app = make_app(herder, plan.worker, listening.settings, metrics.exposition, validate, peers, pages)
    server = RestServer(app, make_admin_app(herder, listening.settings, peers), listening)
    server.start()
    try:
        yield
    finally:
        pages.close()
        server.stop()


def _page() -> _Page:
    """What `plugins.PAGE` names."""
    made: _Page = named(PAGE)()
    return made


def log_lines() -> "Listener":
    """A log line for each file, and for each connector that begins or ends."""
    from parquet_sink.worker.loop.events import Isolated
    from parquet_sink.worker.loop.log_lines import LogLines

    return Isolated("log lines", LogLines)


def trace_listeners(environment: Mapping[str, str] | None = None) -> "list[Listener]":
    """One that sends traces, if a collector is named by OpenTelemetry's own variables; none otherwise.

    Such variables are set for every program of a machine, so what cannot be honoured is a warning and no error.
    """
    given = os.environ if environment is None else environment
    named = next((name for name in _ENDPOINTS if given.get(name)), None)
    off = given.get("OTEL_SDK_DISABLED", "").lower() == "true" or given.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp"
    if named is None or off:
        return []
    protocol = next((given[name] for name in _PROTOCOLS if given.get(name)), HTTP)
    if protocol != HTTP:
        log.warning("%s names a collector, but traces are sent by %s alone, and not by %s.", named, HTTP, protocol)
        return []
    try:
        from parquet_sink.worker.metrics.traces import Traces
    except ModuleNotFoundError as error:
        log.warning("%s names a collector, but traces need an extra (%s). %s", named, error, install("traces"))
        return []
    from parquet_sink.worker.loop.events import Isolated

    return [Isolated("traces", Traces)]
