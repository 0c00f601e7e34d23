"""The worker file's REST API: what is served where, and what is refused because anybody could reach it."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from parquet_sink.config.machine import Machine
from parquet_sink.worker_config.rest.roles import Role, role_of
from parquet_sink.worker_config.rest.settings import BASIC_AUTH_EXTENSION, RestSettings
from parquet_sink.worker_config.rest.values import Address, HeaderRule, parse_address, parse_rules
from parquet_sink.worker_config.worker_file import LoadedWorker, load_worker
from tests.messages import assert_says

FILES = {
    "/w/users": "ann: secret-1\nbob=secret 2\n",
    "/w/roles": "ann: secret-1,viewer\nbob=a,b, Operator\ncid: secret-3,admin\ndan: secret-4\n",
    "/w/odd": "ann: pw,viever\n",
    "/w/no-password": "ann: ,viewer\n",
    "/w/server.pem": "-----BEGIN CERTIFICATE-----\n",
    "/w/ca.pem": "-----BEGIN CERTIFICATE-----\n",
    "/w/store.p12": "\x30\x82",
    "/w/empty": "",
    "/w/half": "ann\n",
    "/w/colon": "a\\:b=c\n",
}
TLS = {"listeners.https.ssl.keystore.location": "server.pem"}
USERS = {"rest.basic.auth.file": "users"}
CERTIFICATES = {
    "listeners.https.ssl.client.auth": "required",
    "listeners.https.ssl.truststore.location": "/w/ca.pem",
}


def _read(path: str) -> str:
    if path not in FILES:
        raise FileNotFoundError(2, "No such file or directory", path)
    return FILES[path]


MACHINE = Machine(working_dir="/w", is_file=FILES.__contains__, read_text=_read, host_name="node-7")


def _load(properties: Mapping[str, str]) -> LoadedWorker:
    return load_worker({"bootstrap.servers": "k:9092", **properties}, source="worker.properties", machine=MACHINE)


def _rest(properties: Mapping[str, str]) -> RestSettings:
    loaded = _load(properties)
    assert (loaded.problems, loaded.warnings) == ((), ())
    return loaded.worker.rest


def test_without_a_listener_the_worker_has_one_on_this_machine() -> None:
    """It is told apart from one that the file names."""
    rest = _rest({})
    assert (rest.listeners, rest.given, rest.worker_id) == (
        (Address("http", "localhost", 8083),),
        False,
        "localhost:8083",
    )


@pytest.mark.parametrize(
    ("text", "address", "loopback"),
    [
        ("http://localhost:8083", Address("http", "localhost", 8083), True),
        ("HTTP://LocalHost:8083", Address("http", "localhost", 8083), True),
        ("https://[::1]:1", Address("https", "::1", 1), True),
        ("http://127.8.9.1:0", Address("http", "127.8.9.1", 0), True),
        ("http://:8083", Address("http", "", 8083), False),
        ("http://0.0.0.0:8083", Address("http", "0.0.0.0", 8083), False),
        ("https://[::]:65535", Address("https", "::", 65535), False),
        ("http://localhost.example.com:1", Address("http", "localhost.example.com", 1), False),
    ],
)
def test_an_address_says_who_reaches_it(text: str, address: Address, loopback: bool) -> None:
    """Only what the machine itself answers, whatever names resolve to, is loopback."""
    assert parse_address(text) == address
    assert parse_address(text).is_loopback is loopback
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    "text", ["localhost:8083", "ftp://h:1", "http://h", "http://h:65536", "http://h:1/x", "http://u@h:1", "http://h:-1"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    """With an example of one."""
    (problem,) = _load({"listeners": text}).problems
    assert_says(problem, "[listeners]", f'"{text}"', "not an address", "write http://localhost:8083", "https://")


@pytest.mark.parametrize("host", ["", "0.0.0.0", "[::]", "10.1.2.3", "connect.example.com"])
def test_an_open_address_needs_tls_and_somebody_who_signs_in(host: str) -> None:
    """Neither alone is enough; users or certificates of clients are, with TLS."""
    plain, secure = f"http://{host}:8083", f"https://{host}:8083"
    for properties in ({"listeners": plain}, {"listeners": plain, **USERS}):
        (problem,) = _load(properties).problems
        assert_says(problem, "[listeners]", f'"{plain}"', "open to other machines", "without TLS")
        assert_says(problem, "write http://localhost:8083", "rest.basic.auth.file")
    (problem,) = _load({"listeners": secure, **TLS}).problems
    assert_says(problem, "[listeners]", f'"{secure}"', "nobody has to sign in", "set rest.basic.auth.file")
    assert_says(problem, "listeners.https.ssl.client.auth=required")
    requested = {**CERTIFICATES, "listeners.https.ssl.client.auth": "requested"}
    assert len(_load({"listeners": secure, **TLS, **requested}).problems) == 1
    assert _rest({"listeners": secure, **TLS, **USERS}).users
    tls = _rest({"listeners": secure, **TLS, **CERTIFICATES}).tls
    assert tls is not None
    assert (tls.client_auth, tls.identity.file) == ("required", "/w/server.pem")


def test_one_open_address_among_safe_ones_is_found() -> None:
    """Each is judged, those of the administrator, too."""
    problems = _load({"listeners": "http://localhost:1,http://h:2", "admin.listeners": "http://h:3"}).problems
    assert [problem.partition(" is open")[0] for problem in problems] == [
        'Invalid [listeners]. "http://h:2"',
        'Invalid [admin.listeners]. "http://h:3"',
    ]


@pytest.mark.parametrize(
    ("properties", "worker_id"),
    [
        ({"listeners": "http://127.0.0.1:9000"}, "127.0.0.1:9000"),
        ({"listeners": "http://[::1]:9000"}, "[::1]:9000"),
        ({"listeners": "https://localhost:2,http://localhost:1", **TLS}, "localhost:1"),
        (
            {"listeners": "https://localhost:2,http://localhost:1", "rest.advertised.listener": "HTTPS", **TLS},
            "localhost:2",
        ),
        ({"listeners": "https://:2", **TLS, **USERS}, "node-7:2"),
        ({"listeners": "https://0.0.0.0:2", **TLS, **USERS, "rest.advertised.host.name": "connect"}, "connect:2"),
        ({"rest.advertised.host.name": "w1", "rest.advertised.port": "80"}, "w1:80"),
    ],
)
def test_the_worker_is_known_by_what_it_advertises(properties: dict[str, str], worker_id: str) -> None:
    """As in Kafka Connect; an address that stands for all of them is the machine's name."""
    assert _rest(properties).worker_id == worker_id


