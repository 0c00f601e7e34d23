"""Keys of schema registries under Confluent's and Apicurio's names, and checks of single values.

No check shows the value, since it may hold or stand for a secret.
"""

from collections.abc import Callable, Iterable
from typing import Final

from parquet_sink.config.checks import only
from parquet_sink.config.key import Check, Key, Origin, Type, Value
from parquet_sink.config.quantity import Unit
from parquet_sink.config.secret import Secret
from parquet_sink.convert.registry import addresses
from parquet_sink.convert.settings import refused_keys, setting_key, without_meaning

TLS: Final = "schema.registry.ssl."
NO_OAUTH: Final = (
    "No token is fetched from an authorization server; give one in bearer.auth.token, or sign in with "
    "basic.auth.user.info."
)
NO_HEADERS: Final = (
    "No header of one's own is sent to the registry; sign in with basic.auth.user.info or bearer.auth.token."
)
ID_BYTES: Final = {
    "Default4ByteIdHandler": 4,
    "Legacy4ByteIdHandler": 4,
    "DefaultIdHandler": 8,
    "Default8ByteIdHandler": 8,
    "Legacy8ByteIdHandler": 8,
}
"""How long a schema's id is with each of Apicurio's handlers."""


def simple_name(value: Value) -> str:
    """The last part of a Java class's name."""
    return str(value).rpartition(".")[2]


def _upper(value: Value) -> str:
    return str(value).upper()


def _basic_source(value: Value) -> str | None:
    text = _upper(value)
    if text in ("URL", "USER_INFO"):
        return None
    if text == "SASL_INHERIT":
        return (
            "It is SASL_INHERIT, but the registry's credential is never taken from Kafka's; set USER_INFO and "
            "basic.auth.user.info."
        )
    return "It is not one of URL, USER_INFO; write one of them."


def _user_info(value: Value) -> str | None:
    user, colon, _ = value.reveal().partition(":") if isinstance(value, Secret) else ("", "", "")
    return None if user and colon else "It must be a user and a password with a colon between; write user:password."


def _token(value: Value) -> str | None:
    text = value.reveal() if isinstance(value, Secret) else ""
    if text.isascii() and text.isprintable() and " " not in text:
        return None
    return "It holds characters that no token has; write printable ASCII without blanks and without the word Bearer."


def _one_of(words: Iterable[str], reason: str, short: Callable[[Value], str] = _upper) -> Check:
    """Only these words are possible. short: what is compared with them."""
    known = tuple(words)
    rule = ", ".join(f"`{word}`" for word in known)
    return Check(rule, lambda value: None if short(value) in known else reason)


USER_INFO = Check("`user:password`", _user_info)
PEM = _one_of(["PEM"], "Only PEM files are read, no Java key stores; convert it to PEM (keytool, openssl) and set PEM.")
ID_READER = _one_of(
    ["PrefixSchemaIdDeserializer", "DualSchemaIdDeserializer"],
    "A schema's id is read from the record itself, never from headers; remove the key.",
    simple_name,
)


def _ignored(doc: str, no_effect: str, *names: str, type_: Type = Type.STRING) -> tuple[Key, ...]:
    """Settings that have no effect, which a warning says."""
    return tuple(setting_key(name, type_, doc, no_effect=no_effect) for name in names)


_SIGNING_IN = (
    setting_key(
        "basic.auth.credentials.source",
        Type.STRING,
        "Where user and password come from: the address (`URL`) or `basic.auth.user.info` (`USER_INFO`).",
        default_text="whichever is there",
        check=Check("`URL`, `USER_INFO`", _basic_source),
    ),
    setting_key(
        "basic.auth.user.info",
        Type.PASSWORD,
        "User and password at the registry. Also taken when no source is set and the address has no user.",
        check=USER_INFO,
    ),
    setting_key(
        "schema.registry.basic.auth.user.info",
        Type.PASSWORD,
        "Older name of `basic.auth.user.info`; it wins over that one, as in Confluent's client.",
        check=USER_INFO,
    ),
    setting_key(
        "bearer.auth.credentials.source",
        Type.STRING,
        "Where the token comes from: `bearer.auth.token`.",
        default_text="STATIC_TOKEN",
        check=_one_of(
            ["STATIC_TOKEN"],
            "Only STATIC_TOKEN is possible, a token that is given; set it with bearer.auth.token, or sign in with "
            "basic.auth.user.info.",
        ),
    ),
    setting_key(
        "bearer.auth.token",
        Type.PASSWORD,
        "Token that is sent as `Authorization: Bearer`; in place of user and password.",
        check=Check("printable ASCII", _token),
    ),
    *refused_keys(NO_OAUTH, "bearer.auth.issuer.endpoint.url", "bearer.auth.client.id"),
    *refused_keys(NO_OAUTH, "bearer.auth.client.secret", type_=Type.PASSWORD),
    *refused_keys(NO_OAUTH, "bearer.auth.custom.provider.class"),
    *refused_keys(
        "It is never sent with a token; sign in at such a registry with basic.auth.user.info.",
        *("bearer.auth.logical.cluster", "bearer.auth.identity.pool.id"),
    ),
    *refused_keys(NO_HEADERS, "request.header.*", type_=Type.PASSWORD),
)

