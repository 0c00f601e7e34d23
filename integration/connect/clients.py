"""What known clients of Kafka Connect ask, in the order in which they ask it, and what they need of the answers.

The requests of kcctl are those that it was seen to send to our worker, and a few more of its source; those of Kafka UI
stand in its source, as does what it can read. What is not named here they do without.
"""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from integration.connect.play import Answer
from integration.connect.steps import TOPIC, Script, Side, UntilCommitted, UntilState, UntilTopics

KCCTL: Final = "kcctl"
KAFKA_UI: Final = "Kafka UI"


def kcctl(made: Script, side: Side) -> None:
    """`kcctl info`, `get`, `describe`, `apply`, `patch`, `pause` and so on, with a connector made for it."""
    who = KCCTL
    config = json.dumps(side.config()).encode()
    made.ask("kcctl info", "GET /", client=who)
    made.ask("kcctl get plugins", "GET /connector-plugins?connectorsOnly=false", client=who)
    made.ask("kcctl describe plugin", f"GET /connector-plugins/{side.plugin}/config", client=who)
    made.ask("kcctl describe plugin that is none", "GET /connector-plugins/NoSuchThing/config", client=who)
    validate = f"PUT /connector-plugins/{side.plugin}/config/validate"
    made.ask("kcctl apply --dry-run", validate, side.config(name="kc"), client=who)
    made.ask("kcctl apply --dry-run, an invalid one", validate, side.config(None, name="kc"), client=who)
    made.ask("kcctl apply, is it there", "GET /connectors/", client=who)
    made.ask("kcctl apply", "POST /connectors/", {"name": "kc", "config": side.config()}, client=who)
    made.add(UntilState("kc", "RUNNING"), UntilCommitted("kc", {0: 10, 1: 0}), UntilTopics("kc", frozenset({TOPIC})))
    made.ask("kcctl apply --name", "PUT /connectors/kc/config", config, client=who)
    made.add(UntilState("kc", "RUNNING"))
    none = {"connector.class": "x.Y", "topics": "t"}
    made.ask("kcctl apply, a class that is none", "PUT /connectors/kc/config", none, client=who)
    made.ask("kcctl get connectors", "GET /connectors?expand=status", client=who)
    made.ask("kcctl describe connector", "GET /connectors/kc", client=who)
    made.ask("kcctl describe connector, status", "GET /connectors/kc/status", client=who)
    made.ask("kcctl describe connector, configuration", "GET /connectors/kc/config", client=who)
    made.ask("kcctl describe connector, tasks", "GET /connectors/kc/tasks", client=who)
    made.ask("kcctl describe connector, topics", "GET /connectors/kc/topics", client=who)
    made.ask("kcctl describe connector nobody", "GET /connectors/nobody", client=who)
    made.ask("kcctl patch connector", "PUT /connectors/kc/config", side.config(errors_log_enable="true"), client=who)
    made.add(UntilState("kc", "RUNNING"))
    made.ask("kcctl restart connector", "POST /connectors/kc/restart", client=who)
    made.add(UntilState("kc", "RUNNING"))
    restart = "POST /connectors/kc/restart?includeTasks=true&onlyFailed=false"
    made.ask("kcctl restart connector with tasks", restart, client=who)
    made.add(UntilState("kc", "RUNNING"))
    made.ask("kcctl restart task", "POST /connectors/kc/tasks/0/restart", client=who)
    made.add(UntilState("kc", "RUNNING"))
    for action, state, tasks in (("pause", "PAUSED", 1), ("resume", "RUNNING", 1), ("stop", "STOPPED", 0)):
        made.ask(f"kcctl {action} connector", f"PUT /connectors/kc/{action}", client=who)
        made.add(UntilState("kc", state, tasks))
    place = {"kafka_topic": TOPIC, "kafka_partition": 0}
    offsets = {"offsets": [{"partition": place, "offset": {"kafka_offset": 4}}]}
    made.ask("kcctl patch offsets", "PATCH /connectors/kc/offsets", offsets, client=who)
    made.ask("kcctl get offsets", "GET /connectors/kc/offsets", client=who)
    made.ask("kcctl delete offsets", "DELETE /connectors/kc/offsets", client=who)
    made.ask("kcctl get loggers", "GET /admin/loggers", client=who)
    made.ask("kcctl get logger", f"GET /admin/loggers/{side.logger}", client=who)
    level = {"level": "INFO"}
    made.ask("kcctl patch logger", f"PUT /admin/loggers/{side.logger}?scope=cluster", level, client=who)
    made.ask("kcctl delete connector", "DELETE /connectors/kc", client=who)
    made.add(UntilState("kc", None))
    made.ask("kcctl delete connector nobody", "DELETE /connectors/nobody", client=who)


