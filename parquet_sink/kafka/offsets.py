"""The consumer group's offsets: the only memory of what was delivered.

A committed offset is the next one to deliver. Every commit carries who made it in its metadata, so that a second
instance of the connector, or an operator who moves the offsets while it runs, is noticed and named.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from parquet_sink.config.settings import KafkaSettings
from parquet_sink.errors import AnotherInstance, BrokerAway, KafkaFailed
from parquet_sink.handoff import Instance
from parquet_sink.kafka import clients

log = logging.getLogger(__name__)

TIMEOUT_S: Final = 15.0
Key = tuple[str, int]
"""topic, partition"""


def metadata(instance: Instance) -> str:
    """What stands beside each committed offset; far below the broker's limit of 4,096 bytes."""
    return json.dumps({"by": "parquet-sink", **asdict(instance)})


@dataclass(frozen=True)
class Committed:
    """One committed offset, and the metadata found beside it."""

    offset: int
    signed: str

    def by(self) -> str:
        """Who made it, for an operator."""
        try:
            who: dict[str, Any] = json.loads(self.signed)
            return f"instance {who['id']} (host {who['host']}, process {who['pid']}, started {who['started']})"
        except (ValueError, KeyError, TypeError):
            return "an operator or another program"


class GroupOffsets:
    """Reads and commits the offsets of one group, without being a member of it.

    Commits never go backwards. Offsets that changed behind our back end this instance: the newer hand wins.
    """

    def __init__(self, kafka: KafkaSettings, instance: Instance) -> None:
        self._group, self._instance = kafka.group, instance
        self._consumer: Consumer = clients.build(Consumer, clients.coordinating(kafka))
        self._ours: dict[Key, int] = {}

    def read(self, keys: Sequence[Key]) -> dict[Key, Committed]:
        """What is committed for these topic-partitions; those without a commit are absent. Raises KafkaFailed."""
        if not keys:
            return {}
        try:
            found = self._consumer.committed([TopicPartition(t, p) for t, p in keys], timeout=TIMEOUT_S)
        except KafkaException as error:
            raise self._failed("its offsets cannot be read", error.args[0]) from None
        bad = next((tp for tp in found if tp.error), None)
        if bad is not None and bad.error is not None:
            raise self._failed("its offsets cannot be read", bad.error)
        return {(tp.topic, tp.partition): Committed(tp.offset, tp.metadata or "") for tp in found if tp.offset >= 0}

    def claim(self, next_offsets: Mapping[Key, int]) -> None:
        """Signs these offsets as ours, so that an older instance that still runs stops at its next look."""
        self._send(next_offsets)

    def commit(self, next_offsets: Mapping[Key, int]) -> None:
        """Commits what is higher than what we committed before. Raises AnotherInstance, KafkaFailed."""
        higher = {key: offset for key, offset in next_offsets.items() if offset > self._ours.get(key, -1)}
        if higher:
            self.check(list(higher))
            self._send(higher)

    def advance(self, next_offsets: Mapping[Key, int]) -> None:
        """As `commit`, from another process of the same instance, if this instance made the last commit.

        Raises AnotherInstance, KafkaFailed.
        """
        found = self.read(list(next_offsets))
        mine = metadata(self._instance)
        self._ours = {key: committed.offset for key, committed in found.items()}
        foreign = next((key for key, committed in found.items() if committed.signed != mine), None)
        if foreign is not None:
            raise AnotherInstance(
                f"Group {self._group}: the offset of topic {foreign[0]}, topic-partition {foreign[1]} was committed by "
                f"{found[foreign].by()}; it stays."
            )
        self.commit(next_offsets)

    def check(self, keys: Sequence[Key] | None = None) -> None:
        """Looks whether the offsets are still as we left them. Raises AnotherInstance when they are not.

        The signature tells, not the offset: a commit whose answer never came may have been made all the same.
        """
        mine = metadata(self._instance)
        known = [key for key in (keys if keys is not None else list(self._ours)) if key in self._ours]
        for (topic, partition), found in self.read(known).items():
            ours = self._ours[topic, partition]
            if found.signed != mine:
                raise AnotherInstance(
                    f"Group {self._group}: the offset of topic {topic}, topic-partition {partition} was {ours} and is "
                    f"now {found.offset}, committed by {found.by()}. This instance stops and commits nothing more. "
                    f"Run each connector once, and reset offsets only while it is stopped."
                )

    def _send(self, next_offsets: Mapping[Key, int]) -> None:
        if not next_offsets:
            return
        meta = metadata(self._instance)
        wanted = [TopicPartition(t, p, offset, meta) for (t, p), offset in next_offsets.items()]
        try:
            done = self._consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException as error:
            raise self._failed("offsets cannot be committed", error.args[0]) from None
        bad = next((tp for tp in done or () if tp.error), None)
        if bad is not None and bad.error is not None:
            raise self._failed("offsets cannot be committed", bad.error)
        self._ours.update(next_offsets)

    def _failed(self, what: str, error: KafkaError) -> KafkaFailed:
        if error.code() in clients.REFUSALS:
            return KafkaFailed(f"Group {self._group}: {what}. {error.str()}. Check the credentials and rights.")
        return BrokerAway(f"Group {self._group}: {what}. {error.str()}.")

    def close(self) -> None:
        self._consumer.close()
