"""A worker's REST API on a real socket that keeps connectors in memory, and says what it is told to say.

Its texts and statuses are Kafka Connect's. It knows as much as clients are tested with; nothing runs behind it.
"""

import json
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from integration.scripted_target import Behaviour, Connection, Request, ScriptedTarget

WORKER_ID = "127.0.0.1:8083"
NOT_STOPPED = "Connectors must be in the STOPPED state before their offsets can be modified. This can be done …"
Answer = tuple[int, Any]


@dataclass
class Kept:
    """One connector. left: how many looks at its status come before it is in the state that it was told.

    ends: of its topic-partitions; empty for a worker that does not tell them, as Kafka Connect's do not.
    """

    config: dict[str, str]
    state: str = "RUNNING"
    before: str = "RUNNING"
    left: int = 0
    trace: str = ""
    offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    ends: dict[tuple[str, int], int] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """One request. name: of the connector that it is about, where it is about one."""

    name: str
    path: list[str]
    query: Mapping[str, str]
    body: Any


class ScriptedWorker(ScriptedTarget):
    """Connectors by name. lag: looks at a status until a change is seen. scripted: answers of paths, as they come.

    purges: whether it is one of parquet-sink's.
    """

    def __init__(self, *script: Behaviour, tls: ssl.SSLContext | None = None, credential: str | None = None) -> None:
        super().__init__(*script, tls=tls, then=self._behave)
        self._scheme = "http" if tls is None else "https"
        self._credential = credential
        self.connectors: dict[str, Kept] = {}
        self.scripted: dict[str, list[Answer]] = {}
        self.progress: list[dict[str, Any]] | None = None
        self.lag = 0
        self.purges = True

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    @property
    def asked(self) -> list[str]:
        """Method and path of each request."""
        return [one.line.rpartition(" ")[0] for one in self.requests]

    def add(self, name: str, **more: Any) -> Kept:
        """A connector that is there."""
        kept = Kept({"name": name, "connector.class": "parquet_sink.EmsSink", "tasks.max": "2"}, **more)
        kept.before = kept.state
        self.connectors[name] = kept
        return kept

    def _behave(self, connection: Connection) -> None:
        connection.read_body()
        method, target, _ = connection.request.line.split(" ")
        status, content = self._answer(method, target, connection.request)
        body = b"" if content is None else content if isinstance(content, bytes) else json.dumps(content).encode()
        head = f"HTTP/1.1 {status} Reason\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.send(head.encode() + body)

    def _answer(self, method: str, target: str, request: Request) -> Answer:
        if self._credential is not None and request.headers.get("authorization") != self._credential:
            return 401, b"Unauthorized"
        parts = urlsplit(target)
        path = [unquote(one) for one in parts.path.strip("/").split("/")]
        if waiting := self.scripted.get(f"{method} {'/'.join(path)}"):
            return waiting.pop(0)
        body = json.loads(request.body) if request.body else None
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        asked = Asked(path[1] if len(path) > 1 else "", path, query, body)
        kind = " ".join([method, *("NAME" if at == 1 else "N" if at == 3 else part for at, part in enumerate(path))])
        if (answer := _ROUTES.get(kind)) is None:
            return 404, _error(404, "HTTP 404 Not Found")
        if "connectors NAME" in kind and asked.name not in self.connectors and kind != _MAY_BE_NEW:
            none = "No status found for connector" if path[-1] == "status" else "Connector"
            return 404, _error(404, f"{none} {asked.name}" + ("" if path[-1] == "status" else " not found"))
        return answer(self, asked)

    def _progress(self, asked: Asked) -> Answer:
        return (404, _error(404, "HTTP 404 Not Found")) if self.progress is None else (200, self.progress)

    def _list(self, asked: Asked) -> Answer:
        if "expand" not in asked.query:
            return 200, sorted(self.connectors)
        return 200, {name: {"info": self._info(name), "status": self._status(name)} for name in self.connectors}

    def _delete(self, asked: Asked) -> Answer:
        del self.connectors[asked.name]
        return (
            (200, {"left": [], "warnings": []}) if asked.query.get("purge") == "true" and self.purges else (204, None)
        )

    def _patch(self, asked: Asked) -> Answer:
        kept = self.connectors[asked.name]
        kept.config = {key: value for key, value in {**kept.config, **asked.body}.items() if value is not None}
        return 200, self._changed(asked.name)

    def _told(self, asked: Asked) -> Answer:
        what = asked.path[-1]
        self._to(asked.name, {"pause": "PAUSED", "resume": "RUNNING", "stop": "STOPPED"}[what])
        return 204 if what == "stop" else 202, None

    def _restart(self, asked: Asked) -> Answer:
        self.connectors[asked.name].trace = ""
        self._to(asked.name, "RUNNING")
        return (202, self._status(asked.name)) if "true" in asked.query.values() else (204, None)

    def _restart_task(self, asked: Asked) -> Answer:
        number = asked.path[3]
        return (204, None) if int(number) < 2 else (404, _error(404, f"Unknown task: {asked.name}-{number}"))

    def _offsets(self, asked: Asked) -> Answer:
        kept = self.connectors[asked.name]
        told = [(where, _entry(*where, offset)) for where, offset in sorted(kept.offsets.items())]
        if asked.query.get("ends") != "true" or not kept.ends:
            return 200, {"offsets": [one for _, one in told]}
        return 200, {"offsets": [{**one, "end": kept.ends.get(where)} for where, one in told]}

    def _reset_offsets(self, asked: Asked) -> Answer:
        kept = self.connectors[asked.name]
        if kept.state != "STOPPED":
            return 400, _error(400, NOT_STOPPED)
        kept.offsets = {}
        return 200, {"message": "The offsets for this connector have been reset successfully"}

    def _alter_offsets(self, asked: Asked) -> Answer:
        kept = self.connectors[asked.name]
        if kept.state != "STOPPED":
            return 400, _error(400, NOT_STOPPED)
        for one in asked.body["offsets"]:
            where = one["partition"]["kafka_topic"], one["partition"]["kafka_partition"]
            kept.offsets.pop(where, None)
            if one["offset"] is not None:
                kept.offsets[where] = one["offset"]["kafka_offset"]
        return 200, {"message": "The offsets for this connector have been altered successfully"}

    def _create(self, asked: Asked) -> Answer:
        body, name = asked.body, asked.body["name"]
        if name in self.connectors:
            return 409, _error(409, f"Connector {name} already exists")
        return self._put(name, body["config"], body.get("initial_state", "RUNNING"))

    def _put(self, name: str, config: dict[str, str], state: str | None = None) -> Answer:
        if wrong := _problems(config):
            listed = "\n".join(wrong)
            text = f"Connector configuration is invalid and contains the following {len(wrong)} error(s):\n{listed}\n"
            text += "You can also find the above list of errors at the endpoint `/connector-plugins/…/config/validate`"
            return 400, _error(400, text)
        new = name not in self.connectors
        if new:
            self.connectors[name] = Kept(config, state or "RUNNING", state or "RUNNING", self.lag)
        self.connectors[name].config = config
        return (201 if new else 200), self._changed(name)

    def _to(self, name: str, state: str) -> None:
        kept = self.connectors[name]
        kept.before, kept.state, kept.left = kept.state, state, self.lag

    def _changed(self, name: str) -> dict[str, Any]:
        return self._info(name) | _warned(self.connectors[name].config)

    def _info(self, name: str) -> dict[str, Any]:
        tasks = [{"connector": name, "task": number} for number in range(2)]
        return {"name": name, "config": self.connectors[name].config, "tasks": tasks, "type": "sink"}

    def _status(self, name: str) -> dict[str, Any]:
        kept = self.connectors[name]
        state = kept.state if kept.left <= 0 else kept.before
        kept.left -= 1
        one = {"state": "FAILED" if kept.trace else state, "worker_id": WORKER_ID}
        one |= {"trace": kept.trace} if kept.trace else {}
        tasks = [] if state == "STOPPED" else [{"id": number, **one} for number in range(2)]
        return {"name": name, "connector": {"state": state, "worker_id": WORKER_ID}, "tasks": tasks, "type": "sink"}


