"""The table of endpoints: paths, what each takes and gives. Routes and the OpenAPI document are made from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from parquet_sink.worker.rest.call import Handler
from parquet_sink.worker.rest.connectors import Connectors, Tasks
from parquet_sink.worker.rest.loggers import Loggers
from parquet_sink.worker.rest.offsets import Offsets
from parquet_sink.worker.rest.plugins import Plugins
from parquet_sink.worker.rest.service import Service

Pool = Literal["reads", "commands", "cluster", "health"]
"""Threads that an endpoint may wait in: those of commands, or of an unavailable broker, leave the others free."""


@dataclass(frozen=True)
class Parameter:
    """One in the query."""

    name: str
    type: Literal["boolean", "string", "array"]
    doc: str
    choices: tuple[str, ...] = ()
    default: object = None


@dataclass(frozen=True)
class Endpoint:
    """One. takes: the schema of its body, None when it has none. gives: by status the schema, None for no body."""

    method: str
    path: str
    handler: Handler
    summary: str
    gives: Mapping[int, str | None] = field(default_factory=lambda: {200: None})
    takes: str | None = None
    query: tuple[Parameter, ...] = ()
    pool: Pool = "reads"

    @property
    def tag(self) -> str:
        return self.path.split("/")[1] or "worker"


_ONE: Final = "/connectors/{connector}"
_PURGE: Final = Parameter("purge", "boolean", "Whether what it left on the worker's machine is removed, too.")
_EXPAND: Final = Parameter("expand", "array", "What to tell of each connector, in place of names.", ("info", "status"))
_TASKS: Final = Parameter("includeTasks", "boolean", "Whether tasks are restarted, too.", default=False)
_FAILED: Final = Parameter("onlyFailed", "boolean", "Whether only what has failed is restarted.", default=False)
_ENDS: Final = Parameter("ends", "boolean", "Whether to tell where each topic-partition ends now, too.", default=False)
_CONNECTORS_ONLY: Final = Parameter(
    "connectorsOnly", "boolean", "Whether only connectors are listed, without converters and transforms.", default=True
)
_SCOPE: Final = Parameter(
    "scope", "string", "With `cluster` the answer is empty; there is one worker.", ("worker", "cluster"), "worker"
)


def service_endpoints(service: Service) -> Sequence[Endpoint]:
    """What is not about one connector."""
    text = {200: "Metrics", 404: "Error"}
    return (
        Endpoint("GET", "/", service.root, "Version and Kafka cluster", {200: "Server"}, pool="cluster"),
        Endpoint(
            "GET",
            "/health",
            service.health,
            "Whether the worker can do what it is asked for",
            {200: "Health", 500: "Health", 503: "Health"},
            pool="health",
        ),
        Endpoint("GET", "/progress", service.progress, "How all connectors stand", {200: "Progress"}),
        Endpoint("GET", "/metrics", service.metrics, "Figures for Prometheus", text),
    )


def connector_endpoints(connectors: Connectors) -> Sequence[Endpoint]:
    """Connectors: made, looked at, changed, removed."""
    made = {200: "ChangedConnector", 201: "ChangedConnector", 400: "Error"}
    state = {404: "Error"}
    return (
        Endpoint("GET", "/connectors", connectors.all, "All connectors", {200: "Connectors"}, query=(_EXPAND,)),
        _command(
            "POST", "/connectors", connectors.create, "Make a connector",
            {201: "ChangedConnector", 400: "Error", 409: "Error"}, "NewConnector",
        ),
        _read(_ONE, connectors.get, "One connector", "Connector"),
        _command(
            "DELETE", _ONE, connectors.delete, "Remove it; its group's offsets stay",
            {200: "Purged", 204: None, 409: "Error", **state}, query=(_PURGE,),
        ),
        _read(f"{_ONE}/config", connectors.config, "Its configuration, without passwords", "Config"),
        _command("PUT", f"{_ONE}/config", connectors.put, "Make or change a connector", made, "Config"),
        _command(
            "PATCH", f"{_ONE}/config", connectors.patch, "Change some keys; null removes one",
            {200: "ChangedConnector", 400: "Error", **state}, "ConfigPatch",
        ),
        _read(f"{_ONE}/status", connectors.status, "State of the connector and its tasks", "Status"),
        _command("PUT", f"{_ONE}/pause", connectors.pause, "Pause; it keeps its position", {202: None, **state}),
        _command("PUT", f"{_ONE}/resume", connectors.resume, "Go on", {202: None, **state}),
        _command("PUT", f"{_ONE}/stop", connectors.stop, "Stop; it gives up its resources", {204: None, **state}),
        _command(
            "POST", f"{_ONE}/restart", connectors.restart, "Restart",
            {204: None, 202: "Status", **state}, query=(_TASKS, _FAILED),
        ),
    )  # fmt: skip


def detail_endpoints(connectors: Connectors, tasks: Tasks, offsets: Offsets) -> Sequence[Endpoint]:
    """What a connector has: tasks, topics, offsets."""
    state = {404: "Error"}
    return (
        _read(f"{_ONE}/tasks", tasks.all, "Its tasks", "Tasks"),
        _read(f"{_ONE}/tasks-config", tasks.configs, "Its tasks, for older clients", "TasksConfig"),
        _read(f"{_ONE}/tasks/{{task}}/status", tasks.status, "State of a task", "TaskStatus"),
        _command("POST", f"{_ONE}/tasks/{{task}}/restart", tasks.restart, "Restart", {204: None, **state}),
        Endpoint(
            "GET", f"{_ONE}/topics", connectors.topics, "Topics that it took records from",
            {200: "Topics", 403: "Error"},
        ),
        _command(
            "PUT", f"{_ONE}/topics/reset", connectors.reset_topics, "Forget those topics", {202: None, 403: "Error"}
        ),
        Endpoint(
            "GET", f"{_ONE}/offsets", offsets.get, "Where its group stands",
            {200: "Offsets", 400: "Error", **state, 500: "Error"}, query=(_ENDS,), pool="cluster",
        ),
        _command(
            "PATCH", f"{_ONE}/offsets", offsets.alter, "Move its group, when it is stopped",
            {200: "Message", 400: "Error", **state, 500: "Error"}, "NewOffsets",
        ),
        _command(
            "DELETE", f"{_ONE}/offsets", offsets.reset, "Remove its group's offsets, when it is stopped",
            {200: "Message", 400: "Error", **state, 500: "Error"},
        ),
    )  # fmt: skip


def plugin_endpoints(plugins: Plugins) -> Sequence[Endpoint]:
    """Classes that a configuration may name."""
    one = "/connector-plugins/{plugin}/config"
    return (
        Endpoint(
            "GET", "/connector-plugins", plugins.all, "Classes that there are", {200: "Plugins"},
            query=(_CONNECTORS_ONLY,),
        ),
        _read(one, plugins.keys, "Keys of a class", "Keys"),
        Endpoint(
            "PUT", f"{one}/validate", plugins.validate, "Validate a configuration, key by key",
            {200: "ConfigInfos", 400: "Error", 500: "Error"}, "Config", pool="commands",
        ),
    )  # fmt: skip


def admin_endpoints(loggers: Loggers) -> Sequence[Endpoint]:
    """What concerns the worker's process."""
    one = "/admin/loggers/{logger}"
    return (
        Endpoint("GET", "/admin/loggers", loggers.all, "Loggers whose level is set", {200: "Loggers"}),
        _read(one, loggers.get, "Level of a logger", "Logger"),
        Endpoint(
            "PUT", one, loggers.set, "Set the level of a logger and those below it",
            {200: "Names", 204: None, 400: "Error", 404: "Error"}, "Level", query=(_SCOPE,),
        ),
    )  # fmt: skip


def _read(path: str, handler: Handler, summary: str, schema: str) -> Endpoint:
    return Endpoint("GET", path, handler, summary, {200: schema, 404: "Error"})


def _command(
    method: str,
    path: str,
    handler: Handler,
    summary: str,
    gives: Mapping[int, str | None],
    takes: str | None = None,
    query: tuple[Parameter, ...] = (),
) -> Endpoint:
    return Endpoint(method, path, handler, summary, gives, takes, query, "commands")