@pytest.mark.parametrize(
    ("properties", "key", "words"),
    [
        (
            {"rest.advertised.listener": "https"},
            "rest.advertised.listener",
            ("no https listener", "name one in listeners"),
        ),
        (
            {"listeners": "https://localhost:1"},
            "listeners.https.ssl.keystore.location",
            ("missing", "listeners has", "certificate and key"),
        ),
        (
            {"listeners": "https://localhost:1", "listeners.https.ssl.keystore.location": "no.pem"},
            "listeners.https.ssl.keystore.location",
            ("no file", '"no.pem"', "correct the path"),
        ),
        (
            {
                "listeners": "https://localhost:1",
                "listeners.https.ssl.keystore.location": "store.p12",
                "listeners.https.ssl.keystore.type": "PEM",
            },
            "listeners.https.ssl.keystore.type",
            ("PEM is not", '"store.p12"', "correct it", "remove the key"),
        ),
        (
            {"listeners": "https://localhost:1", **TLS, "listeners.https.ssl.keystore.type": "jks"},
            "listeners.https.ssl.keystore.type",
            ("JKS is not", '"server.pem"', "remove the key"),
        ),
        (
            {"listeners": "https://localhost:1", **TLS, "listeners.https.ssl.client.auth": "required"},
            "listeners.https.ssl.truststore.location",
            ("missing", "name the authorities"),
        ),
        (
            {"listeners": "https://localhost:1", **TLS, "listeners.https.ssl.enabled.protocols": "TLSv1.1"},
            "listeners.https.ssl.enabled.protocols",
            ('"TLSv1.1"', "too old", "TLSv1.2 and TLSv1.3"),
        ),
        (
            {"listeners": "http://localhost:1,https://localhost:1", **TLS},
            "listeners",
            ('"localhost:1"', "listed 2 times", "its own port"),
        ),
        ({"rest.basic.auth.file": "none"}, "rest.basic.auth.file", ('"none"', "No such file", "users and passwords")),
        ({"rest.basic.auth.file": "empty"}, "rest.basic.auth.file", ('"empty"', "no user", "write user: password")),
        (
            {"rest.basic.auth.file": "half"},
            "rest.basic.auth.file",
            ('"half"', "without a password", "write user: password"),
        ),
        (
            {"rest.basic.auth.file": "colon"},
            "rest.basic.auth.file",
            ('"colon"', "with a colon", "write user: password"),
        ),
        ({"rest.extension.classes": "com.Mine"}, "rest.extension.classes", ('"com.Mine"', "a Java class", "remove it")),
        (
            {"rest.extension.classes": BASIC_AUTH_EXTENSION},
            "rest.basic.auth.file",
            ("missing", "rest.extension.classes", "basic authentication", "name its file"),
        ),
        (
            {"response.http.headers.config": "put X: y"},
            "response.http.headers.config",
            ('"put X: y"', "no action", "set, add, setDate or addDate"),
        ),
        (
            {"response.http.headers.config": "set X"},
            "response.http.headers.config",
            ('"set X"', "no header", "X-Frame-Options: DENY"),
        ),
        (
            {"response.http.headers.config": "set Date: x"},
            "response.http.headers.config",
            ('"set Date: x"', "the answer itself needs", "remove it"),
        ),
        (
            {"response.http.headers.config": "setDate X: soon"},
            "response.http.headers.config",
            ('"setDate X: soon"', "no whole number", "give one"),
        ),
    ],
)
def test_what_is_wrong_is_told_by_its_key(properties: dict[str, str], key: str, words: tuple[str, ...]) -> None:
    """Once, with the value and the cure; a password never."""
    (problem,) = _load(properties).problems
    assert_says(problem, f"Invalid [{key}]", *words)
    assert "secret" not in problem


