"""What the Kafka client does not say of a TLS handshake is found out by another one."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from socket import create_server, socket

import pytest

from parquet_sink.devkit.ports import free_port
from parquet_sink.errors import KafkaRefused
from parquet_sink.kafka.client.doorstep import speaks_tls, why_unverified
from parquet_sink.kafka.cluster.cluster import KafkaCluster
from parquet_sink.kafka.settings import KafkaSettings
from tests.kafka.client.security.java_stores import pair

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


def _hang_up(server: socket) -> None:
    server.accept()[0].close()


def _serve(server: socket, context: ssl.SSLContext) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with suppress(OSError), closing(connection), context.wrap_socket(connection, server_side=True) as secured:
            secured.recv(1)


def test_the_reason_is_told(door: str, tmp_path: Path) -> None:
    """By the client's own authorities and its own way with host names; none where it would be accepted."""
    (tmp_path / "ca.pem").write_text(ISSUED.pem)
    assert why_unverified(door, {}) == "self-signed certificate"
    trusting = {"ssl.ca.pem": ISSUED.pem}
    assert "IP address mismatch" in str(why_unverified(door, trusting))
    assert "IP address mismatch" in str(why_unverified(f"ssl://{door}", {"ssl.ca.location": str(tmp_path / "ca.pem")}))
    assert why_unverified(door, {**trusting, "ssl.endpoint.identification.algorithm": "none"}) is None


def test_who_speaks_no_tls_has_no_reason(door: str) -> None:
    """Nobody there, somebody else there, and texts that are no address."""
    assert speaks_tls(door)
    with closing(create_server(("127.0.0.1", 0))) as other:
        thread = threading.Thread(target=_hang_up, args=(other,), daemon=True)
        thread.start()
        assert not speaks_tls(f"127.0.0.1:{other.getsockname()[1]}")
        thread.join()
    for address in (f"127.0.0.1:{free_port()}", "nowhere", "[::1]:x", ""):
        assert not speaks_tls(address)
        assert why_unverified(address, {}) is None


def test_a_listener_that_wants_tls_is_told(door: str) -> None:
    """The client itself has no word for it, and would wait."""
    client = {"bootstrap.servers": door, "default.api.timeout.ms": "2000"}
    cluster = KafkaCluster(KafkaSettings(("orders",), None, "g", client))
    with pytest.raises(
        KafkaRefused, match=f"{door} speaks TLS, and security.protocol=PLAINTEXT does not. Set it to SSL"
    ):
        cluster.topic_partitions()


def test_a_certificate_that_is_not_accepted_ends_the_wait(door: str) -> None:
    """With its reason, long before a broker that is away would be given up."""
    client = {"bootstrap.servers": door, "security.protocol": "SSL"}
    cluster = KafkaCluster(KafkaSettings(("orders",), None, "g", client))
    with pytest.raises(KafkaRefused, match=f"{door}: TLS failed: .* is not accepted: self-signed certificate"):
        cluster.topic_partitions()
