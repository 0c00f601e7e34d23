"""TLS of the server: its certificate, those of its clients, and what is said of files that cannot be used."""

import http.client
import socket
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from parquet_sink.config.secret import Secret
from parquet_sink.errors import SetupError
from parquet_sink.worker.rest.tls import client_context, server_context
from parquet_sink.worker_config.rest.settings import ClientAuth, RestSettings, Store, TlsSettings
from parquet_sink.worker_config.rest.values import Address
from tests.kafka.client.security.java_stores import Pair, jks, key_entry, pair, pkcs12_trust, trusted_entry
from tests.messages import saying
from tests.worker.rest.certificates import Made, make
from tests.worker.rest.fake_herder import FakeHerder
from tests.worker.rest.serving import serving

KEY = "listeners.https.ssl.keystore.location"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Certificates for all tests here."""
    return make(tmp_path_factory.mktemp("certificates"))


def _settings(tls: TlsSettings) -> RestSettings:
    return RestSettings(listeners=(Address("https", "localhost", 0),), tls=tls)


def _identity(made: Made) -> Store:
    return Store(KEY, file=str(made.server))


def _refused(tls: TlsSettings, own: ssl.SSLContext) -> None:
    with serving(FakeHerder(), _settings(tls), own) as client, pytest.raises((ssl.SSLError, ConnectionError)):
        client.get("/")


def test_the_api_is_served_over_tls(made: Made) -> None:
    """Addresses that it tells of begin with https; a client without TLS gets nothing."""
    with serving(FakeHerder(), _settings(TlsSettings(_identity(made))), made.trusting()) as client:
        got = client.ask("POST", "/connectors", {"name": "c", "config": {"connector.class": "EmsSink", "topics": "t"}})
        assert (got.status, got.headers["Location"]) == (201, f"https://localhost:{client.port}/connectors/c")
        plain = http.client.HTTPConnection("127.0.0.1", client.port, timeout=5)
        plain.request("GET", "/")
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            plain.getresponse()
        plain.close()


def test_a_certificate_and_its_key_may_be_texts(made: Made) -> None:
    """Both are given to OpenSSL without a file on disk."""
    text = Store("listeners.https.ssl.keystore.certificate.chain", text=Secret(made.server.read_text()))
    with serving(FakeHerder(), _settings(TlsSettings(text)), made.trusting()) as client:
        assert client.get("/").status == 200


def test_clients_without_a_certificate_of_the_authority_are_cut_off(made: Made) -> None:
    """One that the authority signed is let in; another's, or none, is not."""
    tls = TlsSettings(_identity(made), authorities=Store("a", file=str(made.authority)), client_auth="required")
    with serving(FakeHerder(), _settings(tls), made.trusting(made.client)) as client:
        assert client.get("/").status == 200
    for own in (None, made.stranger):
        _refused(tls, made.trusting(own))


@pytest.mark.parametrize("client_auth", ["none", "requested", "required"])
def test_a_worker_asks_others_by_tls(made: Made, client_auth: ClientAuth) -> None:
    """It believes its truststore's authorities, and shows its own certificate where that is asked for."""
    authorities = Store("a", file=str(made.authority))
    tls = TlsSettings(_identity(made), authorities=authorities, client_auth=client_auth)
    with serving(FakeHerder(), _settings(tls), client_context(tls)) as client:
        assert client.get("/").status == 200
    with serving(FakeHerder(), _settings(tls), client_context(replace(tls, authorities=None))) as client:
        with pytest.raises(ssl.SSLCertVerificationError):
            client.get("/")
        with socket.create_connection(("127.0.0.1", client.port), 5) as plain, pytest.raises(ssl.CertificateError):
            client_context(tls).wrap_socket(plain, server_hostname="another")


def test_a_requested_certificate_may_be_absent(made: Made) -> None:
    """But a stranger's is refused all the same."""
    tls = TlsSettings(_identity(made), authorities=Store("a", file=str(made.authority)), client_auth="requested")
    with serving(FakeHerder(), _settings(tls), made.trusting()) as client:
        assert client.get("/").status == 200
    _refused(tls, made.trusting(made.stranger))


