"""Answers in a form in which two sides can be compared, kept in a file: what must differ is replaced or left out."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from integration.connect.play import Answer
from integration.connect.steps import Side

FILE: Final = Path(__file__).with_name("recorded.json")
"""What Kafka Connect answered."""
Entry = dict[str, Any]

_HEADERS_LEFT_OUT: Final = frozenset({"date", "content-length", "connection", "keep-alive", "transfer-encoding"})
_PLACE: Final = re.compile(r"line: \d+, column: \d+")
"""In a body; it depends on how long the names of temporary folders are."""
_CLUSTER: Final = re.compile(r"[\w-]{22}")


def entries(answers: Sequence[Answer], side: Side) -> list[Entry]:
    """The answers, comparable."""
    return [_entry(one, side) for one in answers]


def _entry(one: Answer, side: Side) -> Entry:
    headers = {name: value for name, value in sorted(one.headers.items()) if name not in _HEADERS_LEFT_OUT}
    if "allow" in headers:
        headers["allow"] = ", ".join(sorted(headers["allow"].replace(" ", "").split(",")))
    body = one.body
    if isinstance(body, dict) and isinstance(body.get("message"), str):
        body = {**body, "message": _PLACE.sub("<place>", body["message"])}
    raw = {"title": one.title, "request": one.request, "status": one.status, "headers": headers, "body": body}
    text = json.dumps(raw, ensure_ascii=False)
    for found, stands_for in sorted(side.texts.items(), key=lambda pair: -len(pair[0])):
        text = text.replace(json.dumps(found, ensure_ascii=False)[1:-1], stands_for)
    entry: Entry = json.loads(text)
    entry["body"] = _comparable(entry["body"], side)
    if isinstance(entry["body"], list) and all(isinstance(name, str) for name in entry["body"]):
        entry["body"].sort()
    return entry


def _comparable(body: Any, side: Side) -> Any:
    """A body without what is the class's own; lists of what has names become objects by name."""
    if isinstance(body, list) and all(isinstance(one, dict) and "partition" in one for one in body):
        return sorted(body, key=lambda one: json.dumps(one["partition"], sort_keys=True))
    if isinstance(body, list):
        return _listed([_comparable(one, side) for one in body], side)
    if not isinstance(body, dict):
        return body
    found = {name: _comparable(value, side) for name, value in body.items()}
    if "connector.class" in found:
        found = {name: value for name, value in found.items() if not name.startswith(side.own_prefix)}
    if "worker_id" in found and "version" in found:
        found["version"] = "<version>"  # Kafka Connect has null for a moment while something starts
    if "trace" in found:
        found["trace"] = "<trace>"
    if _CLUSTER.fullmatch(str(found.get("kafka_cluster_id", ""))):
        found["kafka_cluster_id"] = "<cluster>"
    if isinstance(found.get("last_modified"), int):
        found["last_modified"] = "<time>"
    if "documentation" in found:
        found["documentation"] = "<documentation>" if found["documentation"] else ""
    return found


def _listed(body: list[Any], side: Side) -> Any:
    """Definitions of keys, definitions with values, and plugins: by name; all else as it is."""
    by_name = {_name(one): one for one in body}
    if not body or None in by_name or len(by_name) < len(body):
        return body
    return {name: one for name, one in sorted(by_name.items()) if not str(name).startswith(side.own_prefix)}


def _name(one: Any) -> str | None:
    if not isinstance(one, Mapping):
        return None
    if "definition" in one:
        return str(one["definition"].get("name"))
    return str(one["name"]) if "default_value" in one else one.get("class")


def write(found: Sequence[Entry], path: Path = FILE) -> None:
    """One answer a line, so that a change is seen where it is."""
    lines = [json.dumps(one, ensure_ascii=False, sort_keys=True) for one in found]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def read(path: Path = FILE) -> list[Entry]:
    """What was written."""
    found: list[Entry] = json.loads(path.read_text(encoding="utf-8"))
    return found