Route = Callable[[ScriptedWorker, Asked], Answer]
_ROUTES: dict[str, Route] = {
    "GET progress": ScriptedWorker._progress,
    "GET connectors": ScriptedWorker._list,
    "POST connectors": ScriptedWorker._create,
    "PUT connectors NAME config": lambda worker, asked: worker._put(asked.name, asked.body),
    "PUT connector-plugins NAME config N": lambda worker, asked: (200, _validated(asked.name, asked.body)),
    "DELETE connectors NAME": ScriptedWorker._delete,
    "GET connectors NAME": lambda worker, asked: (200, worker._info(asked.name)),
    "GET connectors NAME status": lambda worker, asked: (200, worker._status(asked.name)),
    "GET connectors NAME topics": lambda worker, asked: (200, {asked.name: {"topics": ["orders"]}}),
    "PATCH connectors NAME config": ScriptedWorker._patch,
    "PUT connectors NAME pause": ScriptedWorker._told,
    "PUT connectors NAME resume": ScriptedWorker._told,
    "PUT connectors NAME stop": ScriptedWorker._told,
    "POST connectors NAME restart": ScriptedWorker._restart,
    "POST connectors NAME tasks N restart": ScriptedWorker._restart_task,
    "GET connectors NAME offsets": ScriptedWorker._offsets,
    "PATCH connectors NAME offsets": ScriptedWorker._alter_offsets,
    "DELETE connectors NAME offsets": ScriptedWorker._reset_offsets,
}
"""By method and path, names and the fourth part left out."""
_MAY_BE_NEW = "PUT connectors NAME config"


def _problems(config: Mapping[str, str]) -> list[str]:
    return [] if "topics" in config else ["Must configure one of topics or topics.regex"] * 2


def _validated(kind: str, config: Mapping[str, str]) -> dict[str, Any]:
    errors = _problems(config)[:1]
    value = {"name": "topics", "value": "", "recommended_values": ["a", "b"], "errors": errors, "visible": True}
    found = {"name": kind, "error_count": len(errors), "groups": [], "configs": [{"definition": {}, "value": value}]}
    return found | _warned(config)


def _warned(config: Mapping[str, str]) -> dict[str, Any]:
    """As workers of parquet-sink warn; those of Kafka Connect have no such field."""
    return {"warnings": ["Warning [odd]. It is unknown."]} if "odd" in config else {}


def _entry(topic: str, partition: int, offset: int) -> dict[str, Any]:
    return {"partition": {"kafka_topic": topic, "kafka_partition": partition}, "offset": {"kafka_offset": offset}}


def _error(code: int, message: str) -> dict[str, Any]:
    return {"error_code": code, "message": message}
