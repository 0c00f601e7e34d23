"""Addresses that the REST API listens on, as Kafka Connect writes them: `http://localhost:8083`."""

import re
from dataclasses import dataclass
from typing import Final, Literal, cast
from urllib.parse import urlsplit

from parquet_sink.config.report import quoted
from parquet_sink.net.loopback import is_loopback

Scheme = Literal["http", "https"]

_ADDRESS: Final = re.compile(r"(?i:(https?))://(?:\[([0-9a-fA-F:.%]+)\]|([0-9A-Za-z.\-_]*)):([0-9]{1,5})/?")
_EVERYWHERE: Final = ("", "0.0.0.0", "::")  # noqa: S104 - compared with, not listened on


@dataclass(frozen=True)
class Address:
    """One of them. host: empty for all of the machine's addresses. port: 0 for any that is free."""

    scheme: Scheme
    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether nobody reaches it from another machine."""
        return bool(self.host) and is_loopback(urlsplit(f"//{self.shown_host}"))

    @property
    def is_everywhere(self) -> bool:
        """Whether it stands for all of the machine's addresses."""
        return self.host in _EVERYWHERE

    @property
    def shown_host(self) -> str:
        """As a URL has it."""
        return f"[{self.host}]" if ":" in self.host else self.host

    def __str__(self) -> str:
        return f"{self.scheme}://{self.shown_host}:{self.port}"


def parse(text: str) -> Address:
    """The address. Raises ValueError with a reason and a cure."""
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found[4]) > 65535:
        raise ValueError(
            f"{quoted(text)} is no address; write http://localhost:8083, or https:// before a host and a port."
        )
    return Address(cast(Scheme, found[1].lower()), (found[2] or found[3] or "").lower(), int(found[4]))