def test_versions_of_tls_are_those_that_are_named(made: Made) -> None:
    """None before 1.2; one alone when it is named alone."""
    both = server_context(TlsSettings(_identity(made)))
    assert (both.minimum_version, both.maximum_version) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
    new = server_context(TlsSettings(_identity(made), protocols=("TLSv1.3",)))
    assert (new.minimum_version, new.maximum_version) == (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3)
    old = server_context(
        TlsSettings(_identity(made), protocols=("TLSv1.2",), ciphers=("ECDHE-ECDSA-AES128-GCM-SHA256",))
    )
    assert old.maximum_version == ssl.TLSVersion.TLSv1_2
    assert "ECDHE-ECDSA-AES128-GCM-SHA256" in [one["name"] for one in old.get_ciphers()]


def test_a_key_may_have_a_password(tmp_path: Path) -> None:
    """Without it, or with a wrong one, the key is said to be unusable; nobody is asked on the terminal."""
    locked = make(tmp_path, password="secret-1")
    identity = _identity(locked)
    server_context(TlsSettings(identity, Secret("secret-1")))
    for password in (None, Secret("wrong")):
        with pytest.raises(SetupError, match=saying(f"Invalid [{KEY}]", "password is wrong")):
            server_context(TlsSettings(identity, password))


def test_files_that_cannot_be_used_are_named(made: Made, tmp_path: Path) -> None:
    """With the key of the worker file."""
    broken = tmp_path / "broken.pem"
    broken.write_text("-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n")
    with pytest.raises(SetupError, match=saying(f"[{KEY}]", "broken.pem", "not hold a certificate")):
        server_context(TlsSettings(Store(KEY, file=str(broken))))
    with pytest.raises(SetupError, match=saying("[trust]", "broken.pem", "cannot be used")):
        server_context(TlsSettings(_identity(made), authorities=Store("trust", file=str(broken))))
    with pytest.raises(SetupError, match=saying("[listeners.https.ssl.cipher.suites]", "OpenSSL", "none")):
        server_context(TlsSettings(_identity(made), ciphers=("NOTHING",)))


def test_silent_connections_hold_up_nobody(made: Made) -> None:
    """Others are served while somebody connects and says nothing."""
    with serving(FakeHerder(), _settings(TlsSettings(_identity(made))), made.trusting()) as client:
        silent = [socket.create_connection(("127.0.0.1", client.port), timeout=10) for _ in range(3)]
        assert client.get("/health").status == 200
        for one in silent:
            one.close()


@pytest.mark.parametrize("form", ["pkcs12", "jks"])
def test_stores_of_java_are_used_as_they_are(made: Made, tmp_path: Path, form: str) -> None:
    """Key and authorities; what is wrong with one is told by the key that says it."""
    server, authority = _pair(made.server), _pair(made.authority)
    own, trust = tmp_path / "own", tmp_path / "trust"
    password, key_password = Secret("secret-store"), Secret("secret-key" if form == "jks" else "secret-store")
    if form == "jks":
        own.write_bytes(jks("secret-store", key_entry("me", "secret-key", server)))
        trust.write_bytes(jks("secret-store", trusted_entry("ca", authority)))
    else:
        own.write_bytes(server.pkcs12("secret-store"))
        trust.write_bytes(pkcs12_trust("secret-store", authority))
    identity = Store(KEY, file=str(own), password=password)
    authorities = Store("listeners.https.ssl.truststore.location", file=str(trust), password=password)
    tls = TlsSettings(identity, key_password, authorities, "required")
    with serving(FakeHerder(), _settings(tls), made.trusting(made.client)) as client:
        assert client.get("/").status == 200
    _refused(tls, made.trusting(made.stranger))
    for wrong, key in (
        (replace(tls, identity=replace(identity, password=Secret("no"))), "listeners.https.ssl.keystore.password"),
        (
            replace(tls, authorities=replace(authorities, password=Secret("no"))),
            "listeners.https.ssl.truststore.password",
        ),
        (replace(tls, identity=replace(identity, file=str(trust))), "listeners.https.ssl.keystore.location"),
    ):
        with pytest.raises(SetupError) as raised:
            server_context(wrong)
        assert str(raised.value).startswith(f"Invalid [{key}]. ")
    if form == "jks":
        with pytest.raises(SetupError, match=r"Invalid \[listeners.https.ssl.key.password\]. "):
            server_context(replace(tls, key_password=Secret("no")))


def _pair(path: Path) -> Pair:
    data = path.read_bytes()
    certificate = x509.load_pem_x509_certificate(data)
    if b"PRIVATE KEY" not in data:
        return replace(pair("authority"), certificate=certificate)
    key = serialization.load_pem_private_key(data, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return Pair(certificate, key)
