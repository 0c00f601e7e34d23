"""What an endpoint gets and gives: no HTTP library is known here, so that endpoints are plain functions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from starlette.datastructures import QueryParams


class NoBody:
    """Stands for the body of a request that has none."""


NO_BODY: Final = NoBody()


class RestError(Exception):
    """An answer that is an error, in Kafka Connect's form."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, dict(headers or {})


@dataclass(frozen=True)
class Call:
    """One request. path: its variable parts, decoded. body: JSON with numbers as they were written, or NO_BODY.

    base_url: how the client called this server, without a slash at its end.
    """

    path: Mapping[str, str] = field(default_factory=dict)
    query: QueryParams = field(default_factory=QueryParams)
    body: Any = NO_BODY
    base_url: str = ""

    @property
    def connector(self) -> str:
        """The name in the path."""
        return self.path["connector"]

    def flag(self, name: str, *, default: bool = False) -> bool:
        """As Java reads a boolean: `true` in any case, and nothing else, is true."""
        text = self.query.get(name)
        return default if text is None else text.lower() == "true"

    def location(self, name: str) -> str:
        """The address of a connector."""
        return f"{self.base_url}/connectors/{quote(name, safe='')}"


@dataclass(frozen=True)
class Reply:
    """What goes back. content: JSON, or text or bytes with their own media type; None: nothing."""

    content: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "application/json"


Handler = Callable[[Call], Reply]