_ENCRYPTION = (
    setting_key(
        f"{TLS}truststore.location",
        Type.STRING,
        f"PEM file with the certificate authorities that may vouch for the registry; `{TLS}truststore.type` must say "
        "`PEM`. The certificate and the host's name in it are always verified.",
        default_text="`SSL_CERT_FILE` or the system's",
    ),
    setting_key(f"{TLS}truststore.type", Type.STRING, "Kind of that file.", default_text="JKS", check=PEM),
    *refused_keys(
        f"Certificates are read from a file alone; write them into one, and name it in {TLS}truststore.location.",
        f"{TLS}truststore.certificates",
    ),
    setting_key(
        f"{TLS}keystore.location",
        Type.STRING,
        "PEM file with the certificate that we show to the registry, and its private key; "
        f"`{TLS}keystore.type` must say `PEM`.",
    ),
    setting_key(f"{TLS}keystore.type", Type.STRING, "Kind of that file.", default_text="JKS", check=PEM),
    setting_key(f"{TLS}key.password", Type.PASSWORD, f"Password of the private key in `{TLS}keystore.location`."),
    *refused_keys(
        f"Certificate and key are read from a file alone; write both into one, and name it in {TLS}keystore.location.",
        *(f"{TLS}keystore.key", f"{TLS}keystore.certificate.chain"),
        type_=Type.PASSWORD,
    ),
    *_ignored(
        "Password of a Java key store.",
        "a PEM file has none; that of a private key is ssl.key.password.",
        *(f"{TLS}truststore.password", f"{TLS}keystore.password"),
        type_=Type.PASSWORD,
    ),
    *_ignored(
        "Finer settings of TLS.", "the TLS library's own rules hold, and certificates are always verified.", f"{TLS}*"
    ),
)

_OWN_PAUSES = "pauses are the client's own; max.retries bounds how often."
_REACHING = (
    setting_key(
        "http.read.timeout.ms",
        Type.INT,
        "Time that one request to the registry may take, in milliseconds; all requests for one schema may take twice "
        "as long. Confluent's default is 60000.",
        default=30_000,
        minimum=1,
        unit=Unit.MILLISECONDS,
    ),
    setting_key(
        "max.retries",
        Type.INT,
        "Times that a request is tried again when the registry is unavailable or answers that it is busy.",
        default=3,
        minimum=0,
        maximum=100,
    ),
    setting_key(
        "max.schemas.per.subject",
        Type.INT,
        "Schemas kept in the memory of a process, so that a registry is asked once for each.",
        default=1_000,
        minimum=1,
        maximum=100_000,
    ),
    *_ignored(
        "Time to reach the registry.", "http.read.timeout.ms bounds the whole request.", "http.connect.timeout.ms"
    ),
    *_ignored("Pause between retries.", _OWN_PAUSES, "retries.wait.ms"),
    *_ignored("Longest pause between retries.", _OWN_PAUSES, "retries.max.wait.ms"),
    *_ignored(
        "Rules of data contracts.",
        "no rules are run; records are read as they are.",
        *("rule.executors", "rule.actions", "rule.service.loader.enable"),
    ),
    *_ignored("Migration of records.", "a record is read by the schema that it names.", "use.latest.with.metadata"),
    *_ignored("Contexts of schemas.", "a schema is asked for by its id alone.", "context.name.strategy"),
    *_ignored("Dialects of JSON Schema.", "one set of rules reads all of them.", "ignore.modern.dialects"),
    *refused_keys(
        "The registry is reached directly; remove it, and name an address that needs no proxy.",
        *("proxy.host", "proxy.port"),
    ),
    *(
        setting_key(
            f"{side}.schema.id.deserializer",
            Type.STRING,
            "Where a schema's id stands: in the record itself, never in headers.",
            default_text="DualSchemaIdDeserializer",
            check=ID_READER,
        )
        for side in ("key", "value")
    ),
    setting_key(
        "schema.id.bytes",
        Type.INT,
        "How many bytes a schema's id has in a record. With Confluent's converters 4. With Apicurio's what "
        "`apicurio.registry.as-confluent` and `apicurio.registry.id-handler` say; without them 8 when the address is "
        "that of version 2, else 4.",
        default_text="by the converter",
        minimum=4,
        maximum=8,
        check=Check(
            "4 or 8", lambda value: None if value in (4, 8) else "A schema's id has 4 or 8 bytes; write one of them."
        ),
        origin=Origin.OWN,
    ),
)

