"""Java's settings of SASL become librdkafka's, and the client takes them; what it cannot do is refused by name."""

import ssl

import pytest
from confluent_kafka import Consumer

from parquet_sink.config.secret import Secret
from parquet_sink.kafka.client.options import translation
from parquet_sink.kafka.client.security import sasl
from tests.kafka.client.security.java_stores import pair
from tests.messages import assert_says

PACKAGE = "org.apache.kafka.common.security"
SCRAM = Secret(f'{PACKAGE}.scram.ScramLoginModule required username="me" password="canary";')
OAUTH = f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule required"
URL = "sasl.oauthbearer.token.endpoint.url"
Client = dict[str, str | Secret]


def settings(client: Client) -> dict[str, str]:
    """What was added to the given settings, all of which the client took."""
    found = translation(client)
    assert found.problems == []
    Consumer({"group.id": "x", **found.settings}).close()
    return {name: text for name, text in found.settings.items() if name not in client or text != client[name]}


def refusals(client: Client) -> dict[str, str]:
    """What is wrong, by name, without secrets."""
    found = translation(client).problems
    assert "canary" not in str(found)
    return dict(found)


def signing_in(mechanism: str | None, jaas: str | Secret | None = None, **more: str | Secret) -> Client:
    """Settings with underscores for dots."""
    named = {name.replace("_", "."): value for name, value in more.items()}
    given: Client = {"security.protocol": "SASL_SSL", **named}
    return given | ({"sasl.mechanism": mechanism} if mechanism else {}) | ({"sasl.jaas.config": jaas} if jaas else {})


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_user_and_password_come_from_the_login_module(mechanism: str) -> None:
    """Those of Kafka, and shaded ones in another package."""
    expected = {"sasl.username": "me", "sasl.password": "canary"}
    assert settings(signing_in(mechanism, SCRAM)) == expected
    shaded = Secret(f"kafkashaded.{SCRAM.reveal()}")
    assert settings(signing_in(mechanism, shaded)) == expected


def test_kerberos_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is meant by leaving the mechanism out; where the client has it, librdkafka's own settings pass."""
    kerberos = Secret("com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;")
    named = refusals(signing_in("GSSAPI", kerberos))
    assert list(named) == ["sasl.mechanism"]
    assert_says(named["sasl.mechanism"], "Kerberos (GSSAPI)", "not in this build")
    assert_says(refusals(signing_in(None))["sasl.mechanism"], "missing", "Kafka's default, GSSAPI")
    monkeypatch.setattr(sasl, "_has_kerberos", lambda: True)
    assert refusals(signing_in("GSSAPI", sasl_kerberos_principal="sink")) == {}
    assert "sasl.kerberos.keytab" in refusals(signing_in("GSSAPI", kerberos))["sasl.jaas.config"]


@pytest.mark.parametrize(
    ("client", "name", "words"),
    [
        (signing_in("PLAIN", Secret("canary")), "sasl.jaas.config", "comes a flag"),
        (signing_in("PLAIN", Secret('x.PlainLoginModule required username="u";')), "sasl.jaas.config", "No password"),
        (
            signing_in("PLAIN", Secret("x.PlainLoginModule required;")),
            "sasl.jaas.config",
            "No username and no password",
        ),
        (
            signing_in("PLAIN", Secret(f'{OAUTH} clientSecret="canary";')),
            "sasl.jaas.config",
            "set sasl.mechanism to that",
        ),
        (signing_in("PLAIN", Secret('com.example.Vault required token="canary";')), "sasl.jaas.config", "is another"),
        (
            signing_in("SCRAM-SHA-512", Secret(SCRAM.reveal().replace(";", ' tokenauth="true";'))),
            "sasl.jaas.config",
            "delegation tokens",
        ),
        (
            signing_in("PLAIN", SCRAM, sasl_client_callback_handler_class="a.B"),
            "sasl.client.callback.handler.class",
            "a Java",
        ),
        (signing_in("PLAIN", SCRAM, sasl_login_class="a.B"), "sasl.login.class", "Java class cannot be loaded"),
        (
            signing_in("PLAIN", SCRAM, sasl_login_callback_handler_class="a.B"),
            "sasl.login.callback.handler.class",
            "Java",
        ),
    ],
)
def test_what_cannot_be_is_refused(client: Client, name: str, words: str) -> None:
    """By the setting to correct, with the cure."""
    found = refusals(client)
    assert list(found) == [name]
    assert words.lower() in found[name].lower()


