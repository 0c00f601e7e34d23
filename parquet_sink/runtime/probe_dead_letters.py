"""Tries the dead-letter topic, for `parquet-sink check --connect`: nothing is made, nothing is written."""

from parquet_sink.errors import InvalidConfiguration, KafkaFailed
from parquet_sink.kafka.dead_letter_topic import DeadLetterTopic
from parquet_sink.kafka.settings import DeadLetterSettings


def look(settings: DeadLetterSettings) -> tuple[bool, str]:
    """Whether the dead-letter topic is there or could be made, and how it stands in words."""
    try:
        topic = DeadLetterTopic(settings)
        if topic.exists():
            return True, "it is there"
        problem = topic.problem()
    except (InvalidConfiguration, KafkaFailed) as error:
        return False, str(error)
    how = "the brokers' default of" if settings.replication_factor < 0 else str(settings.replication_factor)
    return problem is None, problem or f"it is absent, and is made at the start, with {how} replicas"
