"""The consumer group's offsets: the only memory of what was delivered.

A committed offset is the next one to deliver. Every commit carries in its metadata who made it, so that a second
instance of the connector, or an operator who moves the offsets while it runs, is noticed and named; and the id of the
topic that the offset belongs to, so that it is never taken for one of a topic made anew under the same name.
"""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from parquet_sink.errors import AnotherInstance, BrokerAway, ConnectorError, TopicGone
from parquet_sink.kafka.client import errors as client_errors
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.client.timeouts import TimeLimited
from parquet_sink.kafka.group.commit_chunks import TOO_LARGE, chunks, split
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.instance import Instance

log = logging.getLogger(__name__)

TIMEOUT_S: Final = 15.0
CLOSE_S: Final = 2.0
Key = tuple[str, int]
"""topic, partition"""


class OffsetGone(TopicGone):
    """An offset of ours is not there any more; with its topic, or by itself."""


@dataclass(frozen=True)
class RangePlan:
    """The range [start, end) that is being flushed, and its reason.

    It stands beside the committed offset, so that after a crash the same range is flushed again, as the same files. Its
    start is below that offset when a part of the range was accepted before the rest failed.
    """

    start: int
    end: int
    reason: str


NO_PLANS: Final[Mapping[Key, RangePlan]] = MappingProxyType({})
NO_IDS: Final[Mapping[str, str]] = MappingProxyType({})
NO_EPOCHS: Final[Mapping[Key, int]] = MappingProxyType({})
UNTOLD: Final = -1
"""The leader epoch of an offset whose epoch is not known."""


def commit_metadata(instance: Instance, plan: RangePlan | None = None, topic_id: str = "") -> str:
    """What stands beside each committed offset; far below the broker's limit of 4,096 bytes.

    topic_id: of the topic that the offset belongs to; "" when it is not known.
    """
    put_down = None if plan is None else asdict(plan)
    return json.dumps({"by": "parquet-sink", **asdict(instance), "plan": put_down, "topic_id": topic_id or None})


@dataclass(frozen=True)
class Committed:
    """One committed offset, and the metadata found beside it. epoch: of the leader, None where none was committed."""

    offset: int
    metadata: str
    epoch: int | None = None

    def committer(self) -> str:
        """Who made it, for an operator."""
        who = self._who()
        try:
            return f"instance {who['id']} (host {who['host']}, process {who['pid']}, started {who['started']})"
        except KeyError:
            return "an operator or another program"

    def is_from(self, instance: Instance) -> bool:
        """Whether this instance made it."""
        return self._who().get("id") == instance.id

    @property
    def plan(self) -> RangePlan | None:
        """The range that was being flushed when this offset was committed, if one was."""
        found = self._who().get("plan") or {}
        try:
            plan = RangePlan(int(found.get("start", self.offset)), int(found["end"]), str(found["reason"]))
        except (AttributeError, KeyError, TypeError, ValueError):
            return None
        return plan if plan.start <= self.offset < plan.end else None

    @property
    def topic_id(self) -> str:
        """Of the topic that the offset belongs to; "" when nobody wrote it down."""
        found = self._who().get("topic_id")
        return found if isinstance(found, str) else ""

    def _who(self) -> dict[str, Any]:
        try:
            found = json.loads(self.metadata)
        except ValueError:
            return {}
        return found if isinstance(found, dict) and found.get("by") == "parquet-sink" else {}


