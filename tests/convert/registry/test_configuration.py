"""The schema registry of a converter: where it is, who signs in, TLS, and how long ids are."""

import pytest

from parquet_sink.config.machine import Machine
from parquet_sink.config.secret import Secret
from parquet_sink.connectors.loading import Loaded, load
from parquet_sink.convert.keys import SETTINGS
from parquet_sink.convert.registry.addresses import confluent_url, parse
from parquet_sink.convert.registry.settings import RegistrySettings
from parquet_sink.worker_config.worker_file import load_worker
from tests.messages import assert_says

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


NO_OAUTH = ("authorization server", "bearer.auth.token", "basic.auth.user.info")
NO_HEADER = ("No header", "basic.auth.user.info", "bearer.auth.token")
URL_FORM = ("not a valid URL", "https://<host>:<port>")
PEM = ("Only PEM", "Java key stores", "convert it", "set PEM")
CLEAR = ("in clear", "use https")
PROBLEMS: list[tuple[dict[str, str], str, tuple[str, ...]]] = [
    ({"schema.registry.url": "registry:8081"}, "schema.registry.url", ("address number 1", *URL_FORM)),
    ({"schema.registry.url": "https://r, mock://x"}, "schema.registry.url", ("address number 2", *URL_FORM)),
    ({"schema.registry.url": f"https://u:{CANARY}@r:99999"}, "schema.registry.url", ("address number 1", *URL_FORM)),
    ({"schema.registry.url": "https://[r"}, "schema.registry.url", ("address number 1", *URL_FORM)),
    (
        {"schema.registry.url": "https://r?x=1"},
        "schema.registry.url",
        ("address number 1", "query", "fragment", "https://<host>:<port>"),
    ),
    (
        {"schema.registry.url": f"https://{CANARY}@r"},
        "schema.registry.url",
        ("address number 1", "alone", "https://<user>:<password>@<host>", "or neither"),
    ),
    (
        {"schema.registry.url": "https://a:b@r,https://c:d@s"},
        "schema.registry.url",
        ("different users", "one user", "for all"),
    ),
    ({"schema.registry.url": ","}, "schema.registry.url", ("no address", "https://<host>:<port>")),
    (
        {"basic.auth.credentials.source": "SASL_INHERIT"},
        "basic.auth.credentials.source",
        ("SASL_INHERIT", "never taken from Kafka", "set USER_INFO", "basic.auth.user.info"),
    ),
    ({"basic.auth.credentials.source": "x"}, "basic.auth.credentials.source", ("not one of", "URL", "USER_INFO")),
    (
        {"basic.auth.credentials.source": "USER_INFO"},
        "basic.auth.user.info",
        ("missing", f"{V}basic.auth.credentials.source", "USER_INFO", "give user:password"),
    ),
    ({"basic.auth.user.info": CANARY}, "basic.auth.user.info", ("colon between", "user:password")),
    (
        {"bearer.auth.credentials.source": "OAUTHBEARER"},
        "bearer.auth.credentials.source",
        ("Only STATIC_TOKEN", "bearer.auth.token", "basic.auth.user.info"),
    ),
    (
        {"bearer.auth.credentials.source": "STATIC_TOKEN"},
        "bearer.auth.token",
        ("missing", f"{V}bearer.auth.credentials.source", "give the token"),
    ),
    (
        {"bearer.auth.token": f"Bearer {CANARY}"},
        "bearer.auth.token",
        ("characters that no token has", "printable ASCII", "without blanks", "word Bearer"),
    ),
    (
        {"bearer.auth.token": CANARY, "basic.auth.user.info": "u:p"},
        "bearer.auth.token",
        ("Both", "token", "password", "keep one"),
    ),
    ({"bearer.auth.client.secret": CANARY}, "bearer.auth.client.secret", NO_OAUTH),
    ({"bearer.auth.issuer.endpoint.url": "https://o"}, "bearer.auth.issuer.endpoint.url", NO_OAUTH),
    (
        {"bearer.auth.logical.cluster": "lsrc-1"},
        "bearer.auth.logical.cluster",
        ("never sent with a token", "basic.auth.user.info"),
    ),
    ({"request.header.Authorization": CANARY}, "request.header.Authorization", NO_HEADER),
    ({"proxy.host": "p"}, "proxy.host", ("directly", "remove it", "needs no proxy")),
    (
        {f"{TRUST}.location": "ca.pem"},
        f"{TRUST}.type",
        ("missing", "JKS", "not read", "convert it to PEM", "set PEM"),
    ),
    ({f"{TRUST}.location": "ca.pem", f"{TRUST}.type": "JKS"}, f"{TRUST}.type", PEM),
    ({f"{STORE}.location": "ca.pem", f"{STORE}.type": "PKCS12"}, f"{STORE}.type", PEM),
    (
        {f"{TRUST}.location": "/no.pem", f"{TRUST}.type": "PEM"},
        f"{TRUST}.location",
        ("no file", '"/no.pem"', "existing PEM file"),
    ),
    (
        {f"{TRUST}.certificates": CANARY},
        f"{TRUST}.certificates",
        ("from a file alone", "schema.registry.ssl.truststore.location"),
    ),
    (
        {f"{STORE}.key": CANARY},
        f"{STORE}.key",
        ("from a file alone", "both into one", "schema.registry.ssl.keystore.location"),
    ),
    ({"schema.id.bytes": "5"}, "schema.id.bytes", ("4 or 8 bytes",)),
    ({"schema.id.bytes": "16"}, "schema.id.bytes", ('"16"', "more than 8", "4 to 8")),
    ({"max.schemas.per.subject": "0"}, "max.schemas.per.subject", ('"0"', "less than 1", "1 to 100000")),
    (
        {"value.schema.id.deserializer": "io.x.HeaderSchemaIdDeserializer"},
        "value.schema.id.deserializer",
        ("from the record itself", "never from headers", "remove the key"),
    ),
]


