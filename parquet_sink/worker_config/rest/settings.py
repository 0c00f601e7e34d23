"""Keys of the worker file for its REST API, and the settings that they fill."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

from parquet_sink.config.checks import PRINTABLE
from parquet_sink.config.declared import declared, filled_by, key, keys_of
from parquet_sink.config.key import Check, Origin, Value
from parquet_sink.config.machine import Machine
from parquet_sink.config.report import quoted
from parquet_sink.config.secret import Secret
from parquet_sink.config.values import Values
from parquet_sink.worker_config.rest.roles import CertificateRole, Role, parse_certificate_role
from parquet_sink.worker_config.rest.values import Address, HeaderRule, Scheme, parse_address, parse_rules

DEFAULT_LISTENERS: Final = (Address("http", "localhost", 8083),)
BASIC_AUTH_EXTENSION: Final = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
LISTENERS: Final = "listeners"
ADMIN_LISTENERS: Final = "admin.listeners"
USERS: Final = "rest.basic.auth.file"
CERTIFICATE_ROLES: Final = "rest.client.certificate.roles"
EXTENSIONS: Final = "rest.extension.classes"
ADVERTISED: Final = "rest.advertised.listener"
TRACKING: Final = "topic.tracking.enable"
TRACKING_RESET: Final = "topic.tracking.allow.reset"
TLS: Final = "listeners.https."
ADMIN_TLS: Final = "admin.listeners.https."
_ORIGINS: Final = "access.control.allow.origin"
_METHODS: Final = "access.control.allow.methods"
_HEADERS: Final = "response.http.headers.config"
_FORM: Final = "Form of that file, which it must have; JKS and PKCS12 stand for each other, as in Java."

ClientAuth = Literal["none", "requested", "required"]
_Form = Literal["PEM", "PKCS12", "JKS"]


def _each(parse: Callable[[str], object]) -> Callable[[Value], str | None]:
    def test(value: Value) -> str | None:
        try:
            for one in value if isinstance(value, tuple) else (str(value),):
                parse(one)
        except ValueError as error:
            return str(error)
        return None

    return test


def _extension(value: Value) -> str | None:
    unknown = [name for name in value if name != BASIC_AUTH_EXTENSION] if isinstance(value, tuple) else []
    if not unknown:
        return None
    return f"{quoted(unknown[0])} is a Java class, which cannot be loaded; remove it."


def _protocols(value: Value) -> str | None:
    unknown = [name for name in value if name not in ("TLSv1.2", "TLSv1.3")] if isinstance(value, tuple) else []
    return f"{quoted(unknown[0])} is too old, or no version of TLS; use TLSv1.2 and TLSv1.3." if unknown else None


_ADDRESSES: Final = Check("addresses, http or https", _each(parse_address))
_ROLES: Final = Check("rules, see there", _each(parse_certificate_role))
_RULES: Final = Check("rules, see there", _each(parse_rules))


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


@declared(group="REST API: TLS", prefix=TLS, origin=Origin.CONNECT)
class _TlsKeys:
    """By Java's names: of the server's identity, of clients, of the protocol. `build` makes `TlsSettings` of them."""

    location: ClassVar[str] = key(
        "ssl.keystore.location", "File with the server's certificate, its chain and its key: PEM, PKCS#12, JKS."
    )
    password: ClassVar[Secret] = key("ssl.keystore.password", "Password of that file; PEM files have none.")
    key_password: ClassVar[Secret] = key("ssl.key.password", "Password of the key in it.")
    form: ClassVar[_Form] = key("ssl.keystore.type", _FORM, default_text="as the file is")
    chain: ClassVar[str] = key(
        "ssl.keystore.certificate.chain", "In place of a file: the certificate and its chain in PEM form."
    )
    own_key: ClassVar[Secret] = key("ssl.keystore.key", "In place of a file: the key in PEM form.")
    client_auth: ClassVar[ClientAuth] = key(
        "ssl.client.auth",
        "Whether clients must show a certificate that an authority of the truststore signed. `requested` asks for "
        "one, and takes those that have none.",
        default="none",
    )
    authorities: ClassVar[str] = key(
        "ssl.truststore.location", "PEM, PKCS#12 or JKS file with the authorities whose clients are let in."
    )
    authorities_password: ClassVar[Secret] = key(
        "ssl.truststore.password", "Password of that file; PEM files have none."
    )
    authorities_form: ClassVar[_Form] = key("ssl.truststore.type", _FORM, default_text="as the file is")
    certificates: ClassVar[str] = key("ssl.truststore.certificates", "In place of a file: the authorities in PEM form.")
    protocols: ClassVar[tuple[str, ...]] = key(
        "ssl.enabled.protocols",
        "Versions of TLS; older ones are refused by name.",
        default=("TLSv1.2", "TLSv1.3"),
        default_text="`TLSv1.2,TLSv1.3`",
        check=Check("TLSv1.2, TLSv1.3", _protocols),
    )
    ciphers: ClassVar[tuple[str, ...]] = key(
        "ssl.cipher.suites",
        "Cipher suites of TLS 1.2 by OpenSSL's names, the first is preferred.",
        default=(),
        default_text="those that Python takes for safe",
    )
    others: ClassVar[str] = key("*", "Other settings of Java's TLS.", no_effect="there is no Java in the server.")


TLS_KEYS: Final = keys_of(_TlsKeys)
ADMIN_TLS_KEYS: Final = tuple(replace(one, name=ADMIN_TLS + one.name.removeprefix(TLS)) for one in TLS_KEYS)


@declared(group="REST API", origin=Origin.CONNECT)
class CrossOrigin:
    """Whose pages may use the API from a browser. methods: which they may send."""

    origins: tuple[str, ...] = key(
        _ORIGINS,
        "Origins whose pages may use the API from a browser (CORS), `https://ops.example.com` say; `*` within one "
        "stands for anything, and alone for all of them, which then cannot send credentials.",
        default=(),
        default_text="only the API's own",
    )
    methods: tuple[str, ...] = key(
        _METHODS,
        "What those origins may send.",
        default=(),
        absent=("GET", "POST", "HEAD"),
        default_text="`GET,POST,HEAD`",
        needs=_ORIGINS,
        computed=lambda values, machine: tuple(method.upper() for method in values.names(_METHODS)),
    )


def addresses(values: Values, name: str) -> tuple[Address, ...]:
    """Of a key whose value was checked."""
    return tuple(map(parse_address, values.names(name)))


def _admin(values: Values, machine: Machine) -> tuple[Address, ...] | None:
    return addresses(values, ADMIN_LISTENERS) if ADMIN_LISTENERS in values.given else None


@declared(group="REST API", origin=Origin.CONNECT)
class RestSettings:
    """How the API is served. given: whether the file says where.

    admin: where `/admin/loggers` is; None where all else is, empty nowhere. users: password by name; empty when nobody
    signs in. roles: of users that have one; the others are admins. advertised_*: of the worker's id, None where the
    listener says it. host_name: the machine's.
    """

    listeners: tuple[Address, ...] = key(
        LISTENERS,
        "Addresses that the REST API listens on. A host other than this machine itself (`localhost`, `127.0.0.1`, "
        "`[::1]`) needs https, and either `rest.basic.auth.file` or `listeners.https.ssl.client.auth=required`; else "
        "the start is refused. An empty host stands for all of the machine's addresses, port 0 for any free one.",
        default=DEFAULT_LISTENERS,
        absent=None,
        default_text="`http://localhost:8083` for `parquet-sink worker`, none for `run`",
        type_=tuple[str, ...],
        check=_ADDRESSES,
        computed=lambda values, machine: addresses(values, LISTENERS) or DEFAULT_LISTENERS,
    )
    given: bool = filled_by(LISTENERS, default=False, computed=lambda values, machine: LISTENERS in values.given)
    advertised_host: str | None = key(
        "rest.advertised.host.name",
        "The worker's name towards others: with the port it is `worker_id` in every status. Requests to an address of "
        "this machine alone may have it as their `Host`, as a proxy in front of the worker sends it.",
        default=None,
        default_text="the host of the listener",
        check=PRINTABLE,
    )
    advertised_port: int | None = key(
        "rest.advertised.port",
        "The port in `worker_id`.",
        default=None,
        default_text="the port of the listener",
        minimum=1,
        maximum=65535,
    )
    advertised_scheme: Scheme | None = key(
        ADVERTISED,
        "Which of the listeners gives host and port of `worker_id`, the first of its kind.",
        default=None,
        default_text="http, where there is one",
    )
    users_file: ClassVar[str] = key(
        USERS,
        "File of users and passwords (`user: password` or `user=password`, one a line), as Kafka Connect's "
        "`PropertyFileLoginModule` reads it. When it is set, every request must sign in by basic authentication. A "
        "role may stand behind the password, `user: password,viewer`: `viewer`, `operator` or `admin`; without one a "
        "user is `admin`.",
        check=PRINTABLE,
        origin=Origin.OWN,
    )
    users: tuple[tuple[str, Secret], ...] = ()
    roles: tuple[tuple[str, Role], ...] = ()
    certificate_roles: tuple[CertificateRole, ...] = key(
        CERTIFICATE_ROLES,
        "Roles by the subject of a client's certificate, the first that fits: `OU=platform:operator, CN=alice:admin, "
        "*:viewer`; `*` is everybody over https. Who fits none may do nothing. It needs "
        "`listeners.https.ssl.client.auth`; of who signs in by password the lower of both roles counts. Without the "
        "key a certificate makes `admin`.",
        default=(),
        absent=None,
        default_text="every certificate that is let in is `admin`",
        type_=tuple[str, ...],
        check=_ROLES,
        origin=Origin.OWN,
        computed=lambda values, machine: tuple(map(parse_certificate_role, values.names(CERTIFICATE_ROLES))),
    )
    anonymous_health: bool = key(
        "rest.health.anonymous",
        "Whether `GET /health` is answered without signing in, for probes that cannot.",
        default=False,
        needs=USERS,
        origin=Origin.OWN,
    )
    extensions: ClassVar[tuple[str, ...]] = key(
        EXTENSIONS,
        f"Only `{BASIC_AUTH_EXTENSION}`: it needs `rest.basic.auth.file`, which says the same without it.",
        default=(),
        check=Check("only Kafka Connect's basic authentication", _extension),
    )
    cross_origin: CrossOrigin = CrossOrigin()
    headers: tuple[HeaderRule, ...] = key(
        _HEADERS,
        "Headers that each answer gets: `set X-Frame-Options: DENY, add Cache-Control: no-cache`, also `setDate` and "
        "`addDate` with milliseconds from now; a rule with a comma stands in double quotes.",
        default=(),
        absent=None,
        type_=str,
        check=_RULES,
        computed=lambda values, machine: parse_rules(values.text(_HEADERS) or ""),
    )
    admin: tuple[Address, ...] | None = key(
        ADMIN_LISTENERS,
        "Addresses for `/admin/loggers` alone, which the other listeners then do not have; a key with nothing behind "
        "it turns it off. The rules of `listeners` hold here, too.",
        default=None,
        default_text="those of `listeners`",
        type_=tuple[str, ...],
        check=_ADDRESSES,
        may_be_empty=True,
        computed=_admin,
    )
    tls: TlsSettings | None = None
    admin_tls: TlsSettings | None = None
    topic_tracking: bool = key(
        TRACKING,
        "Whether the topics of which a connector delivered records are kept and shown by REST "
        "(`/connectors/NAME/topics`).",
        default=True,
        group="Hosting connectors",
    )
    topic_reset: bool = key(
        TRACKING_RESET,
        "Whether that list may be emptied (`/connectors/NAME/topics/reset`).",
        default=True,
        group="Hosting connectors",
    )
    host_name: str = "localhost"

    @property
    def advertised(self) -> Address:
        """The listener that others are given."""
        requested: tuple[Scheme, ...] = (self.advertised_scheme,) if self.advertised_scheme else ("http", "https")
        return next((one for scheme in requested for one in self.listeners if one.scheme == scheme), self.listeners[0])

    @property
    def worker_id(self) -> str:
        """Host and port, as others are given them."""
        listener = self.advertised
        host = self.advertised_host or (self.host_name if listener.is_everywhere else listener.shown_host)
        return f"{host}:{self.advertised_port or listener.port}"
