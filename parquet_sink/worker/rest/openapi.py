"""The OpenAPI document, made from the table of endpoints."""

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

from parquet_sink import __version__
from parquet_sink.worker.rest.endpoints import Endpoint, Parameter
from parquet_sink.worker.rest.schemas import SCHEMAS

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
        "responses": {str(status): _answer(status, schema) for status, schema in one.gives.items()},
    }
    if parameters:
        found["parameters"] = parameters
    if one.takes is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": _ref(one.takes)}}}
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
        schema["items"] = {"type": "string", "enum": list(one.choices)}
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
