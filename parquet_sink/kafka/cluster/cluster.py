"""One admin client for all that a connector asks of its cluster."""

from parquet_sink.kafka.cluster.topics import Topics
from parquet_sink.kafka.cluster.watermarks import Watermarks


class KafkaCluster(Topics, Watermarks):
    """Topics, topic-partitions and their offsets, through one client."""