@pytest.mark.parametrize(("settings", "name", "reason"), PROBLEMS)
def test_a_wrong_setting_is_told_with_cause_and_cure(
    settings: dict[str, str], name: str, reason: tuple[str, ...]
) -> None:
    """Naming the key, and never a secret."""
    loaded = _load(settings)
    (problem,) = loaded.problems
    assert_says(problem, f"[{V}{name}]", *reason)
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
        assert_says(problem, f"[{V}schema.registry.url]", "missing", "io.confluent.connect.", "https://registry:8081")
    keys = load({**BASE, "value.converter": "bytes", "key.converter": converter}, worker, source="f").problems
    assert_says(keys[0], "[key.converter.schema.registry.url]", "missing")


WARNINGS: list[tuple[dict[str, str], str, tuple[str, ...]]] = [
    (
        {"basic.auth.credentials.source": "URL", "basic.auth.user.info": f"u:{CANARY}"},
        "basic.auth.user.info",
        ("no effect", f"{V}basic.auth.credentials.source", "URL", "USER_INFO"),
    ),
    ({"schema.registry.url": f"http://u:{CANARY}@r"}, "schema.registry.url", CLEAR),
    ({"schema.registry.url": "https://s,http://r", "bearer.auth.token": CANARY}, "schema.registry.url", CLEAR),
    (
        {"schema.registry.ssl.key.password": CANARY},
        "schema.registry.ssl.key.password",
        ("no effect", f"{V}{STORE}.location"),
    ),
    ({f"{TRUST}.password": CANARY}, f"{TRUST}.password", ("no effect", "PEM file", "ssl.key.password")),
    (
        {"schema.registry.ssl.protocol": "TLSv1.2"},
        "schema.registry.ssl.protocol",
        ("no effect", "TLS library", "always verified"),
    ),
    ({"retries.wait.ms": "1000"}, "retries.wait.ms", ("no effect", "pauses", "max.retries")),
]


@pytest.mark.parametrize(("settings", "name", "reason"), WARNINGS)
def test_what_changes_nothing_or_is_unsafe_is_warned_about(
    settings: dict[str, str], name: str, reason: tuple[str, ...]
) -> None:
    """The connector runs, and the operator knows."""
    loaded = _load(settings)
    assert loaded.problems == ()
    (warning,) = loaded.warnings
    assert_says(warning, f"[{V}{name}]", *reason)
    assert CANARY not in warning


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


APICURIO_PROBLEMS: list[tuple[dict[str, str], str, tuple[str, ...]]] = [
    ({}, "apicurio.registry.url", ("missing", APICURIO, "https://registry:8080/apis/registry/v3")),
    (
        {"apicurio.registry.url": "https://r/api"},
        "apicurio.registry.url",
        ("/apis/registry/v2 or /apis/registry/v3", "schema.registry.url", "/apis/ccompat/v7"),
    ),
    ({"apicurio.registry.url": f"x://u:{CANARY}@r"}, "apicurio.registry.url", URL_FORM),
    (
        {"apicurio.registry.url": V3, "apicurio.registry.id-handler": "x.OptimisticFallbackIdHandler"},
        "apicurio.registry.id-handler",
        (
            *("not a known handler", "Default4ByteIdHandler", "Legacy4ByteIdHandler", "DefaultIdHandler"),
            *("Default8ByteIdHandler", "Legacy8ByteIdHandler", "schema.id.bytes", "4 or 8"),
        ),
    ),
    (
        {"apicurio.registry.url": V3, "apicurio.registry.headers.enabled": "true"},
        "apicurio.registry.headers.enabled",
        ("true", "never from headers", "set false", "remove the key"),
    ),
    (
        {"apicurio.registry.url": V3, "apicurio.registry.avro.encoding": "JSON"},
        "apicurio.registry.avro.encoding",
        ("binary", "set BINARY"),
    ),
    (
        {"apicurio.registry.url": V3, "apicurio.auth.username": "u"},
        "apicurio.auth.password",
        ("missing", f"{V}apicurio.auth.username", "give both"),
    ),
    ({"apicurio.registry.url": V3, "apicurio.auth.client.secret": CANARY}, "apicurio.auth.client.secret", NO_OAUTH),
    (
        {"apicurio.registry.url": V3, "apicurio.registry.request.ssl.truststore.location": "/x"},
        "apicurio.registry.request.ssl.truststore.location",
        ("Confluent's names", "schema.registry.ssl.truststore.location", "type PEM"),
    ),
]


@pytest.mark.parametrize(("settings", "name", "reason"), APICURIO_PROBLEMS)
def test_what_apicurios_converter_cannot_have_is_refused(
    settings: dict[str, str], name: str, reason: tuple[str, ...]
) -> None:
    """With the cure, and never a secret."""
    loaded = _load(settings, APICURIO)
    (problem,) = loaded.problems
    assert_says(problem, f"[{V}{name}]", *reason)
    assert CANARY not in repr(loaded)


def test_global_ids_are_warned_about() -> None:
    """Said, or version 2's default; asked for as content ids they would find other schemas."""
    for url, use_id in ((V2, None), (V2, "globalId"), (V3, "GLOBALID")):
        more = {} if use_id is None else {"apicurio.registry.use-id": use_id}
        (warning,) = _load({"apicurio.registry.url": url, **more}, APICURIO).warnings
        assert_says(warning, f"[{V}apicurio.registry.use-id]", "global ids")
    assert _load({"apicurio.registry.url": V3}, APICURIO).warnings == ()
