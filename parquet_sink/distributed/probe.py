"""Tries what a worker of a group and its connectors need of Kafka, for `parquet-sink check --connect`.

Nothing is made, written or committed, and no worker that runs loses what it has.
"""

from collections.abc import Callable, Iterator
from functools import partial

from parquet_sink.distributed.topics import (
    InternalTopics,
    fence_of,
    internal_topics,
    leaders_id,
    refuse_several,
    state_topic_of,
)
from parquet_sink.errors import InvalidConfiguration, KafkaFailed
from parquet_sink.kafka.client.rights import Right
from parquet_sink.kafka.cluster.compacted_topic import CompactedTopic, CompactedTopics
from parquet_sink.kafka.cluster.requests import Rights
from parquet_sink.kafka.group.fence import try_fence
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.planner.learned_topic import wanted_state_topic
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.targets.outcome import Health
from parquet_sink.validate.probe_kafka import Finding
from parquet_sink.worker_config.distributed import STATE, DistributedSettings


def probe_worker(settings: DistributedSettings) -> Iterator[Finding]:
    """What the worker's own clients need: the internal topics, the group, the leader's transactional id."""
    kafka = KafkaSettings(client=settings.kafka, group=settings.group_id)
    try:
        topics, rights = InternalTopics(settings), Rights(kafka, prefix="")
    except InvalidConfiguration as error:
        yield from (Finding(Health.FAILED, "client settings", problem) for problem in error.problems)
        return
    for wanted in internal_topics(settings):
        yield _tried(f"topic {wanted.name} [{wanted.keys}topic]", partial(_topic, wanted, topics, rights))
    yield _tried(f"group {settings.group_id}", lambda: _may(rights.lacking_to_commit(settings.group_id), "join it"))
    yield _id(kafka, leaders_id(settings), "lead the group", prefix="")


def probe_connector(settings: ConnectorSettings, distributed: DistributedSettings) -> Iterator[Finding]:
    """What a connector needs in the group beside what it needs alone."""
    kafka: KafkaSettings | None = getattr(settings, "kafka", None)
    fence = fence_of(settings)
    if kafka is None or fence is None:
        return
    yield _id(kafka, fence, "commit in transactions")
    if topic := state_topic_of(settings, distributed):
        yield _tried(f"topic {topic} [{STATE}topic]", partial(_state_topic, topic, kafka))


def _topic(wanted: CompactedTopic, topics: InternalTopics, rights: Rights) -> str:
    found = topics.look(wanted, trying=True)
    if found is None:
        return "it is not there, and is made at the start"
    refuse_several(wanted, found)
    there = f"it is there, with {found} topic-partition{'' if found == 1 else 's'}"
    if wanted.keys == STATE:  # connectors read and write it
        return there
    lacking = [*rights.lacking_to_read([wanted.name]), *rights.lacking_to_write(wanted.name)]
    return f"{there}; {_may(lacking, 'read and write it')}"


def _state_topic(topic: str, kafka: KafkaSettings) -> str:
    if CompactedTopics(kafka).look(wanted_state_topic(topic), trying=True) is None:
        return "it is not there, and is made at the start"
    rights = Rights(kafka)
    return _may([*rights.lacking_to_read([topic]), *rights.lacking_to_write(topic)], "read and write it")


def _id(kafka: KafkaSettings, name: str, to_do: str, prefix: str = "consumer.") -> Finding:
    def tried() -> str:
        try_fence(kafka, name, prefix)
        return f"it may {to_do}"

    return _tried(f"transactional id {name}", tried)


class _Lacking(Exception):
    """Rights that are missing, in words with the cure."""


def _may(lacking: list[Right] | None, to_do: str) -> str:
    """Raises _Lacking. lacking: None where brokers do not tell."""
    if lacking:
        raise _Lacking(" ".join(f"{right.words} is missing. {right.cure()}." for right in lacking))
    return f"it may {to_do}" if lacking is not None else f"whether it may {to_do} is seen at the start"


def _tried(item: str, act: Callable[[], str]) -> Finding:
    try:
        return Finding(Health.OK, item, act())
    except (KafkaFailed, InvalidConfiguration, _Lacking) as error:
        return Finding(Health.FAILED, item, str(error))
