"""`/connectors`: made, looked at, changed, paused, stopped, restarted, removed."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from parquet_sink.config.report import quoted
from parquet_sink.worker.herder.errors import UnknownConnector
from parquet_sink.worker.herder.protocol import Herder
from parquet_sink.worker.herder.values import ConnectorInfo, TargetState
from parquet_sink.worker.rest import renderings
from parquet_sink.worker.rest.call import (
    NO_STATUS,
    NOT_FOUND,
    ONE,
    UNKNOWN,
    UNKNOWN_TO_RESTART,
    Call,
    Parameter,
    Reply,
    RestError,
    as_rest_errors,
    command,
    endpoint,
    invalid,
    known_fields,
    object_of,
    read,
    texts_of,
    unreadable,
)
from parquet_sink.worker.rest.plugins import name_problems, require_class
from parquet_sink.worker_config.rest.roles import Role
from parquet_sink.worker_config.rest.settings import RestSettings

_INITIAL: Final[Mapping[str, TargetState]] = {
    "RUNNING": TargetState.STARTED,
    "PAUSED": TargetState.PAUSED,
    "STOPPED": TargetState.STOPPED,
}
_NULL: Final = "Invalid [{}]. Null value can not be supplied as the configuration value."
_PURGE: Final = Parameter("purge", "boolean", "Whether what it left on the workers' machines is removed, too.")
_EXPAND: Final = Parameter("expand", "array", "What to show of each connector, in place of names.", ("info", "status"))
_TASKS: Final = Parameter("includeTasks", "boolean", "Whether tasks are restarted, too.", default=False)
_FAILED: Final = Parameter("onlyFailed", "boolean", "Whether only what has failed is restarted.", default=False)
_MADE: Final = {200: "ChangedConnector", 201: "ChangedConnector", 400: "Error"}
_CHANGED: Final = {200: "ChangedConnector", 400: "Error", 404: "Error"}
_DELETED: Final = {200: "Purged", 204: None, 409: "Error", 404: "Error"}
_RESTARTED: Final = {204: None, 202: "Status", 404: "Error"}
_CREATED: Final = {201: "ChangedConnector", 400: "Error", 409: "Error"}


class Connectors:
    """The endpoints, each a method that may be called from any thread. purge: as `Purging` does it."""

    def __init__(self, herder: Herder, settings: RestSettings, purge: Callable[[str], object]) -> None:
        self._herder, self._settings, self._purge = herder, settings, purge

    @endpoint("GET", "/connectors", "All connectors", {200: "Connectors"}, role=Role.VIEWER, query=(_EXPAND,))
    def all(self, call: Call) -> Reply:
        """Names, or with `expand` a part of what is known of each."""
        requested = call.query.getlist("expand")
        with as_rest_errors():
            names = self._herder.names()
            if "expand" not in call.query:
                return Reply(list(names))
            expanded = {name: self._expanded(name, requested, call.role) for name in names}
        return Reply({name: found for name, found in expanded.items() if found is not None})

    def _expanded(self, name: str, requested: list[str], role: Role) -> dict[str, Any] | None:
        """None for a connector that was removed meanwhile."""
        try:
            known = self._herder.info(name)
            parts: dict[str, Any] = {}
            if "status" in requested:
                type_ = renderings.type_of(known.config)
                parts["status"] = renderings.status(self._herder.status(name), type_)
            if "info" in requested:
                parts["info"] = renderings.info(known, role)
        except UnknownConnector:
            return None
        return parts

    @command("POST", "/connectors", "Make a connector", _CREATED, role=Role.ADMIN, takes="NewConnector")
    def create(self, call: Call) -> Reply:
        body = object_of(call.body, "name and config")
        known_fields(body, ("name", "config", "initial_state"))
        name = (texts_of({"name": body.get("name")}, "the body")["name"] or "").strip()
        target = _initial_state(body.get("initial_state"))
        config = _config(name, object_of(body.get("config"), "config"))
        with as_rest_errors():
            made = self._herder.create(name, config, target)
        return self._created(call, made)

    @read(ONE, "One connector", "Connector")
    def get(self, call: Call) -> Reply:
        with as_rest_errors():
            return Reply(renderings.info(self._herder.info(call.connector), call.role))

    @read(f"{ONE}/config", "Its configuration, without passwords", "Config")
    def config(self, call: Call) -> Reply:
        with as_rest_errors():
            return Reply(renderings.config_of(self._herder.info(call.connector).config, call.role))

    @command("PUT", f"{ONE}/config", "Make or change a connector", _MADE, role=Role.ADMIN, takes="Config")
    def put(self, call: Call) -> Reply:
        config = _config(call.connector, object_of(call.body, "the configuration"))
        with as_rest_errors():
            found, new = self._herder.put(call.connector, config)
        return self._created(call, found) if new else Reply(renderings.changed(found, call.role))

    def _created(self, call: Call, made: ConnectorInfo) -> Reply:
        return Reply(renderings.changed(made, call.role), 201, {"Location": call.location(made.name)})

    @command(
        "PATCH", f"{ONE}/config", "Change some keys; null removes one", _CHANGED, role=Role.ADMIN, takes="ConfigPatch"
    )
    def patch(self, call: Call) -> Reply:
        changes = texts_of(object_of(call.body, "the changes"), "the configuration")
        try:
            _same_name(call.connector, changes.get("name", call.connector))
            if "connector.class" in changes:
                require_class(changes["connector.class"])
        except RestError:
            with as_rest_errors():
                self._herder.info(call.connector)  # that there is none is told first
            raise
        with as_rest_errors():
            return Reply(renderings.changed(self._herder.patch(call.connector, changes), call.role))

    @command("DELETE", ONE, "Remove it; its group's offsets stay", _DELETED, role=Role.ADMIN, query=(_PURGE,))
    def delete(self, call: Call) -> Reply:
        """With `purge` what it left on each worker as well, and an answer that says what stays."""
        with as_rest_errors(NOT_FOUND):
            if call.flag("purge"):
                return Reply(self._purge(call.connector))
            self._herder.delete(call.connector)
        return Reply(status=204)

    @read(f"{ONE}/status", "State of the connector and its tasks", "Status")
    def status(self, call: Call) -> Reply:
        with as_rest_errors(NO_STATUS):
            found = self._herder.status(call.connector)
            return Reply(renderings.status(found, self._type(call.connector)))

    def _type(self, name: str) -> str:
        return renderings.type_of(self._herder.info(name).config)

    @command("PUT", f"{ONE}/pause", "Pause; it keeps its position", {202: None, 404: "Error"}, role=Role.OPERATOR)
    def pause(self, call: Call) -> Reply:
        return self._to(call, TargetState.PAUSED, 202)

    @command("PUT", f"{ONE}/resume", "Go on", {202: None, 404: "Error"}, role=Role.OPERATOR)
    def resume(self, call: Call) -> Reply:
        return self._to(call, TargetState.STARTED, 202)

    @command("PUT", f"{ONE}/stop", "Stop; it gives up its resources", {204: None, 404: "Error"}, role=Role.OPERATOR)
    def stop(self, call: Call) -> Reply:
        return self._to(call, TargetState.STOPPED, 204)

    def _to(self, call: Call, target: TargetState, status: int) -> Reply:
        with as_rest_errors(UNKNOWN):
            self._herder.set_target(call.connector, target)
        return Reply(status=status)

    @command("POST", f"{ONE}/restart", "Restart", _RESTARTED, role=Role.OPERATOR, query=(_TASKS, _FAILED))
    def restart(self, call: Call) -> Reply:
        """With a parameter the status, without one nothing, as before there were parameters."""
        tasks, failed = call.flag("includeTasks"), call.flag("onlyFailed")
        with as_rest_errors(UNKNOWN_TO_RESTART):
            found = self._herder.restart(call.connector, include_tasks=tasks, only_failed=failed)
            if not (tasks or failed):
                return Reply(status=204)
            return Reply(renderings.status(found, self._type(call.connector)), 202)

    @endpoint(
        "GET", f"{ONE}/topics", "Topics that it took records from", {200: "Topics", 403: "Error"}, role=Role.VIEWER
    )
    def topics(self, call: Call) -> Reply:
        self._tracking()
        with as_rest_errors():
            return Reply({call.connector: {"topics": list(self._herder.topics(call.connector))}})

    @command("PUT", f"{ONE}/topics/reset", "Forget those topics", {202: None, 403: "Error"}, role=Role.OPERATOR)
    def reset_topics(self, call: Call) -> Reply:
        self._tracking()
        if not self._settings.topic_reset:
            raise RestError(403, "Topic tracking reset is disabled.")
        try:
            with as_rest_errors():
                self._herder.reset_topics(call.connector)
        except RestError as error:
            if error.status != 404:  # Kafka Connect has nothing to forget of a connector that is not there
                raise
        return Reply(status=202)

    def _tracking(self) -> None:
        if not self._settings.topic_tracking:
            raise RestError(403, "Topic tracking is disabled.")


def _config(name: str, given: dict[str, Any]) -> dict[str, str]:
    """The configuration with its name. Raises RestError."""
    texts = texts_of(given, "the configuration")
    own = texts.get("name")
    _same_name(name, name if own is None else own)
    null = [key for key, text in texts.items() if text is None and key != "name"]
    problems = [_NULL.format(key) for key in null] + name_problems(name)
    if problems:
        raise invalid(tuple(problems))
    config = {**{key: text for key, text in texts.items() if text is not None}, "name": name}
    require_class(config.get("connector.class"))
    return config


def _same_name(name: str, given: str | None) -> None:
    if given is None:
        raise invalid(("Invalid [name]. It cannot be removed; leave it out.",))
    if given != name:
        raise RestError(400, f"Connector name configuration ({given}) doesn't match connector name in the URL ({name})")


def _initial_state(given: Any) -> TargetState | None:
    if given is None:
        return None
    found = _INITIAL.get(given.upper()) if isinstance(given, str) else None
    if found is None:
        shown = quoted(given) if isinstance(given, str) else "initial_state"
        raise unreadable(f"{shown} is not an initial_state; write RUNNING, PAUSED or STOPPED")
    return found


class Tasks:
    """The endpoints, each a method that may be called from any thread."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    @read(f"{ONE}/tasks", "Its tasks", "Tasks")
    def all(self, call: Call) -> Reply:
        with as_rest_errors():
            return Reply(renderings.tasks(self._herder.info(call.connector), call.role))

    @read(f"{ONE}/tasks-config", "Its tasks, for older clients", "TasksConfig")
    def configs(self, call: Call) -> Reply:
        """Configurations by task, as older clients ask for it; none is as good as no connector, as in Kafka Connect."""
        with as_rest_errors():
            found = renderings.tasks_config(self._herder.info(call.connector), call.role)
        if not found:
            raise RestError(404, NOT_FOUND.format(call.connector))
        return Reply(found)

    @read(f"{ONE}/tasks/{{task}}/status", "State of a task", "TaskStatus")
    def status(self, call: Call) -> Reply:
        name, number = call.connector, _task_number(call)
        missing = f"No status found for task {name}-{number}"
        with as_rest_errors(missing.replace("{", "{{").replace("}", "}}")):
            found = next((one for one in self._herder.status(name).tasks if one.id == number), None)
        if found is None:
            raise RestError(404, missing)
        return Reply(renderings.task(found))

    @command("POST", f"{ONE}/tasks/{{task}}/restart", "Restart", {204: None, 404: "Error"}, role=Role.OPERATOR)
    def restart(self, call: Call) -> Reply:
        with as_rest_errors(UNKNOWN_TO_RESTART):
            self._herder.restart_task(call.connector, _task_number(call))
        return Reply(status=204)


def _task_number(call: Call) -> int:
    text = call.path["task"]
    if not (text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 11):
        raise RestError(404, "HTTP 404 Not Found")
    return int(text)
