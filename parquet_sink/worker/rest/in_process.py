"""The endpoints of REST, called within this process, as the worker's page does."""

import json
import re
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from starlette.datastructures import QueryParams

from parquet_sink.worker.herder.errors import Elsewhere
from parquet_sink.worker.rest.call import NO_BODY, Call, Endpoint, Reply, RestError, forwarded_role, read_json, require
from parquet_sink.worker.rest.peers import Forwarded, Peers
from parquet_sink.worker_config.rest.roles import Role


class Api:
    """The endpoints of REST, called in this process; `peers` are asked for what only the leader does."""

    def __init__(self, endpoints: Sequence[Endpoint], peers: Peers, role: Role = Role.ADMIN) -> None:
        self._endpoints = [(one, re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", one.path))) for one in endpoints]
        self._peers, self.role = peers, role

    def by(self, role: Role) -> "Api":
        """The same for who has this role."""
        found = copy(self)
        found.role = role
        return found

    def may(self, method: str, path: str) -> bool:
        """Whether who visits may call an endpoint, named by its path with what is variable in braces."""
        needed = next((one.role for one, _ in self._endpoints if (one.method, one.path) == (method, path)), None)
        return needed is not None and self.role.includes(needed)

    def ask(self, method: str, target: str, body: Any = NO_BODY) -> Any:
        """What the endpoint gives, as JSON has it; target: path and query, encoded. Raises RestError."""
        path, _, query = target.partition("?")
        raw = b"" if body is NO_BODY else json.dumps(body, ensure_ascii=False).encode()
        for one, pattern in self._endpoints:
            if one.method == method and (found := pattern.fullmatch(path)):
                role = require(self.role, one.role)
                names = {name: unquote(text) for name, text in found.groupdict().items()}
                headers = {"content-type": "application/json"}
                whole = Forwarded(method, target, headers, raw, forwarded_role(role))
                return self._reply(one, Call(names, QueryParams(query), role=role), whole)
        raise RestError(404, f"There is no {method} {path}.")

    def of_worker(self, elsewhere: Elsewhere, target: str) -> Any:
        """What another worker answers to a GET that only workers may ask. Raises RestError."""
        whole = Forwarded("GET", target, {"accept": "application/json"}, b"")
        return _content_of(self._peers.forward(elsewhere, whole))

    def _reply(self, one: Endpoint, call: Call, whole: Forwarded) -> Any:
        try:
            body = read_json(whole.body)
            return one.handler(replace(call, body=body)).content
        except Elsewhere as elsewhere:
            return _content_of(self._peers.forward(elsewhere, whole))


def _content_of(reply: Reply) -> Any:
    """What another worker answered. Raises RestError for an error of it."""
    try:
        content = json.loads(reply.content) if isinstance(reply.content, bytes) else reply.content
    except (ValueError, RecursionError):
        raise RestError(502, "What another worker answered is not JSON; ask again.") from None
    if reply.status >= 400:
        message = content.get("message") if isinstance(content, dict) else None
        raise RestError(reply.status, message or f"Another worker answered with status {reply.status}.")
    return content