def test_users_are_read_as_kafka_connect_reads_them() -> None:
    """With a colon or an equals sign, and never shown."""
    rest = _rest({"listeners": "http://localhost:1", **USERS})
    assert [(name, password.reveal()) for name, password in rest.users] == [("ann", "secret-1"), ("bob", "secret 2")]
    assert "secret" not in repr(rest)


def test_users_have_roles_behind_their_passwords() -> None:
    """A comma may be part of a password; without a role a user is an admin, which needs no word."""
    rest = _rest({"listeners": "http://localhost:1", "rest.basic.auth.file": "roles"})
    assert [(name, password.reveal()) for name, password in rest.users] == [
        ("ann", "secret-1"),
        ("bob", "a,b"),
        ("cid", "secret-3"),
        ("dan", "secret-4"),
    ]
    assert dict(rest.roles) == {"ann": Role.VIEWER, "bob": Role.OPERATOR, "cid": Role.ADMIN}


def test_a_role_misspelt_is_warned_of() -> None:
    """It is part of the password, so nobody signs in by what was meant; a role alone is not a password."""
    loaded = _load({"listeners": "http://localhost:1", "rest.basic.auth.file": "odd"})
    (warning,) = loaded.warnings
    assert "[rest.basic.auth.file]" in warning
    assert ("pw" in warning, "viever" in warning) == (False, False)
    (problem,) = _load({"listeners": "http://localhost:1", "rest.basic.auth.file": "no-password"}).problems
    assert "no password" in problem


def test_roles_of_certificates_are_rules_in_order() -> None:
    """The first that fits the subject decides; who fits none has no role."""
    text = "OU=platform:operator, CN=alice:admin, *:viewer"
    secure = {"listeners": "https://h:1", **TLS, **CERTIFICATES, "rest.client.certificate.roles": text}
    rules = _rest(secure).certificate_roles
    both = [("commonName", "alice"), ("organizationalUnitName", "platform")]
    assert role_of(rules, both) is Role.OPERATOR
    assert role_of(rules, both[:1]) is Role.ADMIN
    assert role_of(rules, ()) is Role.VIEWER
    assert role_of(rules[:2], [("commonName", "bob")]) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("OU=platform", ("no role", "viewer, operator, admin")),
        ("OU=platform:root", ("no role", "viewer, operator, admin")),
        ("platform:viewer", ("part of a subject", "CN=, O= or OU=")),
        ("XX=platform:viewer", ("part of a subject", "CN=, O= or OU=")),
        ("CN=:viewer", ("part of a subject", "CN=, O= or OU=")),
    ],
)
def test_a_rule_that_is_none_is_refused(text: str, words: tuple[str, ...]) -> None:
    """With the form that rules have."""
    secure = {"listeners": "https://h:1", **TLS, **CERTIFICATES, "rest.client.certificate.roles": text}
    (problem,) = _load(secure).problems
    assert_says(problem, "[rest.client.certificate.roles]", f'"{text}"', *words)