def kafka_ui(made: Script, side: Side) -> None:
    """Its list, a connector's page with all buttons, and the form for a new one."""
    who = KAFKA_UI
    made.ask("Kafka UI, worker", "GET /", client=who)
    made.ask("Kafka UI, list", "GET /connectors?expand=info&expand=status", client=who)
    made.ask("Kafka UI, plugins", "GET /connector-plugins", client=who)
    validate = f"PUT /connector-plugins/{side.plugin}/config/validate"
    made.ask("Kafka UI, form", validate, side.config(name="ui", tasks_max=1), client=who)
    made.ask("Kafka UI, form that is wrong", validate, side.config(None, name="ui", tasks_max=0), client=who)
    named = {"name": "ui", "config": side.config(tasks_max=1)}
    made.ask("Kafka UI, create a wrong one", "POST /connectors", {**named, "config": side.config(None)}, client=who)
    made.ask("Kafka UI, create", "POST /connectors", named, client=who)
    made.add(UntilState("ui", "RUNNING"), UntilCommitted("ui", {0: 10, 1: 0}), UntilTopics("ui", frozenset({TOPIC})))
    made.ask("Kafka UI, save", "PUT /connectors/ui/config", side.config(tasks_max=1), client=who)
    made.add(UntilState("ui", "RUNNING"))
    for title, request in (
        ("connector", "GET /connectors/ui"),
        ("topics", "GET /connectors/ui/topics"),
        ("status", "GET /connectors/ui/status"),
        ("configuration", "GET /connectors/ui/config"),
        ("tasks", "GET /connectors/ui/tasks"),
        ("status of a task", "GET /connectors/ui/tasks/0/status"),
        ("reset offsets too early", "DELETE /connectors/ui/offsets"),
    ):
        made.ask(f"Kafka UI, {title}", request, client=who)
    restart = "POST /connectors/ui/restart?includeTasks=false&onlyFailed=false"
    made.ask("Kafka UI, restart", restart, client=who)
    made.add(UntilState("ui", "RUNNING"))
    made.ask("Kafka UI, restart a task", "POST /connectors/ui/tasks/0/restart", client=who)
    made.add(UntilState("ui", "RUNNING"))
    for action, state, tasks in (("pause", "PAUSED", 1), ("resume", "RUNNING", 1), ("stop", "STOPPED", 0)):
        made.ask(f"Kafka UI, {action}", f"PUT /connectors/ui/{action}", client=who)
        made.add(UntilState("ui", state, tasks))
        made.ask(f"Kafka UI, list after {action}", "GET /connectors?expand=info&expand=status", client=who)
    made.ask("Kafka UI, offsets", "GET /connectors/ui/offsets", client=who)
    made.ask("Kafka UI, reset offsets", "DELETE /connectors/ui/offsets", client=who)
    made.ask("Kafka UI, delete", "DELETE /connectors/ui", client=who)
    made.add(UntilState("ui", None))


def _object(**fields: Any) -> dict[str, Any]:
    """All of the fields are needed; others may be there."""
    return {"type": "object", "properties": fields, "required": list(fields)}


