"""What docs/how-to/kafka-security.md shows as settings is what the Kafka client takes."""

import re
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from parquet_sink.kafka.client.causes import _ALERTS
from parquet_sink.kafka.client.options import translation

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "kafka-security.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```properties\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("block", BLOCKS)
def test_settings_in_the_documentation_are_taken(block: str) -> None:
    """But for stores, which are not there."""
    lines = dict(line.removeprefix("consumer.").split("=", 1) for line in block.splitlines())
    given = {name: re.sub(r"\$\{[^}]*\}", "x", text) for name, text in lines.items() if "store." not in name}
    found = translation(given)
    assert found.problems == []
    Consumer({"group.id": "x", **found.settings}).close()


def test_words_of_messages_in_the_documentation_are_those_of_the_program() -> None:
    """Of what brokers find wrong with our certificate."""
    assert len(BLOCKS) == 3
    for words in ("the broker wants a certificate of ours", "our certificate has expired"):
        assert f"`{words}" in PAGE
        assert any(text.startswith(words) for text in _ALERTS.values())
