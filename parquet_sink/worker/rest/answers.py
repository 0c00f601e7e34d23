"""From replies and errors to HTTP."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from parquet_sink.worker.rest.call import Reply, RestError


def response_of(reply: Reply) -> Response:
    """With the content as JSON, unless it is bytes already; none for None."""
    headers = dict(reply.headers)
    if reply.content is None:
        return Response(status_code=reply.status, headers=headers)
    content = reply.content if isinstance(reply.content, bytes) else _json(reply.content)
    return Response(content, reply.status, headers, reply.media_type)


def error_of(error: RestError) -> Response:
    """Kafka Connect's form of an error."""
    return error_response(error.status, error.message, error.headers)


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Kafka Connect's form of an error."""
    content = {"error_code": status, "message": message}
    return response_of(Reply(content, status, dict(headers or {})))


def _json(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
