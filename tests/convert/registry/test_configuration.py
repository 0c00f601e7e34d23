"""The schema registry of a converter: where it is, who signs in, TLS, and how long ids are."""

import pytest

from parquet_sink.config.machine import Machine
from parquet_sink.config.secret import Secret
from parquet_sink.connectors.loading import Loaded, load
from parquet_sink.convert.keys import SETTINGS
from parquet_sink.convert.registry.addresses import confluent_url, parse
from parquet_sink.convert.registry.settings import RegistrySettings
from parquet_sink.worker_config.worker_file import load_worker

E = "connect.ems."
V = "value.converter."
CANARY = "canary-4d1e"
APICURIO = "io.apicurio.registry.utils.converter.AvroConverter"
MACHINE = Machine(
    working_dir="/home/u",
    is_file=lambda path: path in ("/home/u/ca.pem", "/etc/client.pem"),
    environ={"SECRET": CANARY, "URL": f"https://u:{CANARY}@r"},
)
BASE = {
    "name": "orders",
    "topics": "orders",
    f"{E}endpoint": "https://h/x",
    f"{E}authorization.key": "AppKey k",
    f"{E}target.table": "ORDERS",
    f"{E}commit.size.bytes": "10000000",
    f"{E}commit.records": "1000",
    f"{E}commit.interval.ms": "30000",
}
TRUST, STORE = "schema.registry.ssl.truststore", "schema.registry.ssl.keystore"


def _load(settings: dict[str, str], converter: str = "avro") -> Loaded:
    """settings: without the prefix."""
    worker = load_worker({"bootstrap.servers": "k:1"}, source="w", machine=MACHINE).require()
    named = {"schema.registry.url": "https://r", **settings} if converter == "avro" else settings
    properties = {**BASE, "value.converter": converter, **{V + name: text for name, text in named.items()}}
    return load(properties, worker, source="f")


def _registry(settings: dict[str, str], converter: str = "avro") -> RegistrySettings:
    loaded = _load(settings, converter)
    assert loaded.warnings == ()
    registry = loaded.require().value.registry
    assert registry is not None
    return registry


def test_an_address_alone_gives_the_documented_defaults() -> None:
    """Those of the settings' class are those of the table."""
    assert _registry({}) == RegistrySettings(("https://r",))
    named = {
        "http.read.timeout.ms": "timeout_ms",
        "max.retries": "max_retries",
        "max.schemas.per.subject": "cache_size",
    }
    for name, field in named.items():
        (key,) = (setting.key for setting in SETTINGS if setting.key.name == name)
        assert key.default == getattr(RegistrySettings(("u",)), field)


def test_everything_arrives() -> None:
    """Several addresses, sign-in, TLS and bounds."""
    settings = {
        "schema.registry.url": "https://r1:8081/ , http://localhost:8081/sub/",
        "basic.auth.credentials.source": "user_info",
        "basic.auth.user.info": f"u:{CANARY}:x",
        f"{TRUST}.location": "ca.pem",
        f"{TRUST}.type": "pem",
        f"{STORE}.location": "/etc/client.pem",
        f"{STORE}.type": "PEM",
        "schema.registry.ssl.key.password": "kp",
        "schema.id.bytes": "8",
        "max.schemas.per.subject": "5",
        "http.read.timeout.ms": "7",
        "max.retries": "0",
    }
    assert _registry(settings) == RegistrySettings(
        urls=("https://r1:8081", "http://localhost:8081/sub"),
        username="u",
        password=Secret(f"{CANARY}:x"),
        ca_file="/home/u/ca.pem",
        certificate_file="/etc/client.pem",
        key_password=Secret("kp"),
        id_bytes=8,
        cache_size=5,
        timeout_ms=7,
        max_retries=0,
    )


def test_a_user_in_the_address_signs_in_and_leaves_the_address() -> None:
    """Percent-encoded as addresses are; the same for all of several."""
    registry = _registry({"schema.registry.url": f"https://a%40b:p%3A{CANARY}@r:1,https://s:1"})
    assert (registry.urls, registry.username) == (("https://r:1", "https://s:1"), "a@b")
    assert registry.password == Secret(f"p:{CANARY}")
    assert CANARY not in repr(registry)


