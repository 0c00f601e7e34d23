"""What the clients of the dead-letter topic would refuse is told before the start, by Java's names."""

import pytest

from parquet_sink.config.secret import Secret
from parquet_sink.kafka.client.check import dead_letter_problems
from parquet_sink.kafka.client.options import producer_options
from parquet_sink.kafka.settings import DeadLetterSettings

JAAS = Secret('x.PlainLoginModule required username="u" password="canary";')
SERVERS = {"bootstrap.servers": "localhost:9092"}


def of(
    producer: dict[str, str | Secret] | None = None, admin: dict[str, str | Secret] | None = None
) -> DeadLetterSettings:
    """Settings of the clients, with brokers."""
    return DeadLetterSettings("dlq", producer={**SERVERS, **(producer or {})}, admin={**SERVERS, **(admin or {})})


def test_right_settings_have_no_problem() -> None:
    """Java's names, and those without effect, are taken."""
    java = {
        "compression.type": "zstd",
        "linger.ms": "20",
        "batch.size": "100000",
        "buffer.memory": "33554432",
        "max.request.size": "5000000",
        "delivery.timeout.ms": "60000",
        "max.block.ms": "1000",
        "key.serializer": "org.example.Serializer",
        "request.timeout.ms": "10000",
        "retries": "5",
        "max.in.flight.requests.per.connection": "5",
    }
    assert dead_letter_problems(of(dict(java), {"request.timeout.ms": "10000"})) == []
    options = producer_options(of(dict(java)))
    assert options["queue.buffering.max.kbytes"] == "32768"
    assert options["message.max.bytes"] == "5000000"
    assert (options["acks"], options["enable.idempotence"], options["partitioner"]) == ("all", True, "murmur2_random")
    assert not {"max.block.ms", "key.serializer", "buffer.memory"} & options.keys()


@pytest.mark.parametrize(
    ("producer", "name", "words"),
    [
        ({"linger.ms": "soon"}, "linger.ms", "does not take the value soon"),
        ({"lingr.ms": "1"}, "lingr.ms", "no setting of this name"),
        ({"max.request.size": "-1"}, "max.request.size", "out of range"),
        ({"buffer.memory": "1g"}, "buffer.memory", "1g is not a whole number"),
        ({"delivery.timeout.ms": "2m"}, "delivery.timeout.ms", "2m is not a whole number"),
        ({"security.protocol": "TLS"}, "security.protocol", "TLS is not a protocol"),
        ({"max.in.flight.requests.per.connection": "10"}, "", "in.flight"),
        ({"ssl.truststore.location": "/no/x.jks"}, "ssl.truststore.location", "/no/x.jks cannot be used"),
    ],
)
def test_a_wrong_setting_is_told(producer: dict[str, str | Secret], name: str, words: str) -> None:
    """With the client that it is for, and what is wrong."""
    ((client, found, reason),) = dead_letter_problems(of(producer))
    assert (client, found) == ("producer", name)
    assert words in reason


def test_the_admin_client_is_judged_too() -> None:
    """By itself; a secret is never shown."""
    ((client, name, reason),) = dead_letter_problems(
        of(None, {"sasl.jaas.config": JAAS, "sasl.mechanism": "X", "security.protocol": "SASL_SSL"})
    )
    assert (client, name) == ("admin", "sasl.mechanism")
    assert "canary" not in reason
