"""What the REST API starts from."""

from dataclasses import dataclass, field
from typing import Literal

from parquet_sink.config.secret import Secret
from parquet_sink.worker_config.rest.addresses import Address, Scheme
from parquet_sink.worker_config.rest.header_rules import HeaderRule

DEFAULT_LISTENERS = (Address("http", "localhost", 8083),)
ClientAuth = Literal["none", "requested", "required"]


@dataclass(frozen=True)
class Store:
    """Certificates, perhaps with a key: a file (PEM, PKCS#12, JKS), or text in PEM form. source: the key that names it.

    password: of the file; PEM files have none.
    """

    source: str
    file: str | None = None
    text: Secret | None = None
    password: Secret | None = None


@dataclass(frozen=True)
class TlsSettings:
    """The server's side of TLS. identity: certificate, chain and key together. authorities: of clients."""

    identity: Store
    key_password: Secret | None = None
    authorities: Store | None = None
    client_auth: ClientAuth = "none"
    protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    ciphers: tuple[str, ...] = ()


@dataclass(frozen=True)
class CrossOrigin:
    """Whose pages may use the API from a browser. methods: which they may send."""

    origins: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()


@dataclass(frozen=True)
class RestSettings:
    """How the API is served. given: whether the file says where.

    admin: where `/admin/loggers` is; None where all else is, empty nowhere. users: password by name; empty when nobody
    signs in. advertised_*: of the worker's id, None where the listener says it. host_name: the machine's.
    """

    listeners: tuple[Address, ...] = DEFAULT_LISTENERS
    given: bool = False
    admin: tuple[Address, ...] | None = None
    tls: TlsSettings | None = None
    admin_tls: TlsSettings | None = None
    users: tuple[tuple[str, Secret], ...] = ()
    anonymous_health: bool = False
    advertised_host: str | None = None
    advertised_port: int | None = None
    advertised_scheme: Scheme | None = None
    cross_origin: CrossOrigin = field(default_factory=CrossOrigin)
    headers: tuple[HeaderRule, ...] = ()
    topic_tracking: bool = True
    topic_reset: bool = True
    host_name: str = "localhost"

    @property
    def advertised(self) -> Address:
        """The listener that others are told of."""
        wished: tuple[Scheme, ...] = (self.advertised_scheme,) if self.advertised_scheme else ("http", "https")
        return next((one for scheme in wished for one in self.listeners if one.scheme == scheme), self.listeners[0])

    @property
    def worker_id(self) -> str:
        """Host and port, as others are told of them."""
        told = self.advertised
        host = self.advertised_host or (self.host_name if told.is_everywhere else told.shown_host)
        return f"{host}:{self.advertised_port or told.port}"
