"""Asks which rights (ACLs) the users that sign in have, for `parquet-sink check --connect`."""

from collections.abc import Iterable, Iterator, Sequence

from parquet_sink.errors import InvalidConfiguration, KafkaFailed
from parquet_sink.kafka.client.rights import Right
from parquet_sink.kafka.client_settings import shared_with_consumer
from parquet_sink.kafka.cluster.rights import Rights
from parquet_sink.kafka.settings import DeadLetterSettings, KafkaSettings
from parquet_sink.targets.outcome import Health
from parquet_sink.validate.finding import Finding

MOST_NAMED = 8


def of_reading(kafka: KafkaSettings, topics: Sequence[str]) -> Iterator[Finding]:
    """Whether topics may be read, and offsets committed: a line for each right that is missing, or one that none is."""
    try:
        rights = Rights(kafka)
        group = rights.lacking_to_commit(kafka.group)
        lacking = [*rights.lacking_to_read(topics), *(group or ())]
    except KafkaFailed as error:
        yield Finding(Health.FAILED, "rights", str(error))
        return
    yield from _findings(lacking)
    if not lacking:
        commits = f"and commit offsets of group {kafka.group}"
        unknown = "; whether it may commit is seen at the start, because brokers tell that of groups that are there"
        count = f"{len(topics)} topic{'' if len(topics) == 1 else 's'}"
        yield Finding(Health.OK, "rights", f"it may read {count}{unknown if group is None else f' {commits}'}")


def lacking_to_write(settings: DeadLetterSettings) -> str | None:
    """Which right the user of the producer lacks on the dead-letter topic, which is there; None: none that is known."""
    producer = KafkaSettings(
        group=f"dead-letters-{settings.topic}", client=dict(shared_with_consumer(settings.producer))
    )
    try:
        lacking = Rights(producer, prefix="producer.").lacking_to_write(settings.topic)
    except (KafkaFailed, InvalidConfiguration) as error:
        return str(error)
    return next((f"{right.cure('the user of [producer.override.*]')}." for right in lacking), None)


def _findings(lacking: Iterable[Right]) -> Iterator[Finding]:
    every = list(lacking)
    for right in every[:MOST_NAMED]:
        yield Finding(Health.FAILED, "rights", f"{right.words} is missing. {right.cure()}.")
    if len(every) > MOST_NAMED:
        yield Finding(Health.FAILED, "rights", f"{len(every) - MOST_NAMED} more are missing.")