SIGN_INS = [
    ({"basic.auth.user.info": "u:p"}, ("u", "p")),
    ({"basic.auth.user.info": "u:"}, ("u", "")),
    ({"schema.registry.basic.auth.user.info": "old:p", "basic.auth.user.info": "new:p"}, ("old", "p")),
    ({"schema.registry.url": "https://a:b@r", "basic.auth.user.info": "u:p"}, ("a", "b")),
    (
        {
            "schema.registry.url": "https://a:b@r",
            "basic.auth.credentials.source": "USER_INFO",
            "basic.auth.user.info": "u:p",
        },
        ("u", "p"),
    ),
    ({"schema.registry.url": "https://a:b@r", "basic.auth.credentials.source": "URL"}, ("a", "b")),
    ({"basic.auth.credentials.source": "URL"}, None),
]


@pytest.mark.parametrize(("settings", "wanted"), SIGN_INS)
def test_user_and_password_come_from_where_the_source_says(
    settings: dict[str, str], wanted: tuple[str, str] | None
) -> None:
    """Without a source from wherever they are, the address first."""
    registry = _registry(settings)
    found = None if registry.username is None or registry.password is None else (registry.username, registry.password)
    assert found == (None if wanted is None else (wanted[0], Secret(wanted[1])))


def test_a_token_is_sent_instead() -> None:
    """With or without its source."""
    for source in ({}, {"bearer.auth.credentials.source": "static_token"}):
        registry = _registry({**source, "bearer.auth.token": CANARY})
        assert (registry.bearer_token, registry.username) == (Secret(CANARY), None)


