"""Addresses of schema registries: what may stand in them, and what the client is given."""

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from parquet_sink.config.key import Check, Value
from parquet_sink.config.secret import Secret

CCOMPAT = "/apis/ccompat/v7"
_APICURIO_PATH = re.compile(r"(.*)/apis/(?:registry/v[23]|ccompat/v\d+)")
_FORM = "write it as https://<host>:<port>"


@dataclass(frozen=True)
class Address:
    """One address. url: without user and password, and without a slash at its end."""

    url: str
    username: str | None = None
    password: Secret | None = None

    @property
    def credentials(self) -> tuple[str, Secret] | None:
        """User and password, which are there together or not at all."""
        return None if self.username is None or self.password is None else (self.username, self.password)

    @property
    def split(self) -> SplitResult:
        return urlsplit(self.url)

    @property
    def secure(self) -> bool:
        """Whether it is reached by https."""
        return self.url.startswith("https:")


def parse(text: str) -> Address:
    """Take user and password out of an address. Raises ValueError saying what is wrong, never showing the address."""
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        raise ValueError(f"is not a valid URL; {_FORM}.") from None
    plain = text.isprintable() and not any(char.isspace() for char in text)
    if url.scheme not in ("http", "https") or not url.hostname or port == 0 or not plain:
        raise ValueError(f"is not a valid URL; {_FORM}.")
    if url.query or url.fragment:
        raise ValueError(f"has a query or a fragment; {_FORM}.")
    host = url.netloc.rpartition("@")[2]
    bare = urlunsplit((url.scheme, host, url.path.rstrip("/"), "", ""))
    if "@" not in url.netloc:
        return Address(bare)
    if not url.username or url.password is None:
        raise ValueError("has a user or a password alone; write https://<user>:<password>@<host>, or neither.")
    return Address(bare, unquote(url.username), Secret(unquote(url.password)))


def confluent_url(url: str) -> str | None:
    """The address at which a registry of Apicurio's speaks Confluent's protocol; None for any other address.

    url: as Apicurio's clients have it, `.../apis/registry/v2` or `v3`, or the host alone as its version 3 permits.
    """
    split = urlsplit(url)
    if split.path in ("", "/"):
        return url.rstrip("/") + CCOMPAT
    found = _APICURIO_PATH.fullmatch(split.path)
    return urlunsplit(split._replace(path=found[1] + CCOMPAT)) if found else None


def is_version_2(url: str) -> bool:
    """Whether the address is the API of Apicurio's version 2, whose records have other ids by default."""
    return urlsplit(url).path.endswith("/apis/registry/v2")


def _urls(value: Value) -> str | None:
    addresses = []
    for number, text in enumerate(value if isinstance(value, tuple) else (), 1):
        try:
            addresses.append(parse(text))
        except ValueError as error:
            return f"Its address number {number} {error}"
    if not addresses:
        return f"It names no address; {_FORM}."
    if len({(one.username, one.password) for one in addresses if one.username}) > 1:
        return "Its addresses have different users; give one user and password for all."
    return None


def _apicurio(value: Value) -> str | None:
    try:
        address = parse(str(value))
    except ValueError as error:
        return f"It {error}"
    if confluent_url(address.url) is None:
        return (
            "It does not end in /apis/registry/v2 or /apis/registry/v3; write such an address, or set "
            f"schema.registry.url to the one that speaks Confluent's protocol (it ends in {CCOMPAT})."
        )
    return None


REGISTRY_URLS = Check("each http or https", _urls)
APICURIO_URL = Check("ends in `/apis/registry/v2` or `v3`, or a host alone", _apicurio)
