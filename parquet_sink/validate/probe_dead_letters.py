"""Tries the dead-letter topic, for `parquet-sink check --connect`: nothing is made, nothing is written."""

from parquet_sink.errors import InvalidConfiguration, KafkaFailed
from parquet_sink.kafka.dead_letter_topic import DeadLetterTopic
from parquet_sink.kafka.settings import DeadLetterSettings
from parquet_sink.validate.probe_rights import lacking_to_write


def look(settings: DeadLetterSettings) -> tuple[bool, str]:
    """Whether the dead-letter topic is there or could be made, and how it stands in words."""
    try:
        topic = DeadLetterTopic(settings)
        problem = topic.problem()
        if problem is None and topic.exists():
            problem = lacking_to_write(settings)
            return problem is None, problem or "it is there"
    except (InvalidConfiguration, KafkaFailed) as error:
        return False, str(error)
    factor = settings.replication_factor
    how = "as many replicas as the brokers say" if factor < 0 else f"{factor} replica{'' if factor == 1 else 's'}"
    return problem is None, problem or f"it is absent, and is made at the start with {how}"