NO_OAUTH = (
    "No token is fetched from an authorization server; give one in bearer.auth.token, or sign in with "
    "basic.auth.user.info."
)
NO_HEADER = "No header of one's own is sent to the registry; sign in with basic.auth.user.info or bearer.auth.token."
URL_FORM = "is not a valid URL; write it as https://<host>:<port>."
PEM = "Only PEM files are read, no Java key stores; convert it to PEM (keytool, openssl) and set PEM."
PROBLEMS = [
    ({"schema.registry.url": "registry:8081"}, "schema.registry.url", f"Its address number 1 {URL_FORM}"),
    ({"schema.registry.url": "https://r, mock://x"}, "schema.registry.url", f"Its address number 2 {URL_FORM}"),
    ({"schema.registry.url": f"https://u:{CANARY}@r:99999"}, "schema.registry.url", f"Its address number 1 {URL_FORM}"),
    ({"schema.registry.url": "https://[r"}, "schema.registry.url", f"Its address number 1 {URL_FORM}"),
    (
        {"schema.registry.url": "https://r?x=1"},
        "schema.registry.url",
        "Its address number 1 has a query or a fragment; write it as https://<host>:<port>.",
    ),
    (
        {"schema.registry.url": f"https://{CANARY}@r"},
        "schema.registry.url",
        ("Its address number 1 has a user or a password alone; write https://<user>:<password>@<host>, or neither."),
    ),
    (
        {"schema.registry.url": "https://a:b@r,https://c:d@s"},
        "schema.registry.url",
        "Its addresses have different users; give one user and password for all.",
    ),
    (
        {"schema.registry.url": ","},
        "schema.registry.url",
        "It names no address; write it as https://<host>:<port>.",
    ),
    (
        {"basic.auth.credentials.source": "SASL_INHERIT"},
        "basic.auth.credentials.source",
        (
            "It is SASL_INHERIT, but the registry's credential is never taken from Kafka's; set USER_INFO and "
            "basic.auth.user.info."
        ),
    ),
    (
        {"basic.auth.credentials.source": "x"},
        "basic.auth.credentials.source",
        "It is not one of URL, USER_INFO; write one of them.",
    ),
    (
        {"basic.auth.credentials.source": "USER_INFO"},
        "basic.auth.user.info",
        f"It is missing, but {V}basic.auth.credentials.source is USER_INFO; give user:password.",
    ),
    (
        {"basic.auth.user.info": CANARY},
        "basic.auth.user.info",
        "It must be a user and a password with a colon between; write user:password.",
    ),
    (
        {"bearer.auth.credentials.source": "OAUTHBEARER"},
        "bearer.auth.credentials.source",
        (
            "Only STATIC_TOKEN is possible, a token that is given; set it with bearer.auth.token, or sign in with "
            "basic.auth.user.info."
        ),
    ),
    (
        {"bearer.auth.credentials.source": "STATIC_TOKEN"},
        "bearer.auth.token",
        f"It is missing, but {V}bearer.auth.credentials.source needs it; give the token.",
    ),
    (
        {"bearer.auth.token": f"Bearer {CANARY}"},
        "bearer.auth.token",
        ("It holds characters that no token has; write printable ASCII without blanks and without the word Bearer."),
    ),
    (
        {"bearer.auth.token": CANARY, "basic.auth.user.info": "u:p"},
        "bearer.auth.token",
        "Both a token and a user with a password are set; keep one of them.",
    ),
    ({"bearer.auth.client.secret": CANARY}, "bearer.auth.client.secret", NO_OAUTH),
    ({"bearer.auth.issuer.endpoint.url": "https://o"}, "bearer.auth.issuer.endpoint.url", NO_OAUTH),
    (
        {"bearer.auth.logical.cluster": "lsrc-1"},
        "bearer.auth.logical.cluster",
        "It is never sent with a token; sign in at such a registry with basic.auth.user.info.",
    ),
    ({"request.header.Authorization": CANARY}, "request.header.Authorization", NO_HEADER),
    (
        {"proxy.host": "p"},
        "proxy.host",
        "The registry is reached directly; remove it, and name an address that needs no proxy.",
    ),
    (
        {f"{TRUST}.location": "ca.pem"},
        f"{TRUST}.type",
        (
            "It is missing, and a Java key store (JKS) is Kafka's default, which is not read; convert it to PEM "
            "(keytool, openssl) and set PEM."
        ),
    ),
    ({f"{TRUST}.location": "ca.pem", f"{TRUST}.type": "JKS"}, f"{TRUST}.type", PEM),
    ({f"{STORE}.location": "ca.pem", f"{STORE}.type": "PKCS12"}, f"{STORE}.type", PEM),
    (
        {f"{TRUST}.location": "/no.pem", f"{TRUST}.type": "PEM"},
        f"{TRUST}.location",
        'There is no file "/no.pem"; name an existing PEM file.',
    ),
    (
        {f"{TRUST}.certificates": CANARY},
        f"{TRUST}.certificates",
        (
            "Certificates are read from a file alone; write them into one, and name it in "
            "schema.registry.ssl.truststore.location."
        ),
    ),
    (
        {f"{STORE}.key": CANARY},
        f"{STORE}.key",
        (
            "Certificate and key are read from a file alone; write both into one, and name it in "
            "schema.registry.ssl.keystore.location."
        ),
    ),
    ({"schema.id.bytes": "5"}, "schema.id.bytes", "A schema's id has 4 or 8 bytes; write one of them."),
    ({"schema.id.bytes": "16"}, "schema.id.bytes", '"16" is more than 8; give 4 to 8.'),
    ({"max.schemas.per.subject": "0"}, "max.schemas.per.subject", '"0" is less than 1; give 1 to 100000.'),
    (
        {"value.schema.id.deserializer": "io.x.HeaderSchemaIdDeserializer"},
        "value.schema.id.deserializer",
        "A schema's id is read from the record itself, never from headers; remove the key.",
    ),
]


@pytest.mark.parametrize(("settings", "name", "reason"), PROBLEMS)
def test_a_wrong_setting_is_told_with_cause_and_cure(settings: dict[str, str], name: str, reason: str) -> None:
    """Naming the key, and never a secret."""
    loaded = _load(settings)
    assert loaded.problems == (f"Invalid [{V}{name}]. {reason}",)
    assert CANARY not in repr(loaded)


def test_an_address_from_a_provider_keeps_its_password_to_itself() -> None:
    """In clear or by a placeholder, right or wrong."""
    good = _load({"schema.registry.url": "${env:URL}"})
    assert good.require().value.registry == RegistrySettings(("https://r",), "u", Secret(CANARY))
    for url in ("${env:URL}:x", "${env:SECRET}", f"http://u:{CANARY}@r", f"http://u:{CANARY}@"):
        assert CANARY not in repr(_load({"schema.registry.url": url}))