def test_roles_of_certificates_need_certificates() -> None:
    """Where no client shows one nobody would have a role."""
    (problem,) = _load({"listeners": "http://localhost:1", "rest.client.certificate.roles": "*:viewer"}).problems
    assert "ssl.client.auth" in problem


def test_a_certificate_may_stand_in_the_file_itself() -> None:
    """Certificate and key as Kafka's PEM keys have them; the key is never shown."""
    keys = {
        "listeners": "https://localhost:1",
        "listeners.https.ssl.keystore.certificate.chain": "CHAIN",
        "listeners.https.ssl.keystore.key": "KEY",
    }
    tls = _rest(keys).tls
    assert tls is not None
    assert tls.identity.text is not None
    assert (tls.identity.text.reveal(), "KEY" in repr(tls)) == ("CHAIN\nKEY\n", False)


def test_a_store_of_java_has_a_password() -> None:
    """JKS and PKCS12 stand for each other; the password is never shown."""
    keys = {
        "listeners": "https://localhost:1",
        "listeners.https.ssl.keystore.location": "store.p12",
        "listeners.https.ssl.keystore.type": "JKS",
        "listeners.https.ssl.keystore.password": "secret-store",
        "listeners.https.ssl.key.password": "secret-key",
    }
    tls = _rest(keys).tls
    assert tls is not None
    assert tls.identity.password is not None
    assert tls.key_password is not None
    assert (tls.identity.password.reveal(), tls.key_password.reveal()) == ("secret-store", "secret-key")
    assert "secret" not in repr(tls)


def test_loggers_have_addresses_of_their_own_or_none() -> None:
    """An empty key turns them off; without the key they are where all else is."""
    assert _rest({}).admin is None
    assert _rest({"admin.listeners": ""}).admin == ()
    assert _rest({"admin.listeners": "http://localhost:9"}).admin == (Address("http", "localhost", 9),)


def test_headers_of_answers_are_rules() -> None:
    """Separated by commas, one with a comma in double quotes."""
    found = parse_rules('set X-Frame-Options: DENY, "add Cache-Control: no-cache, no-store",setDate Expires: -1000')
    assert found == (
        HeaderRule("set", "X-Frame-Options", "DENY"),
        HeaderRule("add", "Cache-Control", "no-cache, no-store"),
        HeaderRule("setDate", "Expires", "-1000"),
    )
    assert [rule.is_date for rule in found] == [False, False, True]
    assert parse_rules("set X: a:b")[0].value == "a:b"


def test_other_settings_of_javas_tls_are_told_to_mean_nothing() -> None:
    """And so is a key of the REST API that nobody knows, with the nearest one."""
    warnings = _load({"listeners.https.ssl.provider": "X", "rest.advertised.hostname": "x"}).warnings
    provider, name = warnings
    assert_says(provider, "[listeners.https.ssl.provider]", "no effect", "no Java")
    assert_says(name, "[rest.advertised.hostname]", "unknown", "Did you mean rest.advertised.host.name?")


def test_origins_and_methods_of_others() -> None:
    """Methods in capitals, GET, POST and HEAD when none are named."""
    rest = _rest({"access.control.allow.origin": "https://a, https://*.b", "access.control.allow.methods": "get,put"})
    assert (rest.cross_origin.origins, rest.cross_origin.methods) == (("https://a", "https://*.b"), ("GET", "PUT"))
    assert _rest({}).cross_origin.methods == ("GET", "POST", "HEAD")
    assert _rest({}).cross_origin.origins == ()


def test_settings_can_be_replaced_by_others() -> None:
    """Ports that were found at the start take the place of 0."""
    rest = replace(_rest({"listeners": "http://localhost:0"}), listeners=(Address("http", "localhost", 5),))
    assert rest.worker_id == "localhost:5"
