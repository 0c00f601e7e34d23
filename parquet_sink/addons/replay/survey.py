"""What Kafka and the history know of a connector's topic-partitions before a replay; nothing is changed by asking."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from parquet_sink.addons.replay.plan import Held, Past, Survey
from parquet_sink.addons.replay.selection import Selection
from parquet_sink.errors import BrokerAway, InvalidConfiguration, TopicGone
from parquet_sink.history.records import Origin, UploadOutcome
from parquet_sink.history.sqlite import SqliteHistory
from parquet_sink.history.store import HistoryQuery
from parquet_sink.kafka.cluster.cluster import KafkaCluster
from parquet_sink.kafka.group.client import GroupClient
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import LearnedSchema


def survey(kafka: KafkaSettings, selection: Selection, archived: Mapping[PartitionKey, int] | None = None) -> Survey:
    """Asks the brokers. Raises InvalidConfiguration for a topic or topic-partition that is not there; KafkaFailed.

    archived: topic-partitions of which an archive has files, with the offset behind the last; those that Kafka does not
    have are taken to end there, with all of it gone.
    """
    _check_topic(kafka, selection)
    asked = kafka if selection.topic is None else replace(kafka, topics=(selection.topic,), topics_regex=None)
    cluster = KafkaCluster(asked)
    beside = {key: end for key, end in (archived or {}).items() if selection.has(*key) and kafka.reads(key[0])}
    keys = _keys(cluster, selection, beside)
    low, high = cluster.beginning_offsets(keys), cluster.end_offsets(keys)
    away = [key for key in keys if key not in low or key not in high]
    if away:
        topic, partition = away[0]
        raise BrokerAway(
            f"Topic {topic}, topic-partition {partition}: {cluster.unavailable_reason(away[0])}. Nothing was sent; try "
            "again when it answers, or choose others with --topic and --partition."
        )
    topics = sorted({topic for topic, _ in keys})
    ids, compacted = cluster.topic_ids(topics), cluster.compacted(topics)
    held = {key: Held(min(low[key], high[key]), high[key], ids.get(key[0], ""), compacted.get(key[0])) for key in keys}
    delivered, times = _delivered(kafka, keys), _times(cluster, held, selection)
    gone = {key: end for key, end in beside.items() if key not in held}
    held |= {key: Held(end, end) for key, end in gone.items()}
    return Survey(dict(sorted(held.items())), {**delivered, **gone}, *times)


def _check_topic(kafka: KafkaSettings, selection: Selection) -> None:
    topic, pattern = selection.topic, kafka.topics_regex
    if topic is None:
        return
    if not kafka.reads(topic):
        read = f"topics that match {pattern}" if pattern else ", ".join(kafka.topics)
        raise InvalidConfiguration([f"Invalid [--topic]. The connector does not read {topic}, but {read}."])


def _keys(cluster: KafkaCluster, selection: Selection, beside: Mapping[PartitionKey, int]) -> list[PartitionKey]:
    try:
        there = cluster.topic_partitions(allow_missing=True) if beside else cluster.topic_partitions()
    except TopicGone:
        if selection.topic is None:
            raise
        raise InvalidConfiguration([f"Invalid [--topic]. Topic {selection.topic} does not exist."]) from None
    keys = [key for key in there if selection.has(*key)]
    if not keys and not beside and selection.partition is not None:
        numbers = sorted({partition for topic, partition in there})
        known = f"0 to {numbers[-1]}" if len(numbers) > 1 else "only 0" if numbers else "no topic yet"
        raise InvalidConfiguration(
            [f"Invalid [--partition]. There is no topic-partition {selection.partition}, but {known}."]
        )
    return keys


def _delivered(kafka: KafkaSettings, keys: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
    if not keys:
        return {}
    with closing(GroupClient(kafka)) as group:
        return {key: one.offset for key, one in group.committed(keys).items()}


def _times(
    cluster: KafkaCluster, held: Mapping[PartitionKey, Held], selection: Selection
) -> tuple[dict[PartitionKey, int], dict[PartitionKey, int]]:
    """Offsets of the first records at or after the two times; the end, where none is so late."""

    def offsets(at_ms: int | None) -> dict[PartitionKey, int]:
        if at_ms is None:
            return {}
        found = cluster.offsets_since(list(held), at_ms)
        return {key: held[key].high if offset is None else offset for key, offset in found.items()}

    return offsets(selection.since_ms), offsets(selection.until_ms)


FIRST_TIME = frozenset({UploadOutcome.ACCEPTED})


def past_of(history: SqliteHistory, keys: Sequence[PartitionKey]) -> dict[PartitionKey, Past]:
    """What the history has of topic-partitions: all ranges, and the files that the connector itself delivered.

    Raises HistoryUnusable.
    """
    found: dict[PartitionKey, Past] = {}
    once: dict[LearnedSchema, LearnedSchema] = {}  # thousands of ranges have the same
    for topic, partition in keys:
        query = HistoryQuery(topic, partition)
        files = history.files(replace(query, outcomes=FIRST_TIME))
        own = [one for one in files if one.origin is Origin.RUN]
        found[topic, partition] = Past(
            [replace(one, known=once.setdefault(one.known, one.known)) for one in history.ranges(query)], own
        )
    return found
