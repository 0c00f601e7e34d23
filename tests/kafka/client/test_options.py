"""Kafka's Java names become librdkafka's; what has no counterpart is said, and secrets stay secret."""

import logging

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient

from parquet_sink.config.secret import Secret
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.client.options import (
    NO_EFFECT,
    admin_options,
    fingerprint,
    group_options,
    reader_options,
    translate,
)
from parquet_sink.kafka.settings import KafkaSettings
from tests.messages import saying

SERVERS = {"bootstrap.servers": "localhost:9092"}
JAVA_DEFAULTS = {
    "client.dns.lookup": "use_all_dns_ips",
    "client.id": "mine",
    "client.rack": "a",
    "connections.max.idle.ms": "540000",
    "fetch.max.bytes": "52428800",
    "fetch.max.wait.ms": "500",
    "fetch.min.bytes": "1",
    "max.partition.fetch.bytes": "1048576",
    "metadata.max.age.ms": "300000",
    "receive.buffer.bytes": "65536",
    "reconnect.backoff.max.ms": "1000",
    "reconnect.backoff.ms": "50",
    "request.timeout.ms": "30000",
    "retry.backoff.ms": "100",
    "security.protocol": "PLAINTEXT",
    "send.buffer.bytes": "131072",
    "allow.auto.create.topics": "true",
    "check.crcs": "true",
    "ssl.endpoint.identification.algorithm": "https",
}


def kafka(**client: str | Secret) -> KafkaSettings:
    """Settings with these client settings, underscores for dots."""
    return KafkaSettings(
        topics=("orders",),
        group="connect-orders",
        client={**SERVERS, **{name.replace("_", "."): value for name, value in client.items()}},
    )


def problems(client: dict[str, str | Secret], prefix: str = "consumer.") -> tuple[str, ...]:
    """What translating them says."""
    with pytest.raises(InvalidConfiguration) as found:
        translate(client, prefix)
    return found.value.problems


def test_names_that_differ_are_translated() -> None:
    """Settings that only have another name take effect under that."""
    given = {
        "fetch.max.wait.ms": "7",
        "request.timeout.ms": "8",
        "send.buffer.bytes": "9",
        "receive.buffer.bytes": "10",
    }
    assert translate(given) == {
        "fetch.wait.max.ms": "7",
        "socket.timeout.ms": "8",
        "socket.send.buffer.bytes": "9",
        "socket.receive.buffer.bytes": "10",
    }


def test_names_that_are_equal_pass() -> None:
    """What both call the same passes unchanged."""
    given = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "fetch.min.bytes": "1", **SERVERS}
    assert translate(given) == given


@pytest.mark.parametrize("name", sorted(NO_EFFECT))
def test_what_membership_alone_needs_is_left_out(name: str) -> None:
    """Settings of group membership, polling and deserialisers have no effect here and never reach the client."""
    assert translate({name: "1"}) == {}


def test_all_problems_are_told_at_once() -> None:
    """Two stores and a login module make three messages, each under its own name."""
    given: dict[str, str | Secret] = {
        "ssl.truststore.location": "/no/t.jks",
        "ssl.keystore.location": "/no/k.jks",
        "ssl.keystore.password": Secret("hidden"),
        "sasl.jaas.config": Secret("hidden"),
    }
    found = problems(given, "producer.")
    assert [text.partition("]")[0] for text in found] == [
        "Invalid [producer.ssl.truststore.location",
        "Invalid [producer.ssl.keystore.location",
        "Invalid [producer.sasl.jaas.config",
    ]
    assert "hidden" not in "".join(found)


def test_the_reader_never_commits_and_never_resets() -> None:
    """Whatever a configuration says, reading neither commits nor jumps over lost offsets."""
    settings = reader_options(
        kafka(enable_auto_commit="true", auto_offset_reset="latest", isolation_level="read_uncommitted")
    )
    assert settings["enable.auto.commit"] is False
    assert settings["enable.auto.offset.store"] is False
    assert settings["auto.offset.reset"] == "error"
    assert settings["enable.partition.eof"] is True
    assert settings["isolation.level"] == "read_committed"
    assert settings["group.id"] == "connect-orders"


def test_an_operator_may_tune_the_reader() -> None:
    """What a configuration says of fetching wins over our values."""
    settings = reader_options(kafka(fetch_max_wait_ms="3", client_id="mine"))
    assert (settings["fetch.wait.max.ms"], settings["client.id"]) == ("3", "mine")


@pytest.mark.parametrize(
    ("make", "settings"), [(Consumer, reader_options), (Consumer, group_options), (AdminClient, admin_options)]
)
def test_java_s_defaults_are_accepted(make: type, settings: object) -> None:
    """A client can be made from the settings that Kafka's documentation lists with their defaults."""
    client = client_options.build(make, settings(kafka(**{k.replace(".", "_"): v for k, v in JAVA_DEFAULTS.items()})))  # type: ignore[operator]
    if isinstance(client, Consumer):
        client.close()


def test_the_admin_client_gets_nothing_of_a_consumer() -> None:
    """Settings of fetching are not handed to the client that asks for offsets."""
    settings = admin_options(kafka(fetch_min_bytes="1", max_partition_fetch_bytes="9", check_crcs="true"))
    assert settings == {"client.id": "parquet-sink-connect-orders", "log.connection.close": "false", **SERVERS}


def test_what_the_client_refuses_is_an_invalid_configuration() -> None:
    """An unknown setting or a wrong value is told as a key to correct, in the client's words."""
    with pytest.raises(InvalidConfiguration, match=saying("[consumer.override.*]", "no.such.setting")):
        client_options.build(Consumer, group_options(kafka(no_such_setting="1")))


def test_settings_that_differ_have_fingerprints_that_differ() -> None:
    """Clients are shared by equal settings alone, however those are ordered."""
    one, other = reader_options(kafka()), reader_options(kafka(client_rack="b"))
    assert fingerprint(one) == fingerprint(dict(reversed(one.items())))
    assert fingerprint(one) != fingerprint(other)


def test_a_secret_is_in_no_message(caplog: pytest.LogCaptureFixture) -> None:
    """Neither an error nor a log line of making a client shows a password."""
    caplog.set_level(logging.DEBUG)
    jaas = Secret('x.PlainLoginModule required username="me" password="canary";')
    with pytest.raises(InvalidConfiguration) as found:
        client_options.build(Consumer, group_options(kafka(sasl_jaas_config=jaas, no_such="1")))
    assert "canary" not in f"{found.value!r} {found.value} {caplog.text}"


def test_only_refusals_of_the_client_are_translated() -> None:
    """Any other error of a constructor is a defect and passes as it is."""

    def broken(settings: dict[str, object]) -> None:
        raise TypeError("a defect")

    with pytest.raises(TypeError, match="a defect"):
        client_options.build(broken, {})
    assert issubclass(KafkaException, Exception)


def test_a_batch_in_zstd_may_inflate_as_far_as_the_client_allows() -> None:
    """The reader's bound on an answer, also zstd's, is the client's largest, unless an operator sets another."""
    assert reader_options(kafka())["receive.message.max.bytes"] == "2147483647"
    lower = reader_options(kafka(receive_message_max_bytes="100000000"))
    assert lower["receive.message.max.bytes"] == "100000000"