@pytest.mark.parametrize("converter", ["avro", "protobuf", "json_schema", "jsonschema"])
def test_a_converter_that_needs_a_registry_says_so(converter: str) -> None:
    """Naming the key, the converter and an example; blank counts as missing."""
    worker = load_worker({"bootstrap.servers": "k:1"}, source="w", machine=MACHINE).require()
    for more in ({}, {f"{V}schema.registry.url": " "}):
        (problem,) = load({**BASE, "value.converter": converter, **more}, worker, source="f").problems
        assert problem.startswith(f"Invalid [{V}schema.registry.url]. It is missing; io.confluent.connect.")
        assert problem.endswith(" needs the address of the schema registry, for example https://registry:8081.")
    keys = load({**BASE, "value.converter": "bytes", "key.converter": converter}, worker, source="f").problems
    assert keys[0].startswith("Invalid [key.converter.schema.registry.url]. It is missing;")


WARNINGS = [
    (
        {"basic.auth.credentials.source": "URL", "basic.auth.user.info": f"u:{CANARY}"},
        "basic.auth.user.info",
        f"It has no effect, because {V}basic.auth.credentials.source is URL; write USER_INFO there.",
    ),
    (
        {"schema.registry.url": f"http://u:{CANARY}@r"},
        "schema.registry.url",
        "The credential travels in clear, because an address is http; use https.",
    ),
    (
        {"schema.registry.url": "https://s,http://r", "bearer.auth.token": CANARY},
        "schema.registry.url",
        "The credential travels in clear, because an address is http; use https.",
    ),
    (
        {"schema.registry.ssl.key.password": CANARY},
        "schema.registry.ssl.key.password",
        f"It has no effect unless {V}{STORE}.location is set.",
    ),
    (
        {f"{TRUST}.password": CANARY},
        f"{TRUST}.password",
        "It has no effect here: a PEM file has none; that of a private key is ssl.key.password.",
    ),
    (
        {"schema.registry.ssl.protocol": "TLSv1.2"},
        "schema.registry.ssl.protocol",
        "It has no effect here: the TLS library's own rules hold, and certificates are always verified.",
    ),
    (
        {"retries.wait.ms": "1000"},
        "retries.wait.ms",
        "It has no effect here: pauses are the client's own; max.retries bounds how often.",
    ),
]


@pytest.mark.parametrize(("settings", "name", "reason"), WARNINGS)
def test_what_changes_nothing_or_is_unsafe_is_warned_about(settings: dict[str, str], name: str, reason: str) -> None:
    """The connector runs, and the operator knows."""
    loaded = _load(settings)
    assert loaded.problems == ()
    assert loaded.warnings == (f"Warning [{V}{name}]. {reason}",)


GLOBAL = f"Warning [{V}apicurio.registry.use-id]. Records with global ids"
V2, V3 = "http://r:8080/apis/registry/v2", "http://r:8080/apis/registry/v3"
ID_BYTES = [
    (V3, {}, 4),
    (V2, {"apicurio.registry.use-id": "contentId"}, 8),
    (V2, {"apicurio.registry.as-confluent": "true"}, 4),
    (V3, {"apicurio.registry.id-handler": "io.apicurio.registry.serde.Legacy8ByteIdHandler"}, 8),
    (V2, {"apicurio.registry.id-handler": "io.apicurio.registry.serde.Legacy4ByteIdHandler"}, 4),
    (V2, {"apicurio.registry.id-handler": "io.apicurio.registry.serde.Default4ByteIdHandler"}, 4),
    (V2, {"apicurio.registry.id-handler": "io.apicurio.registry.serde.DefaultIdHandler"}, 8),
    (V2, {"apicurio.registry.as-confluent": "true", "schema.id.bytes": "8"}, 8),
    (V3, {"apicurio.registry.id-handler": "DefaultIdHandler", "schema.id.bytes": "4"}, 4),
]


@pytest.mark.parametrize(("url", "settings", "size"), ID_BYTES)
def test_apicurios_settings_tell_how_long_ids_are(url: str, settings: dict[str, str], size: int) -> None:
    """Version 2 writes 8 bytes unless told otherwise, version 3 writes 4."""
    loaded = _load({"apicurio.registry.url": url, **settings}, APICURIO)
    registry = loaded.require().value.registry
    assert registry == RegistrySettings(("http://r:8080/apis/ccompat/v7",), id_bytes=size)


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("http://r:8080/apis/registry/v2", "http://r:8080/apis/ccompat/v7"),
        ("https://r/proxy/t/1/apis/registry/v3", "https://r/proxy/t/1/apis/ccompat/v7"),
        ("https://r/apis/ccompat/v6", "https://r/apis/ccompat/v7"),
        ("https://r", "https://r/apis/ccompat/v7"),
        ("https://r/api", None),
        ("https://r/apis/registry/v2/x", None),
    ],
)
def test_apicurios_address_is_turned_into_confluents(url: str, wanted: str | None) -> None:
    """Whatever stands before `/apis` stays."""
    assert confluent_url(parse(url).url) == wanted


