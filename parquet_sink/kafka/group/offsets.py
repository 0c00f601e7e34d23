"""The consumer group's offsets: the only memory of what was delivered.

A committed offset is the next one to deliver. Every commit carries in its metadata who made it, so that a second
instance of the connector, or an operator who moves the offsets while it runs, is noticed and named; and the id of the
topic that the offset belongs to, so that it is never taken for one of a topic that was recreated under the same name.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from confluent_kafka import KafkaException, TopicPartition

from parquet_sink.errors import AnotherInstance, BrokerAway, ConnectorError, LeaseLost, TopicGone
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.client.options import Build
from parquet_sink.kafka.group.client import UNKNOWN_EPOCH, GroupClient
from parquet_sink.kafka.group.committed import (
    NO_EPOCHS,
    NO_IDS,
    NO_PLANS,
    TOO_LARGE,
    Committed,
    RangePlan,
    chunks,
    commit_metadata,
    split,
)
from parquet_sink.kafka.group.fence import Fence, StateRecords, is_fenced
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.instance import Instance
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.process import lease

log = logging.getLogger(__name__)


class OffsetGone(TopicGone):
    """An offset of ours is not there any more; with its topic, or by itself."""


class FenceTaken(AnotherInstance):
    """A commit was refused because another instance took the fence since this one did."""


class GroupOffsets:
    """Reads and commits the offsets of one group, without being a member of it.

    Before each write it reads the offsets, in the request before it: Kafka knows no conditional commit. Where the
    settings have a fence, which is taken before that look, the two are one step all the same: a commit is refused if
    another took the fence meanwhile. Then this instance takes it once more and looks again, because who signed the
    offsets decides, and brokers refuse in the same words what they ended because it took too long.
    Commits never go backwards. Offsets that another instance, or an operator, changed meanwhile end this instance: the
    newer one wins. ids: topic -> id of the topic that our offsets belong to, looked up at each commit, and changed by
    its owner. epochs: the leader epochs that belong to our offsets, in the same way. client_log: takes what the client
    logs. build: makes the client. state: what is to be written with each commit, where there is a fence.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        instance: Instance,
        ids: Mapping[str, str] = NO_IDS,
        epochs: Mapping[PartitionKey, int] = NO_EPOCHS,
        client_log: ClientLog | None = None,
        build: Build | None = None,
        state: Callable[[], StateRecords] | None = None,
    ) -> None:
        self._group, self._instance, self._ids, self._epochs = kafka.group, instance, ids, epochs
        client_log = client_log or ClientLog(kafka.whose)
        self._client = GroupClient(kafka, client_log, build)
        self._owned, self._state = kafka.owned, state
        self._fence = Fence(kafka, client_log, build or client_options.build) if kafka.owned.fence else None
        self._ours: dict[PartitionKey, int] = {}
        self._found: dict[PartitionKey, Committed | None] = {}

    def read(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, Committed]:
        """What is committed for these topic-partitions; those without a commit are absent. Raises KafkaFailed."""
        if not keys:
            return {}
        there = self._client.committed(keys)
        self._found.update({key: there.get(key) for key in keys})
        return there

    def take_over(self) -> None:
        """Has commits of earlier owners refused from now on, where the settings have a fence and it is not taken.

        To be called before offsets are read to go on from. Raises LeaseLost, KafkaFailed, AnotherInstance.
        """
        if self._fence is None or self._fence.taken:
            return
        if not lease.holds(self._owned.lease):
            raise LeaseLost(f"Group {self._group}: offsets cannot be committed: {lease.OVER}.")
        try:
            self._fence.take()
        except KafkaException as error:
            raise self._client.uncommitted(error.args[0], ()) from None

    def _look_and_commit(self, write: Callable[[], None]) -> None:
        """write: looks at the offsets, then commits."""
        self.take_over()
        try:
            write()
        except FenceTaken:
            self.take_over()
            write()

    def claim(self, starts: Mapping[PartitionKey, int], plans: Mapping[PartitionKey, RangePlan] = NO_PLANS) -> None:
        """Commits these offsets as ours, so that an older instance that still runs stops when it verifies its own.

        Each plan belongs to one of the offsets. Raises BrokerAway, and commits nothing, if one of them is not any more
        what `read` found: they must be looked up again. Raises KafkaFailed.
        """
        self._look_and_commit(partial(self._claim, starts, plans))

    def _claim(self, starts: Mapping[PartitionKey, int], plans: Mapping[PartitionKey, RangePlan]) -> None:
        before = {key: self._found.get(key) for key in starts}
        now = self.read(list(starts))
        moved = next((key for key, found in before.items() if now.get(key) != found), None)
        if moved is not None:
            raise BrokerAway(
                f"Group {self._group}: the offset of topic {moved[0]}, topic-partition {moved[1]} was set by another "
                f"hand while it was looked up."
            ).at(moved)
        self._send(starts, plans, self._ids_of(starts), self._epochs)

    def recommit(
        self, next_offsets: Mapping[PartitionKey, int], plans: Mapping[PartitionKey, RangePlan] = NO_PLANS
    ) -> None:
        """Commits offsets of ours again, as they are: so that Kafka keeps them, or with a range that begins there.

        Each plan belongs to one of the offsets. Raises AnotherInstance, KafkaFailed.
        """
        self._look_and_commit(partial(self._verify_and_send, next_offsets, plans))

    def _verify_and_send(
        self, next_offsets: Mapping[PartitionKey, int], plans: Mapping[PartitionKey, RangePlan]
    ) -> None:
        self.verify(list(next_offsets))
        self._send(next_offsets, plans, self._ids_of(next_offsets), self._epochs)

    def reset(self, starts: Mapping[PartitionKey, int]) -> None:
        """Sets offsets of ours again, lower ones too; they may be gone by now. Raises AnotherInstance, KafkaFailed."""
        self._look_and_commit(partial(self._reset, starts))

    def _reset(self, starts: Mapping[PartitionKey, int]) -> None:
        for key, found in self.read(list(starts)).items():
            if not found.is_from(self._instance):
                raise self._taken(key, found)
        self._send(starts, NO_PLANS, self._ids_of(starts))

    def forget(self, key: PartitionKey) -> None:
        """Its topic was deleted: nothing that is committed for it is verified any more."""
        self._ours.pop(key, None)
        self._found.pop(key, None)

    def uncommitted(self, next_offsets: Mapping[PartitionKey, int]) -> dict[PartitionKey, int]:
        """Those that are higher than what we committed before: what `commit` would send."""
        return {key: offset for key, offset in next_offsets.items() if offset > self._ours.get(key, -1)}

    def commit(
        self, next_offsets: Mapping[PartitionKey, int], plans: Mapping[PartitionKey, RangePlan] = NO_PLANS
    ) -> None:
        """Commits what is higher than what we committed before. Raises AnotherInstance, KafkaFailed."""
        higher = self.uncommitted(next_offsets)
        if higher:
            self._look_and_commit(partial(self._verify_and_send, higher, plans))

    def advance(
        self, next_offsets: Mapping[PartitionKey, int], plans: Mapping[PartitionKey, RangePlan] = NO_PLANS
    ) -> None:
        """As `commit`, from another process of the same instance, if this instance made the last commit.

        An offset goes on belonging to the topic that the last one belonged to; its epoch is not known here. Raises
        AnotherInstance, KafkaFailed.
        """
        self._look_and_commit(partial(self._advance, next_offsets, plans))

    def _advance(self, next_offsets: Mapping[PartitionKey, int], plans: Mapping[PartitionKey, RangePlan]) -> None:
        found = self.read(list(next_offsets))
        foreign = next((key for key, committed in found.items() if not committed.is_from(self._instance)), None)
        if foreign is not None:
            raise AnotherInstance(
                f"Group {self._group}: the offset of topic {foreign[0]}, topic-partition {foreign[1]} was committed by "
                f"{found[foreign].committer()}; it stays."
            ).at(foreign)
        higher = {k: o for k, o in next_offsets.items() if k in found and o > found[k].offset}  # absent: see `verify`
        ids = {key: found[key].topic_id for key in higher}
        self._send(higher, {key: plan for key, plan in plans.items() if key in higher}, ids)

    def verify(self, keys: Sequence[PartitionKey] | None = None) -> None:
        """Reads whether the offsets are still those that this instance committed.

        Raises AnotherInstance if not; LeaseLost where this worker's lease is over, and another one is to have them.
        The instance in the metadata decides, not the offset: a commit whose answer never came may have been made.
        Offsets that are gone went with their topic, and ours would pass over records of a new one: OffsetGone.
        """
        known = [key for key in (keys if keys is not None else list(self._ours)) if key in self._ours]
        committed = self.read(known)
        for topic, partition in known:
            ours, found = self._ours[topic, partition], committed.get((topic, partition))
            if found is None:
                raise OffsetGone(
                    f"Group {self._group}: the offset of topic {topic}, topic-partition {partition} was {ours} and is "
                    f"gone: the topic was deleted, or the group's offsets were."
                ).at((topic, partition))
            if not found.is_from(self._instance):
                raise self._taken((topic, partition), found)

    def _taken(self, key: PartitionKey, found: Committed) -> ConnectorError:
        """The error where another instance signed an offset; without a lease that is as it should be."""
        if not lease.holds(self._owned.lease):
            return LeaseLost(f"Group {self._group}: another worker commits its offsets: {lease.OVER}.").at(key)
        ours = self._ours.get(key)
        stands = f"is still {ours}, but" if ours == found.offset else f"was {ours} and is now {found.offset},"
        return AnotherInstance(
            f"Group {self._group}: the offset of topic {key[0]}, topic-partition {key[1]} {stands} committed by "
            f"{found.committer()}. This instance stops and commits nothing more. "
            f"Run each connector once, and reset offsets only while it is stopped."
        ).at(key)

    def _ids_of(self, keys: Iterable[PartitionKey]) -> dict[PartitionKey, str]:
        return {key: self._ids.get(key[0], "") for key in keys}

    def _send(
        self,
        next_offsets: Mapping[PartitionKey, int],
        plans: Mapping[PartitionKey, RangePlan],
        ids: Mapping[PartitionKey, str],
        epochs: Mapping[PartitionKey, int] = NO_EPOCHS,
    ) -> None:
        if not next_offsets:
            return
        wanted = [
            TopicPartition(
                *key,
                offset,
                commit_metadata(self._instance, plans.get(key), ids[key]),
                leader_epoch=epochs.get(key, UNKNOWN_EPOCH),
            )
            for key, offset in next_offsets.items()
        ]
        if self._fence is not None:
            self._send_fenced(self._fence, wanted)
            return
        for chunk in chunks(self._group, wanted):
            self._send_chunk(chunk)

    def _send_fenced(self, fence: Fence, wanted: Sequence[TopicPartition]) -> None:
        """All of them, or none."""
        try:
            state = None if self._state is None else self._state()
            fence.commit(list(chunks(self._group, wanted)), self._client.metadata(), state)
        except KafkaException as error:
            if is_fenced(error.args[0]):
                raise FenceTaken(
                    f"Group {self._group}: offsets cannot be committed: another instance took the connector over, and "
                    f"commits with the transactional id {self._owned.fence} since. This instance stops and commits "
                    f"nothing more."
                ) from None
            raise self._client.uncommitted(error.args[0], {tp.topic for tp in wanted}) from None
        self._ours.update({(tp.topic, tp.partition): tp.offset for tp in wanted})

    def _send_chunk(self, chunk: list[TopicPartition]) -> None:
        """One commit; in halves if the broker finds it too large. What was sent before a failure stays."""
        error = self._client.commit(chunk)
        if error is not None and error.code() in TOO_LARGE and len(chunk) > 1:
            for half in split(chunk):
                self._send_chunk(half)
        elif error is not None:
            raise self._client.uncommitted(error, {tp.topic for tp in chunk})
        else:
            self._ours.update({(tp.topic, tp.partition): tp.offset for tp in chunk})

    def poll(self) -> None:
        """Takes what the clients log."""
        self._client.poll()
        if self._fence is not None:
            self._fence.poll()

    def close(self) -> None:
        """Closes the clients, within a bounded time."""
        if self._fence is not None:
            self._fence.close()
        self._client.close()
