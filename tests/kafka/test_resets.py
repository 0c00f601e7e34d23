"""Commands of messages that move a group's offsets."""

import shlex

import pytest

from parquet_sink.kafka.resets import reset_command
from parquet_sink.kafka.settings import KafkaSettings

ASKS = ["parquet-sink", "kafka", "--tool", "consumer-groups", "--bootstrap-server", "k1:1,k2:2", "--group"]


@pytest.mark.parametrize(
    ("client", "to", "ends"),
    [
        ({}, 7, ["--to-offset", "7", "--execute"]),
        ({"security.protocol": "plaintext"}, 0, ["--to-offset", "0", "--execute"]),
        (
            {"security.protocol": "SASL_SSL"},
            None,
            ["--to-earliest", "--execute", "--command-config", "client.properties"],
        ),
    ],
)
def test_a_shell_reads_a_command_as_it_is_meant(client: dict[str, str], to: int | None, ends: list[str]) -> None:
    """Brokers, group, whatever it is called, and topic-partitions are in it; and where a login is."""
    kafka = KafkaSettings(group="a group; ls", client={"bootstrap.servers": "k1:1,k2:2", **client})
    command = reset_command(kafka, "orders:0,3", "items:1", to=to)
    assert (command[0], command[-1]) == ("`", "`")
    topics = ["--topic", "orders:0,3", "--topic", "items:1"]
    assert shlex.split(command[1:-1]) == [*ASKS, "a group; ls", *topics, "--reset-offsets", *ends]