class GroupOffsets:
    """Reads and commits the offsets of one group, without being a member of it.

    Each write looks first, in the request before it: Kafka knows no commit on condition. Commits never go backwards.
    Offsets that changed behind our back end this instance: the newer hand wins.
    ids: topic -> id of the topic that our offsets belong to, looked up at each commit; its owner keeps it true. epochs:
    the leader epochs that belong to our offsets, in the same way. client_log: takes what the client says of itself.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        instance: Instance,
        ids: Mapping[str, str] = NO_IDS,
        epochs: Mapping[Key, int] = NO_EPOCHS,
        client_log: ClientLog | None = None,
    ) -> None:
        self._group, self._instance, self._ids, self._epochs = kafka.group, instance, ids, epochs
        self._client_log = client_log or ClientLog(kafka.group)
        self._consumer: Consumer = client_options.build(Consumer, client_options.group_options(kafka), self._client_log)
        self._commits = TimeLimited(TIMEOUT_S)
        self._ours: dict[Key, int] = {}
        self._found: dict[Key, Committed | None] = {}

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
        there = {(tp.topic, tp.partition): _committed(tp) for tp in found if tp.offset >= 0}
        self._found.update({key: there.get(key) for key in keys})
        return there

    def claim(self, starts: Mapping[Key, int], plans: Mapping[Key, RangePlan] = NO_PLANS) -> None:
        """Signs these offsets as ours, so that an older instance that still runs stops at its next look.

        Each plan belongs to one of the offsets. Raises BrokerAway, and signs nothing, if one of them is not any more
        what `read` found: they must be looked up again. Raises KafkaFailed.
        """
        before = {key: self._found.get(key) for key in starts}
        now = self.read(list(starts))
        moved = next((key for key, found in before.items() if now.get(key) != found), None)
        if moved is not None:
            raise BrokerAway(
                f"Group {self._group}: the offset of topic {moved[0]}, topic-partition {moved[1]} was set by another "
                f"hand while it was looked up."
            )
        self._send(starts, plans, self._ids_of(starts), self._epochs)

    def recommit(self, next_offsets: Mapping[Key, int], plans: Mapping[Key, RangePlan] = NO_PLANS) -> None:
        """Signs offsets of ours again, as they are: so that Kafka keeps them, or to put down a range that begins there.

        Each plan belongs to one of the offsets. Raises AnotherInstance, KafkaFailed.
        """
        self.verify(list(next_offsets))
        self._send(next_offsets, plans, self._ids_of(next_offsets), self._epochs)

    def reset(self, starts: Mapping[Key, int]) -> None:
        """Sets offsets of ours anew, lower ones too; they may be gone by now. Raises AnotherInstance, KafkaFailed."""
        for key, found in self.read(list(starts)).items():
            if not found.is_from(self._instance):
                raise self._taken(key, found)
        self._send(starts, NO_PLANS, self._ids_of(starts))

    def forget(self, key: Key) -> None:
        """Its topic is gone: what is committed for it is no concern of ours any more."""
        self._ours.pop(key, None)
        self._found.pop(key, None)

    def uncommitted(self, next_offsets: Mapping[Key, int]) -> dict[Key, int]:
        """Those that are higher than what we committed before: what `commit` would send."""
        return {key: offset for key, offset in next_offsets.items() if offset > self._ours.get(key, -1)}

    def commit(self, next_offsets: Mapping[Key, int], plans: Mapping[Key, RangePlan] = NO_PLANS) -> None:
        """Commits what is higher than what we committed before. Raises AnotherInstance, KafkaFailed."""
        higher = self.uncommitted(next_offsets)
        if higher:
            self.verify(list(higher))
            self._send(higher, plans, self._ids_of(higher), self._epochs)

    def advance(self, next_offsets: Mapping[Key, int], plans: Mapping[Key, RangePlan] = NO_PLANS) -> None:
        """As `commit`, from another process of the same instance, if this instance made the last commit.

        An offset goes on belonging to the topic that the last one belonged to; its epoch is not known here. Raises
        AnotherInstance, KafkaFailed.
        """
        found = self.read(list(next_offsets))
        foreign = next((key for key, committed in found.items() if not committed.is_from(self._instance)), None)
        if foreign is not None:
            raise AnotherInstance(
                f"Group {self._group}: the offset of topic {foreign[0]}, topic-partition {foreign[1]} was committed by "
                f"{found[foreign].committer()}; it stays."
            )
        higher = {k: o for k, o in next_offsets.items() if k in found and o > found[k].offset}  # absent: see `check`
        ids = {key: found[key].topic_id for key in higher}
        self._send(higher, {key: plan for key, plan in plans.items() if key in higher}, ids)

    def verify(self, keys: Sequence[Key] | None = None) -> None:
        """Looks whether the offsets are still as we left them. Raises AnotherInstance when they are not.

        The signature tells, not the offset: a commit whose answer never came may have been made all the same. Offsets
        that are gone went with their topic, and ours would pass over records of a new one: OffsetGone.
        """
        known = [key for key in (keys if keys is not None else list(self._ours)) if key in self._ours]
        committed = self.read(known)
        for topic, partition in known:
            ours, found = self._ours[topic, partition], committed.get((topic, partition))
            if found is None:
                raise OffsetGone(
                    f"Group {self._group}: the offset of topic {topic}, topic-partition {partition} was {ours} and is "
                    f"gone: the topic was deleted, or the group's offsets were."
                )
            if not found.is_from(self._instance):
                raise self._taken((topic, partition), found)

    def _taken(self, key: Key, found: Committed) -> AnotherInstance:
        ours = self._ours.get(key)
        stands = f"is still {ours}, but" if ours == found.offset else f"was {ours} and is now {found.offset},"
        return AnotherInstance(
            f"Group {self._group}: the offset of topic {key[0]}, topic-partition {key[1]} {stands} committed by "
            f"{found.committer()}. This instance stops and commits nothing more. "
            f"Run each connector once, and reset offsets only while it is stopped."
        )

    def _ids_of(self, keys: Iterable[Key]) -> dict[Key, str]:
        return {key: self._ids.get(key[0], "") for key in keys}

    def _send(
        self,
        next_offsets: Mapping[Key, int],
        plans: Mapping[Key, RangePlan],
        ids: Mapping[Key, str],
        epochs: Mapping[Key, int] = NO_EPOCHS,
    ) -> None:
        if not next_offsets:
            return
        wanted = [
            TopicPartition(
                *key,
                offset,
                commit_metadata(self._instance, plans.get(key), ids[key]),
                leader_epoch=epochs.get(key, UNTOLD),
            )
            for key, offset in next_offsets.items()
        ]
        for chunk in chunks(self._group, wanted):
            self._send_chunk(chunk)

    def _send_chunk(self, chunk: list[TopicPartition]) -> None:
        """One commit; in halves if the broker finds it too large. What was sent before a failure stays."""
        error = self._refusal(chunk)
        if error is not None and error.code() in TOO_LARGE and len(chunk) > 1:
            for half in split(chunk):
                self._send_chunk(half)
        elif error is not None:
            raise self._failed("offsets cannot be committed", error)
        else:
            self._ours.update({(tp.topic, tp.partition): tp.offset for tp in chunk})

    def _refusal(self, chunk: list[TopicPartition]) -> KafkaError | None:
        try:
            done = self._commits.run(lambda: self._consumer.commit(offsets=chunk, asynchronous=False))
        except KafkaException as error:
            said: KafkaError = error.args[0]
            return said
        except TimeoutError:
            return KafkaError(KafkaError._TIMED_OUT)  # noqa: SLF001 - the client's public name
        return next((tp.error for tp in done or () if tp.error), None)

    def _failed(self, what: str, error: KafkaError) -> ConnectorError:
        if error.code() in client_errors.MEMBERS_ONLY:
            return AnotherInstance(
                f"Group {self._group}: {what}, because the group has active members: the connector still runs in Kafka "
                f"Connect, or another consumer uses this group. Stop that first."
            )
        if error.code() in client_errors.UNKNOWN:
            return BrokerAway(f"Group {self._group}: {what}. A topic is being made or deleted.")
        why, cure = self._client_log.cause()
        return client_errors.failure(error, f"Group {self._group}: {what}", why=why, away=cure or "Nothing is lost")

    def poll(self) -> None:
        """Takes what the client says of itself; there are no records for one that is assigned to nothing."""
        self._consumer.poll(0)

    def close(self) -> None:
        with suppress(TimeoutError):  # a broker that hangs holds it, and the commits before it
            TimeLimited(CLOSE_S).run(self._consumer.close)


def _committed(tp: TopicPartition) -> Committed:
    return Committed(tp.offset, tp.metadata or "", tp.leader_epoch)