def _words(*words: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_NUMBER: Final = {"type": "integer"}
_MAYBE: Final = {"type": ["string", "null"]}
_CONFIG: Final = {"type": "object", "additionalProperties": _TEXT}
_TASK_STATES: Final = ("RUNNING", "FAILED", "PAUSED", "RESTARTING", "UNASSIGNED")
_TASK: Final = _object(id=_NUMBER, state=_words(*_TASK_STATES), worker_id=_TEXT)
_TASK_ID: Final = _object(connector=_TEXT, task=_NUMBER)
_CONNECTOR: Final = _object(
    name=_TEXT, config=_CONFIG, tasks={"type": "array", "items": _TASK_ID}, type=_words("source", "sink", "unknown")
)
_STATUS: Final = _object(
    name=_TEXT,
    connector=_object(state=_words(*_TASK_STATES, "STOPPED"), worker_id=_TEXT),
    tasks={"type": "array", "items": _TASK},
)
_EXPANDED: Final = {"properties": {"info": _CONNECTOR, "status": _STATUS}, "required": ["status"]}
_DEFINITION: Final = _object(
    name=_TEXT,
    type=_words("BOOLEAN", "CLASS", "DOUBLE", "INT", "LIST", "LONG", "PASSWORD", "SHORT", "STRING"),
    required={"type": "boolean"},
    default_value=_MAYBE,
    importance=_words("LOW", "MEDIUM", "HIGH"),
    documentation=_TEXT,
    group=_MAYBE,
    width=_words("SHORT", "MEDIUM", "LONG", "NONE"),
    display_name=_TEXT,
    dependents=_TEXTS,
    order=_NUMBER,
)
_VALUE: Final = _object(name=_TEXT, value=_MAYBE, recommended_values=_TEXTS, errors=_TEXTS, visible={"type": "boolean"})
_INFOS: Final = _object(
    name=_TEXT,
    error_count=_NUMBER,
    groups=_TEXTS,
    configs={"type": "array", "items": _object(definition=_DEFINITION, value=_VALUE)},
)
_OFFSET: Final = _object(partition={"type": "object"}, offset={"type": ["object", "null"]})
_ERROR: Final = _object(error_code=_NUMBER, message=_TEXT)
_PLUGIN: Final = {"properties": {"class": _TEXT, "type": _TEXT}, "required": ["class", "type"]}

NEEDED: Final[Mapping[tuple[str, str], Mapping[str, Any]]] = {
    ("GET", "/"): _object(version=_TEXT, commit=_TEXT, kafka_cluster_id=_TEXT),
    ("GET", "/connectors"): {"anyOf": [_TEXTS, {"type": "object", "additionalProperties": _EXPANDED}]},
    ("POST", "/connectors"): _CONNECTOR,
    ("GET", "/connectors/*"): _CONNECTOR,
    ("GET", "/connectors/*/config"): _CONFIG,
    ("PUT", "/connectors/*/config"): _CONNECTOR,
    ("GET", "/connectors/*/status"): _STATUS,
    ("POST", "/connectors/*/restart"): {"anyOf": [{"type": "null"}, _STATUS]},
    ("PUT", "/connectors/*/*"): {"type": "null"},
    ("DELETE", "/connectors/*"): {"type": "null"},
    ("GET", "/connectors/*/tasks"): {"type": "array", "items": _object(id=_TASK_ID, config=_CONFIG)},
    ("GET", "/connectors/*/tasks/*/status"): _TASK,
    ("POST", "/connectors/*/tasks/*/restart"): {"type": "null"},
    ("GET", "/connectors/*/topics"): {"type": "object", "additionalProperties": _object(topics=_TEXTS)},
    ("GET", "/connectors/*/offsets"): _object(offsets={"type": "array", "items": _OFFSET}),
    ("PATCH", "/connectors/*/offsets"): _object(message=_TEXT),
    ("DELETE", "/connectors/*/offsets"): _object(message=_TEXT),
    ("GET", "/connector-plugins"): {"type": "array", "items": _PLUGIN},
    ("GET", "/connector-plugins/*/config"): {"type": "array", "items": _DEFINITION},
    ("PUT", "/connector-plugins/*/config/validate"): _INFOS,
    ("GET", "/admin/loggers"): {"type": "object", "additionalProperties": {"type": "object"}},
    ("GET", "/admin/loggers/*"): _object(level=_TEXT),
    ("PUT", "/admin/loggers/*"): {"anyOf": [{"type": "null"}, _TEXTS]},
}
"""What an answer of 2xx has to hold, by method and path; a star stands for a name."""


def needed(answer: Answer) -> Mapping[str, Any]:
    """The schema that an answer to a client has to keep to: of those that fit, the one with the fewest stars."""
    if answer.status >= 400:
        return _ERROR
    method, target = answer.request.split(" ")
    path = urlsplit(target).path.rstrip("/") or "/"
    fit = [shape for shape in NEEDED if shape[0] == method and _fits(path, shape[1])]
    return NEEDED[min(fit, key=lambda shape: shape[1].count("*"))]


def _fits(path: str, shape: str) -> bool:
    parts, wanted = path.split("/"), shape.split("/")
    return len(parts) == len(wanted) and all(one in ("*", part) for part, one in zip(parts, wanted, strict=True))
