"""Apache Kafka's own command line tools, run from the jars that a local broker needs anyway."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from parquet_sink.errors import InvalidConfiguration

CONSUMER_GROUPS: Final = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TOOLS: Final = {
    "acls": "org.apache.kafka.tools.AclCommand",
    "consumer-groups": CONSUMER_GROUPS,
    "topics": "org.apache.kafka.tools.TopicCommand",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
}
"""By the names that Kafka's own scripts have, without kafka- and .sh."""
JAVA: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
LOGGING: Final = Path(__file__).with_name("tools-log4j2.properties")
_SERVER: Final = "--bootstrap-server"
_NO_BROKER: Final = frozenset({"--help", "--version"})


def tool_command(words: Sequence[str], jars: Path, java: str, port: int, options: Sequence[str] = ()) -> list[str]:
    """The program to run for `NAME ARGUMENT ...`. Where the arguments name no broker, the local one at `port` is asked.

    options: of Java, besides ours.
    Raises InvalidConfiguration for a tool that there is not.
    """
    name, arguments = (words[0], list(words[1:])) if words else ("", [])
    name = name.removeprefix("kafka-").removesuffix(".sh")
    if name not in TOOLS:
        raise InvalidConfiguration([f"Invalid [--tool]. {name!r} is no tool; write one of {', '.join(TOOLS)}."])
    if not any(word.partition("=")[0] == _SERVER or word in _NO_BROKER for word in arguments):
        arguments = [_SERVER, f"localhost:{port}", *arguments]
    java_options = [*JAVA, *options, f"-Dlog4j2.configurationFile={LOGGING.as_uri()}", "-cp", f"{jars}/*"]
    return [java, *java_options, TOOLS[name], *arguments]
