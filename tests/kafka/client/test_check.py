"""What the Kafka client would refuse is told at once, each setting by the name that the operator wrote."""

import socket
from pathlib import Path

import pytest

from parquet_sink.config.secret import Secret
from parquet_sink.kafka.client.check import problems
from parquet_sink.kafka.settings import KafkaSettings
from tests.messages import assert_says


def kafka(**client: str | Secret) -> KafkaSettings:
    """Settings with these client settings, underscores for dots."""
    given = {name.replace("_", "."): value for name, value in client.items()}
    return KafkaSettings(
        topics=("orders",), group="connect-orders", client={"bootstrap.servers": "localhost:9092"} | given
    )


def test_every_setting_is_told_at_once() -> None:
    """Names that are unknown and values that are not taken, however many there are."""
    found = dict(problems(kafka(no_such="1", fetch_min_byts="1", security_protocol="XX", fetch_min_bytes="-5")))
    assert found.keys() == {"no.such", "fetch.min.byts", "security.protocol", "fetch.min.bytes"}
    assert_says(found["no.such"], "Kafka client (librdkafka)", "no setting", "remove it")
    assert "Did you mean" not in found["no.such"]
    assert_says(found["fetch.min.byts"], "no setting", "remove it", "Did you mean fetch.min.bytes?")
    assert_says(found["security.protocol"], "XX", "not a protocol", "PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL")
    assert_says(found["fetch.min.bytes"], "-5", "out of range", "0 to 2147483647")


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("ssl.truststore.location", {"ssl.truststore.type": "PEM"}),
        ("ssl.ca.location", {}),
        ("ssl.keystore.location", {"ssl.keystore.type": "PKCS12", "ssl.keystore.password": Secret("x")}),
    ],
)
@pytest.mark.parametrize("place", ["absent", "text", "folder/"])
def test_a_file_that_cannot_be_used_is_named(
    tmp_path: Path, name: str, others: dict[str, str | Secret], place: str
) -> None:
    """Whatever is wrong with a file of certificates or keys, the message has its path and none of OpenSSL's words."""
    (tmp_path / "text").write_text("root:x:0:0\n")
    (tmp_path / "folder").mkdir()
    path = str(tmp_path / place)
    settings = kafka(security_protocol="SSL")
    found = problems(KafkaSettings(topics=("t",), group="g", client={**settings.client, **others, name: path}))
    if name != "ssl.keystore.location" and place == "folder/":
        assert found == []  # hashed certificates
        return
    [(named, reason)] = found
    assert named == name
    assert path in reason
    assert "routines" not in reason
    assert "_ssl.c" not in reason


def test_a_mechanism_and_its_user_are_told_by_their_keys() -> None:
    """What is wrong only when settings meet has the key that cures it."""
    [(name, reason)] = problems(kafka(security_protocol="SASL_SSL", sasl_mechanism="FOO"))
    assert (name, "SCRAM-SHA-512" in reason) == ("sasl.mechanism", True)
    [(name, reason)] = problems(kafka(security_protocol="SASL_SSL"))
    assert (name, "GSSAPI" in reason) == ("sasl.mechanism", True)
    [(name, reason)] = problems(kafka(security_protocol="SASL_SSL", sasl_mechanism="PLAIN"))
    assert (name, "username and password" in reason) == ("sasl.jaas.config", True)


def test_a_number_that_we_read_ourselves_is_judged_here() -> None:
    """It would be a trace of a worker otherwise: the client never sees it."""
    [(name, reason)] = problems(kafka(default_api_timeout_ms="soon"))
    assert name == "default.api.timeout.ms"
    assert_says(reason, "soon", "not a whole number")


def test_no_secret_is_shown() -> None:
    """A value that is a secret stays one when the client does not take it."""
    [(name, reason)] = problems(kafka(sasl_oauthbearer_method=Secret("hunter2")))
    assert name == "sasl.oauthbearer.method"
    assert "hunter2" not in reason


def test_settings_are_tried_without_a_connection(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """No broker hears of it when settings are tried, be they right or wrong, and the client itself says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as broker:
        broker.setblocking(False)
        address = f"127.0.0.1:{broker.getsockname()[1]}"
        for _ in range(5):
            assert problems(kafka(bootstrap_servers=address)) == []
        assert problems(kafka(bootstrap_servers=address, no_such="1")) != []
        assert problems(kafka(bootstrap_servers=address, security_protocol="SSL", ssl_key_pem="x")) != []
        with pytest.raises(BlockingIOError):
            broker.accept()
    assert caplog.messages == []
    assert capfd.readouterr() == ("", "")