def test_client_credentials_come_from_the_login_module() -> None:
    """As they were written before Kafka 4.1, with what goes to the brokers beside the token."""
    options = 'clientId="me" clientSecret="canary" scope="a b" extension_logicalCluster="lkc-1" extension_pool="p";'
    handler = f"{PACKAGE}.oauthbearer.OAuthBearerLoginCallbackHandler"
    given = signing_in("OAUTHBEARER", Secret(f"{OAUTH} {options}"), sasl_login_callback_handler_class=handler)
    assert settings({**given, URL: "http://h/token"}) == {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": "canary",
        "sasl.oauthbearer.scope": "a b",
        "sasl.oauthbearer.extensions": "logicalCluster=lkc-1,pool=p",
    }


def test_client_credentials_by_kafka_s_newer_names() -> None:
    """They win over the login module; id and secret are encoded first where that is asked for."""
    given = signing_in(
        "OAUTHBEARER",
        Secret(f'{OAUTH} clientId="old" clientSecret="old";'),
        sasl_oauthbearer_client_credentials_client_id="m e",
        sasl_oauthbearer_client_credentials_client_secret=Secret("a:b%"),
        sasl_oauthbearer_jwt_retriever_class=f"{PACKAGE}.oauthbearer.ClientCredentialsJwtRetriever",
        sasl_oauthbearer_scope="s",
    )
    found = settings({**given, URL: "http://h/token"})
    assert (found["sasl.oauthbearer.client.id"], found["sasl.oauthbearer.client.secret"]) == ("m e", "a:b%")
    found = settings({**given, URL: "http://h/token", "sasl.oauthbearer.header.urlencode": "true"})
    assert (found["sasl.oauthbearer.client.id"], found["sasl.oauthbearer.client.secret"]) == ("m+e", "a%3Ab%25")


def test_the_token_endpoint_is_trusted_by_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or by the environment, or by the login module's certificates; the client alone would look for one Linux's."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    credentials = 'clientId="me" clientSecret="canary"'
    plain: Client = {**signing_in("OAUTHBEARER", Secret(f"{OAUTH} {credentials};")), URL: "https://h/token"}
    paths = ssl.get_default_verify_paths()
    assert settings(plain)["https.ca.location"] == (paths.cafile or paths.capath)
    line = pair("a").pem.replace("\n", " ")
    trust = f"ssl.truststore.type=PEM ssl.truststore.certificates='{line}'"
    own = Secret(f"{OAUTH} {credentials} {trust};")
    assert settings({**plain, "sasl.jaas.config": own})["https.ca.pem"] == pair("a").pem
    absent = Secret(f"{OAUTH} {credentials} ssl.truststore.location='/no/such';")
    assert "ssl.truststore.location: /no/such" in refusals({**plain, "sasl.jaas.config": absent})["sasl.jaas.config"]
    assert "https.ca.location" not in settings({**plain, URL: "http://h/token"})


@pytest.mark.parametrize(
    ("more", "names"),
    [
        (
            {},
            {
                URL: "It is missing",
                "sasl.oauthbearer.client.credentials.client.id": "clientId",
                "sasl.oauthbearer.client.credentials.client.secret": "clientSecret",
            },
        ),
        (
            {URL: "file:///token", "sasl.oauthbearer.client.id": "a", "sasl.oauthbearer.client.secret": "b"},
            {URL: "no file"},
        ),
        (
            {URL: "http://h/t", "sasl.jaas.config": SCRAM},
            {"sasl.jaas.config": "OAUTHBEARER needs OAuthBearerLoginModule"},
        ),
        (
            {
                URL: "http://h/t",
                "sasl.jaas.config": Secret(f'{OAUTH} clientId="a" clientSecret="canary";'),
                "sasl.oauthbearer.jwt.retriever.class": f"{PACKAGE}.oauthbearer.FileJwtRetriever",
                "sasl.login.callback.handler.class": "io.strimzi.Handler",
            },
            {"sasl.login.callback.handler.class": "io.strimzi.Handler", "sasl.oauthbearer.jwt.retriever.class": "Java"},
        ),
    ],
)
def test_what_a_token_needs_is_told(more: Client, names: dict[str, str]) -> None:
    """Each under its own name."""
    found = refusals({**signing_in("OAUTHBEARER"), **more})
    assert found.keys() == names.keys()
    assert all(words in found[name] for name, words in names.items()), found


def test_librdkafka_s_own_ways_to_a_token_pass() -> None:
    """Who writes its settings knows what they want."""
    given = {"sasl.oauthbearer.config": Secret("principal=me"), "enable.sasl.oauthbearer.unsecure.jwt": "true"}
    assert settings({**signing_in("OAUTHBEARER"), **given})["sasl.oauthbearer.config"] == "principal=me"
