"""The consumer group as an outsider sees it: sampled while the sink runs."""

import time
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from integration.oracle.oracle import Sample

TIMEOUT_S: Final = 20.0


class Group:
    """Reads a group's committed offsets without being a member."""

    def __init__(self, bootstrap_servers: str, group: str, topic: str, partitions: int) -> None:
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap_servers, "group.id": group, "enable.auto.commit": False, "log_level": 0}
        )
        self._asked = [TopicPartition(topic, partition) for partition in range(partitions)]
        self.samples: list[Sample] = []

    def committed(self) -> dict[int, int]:
        """The next offset by partition, 0 where nothing is committed; also kept as a sample."""
        found = self._consumer.committed(self._asked, timeout=TIMEOUT_S)
        bad = next((tp.error for tp in found if tp.error), None)
        if bad is not None:
            raise KafkaException(bad)
        committed = {tp.partition: max(tp.offset, 0) for tp in found}
        self.samples.append(Sample(time.time_ns() // 1_000_000, committed))
        return committed

    def close(self) -> None:
        self._consumer.close()
