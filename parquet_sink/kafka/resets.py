"""The command that moves a group's offset, whole, for messages."""

import shlex

from parquet_sink.kafka.settings import KafkaSettings


def reset_command(kafka: KafkaSettings, *topics: str, to: int | None = None) -> str:
    """It sets the group's offsets of these topics, or topic-partitions (`orders:0`), to one; None: to the earliest.

    Where brokers ask for TLS or a login, it names the file that an operator has to have for that.
    """
    words = ["parquet-sink", "kafka", "--tool", "consumer-groups", "--bootstrap-server"]
    words += [str(kafka.client.get("bootstrap.servers", "")), "--group", kafka.group]
    for topic in topics:
        words += ["--topic", topic]
    words += ["--reset-offsets", *(["--to-earliest"] if to is None else ["--to-offset", str(to)]), "--execute"]
    if str(kafka.client.get("security.protocol", "PLAINTEXT")).upper() != "PLAINTEXT":
        words += ["--command-config", "client.properties"]
    return f"`{shlex.join(words)}`"
