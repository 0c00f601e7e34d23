"""Stores do their work in real TLS handshakes: the client verifies a server, shows it our certificate, is told off.

The server speaks TLS and nothing of Kafka: what comes after the handshake is not looked at here.
"""

import ipaddress
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import Empty, Queue
from socket import create_server, socket

import pytest
from confluent_kafka import Consumer
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from parquet_sink.config.secret import Secret
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.client.causes import Cause
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.settings import KafkaSettings
from tests.kafka.client.security.java_stores import Pair, jks, key_entry, pair, pkcs12_trust, trusted_entry
from tests.messages import assert_says

Client = dict[str, str | Secret]
PATIENCE_S = 20.0


def issued(name: str, by: Pair, *, days: int = 1, authority: bool = False) -> Pair:
    """A certificate for this machine, signed by another; days: until it ends."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(
        by.certificate.subject,
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]),
        key.public_key(),
        x509.random_serial_number(),
        now - timedelta(days=9),
        now + timedelta(days=days),
    )
    if authority:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    return Pair(builder.add_extension(here, critical=False).sign(by.key, hashes.SHA256()), key)


ROOT = pair("root", authority=True)
BETWEEN = issued("between", ROOT, authority=True)
SERVER, OURS = issued("server", ROOT), issued("ours", BETWEEN)
ENDED, STRANGER = issued("ended", ROOT, days=-1), pair("stranger")


@contextmanager
def server(folder: Path, shows: Pair, *, wants_ours: bool = False) -> Iterator[tuple[str, "Queue[str]"]]:
    """Its address, and the names of those who showed it a certificate ("" for none) and were let in."""
    (folder / "server.pem").write_text(shows.key_pem() + shows.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    if wants_ours:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=ROOT.pem)
    guests: Queue[str] = Queue()
    with closing(create_server(("127.0.0.1", 0))) as listening:
        threading.Thread(target=_serve, args=(listening, context, guests), daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}", guests


def _serve(listening: socket, context: ssl.SSLContext, guests: "Queue[str]") -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with suppress(OSError), closing(connection), context.wrap_socket(connection, server_side=True) as secured:
            subject = (secured.getpeercert() or {}).get("subject", ())
            guests.put("".join(value for part in subject for _, value in part))
            secured.recv(1)


def knock(address: str, client: Client, guests: "Queue[str]") -> str | Cause:
    """As whom the server lets a client in that has these settings, or why it does not get in."""
    given: Client = {"bootstrap.servers": address, "security.protocol": "SSL", **client}
    one = ClientLog("g")
    options = client_options.group_options(KafkaSettings(group="g", client=given))
    consumer = client_options.build(Consumer, options, one)
    deadline = time.monotonic() + PATIENCE_S
    try:
        while time.monotonic() < deadline:
            with suppress(Empty):
                return guests.get_nowait()
            consumer.poll(0.05)
            if (cause := one.cause()).words:
                return cause
        raise AssertionError("neither let in nor told off")
    finally:
        consumer.close()


@pytest.fixture
def stores(tmp_path: Path) -> Callable[[str], Client]:
    """Settings of stores, of each of Java's kinds."""
    contents = {
        "trust.jks": jks("secret", trusted_entry("a", ROOT)),
        "trust.p12": pkcs12_trust("secret", ROOT),
        "trust.pem": ROOT.pem.encode(),
        "key.jks": jks("secret", key_entry("me", "mine", OURS, BETWEEN)),
        "key.p12": OURS.pkcs12("secret", BETWEEN),
        "key.pem": (OURS.key_pem("mine") + OURS.pem + BETWEEN.pem).encode(),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)

    def settings(kind: str) -> Client:
        end = {"JKS": "jks", "PKCS12": "p12", "PEM": "pem"}[kind]
        found: Client = {}
        for which, name in (("truststore", "trust"), ("keystore", "key")):
            found |= {f"ssl.{which}.type": kind, f"ssl.{which}.location": str(tmp_path / f"{name}.{end}")}
            found |= {} if kind == "PEM" else {f"ssl.{which}.password": Secret("secret")}
        return found | ({} if kind == "PKCS12" else {"ssl.key.password": Secret("mine")})

    return settings


@pytest.mark.parametrize("kind", ["JKS", "PKCS12", "PEM"])
def test_both_sides_are_verified(tmp_path: Path, stores: Callable[[str], Client], kind: str) -> None:
    """Ours by the authority between it and the root, which the store has and the server does not."""
    with server(tmp_path, SERVER, wants_ours=True) as (address, guests):
        assert knock(address, stores(kind), guests) == "ours"


@pytest.mark.parametrize("kind", ["JKS", "PKCS12", "PEM"])
def test_a_server_of_another_authority_is_not_trusted(
    tmp_path: Path, stores: Callable[[str], Client], kind: str
) -> None:
    """Whatever the kind of the store; the reason is told, and waiting is no cure."""
    with server(tmp_path, STRANGER) as (address, guests):
        found = knock(address, stores(kind), guests)
    assert isinstance(found, Cause)
    assert found.lasting
    assert_says(found.words, address, "TLS failed", "broker's certificate", "not accepted", "self-signed")


def test_a_certificate_that_ended_is_told(tmp_path: Path, stores: Callable[[str], Client]) -> None:
    """The server's, in words that the client itself does not have."""
    with server(tmp_path, ENDED) as (address, guests):
        found = knock(address, stores("JKS"), guests)
    assert isinstance(found, Cause)
    assert found.lasting
    assert_says(found.words, address, "not accepted", "certificate has expired")


@pytest.mark.parametrize("switched_off", [True, False])
def test_a_host_name_counts_unless_that_is_switched_off(tmp_path: Path, switched_off: bool) -> None:
    """A certificate of a trusted authority, for no host at all."""
    trusting: Client = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": ROOT.pem}
    more: Client = {"ssl.endpoint.identification.algorithm": ""} if switched_off else {}
    with server(tmp_path, ROOT) as (address, guests):
        found = knock(address, trusting | more, guests)
    if switched_off:
        assert found == ""
    else:
        assert isinstance(found, Cause)
        assert_says(found.words, "not accepted", "IP address mismatch")


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (None, ("broker wants", "a certificate of ours")),
        (ENDED, ("our certificate", "expired", "says the broker")),
        (STRANGER, ("broker does not know", "authority of our certificate")),
    ],
)
def test_a_server_that_does_not_take_ours_is_told(tmp_path: Path, shown: Pair | None, words: tuple[str, ...]) -> None:
    """By what it says against it, with the settings to correct."""
    client: Client = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": ROOT.pem}
    if shown is not None:
        client |= {"ssl.keystore.type": "PEM", "ssl.keystore.key": Secret(shown.key_pem())}
        client |= {"ssl.keystore.certificate.chain": shown.pem}
    with server(tmp_path, SERVER, wants_ours=True) as (address, guests):
        found = knock(address, client, guests)
    assert isinstance(found, Cause)
    assert_says(found.words, address, "TLS failed", *words)
    assert (found.lasting, "ssl.keystore" in found.cure) == (True, True)
