"""Java's settings of TLS become librdkafka's, and the client takes them; what it cannot do is refused by name."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer

from parquet_sink.config.secret import Secret
from parquet_sink.kafka.client.check import problems as checked
from parquet_sink.kafka.client.options import translation
from parquet_sink.kafka.settings import KafkaSettings
from tests.kafka.client.security.java_stores import jks, key_entry, pair, pkcs12_trust, trusted_entry

ONE, OTHER, AUTHORITY = pair("one"), pair("other"), pair("authority")
Client = dict[str, str | Secret]


def settings(client: Client) -> dict[str, str]:
    """librdkafka's, which its client took."""
    found = translation({"security.protocol": "SSL", **client})
    assert found.problems == []
    Consumer({"group.id": "x", **found.settings}).close()
    return {name: text for name, text in found.settings.items() if name != "security.protocol"}


def refusals(client: Client) -> dict[str, str]:
    """What is wrong, by name, without secrets."""
    found = translation(client).problems
    assert "canary" not in str(found)
    return dict(found)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder of stores, all with the password `secret`."""
    for name, content in {
        "trust.jks": jks("secret", trusted_entry("a", AUTHORITY)),
        "trust.p12": pkcs12_trust("secret", AUTHORITY),
        "key.jks": jks("secret", key_entry("me", "mine", ONE, AUTHORITY)),
        "key.p12": ONE.pkcs12("secret", AUTHORITY),
        "ca.pem": AUTHORITY.pem.encode(),
        "key.pem": (ONE.key_pem("mine") + ONE.pem + AUTHORITY.pem).encode(),
    }.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "kind"),
    [("trust.jks", None), ("trust.jks", "jks"), ("trust.p12", "PKCS12"), ("trust.p12", "JKS"), ("trust.jks", "PKCS12")],
)
def test_a_trust_store_becomes_text_in_memory(files: Path, name: str, kind: str | None) -> None:
    """Of either form, under either type, as in Java; nothing else is written or named."""
    client: Client = {"ssl.truststore.location": str(files / name), "ssl.truststore.password": Secret("secret")}
    before = sorted(files.iterdir())
    assert settings(client | ({"ssl.truststore.type": kind} if kind else {})) == {"ssl.ca.pem": AUTHORITY.pem}
    assert sorted(files.iterdir()) == before


def test_trust_in_pem_form(files: Path) -> None:
    """A file is handed on by its name; a text is written anew, line by line."""
    file = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(files / "ca.pem")}
    assert settings(dict(file)) == {"ssl.ca.location": str(files / "ca.pem")}
    line = f"{AUTHORITY.pem}{ONE.pem}".replace("\n", " ")
    text = {"ssl.truststore.type": "pem", "ssl.truststore.certificates": line}
    assert settings(dict(text)) == {"ssl.ca.pem": AUTHORITY.pem + ONE.pem}


@pytest.mark.parametrize(("name", "key_password"), [("key.jks", "mine"), ("key.p12", None)])
def test_a_key_store_becomes_text_in_memory(files: Path, name: str, key_password: str | None) -> None:
    """Its key in the clear, so that the client needs no password."""
    client: Client = {"ssl.keystore.location": str(files / name), "ssl.keystore.password": Secret("secret")}
    client |= {"ssl.key.password": Secret(key_password)} if key_password else {}
    assert settings(client) == {"ssl.key.pem": ONE.key_pem(), "ssl.certificate.pem": ONE.pem + AUTHORITY.pem}


def test_keys_in_pem_form(files: Path) -> None:
    """In a file or as text; encrypted keys go on with their password."""
    client: Client = {"ssl.keystore.type": "PEM", "ssl.key.password": Secret("mine")}
    found = settings({**client, "ssl.keystore.location": str(files / "key.pem")})
    assert found.pop("ssl.key.pem").startswith("-----BEGIN ENCRYPTED PRIVATE KEY-----\n")
    assert found == {"ssl.certificate.pem": ONE.pem + AUTHORITY.pem, "ssl.key.password": "mine"}
    key, chain = Secret(ONE.key_pem("mine").replace("\n", " ")), ONE.pem.replace("\n", "")
    found = settings({**client, "ssl.keystore.key": key, "ssl.keystore.certificate.chain": chain})
    assert found["ssl.certificate.pem"] == ONE.pem


@pytest.mark.parametrize(
    ("given", "expected"), [("", "none"), ("https", "https"), ("HTTPS", "https"), ("none", "none")]
)
def test_host_names_are_checked_unless_that_is_switched_off(given: str, expected: str) -> None:
    """A blank value switches it off, as in Java."""
    name = "ssl.endpoint.identification.algorithm"
    assert settings({name: given}) == {name: expected}


@pytest.mark.parametrize(
    ("client", "name", "words"),
    [
        ({"ssl.truststore.type": "BCFKS"}, "ssl.truststore.type", "write JKS, PKCS12 or PEM"),
        ({"ssl.keystore.type": "HSM", "ssl.keystore.location": "/x"}, "ssl.keystore.type", "write JKS, PKCS12 or PEM"),
        ({"ssl.truststore.password": Secret("canary")}, "ssl.truststore.password", "No store is named"),
        ({"ssl.keystore.password": Secret("canary")}, "ssl.keystore.password", "No store is named"),
        ({"ssl.keystore.location": "/x"}, "ssl.keystore.password", "/x opens with it"),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/x", "ssl.keystore.password": Secret("canary")},
            "ssl.keystore.password",
            "A PEM file has none",
        ),
        ({"ssl.truststore.location": "/no/such"}, "ssl.truststore.location", "no such file"),
        ({"ssl.truststore.certificates": "x"}, "ssl.truststore.certificates", "need ssl.truststore.type=PEM"),
        (
            {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "canary"},
            "ssl.truststore.certificates",
            "no certificate in PEM form",
        ),
        (
            {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "x", "ssl.truststore.location": "/x"},
            "ssl.truststore.certificates",
            "both set",
        ),
        ({"ssl.keystore.key": Secret("canary")}, "ssl.keystore.key", "need ssl.keystore.type=PEM"),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.key": Secret("canary")},
            "ssl.keystore.key",
            "no private key in PEM form",
        ),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.key": Secret(ONE.key_pem())},
            "ssl.keystore.certificate.chain",
            "no certificate",
        ),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.key": Secret("x"), "ssl.keystore.location": "/x"},
            "ssl.keystore.key",
            "both set",
        ),
        ({"ssl.endpoint.identification.algorithm": "LDAPS"}, "ssl.endpoint.identification.algorithm", "write https"),
        ({"ssl.engine.factory.class": "com.example.X"}, "ssl.engine.factory.class", "cannot be loaded"),
        ({"ssl.enabled.protocols": "TLSv1.3"}, "ssl.enabled.protocols", "TLSv1.3 alone cannot be asked for"),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "ssl.enabled.protocols", "TLSv1.1 alone cannot"),
    ],
)
def test_what_cannot_be_is_refused(client: Client, name: str, words: str) -> None:
    """By the setting to correct, with the cure."""
    found = refusals(client)
    assert list(found) == [name]
    assert words in found[name]


def test_settings_of_java_s_own_libraries_pass() -> None:
    """Kafka's defaults, and names of libraries that are Java's, have no effect and no problem."""
    assert settings({"ssl.enabled.protocols": "TLSv1.2, TLSv1.3", "ssl.protocol": "TLSv1.3", "ssl.provider": "X"}) == {}
    assert settings({"ssl.truststore.type": "JKS", "ssl.keystore.type": "PKCS12"}) == {}


def test_key_and_certificate_must_belong_together(tmp_path: Path) -> None:
    """That is told before anything starts, and so is a key that its password does not open."""
    (tmp_path / "k.pem").write_text(ONE.key_pem("mine") + OTHER.pem)
    place = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(tmp_path / "k.pem"), "security.protocol": "SSL"}
    for password, words in (("mine", "belongs to another certificate"), ("canary", "ssl.key.password is missing")):
        client: Client = {"bootstrap.servers": "localhost:1", **place, "ssl.key.password": Secret(password)}
        ((name, reason),) = checked(KafkaSettings(client=client, group="g"))
        assert (name, words in reason, "canary" in reason) == ("ssl.keystore.location", True, False), reason