REGISTRY_KEYS: Final = (
    setting_key(
        "schema.registry.url",
        Type.LIST,
        "Addresses of the schema registry, http or https, asked in their order. Needed, but for Apicurio's "
        "converters with `apicurio.registry.url`, over which it wins. A user and password in it "
        "(`https://user:password@host`) sign in, and are not part of the address that messages show.",
        check=addresses.REGISTRY_URLS,
    ),
    *_SIGNING_IN,
    *_ENCRYPTION,
    *_REACHING,
)

APICURIO_KEYS: Final = (
    setting_key(
        "apicurio.registry.url",
        Type.STRING,
        f"Address of a registry of Apicurio's. It is asked where it speaks Confluent's protocol: "
        f"`/apis/registry/v2` and `v3` are read as `{addresses.CCOMPAT}`.",
        check=addresses.APICURIO_URL,
    ),
    setting_key(
        "apicurio.registry.as-confluent",
        Type.BOOLEAN,
        "`true`: ids have 4 bytes, as Confluent's.",
        default=False,
    ),
    setting_key(
        "apicurio.registry.id-handler",
        Type.STRING,
        "Class that wrote the ids, which decides their length.",
        default_text="by the address",
        check=_one_of(
            ID_BYTES,
            f"It is not a known handler; write one of {', '.join(ID_BYTES)}, or set schema.id.bytes to 4 or 8.",
            simple_name,
        ),
    ),
    setting_key(
        "apicurio.registry.use-id",
        Type.STRING,
        "Which id is in a record. Confluent's protocol knows `contentId`; with `globalId` (the default of version "
        "2) the registry must run with `registry.ccompat.legacy-id-mode.enabled=true`, of which a warning reminds.",
        default_text="globalId when the address is that of version 2, else contentId",
        choices=("contentId", "globalId"),
    ),
    setting_key(
        "apicurio.registry.headers.enabled",
        Type.BOOLEAN,
        "Whether ids stand in headers.",
        default=False,
        check=only(False, "a schema's id is read from the record itself, never from headers"),
    ),
    setting_key(
        "apicurio.registry.avro.encoding",
        Type.STRING,
        "Form of Avro.",
        default="BINARY",
        check=_one_of(["BINARY"], "Only Avro's binary form is read; set BINARY."),
    ),
    *(
        setting_key(f"apicurio.{part}auth.{name}", type_, doc)
        for part in ("", "registry.")
        for name, type_, doc in (
            ("username", Type.STRING, "User at the registry, as in `basic.auth.user.info`."),
            ("password", Type.PASSWORD, "Password at the registry, as in `basic.auth.user.info`."),
        )
    ),
    *(
        key
        for part in ("apicurio.auth", "apicurio.registry.auth")
        for key in (
            *refused_keys(NO_OAUTH, f"{part}.service.token.endpoint", f"{part}.service.url"),
            *refused_keys(NO_OAUTH, f"{part}.client.secret", type_=Type.PASSWORD),
        )
    ),
    *refused_keys(NO_HEADERS, "apicurio.registry.request.headers.*", type_=Type.PASSWORD),
    *refused_keys(
        f"Settings of TLS have Confluent's names; write {TLS}truststore.location and the like, with the type PEM.",
        *("apicurio.registry.request.ssl.*", "apicurio.registry.tls.*"),
        type_=Type.PASSWORD,
    ),
)
APICURIO_UNUSED: Final = without_meaning(
    "What is left of Apicurio's settings concerns the writing of records, Java classes and its own client.",
    "apicurio.*",
)
