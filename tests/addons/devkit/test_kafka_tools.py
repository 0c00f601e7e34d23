"""Kafka's own tools: the command that is run for a name and its arguments."""

from pathlib import Path

import pytest

from parquet_sink.addons.devkit.kafka_tools import LOGGING, TOOLS, tool_command
from parquet_sink.errors import InvalidConfiguration

JARS = Path("/jars")


@pytest.mark.parametrize("name", ["consumer-groups", "kafka-consumer-groups", "kafka-consumer-groups.sh"])
def test_a_tool_goes_by_the_names_of_its_script(name: str) -> None:
    """As Kafka's documentation writes it, or without what all of them have in common."""
    command = tool_command([name, "--bootstrap-server", "broker:9092", "--list"], JARS, "/bin/java", 9092)
    assert command[0] == "/bin/java"
    assert command[-4:] == [TOOLS["consumer-groups"], "--bootstrap-server", "broker:9092", "--list"]
    assert LOGGING.is_file()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--list"], ["--bootstrap-server", "localhost:9093", "--list"]),
        (["--bootstrap-server=b:1", "--list"], ["--bootstrap-server=b:1", "--list"]),
        (["--version"], ["--version"]),
        ([], ["--bootstrap-server", "localhost:9093"]),
    ],
)
def test_without_a_broker_the_local_one_is_asked(arguments: list[str], expected: list[str]) -> None:
    """The broker that `parquet-sink kafka` starts, at the port that is given."""
    command = tool_command(["topics", *arguments], JARS, "java", 9093)
    assert command[command.index(TOOLS["topics"]) + 1 :] == expected


@pytest.mark.parametrize("words", [[], ["zookeeper-shell"], ["--list"]])
def test_a_tool_that_there_is_not_is_told_with_those_there_are(words: list[str]) -> None:
    """Nothing is fetched or run for it."""
    with pytest.raises(InvalidConfiguration, match="acls, consumer-groups, topics, console-producer, console-consumer"):
        tool_command(words, JARS, "java", 9092)
