"""The OpenAPI document, made from the table of endpoints."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import StrEnum
from http import HTTPStatus
from types import UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints

from parquet_sink import __version__
from parquet_sink.history.locating import Place
from parquet_sink.history.records import UploadRecord
from parquet_sink.history.store import HistoryExtent, HourSummary
from parquet_sink.worker.herder.values import (
    ConnectorProgress,
    FlushReport,
    HoldingWorker,
    LastError,
    LastUpload,
    State,
    Workers,
)
from parquet_sink.worker.jobs import JobProgress
from parquet_sink.worker.rest.call import Endpoint, Parameter
from parquet_sink.worker.rest.jobs import BODIES, Option

_TEXT: Final = {"type": "string"}
_WHOLE: Final = {"type": "integer"}
_NUMBER: Final = {"type": "number"}
_FLAG: Final = {"type": "boolean"}
_STATES: Final = [one.value for one in State]
_PARAMETER: Final = re.compile(r"\{(\w+)\}")
_TEXT_PATHS: Final = frozenset({"Metrics"})


def document(endpoints: Sequence[Endpoint], *, signs_in: bool) -> dict[str, Any]:
    """OpenAPI 3.1. signs_in: whether the server asks for basic authentication."""
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one)
    found: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "parquet-sink",
            "version": __version__,
            "description": "Kafka Connect's REST API, with `/progress` and `/metrics` beside it.",
        },
        "paths": paths,
        "components": {"schemas": dict(SCHEMAS)},
    }
    if signs_in:
        found["components"]["securitySchemes"] = {"basic": {"type": "http", "scheme": "basic"}}
        found["security"] = [{"basic": []}]
    return found


def _operation(one: Endpoint) -> dict[str, Any]:
    parameters = [*map(_in_path, _PARAMETER.findall(one.path)), *map(_in_query, one.query)]
    found: dict[str, Any] = {
        "operationId": _name(one),
        "summary": one.summary,
        "tags": [one.tag],
        "x-role": str(one.role),
        "responses": {str(status): _answer(status, schema) for status, schema in one.gives.items()},
    }
    if parameters:
        found["parameters"] = parameters
    if one.takes is not None:
        found["requestBody"] = {
            "required": not one.may_be_empty,
            "content": {"application/json": {"schema": _ref(one.takes)}},
        }
    return found


def _answer(status: int, schema: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if schema is not None:
        media_type = "text/plain" if schema in _TEXT_PATHS else "application/json"
        found["content"] = {media_type: {"schema": _ref(schema)}}
    return found


def _in_path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _in_query(one: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": one.type}
    if one.type == "array":
        schema["items"] = {"type": "string", **({"enum": list(one.choices)} if one.choices else {})}
    elif one.choices:
        schema["enum"] = list(one.choices)
    if one.default is not None:
        schema["default"] = one.default
    return {"name": one.name, "in": "query", "description": one.doc, "schema": schema}


def _name(one: Endpoint) -> str:
    words = re.findall(r"\w+", one.path) or ["root"]
    return "_".join([one.method.lower(), *words])


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: Mapping[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": dict(properties), **({"required": required} if required else {})}


def _list(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(items)}


def _map(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": dict(values)}


def _or_null(type_: str) -> dict[str, Any]:
    return {"type": [type_, "null"]}


_PLAIN: Final[Mapping[Any, Any]] = {
    str: _TEXT,
    int: _WHOLE,
    float: _NUMBER,
    bool: _FLAG,
}
_NAMED: Final[Mapping[Any, str]] = {LastError: "LastError", LastUpload: "Upload"}
"""Values with a schema of their own."""


def _fields_of(kind: type) -> dict[str, Any]:
    """A dataclass of `herder.values`, as `renderings.progress` writes it."""
    hints = get_type_hints(kind)
    return _object({one.name: _of(hints[one.name]) for one in fields(kind)})


def _of(hint: Any) -> dict[str, Any]:
    """The value of a field."""
    if get_origin(hint) is tuple:
        return _list(_of(get_args(hint)[0]))
    if isinstance(hint, UnionType):
        inner = _of(get_args(hint)[0])
        return _or_null(inner["type"]) if inner in _PLAIN.values() else {"oneOf": [inner, {"type": "null"}]}
    if get_origin(hint) is Mapping:
        return _map(_of(get_args(hint)[1]))
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return {"type": "string", "enum": [one.value for one in hint]}
    if hint in _NAMED:
        return _ref(_NAMED[hint])
    return dict(_PLAIN[hint]) if hint in _PLAIN else _fields_of(hint)


_TASK_ID: Final = _object({"connector": _TEXT, "task": _WHOLE})
_STATE: Final = {"state": {"type": "string", "enum": _STATES}, "worker_id": _TEXT, "trace": _TEXT}
_STATED: Final = {**_STATE, "version": _TEXT}
_VALUE: Final = {"type": ["string", "number", "boolean"]}
_PARTITION: Final = {"kafka_topic": _TEXT, "kafka_partition": _WHOLE}
_TYPE: Final = {"enum": ["sink", "source", "unknown"]}
_WORD: Final = {"type": ["string", "integer"]}

_HISTORY: Final = {"connector": _TEXT, "path": _TEXT, "enabled": _FLAG}
_NEXT: Final = {"next": _or_null("string")}
_SKIPPED: Final = {"skipped": _list(_list(_TEXT))}
_SPAN: Final = {"oneOf": [_list(_TEXT), {"type": "null"}]}
_OFFSETS: Final = {"topic": _TEXT, "partition": _WHOLE, "offset": _WHOLE}
_GROUP: Final = {
    **dict.fromkeys(("topic", "stage", "reason"), _TEXT),
    **dict.fromkeys(("records", "payload_bytes"), _WHOLE),
    "offsets": _map(_list(_WHOLE)),
    "timestamps": _SPAN,
    "parked_at": _SPAN,
}
_CONTENT: Final = {name: _or_null("string") for name in ("key", "key_base64", "value", "value_base64")}
_PARKED: Final = {
    "connector": _TEXT,
    **_OFFSETS,
    "timestamp": _or_null("string"),
    **dict.fromkeys(("stage", "reason", "parked_at"), _TEXT),
    **{name: _or_null("integer") for name in ("key_bytes", "value_bytes", "headers")},
    **_CONTENT,
    "header_values": {"type": ["array", "null"]},
}


def _deliveries() -> dict[str, Mapping[str, Any]]:
    """What a connector sent and set aside."""
    upload = _fields_of(UploadRecord)
    added = {name: _or_null("integer") for name in ("accepted_ms", "freshness_ms")}
    upload = {**upload, "properties": {**upload["properties"], **added}}
    place = {"place": {"enum": [one.value for one in Place]}, "delivered": _FLAG, "sent": _WHOLE, "former_topic": _FLAG}
    bounds = {"bounds": {"oneOf": [_list(_WHOLE), {"type": "null"}]}, "done_until": _or_null("integer")}
    location = _object({**_OFFSETS, **place, **bounds, "file": {"oneOf": [_ref("UploadedFile"), {"type": "null"}]}})
    extent = {"oneOf": [_fields_of(HistoryExtent), {"type": "null"}]}
    sizes = dict.fromkeys(("max_bytes", "files", "records", "size_bytes"), _WHOLE)
    named = {"path": _TEXT, "size_bytes": _WHOLE}
    told = {"topic": _TEXT, **dict.fromkeys(("partition", "first_offset", "last_offset", "records"), _WHOLE)}
    return {
        "UploadedFile": upload,
        "Uploads": _object({**_HISTORY, "extent": extent, "files": _list(_ref("UploadedFile")), **_NEXT}),
        "UploadHours": _object({**_HISTORY, "hours": _list(_fields_of(HourSummary))}),
        "Location": _object({**_HISTORY, "location": {"oneOf": [location, {"type": "null"}]}}),
        "Parked": _object({"connector": _TEXT, "folder": _TEXT, **sizes, "groups": _list(_object(_GROUP)), **_SKIPPED}),
        "ParkedRecords": _object(
            {
                "connector": _TEXT,
                "folder": _TEXT,
                **_SKIPPED,
                "records": _list(_object(_PARKED, (*_CONTENT, "header_values"))),
                "left": _WHOLE,
                **_NEXT,
            }
        ),
        "Archived": _object(
            {
                "connector": _TEXT,
                "archive": _TEXT,
                "waiting": _list(_TEXT),
                "files": _list(_object({**named, **told}, tuple(told))),
                **_NEXT,
            }
        ),
        "Holders": _object({"connector": _TEXT, "workers": _list(_fields_of(HoldingWorker))}),
        "Folder": _object({"connector": _TEXT, "folder": _TEXT, "files": _map(_WHOLE)}),
    }


def _jobs() -> dict[str, Mapping[str, Any]]:
    """Work that takes some time, and what begins it."""
    line = _object({"text": _TEXT, "error": _FLAG})
    times = {"exit_status": _or_null("integer"), "begun_ms": _WHOLE, "ended_ms": _or_null("integer")}
    progress = {"oneOf": [_fields_of(JobProgress), {"type": "null"}]}
    job = {
        "id": _TEXT,
        "connector": _TEXT,
        "command": _list(_TEXT),
        "state": {"enum": ["RUNNING", "ENDED"]},
        **times,
        "progress": progress,
        "lines": _list(line),
        "next": _WHOLE,
        "more": _FLAG,
    }
    return {"Job": _object(job), "Jobs": _list(_ref("Job")), **{name: _body(one) for name, one in BODIES.items()}}


def _body(options: Sequence[Option]) -> dict[str, Any]:
    """Of an object whose fields may all be left out."""
    fields = {one.name: {**_in_query(Parameter(one.name, one.type, one.doc, one.choices))["schema"]} for one in options}
    described = {one.name: {**fields[one.name], "description": one.doc} for one in options}
    return {**_object(described, tuple(described)), "additionalProperties": False}


_CONNECTOR: Final = {"name": _TEXT, "config": _map(_TEXT), "tasks": _list(_TASK_ID), "type": _TYPE}

SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "Error": _object({"error_code": _WHOLE, "message": _TEXT}),
    "Message": _object({"message": _TEXT}),
    "Names": _list(_TEXT),
    "Server": _object({"version": _TEXT, "commit": _TEXT, "kafka_cluster_id": _or_null("string")}),
    "Health": _object({"status": {"type": "string", "enum": ["healthy", "starting", "unhealthy"]}, "message": _TEXT}),
    "Metrics": _TEXT,
    "Config": _map(_VALUE),
    "ConfigPatch": _map({"type": ["string", "number", "boolean", "null"]}),
    "NewConnector": _object(
        {
            "name": _TEXT,
            "config": _ref("Config"),
            "initial_state": {"type": "string", "enum": ["RUNNING", "PAUSED", "STOPPED"]},
        },
        ("initial_state",),
    ),
    "Connector": _object(_CONNECTOR),
    "ChangedConnector": _object({**_CONNECTOR, "warnings": _list(_TEXT)}, ("warnings",)),
    "Connectors": {
        "oneOf": [
            _ref("Names"),
            _map(_object({"info": _ref("Connector"), "status": _ref("Status")}, ("info", "status"))),
        ]
    },
    "Purged": _object({"left": _list(_TEXT), "warnings": _list(_TEXT)}),
    "TaskStatus": _object({"id": _WHOLE, **_STATED}, ("trace",)),
    "Status": _object(
        {
            "name": _TEXT,
            "connector": _object(_STATED, ("trace",)),
            "tasks": _list(_ref("TaskStatus")),
            "type": _TYPE,
        }
    ),
    "Tasks": _list(_object({"id": _TASK_ID, "config": _map(_TEXT)})),
    "TasksConfig": _map(_map(_TEXT)),
    "Topics": _map(_object({"topics": _list(_TEXT)})),
    "Offsets": _object(
        {
            "offsets": _list(
                _object(
                    {
                        "partition": _object(_PARTITION),
                        "offset": _object({"kafka_offset": _WHOLE}),
                        "end": {"type": ["integer", "null"]},
                    },
                    ("end",),
                )
            )
        }
    ),
    "NewOffsets": _object(
        {
            "offsets": _list(
                _object(
                    {
                        "partition": _object({"kafka_topic": _TEXT, "kafka_partition": _WORD}),
                        "offset": {"oneOf": [_object({"kafka_offset": _WORD}), {"type": "null"}]},
                    },
                    ("offset",),
                )
            )
        }
    ),
    "NewFlush": _object(
        {"partitions": _list(_object({"kafka_topic": _TEXT, "kafka_partition": _WORD}, ("kafka_partition",)))},
        ("partitions",),
    ),
    "Flush": _fields_of(FlushReport),
    "Plugins": _list(_object({"class": _TEXT, "type": _TEXT, "version": _TEXT})),
    "Key": _object(
        {
            "name": _TEXT,
            "type": {"enum": ["STRING", "BOOLEAN", "SHORT", "INT", "LONG", "LIST", "CLASS", "PASSWORD"]},
            "required": _FLAG,
            "default_value": _or_null("string"),
            "importance": {"enum": ["HIGH", "MEDIUM", "LOW"]},
            "documentation": _TEXT,
            "group": _TEXT,
            "order_in_group": _WHOLE,
            "width": {"enum": ["NONE", "SHORT", "MEDIUM", "LONG"]},
            "display_name": _TEXT,
            "dependents": _list(_TEXT),
            "order": _WHOLE,
        }
    ),
    "Keys": _list(_ref("Key")),
    "ConfigInfos": _object(
        {
            "name": _TEXT,
            "error_count": _WHOLE,
            "groups": _list(_TEXT),
            "configs": _list(
                _object(
                    {
                        "definition": {"oneOf": [_ref("Key"), {"type": "null"}]},
                        "value": _object(
                            {
                                "name": _TEXT,
                                "value": _or_null("string"),
                                "recommended_values": _list(_TEXT),
                                "errors": _list(_TEXT),
                                "visible": _FLAG,
                            }
                        ),
                    }
                )
            ),
            "warnings": _list(_TEXT),
        },
        ("warnings",),
    ),
    **_deliveries(),
    **_jobs(),
    "Level": _object({"level": {"enum": ["ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF"]}}),
    "Logger": _object({"level": _TEXT, "last_modified": _or_null("integer")}),
    "Loggers": _map(_ref("Logger")),
    "Progress": _list(_fields_of(ConnectorProgress)),
    "Workers": _fields_of(Workers),
    "LastError": _fields_of(LastError),
    "Upload": _fields_of(LastUpload),
}
