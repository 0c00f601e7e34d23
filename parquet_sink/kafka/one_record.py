"""One record of a topic, read without a group: nothing is committed."""

from dataclasses import replace
from typing import Final

from parquet_sink.errors import NoSuchRecord
from parquet_sink.kafka.cluster.cluster import KafkaCluster
from parquet_sink.kafka.range_reader import RangeReader, require_values
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.records import RecordBatch, RecordParts

_ALL: Final = RecordParts(keys=True, headers=True)


def read_one(kafka: KafkaSettings, topic: str, partition: int, offset: int) -> RecordBatch:
    """The record with its key and headers. Raises NoSuchRecord, InvalidRecord, TopicGone, KafkaFailed."""
    kafka = replace(kafka, topics=(topic,), topics_regex=None, lost_offsets="STOP")
    _check(KafkaCluster(kafka), topic, partition, offset)
    reader = RangeReader(kafka, topic, partition, offset, offset + 1, parts=_ALL)
    for batch in require_values(reader.batches()):
        return batch
    raise NoSuchRecord(
        f"Topic {topic}, topic-partition {partition}, offset {offset} holds no record: it is the marker of a "
        "transaction, of a transaction that was aborted, or compaction removed it; name another offset."
    )


def _check(cluster: KafkaCluster, topic: str, partition: int, offset: int) -> None:
    partitions = sorted(number for _, number in cluster.topic_partitions())
    if partition not in partitions:
        known = f"0 to {partitions[-1]}" if len(partitions) > 1 else "0"
        raise NoSuchRecord(f"Topic {topic} has no topic-partition {partition}; name one of {known} with --partition.")
    key = (topic, partition)
    first, end = cluster.beginning_offsets([key])[key], cluster.end_offsets([key])[key]
    where = f"Topic {topic}, topic-partition {partition}"
    if first == end:
        raise NoSuchRecord(f"{where} holds no record now: its next offset is {end}.")
    if offset < first:
        raise NoSuchRecord(f"{where}: offset {offset} is gone, Kafka deleted it; it holds {first} to {end - 1}.")
    if offset >= end:
        raise NoSuchRecord(f"{where}: there is no offset {offset} yet; it holds {first} to {end - 1}.")
