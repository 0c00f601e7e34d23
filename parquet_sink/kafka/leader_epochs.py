"""Leader epochs, which tell a log that was cut back and has grown again from the one read; errors of lost offsets.

Each leader of a topic-partition has a number, its epoch, and each record that of the leader who took it. When a replica
that lags is made leader (`unclean.leader.election.enable`), or one comes back with less than it had, the log ends
earlier than before, and what is written from there on is other records at known offsets. So each offset is committed
together with the epoch of the leader when the end of its range was seen: nothing below it is younger. Who reads on
from there asks the leader where that epoch ends (librdkafka does, of an offset that is assigned with its epoch). If
that is below the offset, the log is another one from there on.

An offset that somebody else committed, with Kafka's tools for instance, has no epoch and is believed.
"""

import re
from typing import Final

from confluent_kafka import KafkaError

from parquet_sink.errors import OffsetsLost
from parquet_sink.kafka.resets import reset_command
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.partitions import PartitionKey

CUT_BACK: Final = KafkaError._LOG_TRUNCATION  # noqa: SLF001 - the client's public name
RESET: Final = KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001
_ENDS: Final = re.compile(r"broker end offset is (\d+)")


def offsets_deleted(kafka: KafkaSettings, topic: str, partition: int, start: int, low: int, high: int) -> OffsetsLost:
    """The next offset to read is `start`, and the topic-partition holds [low, high) only."""
    if start > high:
        what = (
            f"the group stands at offset {start}, but the topic-partition ends at {high}: it was deleted and recreated"
        )
    else:
        what = f"offsets {start} to {low - 1} were deleted by retention before they were read ({low - start} offsets)"
    command = reset_command(kafka, f"{topic}:{partition}", to=low if start < low else None)
    return OffsetsLost(
        f"Topic {topic}, topic-partition {partition}: {what}. To go on at {low if start < low else 'its start'}, set "
        f"connect.ems.lost.offsets.policy=CONTINUE or reset the group's offset with {command}."
    ).at((topic, partition))


def topic_recreated(kafka: KafkaSettings, topic: str, partition: int, start: int) -> OffsetsLost:
    """The group's offset `start` belongs to a topic that is gone, not to the one that has its name now."""
    command = reset_command(kafka, topic)
    return OffsetsLost(
        f"Topic {topic}, topic-partition {partition}: the group stands at offset {start} of another topic: "
        f"it was deleted and recreated, or the group was copied from another cluster. If it was copied together with "
        f"the topic's records, commit the same offsets again with {command.replace('--to-earliest', '--to-current')}. "
        f"Else what it held from there on is gone: to go on at the new topic's first record, set "
        f"connect.ems.lost.offsets.policy=CONTINUE or reset the group's offsets with {command}."
    ).at((topic, partition))


class LeaderEpochs:
    """Of one connector's topic-partitions; none where the cluster gives none.

    `current`: of the leaders when the ends were asked for last. `committed`: those that belong to the offsets where we
    stand.
    """

    def __init__(self, current: dict[PartitionKey, int] | None = None) -> None:
        self.current = {} if current is None else current
        self.committed: dict[PartitionKey, int] = {}
        self._planned: dict[PartitionKey, int | None] = {}

    def on_planned(self, key: PartitionKey) -> None:
        """A range was planned by the last look. One that comes again keeps the epoch that it was planned with."""
        self._planned[key] = self.current.get(key)

    def on_accepted(self, key: PartitionKey) -> None:
        """The range that was taken, or a part of it, is accepted, and that is where we stand."""
        if key in self._planned:
            self.set(key, self._planned[key])

    def set(self, key: PartitionKey, epoch: int | None) -> None:
        """We stand at an offset of this epoch; None when it is not known."""
        self.committed.pop(key, None)
        if epoch is not None:
            self.committed[key] = epoch

    def to_verify(self, key: PartitionKey) -> int:
        """The epoch that we stand at if another leader came since, so that the log may be another one; else -1."""
        committed = self.committed.get(key)
        return -1 if committed is None or committed == self.current.get(key) else committed

    def forget(self, key: PartitionKey) -> None:
        """The topic-partition is gone."""
        for known in (self.current, self.committed, self._planned):
            known.pop(key, None)


def is_truncation(code: int, said: str) -> bool:
    """Whether an event of the client is a truncated log: some come as the event of an offset out of range."""
    return code == CUT_BACK or (code == RESET and "log truncation" in said)


def truncation_offset(said: str, offset: int) -> int | None:
    """Where the log was cut back below `offset`, by what the client says of it; None when it does not know."""
    found = _ENDS.search(said)
    return int(found[1]) if found and int(found[1]) < offset else None


def log_truncated(kafka: KafkaSettings, topic: str, partition: int, start: int, cut: int) -> OffsetsLost:
    """The error that says: what was read up to `start` is not what is there now."""
    command = reset_command(kafka, f"{topic}:{partition}", to=cut)
    return OffsetsLost(
        f"Topic {topic}, topic-partition {partition}: the group stands at offset {start}, but the log was cut back to "
        f"{cut} since (an unclean leader election, or a broker that lost records) and has grown again: the records "
        f"from {cut} to {start - 1} are others than those delivered. To have them, too, reset the group's offset to "
        f"{cut} with {command}; to go on at {start} without, set connect.ems.lost.offsets.policy=CONTINUE."
    ).at((topic, partition))
