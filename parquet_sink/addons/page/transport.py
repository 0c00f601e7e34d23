"""What the page's frame needs of HTTP: who wants HTML, forms, notices in cookies, files, headers."""

import asyncio
import base64
import json
from importlib.resources import files
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from parquet_sink import __version__
from parquet_sink.worker.rest.call import BODY_S, MOST_BYTES, Reply, RestError, response_of

NOTICE: Final = "parquet_sink_notice"
_MOST_NOTICE: Final = 1_500
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_TYPES: Final = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


class HtmlRoute(Route):
    """Is there for who asks for HTML before anything else."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http" or not wants_html(dict(scope["headers"]).get(b"accept", b"").decode("latin-1")):
            return Match.NONE, {}
        return super().matches(scope)


def wants_html(accept: str) -> bool:
    """Whether a client names HTML, as browsers do, and before JSON if it names that."""
    types = [one.partition(";")[0].strip().lower() for one in accept.split(",")]
    if "text/html" not in types:
        return False
    return "application/json" not in types or types.index("text/html") < types.index("application/json")


async def form_of(request: Request) -> dict[str, str]:
    """Fields of a form, within limits of size and time. Raises RestError."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/x-www-form-urlencoded":
        raise RestError(415, "A form is sent as application/x-www-form-urlencoded.")
    received = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for part in request.stream():
                received += part
                if len(received) > 3 * MOST_BYTES:  # as it is encoded
                    raise RestError(413, f"The form is larger than {MOST_BYTES} bytes; send less.")
    except TimeoutError:
        raise RestError(408, f"The form did not come within {BODY_S:g} s.", {"Connection": "close"}) from None
    try:
        return dict(parse_qsl(received.decode(), keep_blank_values=True, errors="strict", max_num_fields=2_000))
    except (UnicodeDecodeError, ValueError):
        raise RestError(400, "The form is not UTF-8, or has more than 2,000 fields.") from None


def as_cookie(text: str, *, failed: bool) -> str:
    """What an action came to, for the next page."""
    content = json.dumps({"text": text[:_MOST_NOTICE], "failed": failed}).encode()
    return base64.urlsafe_b64encode(content).decode()


def notice_in(value: str | None) -> dict[str, Any] | None:
    """What an action came to; whatever is wrong with a cookie, there is none."""
    try:
        found = json.loads(base64.urlsafe_b64decode(value or ""))
        return {"text": str(found["text"]), "failed": bool(found["failed"])}
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


async def static_file(request: Request) -> Response:
    """A file of the page; the version in its address changes with the program's."""
    name = request.path_params["name"]
    found = files("parquet_sink.addons.page") / "static" / name
    media_type = _TYPES.get(f".{name.rpartition('.')[2]}")
    if "/" in name or "%" in name or media_type is None or not found.is_file():
        return response_of(Reply({"error_code": 404, "message": "HTTP 404 Not Found"}, 404))
    cached = "public, max-age=86400" if request.query_params.get("v") == __version__ else "no-cache"
    return Response(found.read_bytes(), 200, {**HEADERS, "Cache-Control": cached}, media_type)
