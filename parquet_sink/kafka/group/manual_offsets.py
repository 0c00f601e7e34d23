"""A group's offsets as an operator sees and sets them, while nothing of the connector runs.

They are committed without our signature, as Kafka's own tools do it: the next start takes them as they are.
"""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from parquet_sink.errors import BrokerAway, KafkaRefused
from parquet_sink.kafka.cluster.cluster import KafkaCluster
from parquet_sink.kafka.cluster.requests import AdminRequests
from parquet_sink.kafka.group.client import GroupClient
from parquet_sink.kafka.group.committed import chunks
from parquet_sink.kafka.group.offsets import GroupOffsets
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.instance import Instance
from parquet_sink.model.partitions import PartitionKey


def read(kafka: KafkaSettings) -> dict[PartitionKey, tuple[int, int | None]]:
    """Of each topic-partition of the connector's topics that has one the next offset, and where it ends, exclusive.

    The end is None for one whose leader is unavailable. Raises ConnectorError.
    """
    cluster = KafkaCluster(kafka)
    keys = cluster.topic_partitions(allow_missing=True)
    if not keys:
        return {}
    with closing(GroupClient(kafka)) as group:
        found = group.committed(keys)
    ends = cluster.high_watermarks(sorted(found)) if found else {}
    return {key: (one.offset, ends.get(key)) for key, one in sorted(found.items())}


def alter(kafka: KafkaSettings, offsets: Mapping[PartitionKey, int | None]) -> None:
    """Commits all of them, or none; None: where `auto.offset.reset` says. Raises ConnectorError.

    Of some thousand, which take several requests, the first stay if the broker becomes unavailable between two.
    """
    if not offsets:
        return
    wanted = _judged(kafka, offsets)
    _fence_off(kafka)
    with closing(GroupClient(kafka)) as group:
        for chunk in chunks(kafka.group, [TopicPartition(*key, offset) for key, offset in wanted.items()]):
            error = group.commit(chunk)
            if error is not None:
                raise group.uncommitted(error, {one.topic for one in chunk})


def _fence_off(kafka: KafkaSettings) -> None:
    """A worker that had the connector, and does not know that it lost it, commits nothing after this."""
    if kafka.owned.fence is not None:
        with closing(GroupOffsets(kafka, Instance.new())) as former:
            former.take_over()


def _judged(kafka: KafkaSettings, offsets: Mapping[PartitionKey, int | None]) -> dict[PartitionKey, int]:
    """Raises KafkaRefused for the first that cannot be, before any is committed."""
    cluster = KafkaCluster(replace(kafka, topics=tuple(sorted({topic for topic, _ in offsets})), topics_regex=None))
    there = set(cluster.topic_partitions())
    for topic, partition in offsets:
        if (topic, partition) not in there:
            raise KafkaRefused(f"Topic {topic} has no topic-partition {partition}; correct it.")
    first, ends = cluster.beginning_offsets(list(offsets)), cluster.high_watermarks(list(offsets))
    for topic, partition in offsets.keys() - (first.keys() & ends.keys()):
        raise BrokerAway(f"Topic {topic}, topic-partition {partition} is unavailable; nothing was changed, try again.")
    return {key: _offset(kafka, key, offset, first[key], ends[key]) for key, offset in offsets.items()}


def _offset(kafka: KafkaSettings, key: PartitionKey, offset: int | None, first: int, end: int) -> int:
    where = f"topic {key[0]}, topic-partition {key[1]}"
    if offset is None:
        if kafka.offset_reset == "none":
            raise KafkaRefused(
                f"The offset of {where} cannot be removed: with auto.offset.reset=none the connector would not start."
            )
        return first if kafka.offset_reset == "earliest" else end
    if not first <= offset <= end:
        raise KafkaRefused(
            f"Offset {offset} of {where} is not there: Kafka has records from {first} to {end}, exclusive; give an "
            f"offset from {first} to {end}."
        )
    return offset


class _Requests(AdminRequests):
    """About a group as a whole, and about the cluster."""

    def delete_group(self, group: str) -> None:
        """Raises ConnectorError. One that is not there is deleted already."""
        (future,) = self._admin.delete_consumer_groups([group], request_timeout=self._timeout_s).values()
        try:
            self._answer(future)
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError.NON_EMPTY_GROUP:
                raise KafkaRefused(
                    f"Group {group} has active members, so its offsets stay: the connector still runs in Kafka "
                    f"Connect, or another consumer uses this group. Stop that first."
                ) from None
            if code != KafkaError.GROUP_ID_NOT_FOUND:
                raise self._failed(error.args[0], f"Group {group}") from None

    def cluster_id(self) -> str | None:
        """Raises KafkaFailed."""
        try:
            found = self._answer(self._admin.describe_cluster(request_timeout=self._timeout_s))
        except KafkaException as error:
            raise self._failed(error.args[0], "The id of the cluster") from None
        return None if found.cluster_id is None else str(found.cluster_id)


def reset(kafka: KafkaSettings) -> None:
    """Removes all of the group's offsets. Raises ConnectorError."""
    _fence_off(kafka)
    _Requests(kafka).delete_group(kafka.group)


def cluster_id(kafka: KafkaSettings) -> str | None:
    """Of the brokers; None where they have none. Raises KafkaFailed."""
    return _Requests(kafka).cluster_id()
