"""What the Kafka client does not say of a TLS handshake is found out by another one."""

import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from socket import SHUT_RDWR, create_server, socket

import pytest

from parquet_sink.addons.devkit.ports import free_port
from parquet_sink.errors import KafkaRefused
from parquet_sink.kafka.client.doorstep import Doorstep
from parquet_sink.kafka.cluster.cluster import KafkaCluster
from parquet_sink.kafka.settings import KafkaSettings
from tests.kafka.client.security.java_stores import pair
from tests.messages import assert_says, saying

ISSUED = pair("127.0.0.1")


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An address that wants TLS, with a certificate that nobody but itself vouches for, of no host at all."""
    file = tmp_path_factory.mktemp("door") / "own.pem"
    file.write_text(ISSUED.key_pem() + ISSUED.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    with closing(create_server(("127.0.0.1", 0))) as server:
        threading.Thread(target=_serve, args=(server, context), daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"


def _serve(server: socket, context: ssl.SSLContext) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with suppress(OSError), closing(connection), context.wrap_socket(connection, server_side=True) as secured:
            secured.recv(1)


def looking(address: str, **options: str) -> Doorstep:
    """At one address, with the client's options; underscores for dots."""
    given = {name.replace("_", "."): value for name, value in options.items()}
    return Doorstep({"bootstrap.servers": address, **given})


def test_the_reason_is_told(door: str, tmp_path: Path) -> None:
    """By the client's own authorities and its own way with host names; none where it would be accepted."""
    (tmp_path / "ca.pem").write_text(ISSUED.pem)
    assert looking(door).why_unverified(door) == "self-signed certificate"
    assert "IP address mismatch" in str(looking(door, ssl_ca_pem=ISSUED.pem).why_unverified(door))
    by_file = looking(door, ssl_ca_location=str(tmp_path / "ca.pem"))
    assert "IP address mismatch" in str(by_file.why_unverified(f"ssl://{door}"))
    careless = looking(door, ssl_ca_pem=ISSUED.pem, ssl_endpoint_identification_algorithm="none")
    assert careless.why_unverified(door) is None


@pytest.mark.parametrize("address", [f"127.0.0.1:{free_port()}", "nowhere", "[::1]:x", ""])
def test_who_is_not_there_has_no_reason(address: str) -> None:
    """Nobody there, and texts that are no address."""
    assert looking(address).why_unverified(address) is None
    assert looking(address).wrong_protocol(address) is None


class Listener:
    """Answers each connection's first bytes with the same, and hangs up."""

    def __init__(self, answer: bytes) -> None:
        self._answer, self._server = answer, create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self.asked: list[bytes] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                with closing(connection), suppress(OSError):
                    self.asked.append(connection.recv(1_000))
                    connection.sendall(self._answer)

    def __enter__(self) -> str:
        return self.address

    def __exit__(self, *error: object) -> None:
        self._server.shutdown(SHUT_RDWR)
        self._server.close()
        self._thread.join()


def said(code: int, *mechanisms: str, number: int = 1) -> bytes:
    """A broker's answer to a question for a way to sign in."""
    texts = b"".join(struct.pack(">h", len(one)) + one.encode() for one in mechanisms)
    body = struct.pack(">ihi", number, code, len(mechanisms)) + texts
    return struct.pack(">i", len(body)) + body


LOGINS = said(33, "PLAIN", "SCRAM-SHA-512")
SASL_HANDSHAKE_REQUEST = bytes.fromhex("0000000d 0011 0001 00000001 ffff 0001 3f")


@pytest.mark.parametrize(
    ("answer", "ours", "words", "cure"),
    [
        (
            LOGINS,
            "PLAINTEXT",
            ("speaks SASL_PLAINTEXT", "with PLAIN, SCRAM-SHA-512", "security.protocol=PLAINTEXT does not"),
            ("security.protocol to SASL_PLAINTEXT", "sasl.mechanism", "sasl.jaas.config"),
        ),
        (
            LOGINS,
            "SASL_SSL",
            ("speaks SASL_PLAINTEXT", "security.protocol=SASL_SSL does not"),
            ("security.protocol to SASL_PLAINTEXT",),
        ),
        (
            said(34),
            "SASL_PLAINTEXT",
            ("speaks PLAINTEXT", "security.protocol=SASL_PLAINTEXT does not"),
            ("security.protocol to PLAINTEXT",),
        ),
        (
            said(34),
            "ssl",
            ("speaks PLAINTEXT", "security.protocol=SSL does not"),
            ("security.protocol to PLAINTEXT",),
        ),
    ],
)
def test_a_listener_tells_what_it_speaks(
    answer: bytes, ours: str, words: tuple[str, ...], cure: tuple[str, ...]
) -> None:
    """Whether it wants a login, and by which ways; what is asked for is not a secret."""
    listener = Listener(answer)
    with listener as address:
        found = looking(address, security_protocol=ours).wrong_protocol(address)
    assert found is not None
    assert found.lasting
    assert_says(found.words, *words)
    assert_says(found.cure, *cure)
    assert listener.asked[-1] == SASL_HANDSHAKE_REQUEST


@pytest.mark.parametrize(
    ("answer", "ours"),
    [(LOGINS, "SASL_PLAINTEXT"), (said(34), "PLAINTEXT")],
    ids=["logins", "none"],
)
def test_a_listener_that_speaks_as_we_do_has_no_fault(answer: bytes, ours: str) -> None:
    """What ails it is something else."""
    with Listener(answer) as address:
        assert looking(address, security_protocol=ours).wrong_protocol(address) is None


@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1 400 Bad Request\r\n", said(33, number=2), said(0), LOGINS[:-3], LOGINS[:12], said(33, "\u00e9")],
)
def test_strangers_say_nothing(answer: bytes) -> None:
    """Whoever hangs up, or answers as no broker does, is not made out to speak anything."""
    with Listener(answer) as address:
        assert looking(address, security_protocol="SASL_SSL").wrong_protocol(address) is None


def test_a_listener_that_wants_tls_is_told(door: str) -> None:
    """The client itself has no word for it, and would wait."""
    client = {"bootstrap.servers": door, "default.api.timeout.ms": "2000"}
    cluster = KafkaCluster(KafkaSettings(("orders",), None, "g", client))
    parts = (door, "speaks SSL", "security.protocol=PLAINTEXT does not", "Set security.protocol")
    with pytest.raises(KafkaRefused, match=saying(*parts)):
        cluster.topic_partitions()


def test_a_certificate_that_is_not_accepted_ends_the_wait(door: str) -> None:
    """With its reason, long before a broker that is away would be given up."""
    client = {"bootstrap.servers": door, "security.protocol": "SSL"}
    cluster = KafkaCluster(KafkaSettings(("orders",), None, "g", client))
    with pytest.raises(KafkaRefused, match=saying(door, "TLS failed", "not accepted", "self-signed")):
        cluster.topic_partitions()