def test_apicurios_other_forms() -> None:
    """User and password under its names; the address of Confluent's protocol wins; the rest is accepted silently."""
    common = {"schema.registry.url": "https://c/x", "apicurio.registry.auto-register": "true"}
    for part in ("auth", "registry.auth"):
        names = {f"apicurio.{part}.username": "u", f"apicurio.{part}.password": CANARY}
        assert _registry({**common, **names}, APICURIO) == RegistrySettings(("https://c/x",), "u", Secret(CANARY))


APICURIO_PROBLEMS = [
    (
        {},
        "apicurio.registry.url",
        (
            f"It is missing; {APICURIO} needs the address of the schema registry, for example "
            "https://registry:8080/apis/registry/v3."
        ),
    ),
    (
        {"apicurio.registry.url": "https://r/api"},
        "apicurio.registry.url",
        (
            "It does not end in /apis/registry/v2 or /apis/registry/v3; write such an address, or set "
            "schema.registry.url to the one that speaks Confluent's protocol (it ends in /apis/ccompat/v7)."
        ),
    ),
    ({"apicurio.registry.url": f"x://u:{CANARY}@r"}, "apicurio.registry.url", f"It {URL_FORM}"),
    (
        {"apicurio.registry.url": V3, "apicurio.registry.id-handler": "x.OptimisticFallbackIdHandler"},
        "apicurio.registry.id-handler",
        (
            "It is not a known handler; write one of Default4ByteIdHandler, Legacy4ByteIdHandler, "
            "DefaultIdHandler, Default8ByteIdHandler, Legacy8ByteIdHandler, or set schema.id.bytes to 4 or 8."
        ),
    ),
    (
        {"apicurio.registry.url": V3, "apicurio.registry.headers.enabled": "true"},
        "apicurio.registry.headers.enabled",
        (
            "It is true, but a schema's id is read from the record itself, never from headers; set false or remove "
            "the key."
        ),
    ),
    (
        {"apicurio.registry.url": V3, "apicurio.registry.avro.encoding": "JSON"},
        "apicurio.registry.avro.encoding",
        "Only Avro's binary form is read; set BINARY.",
    ),
    (
        {"apicurio.registry.url": V3, "apicurio.auth.username": "u"},
        "apicurio.auth.password",
        f"It is missing, but {V}apicurio.auth.username is set; give both.",
    ),
    (
        {"apicurio.registry.url": V3, "apicurio.auth.client.secret": CANARY},
        "apicurio.auth.client.secret",
        NO_OAUTH,
    ),
    (
        {"apicurio.registry.url": V3, "apicurio.registry.request.ssl.truststore.location": "/x"},
        "apicurio.registry.request.ssl.truststore.location",
        (
            "Settings of TLS have Confluent's names; write schema.registry.ssl.truststore.location and the like, "
            "with the type PEM."
        ),
    ),
]


@pytest.mark.parametrize(("settings", "name", "reason"), APICURIO_PROBLEMS)
def test_what_apicurios_converter_cannot_have_is_refused(settings: dict[str, str], name: str, reason: str) -> None:
    """With the cure, and never a secret."""
    loaded = _load(settings, APICURIO)
    assert loaded.problems == (f"Invalid [{V}{name}]. {reason}",)
    assert CANARY not in repr(loaded)


def test_global_ids_are_warned_about() -> None:
    """Said, or version 2's default; asked for as content ids they would find other schemas."""
    for url, use_id in ((V2, None), (V2, "globalId"), (V3, "GLOBALID")):
        more = {} if use_id is None else {"apicurio.registry.use-id": use_id}
        (warning,) = _load({"apicurio.registry.url": url, **more}, APICURIO).warnings
        assert warning.startswith(GLOBAL)
    assert _load({"apicurio.registry.url": V3}, APICURIO).warnings == ()
