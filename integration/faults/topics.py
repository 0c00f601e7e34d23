"""Rows of what Kafka may do to a topic: made anew, grown, overtaken by retention, reset, aborted, compacted."""

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import dropwhile
from typing import Any, Final

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from integration.faults.act import Act
from integration.faults.rows import BROKE, Broke, Row
from integration.faults.verdict import judge
from integration.faults.world import Record, Topic, World, keep_offsets
from integration.oracle.group import Group
from integration.oracle.oracle import Sample

KAFKA_S: Final = 60.0


class MadeAnewAct(Act):
    """Deleted and made anew while the connector runs; each generation is judged by itself.

    The connector may stop and name the lost offset, if Kafka has not forgotten it; CONTINUE is the documented cure.
    """

    def play(self) -> None:
        self.until_delivered()
        self.recreate()
        while not self.delivered() and self.failed() is None:
            self.must(self.program.ended() is None or self.failed(), "the program ended without a word")
            time.sleep(0.2)
        if failure := self.failed():
            self.must(self.topic.name in failure, f"its last words do not name the topic: {failure}")
            self.stops = True
            self.saw("stopped and named the lost offsets, delivered with lost.offsets.policy=CONTINUE")
        else:
            self.saw("read the new topic from its first record")

    def recreate(self) -> None:
        """The first generation is put aside."""
        with closing(self.world.target.client) as client:
            self._before = max(file["sequence"] for file in client.files(self.table))
        self._first, self._first_samples = self.topic.oracle(), list(self.group.samples)
        self._first_end = self.topic.ends()
        self.world.broker.delete_topic(self.topic.name)
        self.topic.forget()
        self.world.broker.create_topic(self.topic.name)
        self.topic.produce(430)
        self.first_sample = len(self._first_samples)
        time.sleep(1)

    def samples(self) -> Sequence[Sample]:
        """Without those from before Kafka forgot the first topic's offset."""
        return list(dropwhile(lambda one: one.committed == self._first_end, super().samples()))

    def mended(self) -> Mapping[str, str]:
        return {"connect.ems.lost.offsets.policy": "CONTINUE"}

    def judge(self) -> None:
        super().judge()
        with closing(self.world.target.client) as client:
            first = judge(
                self._first, client, self.table, self._first_samples, lambda file: file["sequence"] <= self._before
            )
        if wrong := first.wrong(self.tolerated):
            self.troubles += [f"of the first topic: {wrong}", *first.findings.examples]
            self.outcome.status = BROKE

    def which(self, file: Mapping[str, Any]) -> bool:
        return bool(file["sequence"] > self._before)


class MadeAnewStoppedAct(MadeAnewAct):
    """The same between two starts, once Kafka has forgotten the offset."""

    stops = True

    def play(self) -> None:
        self.until_delivered()
        self.saw("the next start read the new topic from its first record")

    def between(self) -> None:
        self.recreate()
        deadline = time.monotonic() + KAFKA_S
        while self.group.committed() != {0: 0} and time.monotonic() < deadline:
            time.sleep(0.2)

    def mended(self) -> Mapping[str, str]:
        return {}


class GrownAct(Act):
    """Two topic-partitions more, while the connector runs."""

    def make_topic(self) -> Topic:
        made = Topic(self.world.broker, self.name, 2)
        made.produce(300)
        return made

    def set_up(self) -> None:
        super().set_up()
        self.group.close()
        self.group = Group(self.bootstrap_servers, f"connect-{self.name}", self.topic.name, 4)

    def play(self) -> None:
        self.until_delivered()
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        for future in admin.create_partitions([NewPartitions(self.topic.name, 4)]).values():
            future.result(KAFKA_S)
        self.topic.grow(4)
        began = time.monotonic()
        self.topic.produce(600)
        self.must({2, 3} <= set(self.topic.ends()), "no record went to the new topic-partitions")
        self.until_delivered()
        self.saw(f"found and delivered from the first record within {time.monotonic() - began:.0f} s")


class RetentionAct(Act):
    """Records go before they were read: the connector names them and stops; only those may be missing."""

    stops = True

    def make_topic(self) -> Topic:
        return Topic(self.world.broker, self.name)

    def keys(self) -> Mapping[str, str]:
        return {"connect.ems.commit.records": "1000", "connect.ems.commit.interval.ms": "3600000"}

    def play(self) -> None:
        self.until_said("running")
        time.sleep(3)
        self.topic.produce(500)
        self.overtake()
        self.topic.produce(600)
        self.until_failed(f"Topic {self.topic.name}, topic-partition 0", "offsets 0 to 199", "were deleted")
        self.saw("stopped and named the 200 deleted offsets, the rest delivered with lost.offsets.policy=CONTINUE")

    def overtake(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        for future in admin.delete_records([TopicPartition(self.topic.name, 0, 200)]).values():
            future.result(KAFKA_S)
        gone = self.topic.forget(_below_200)
        self.must(gone == 200, f"{gone} records were deleted")

    def mended(self) -> Mapping[str, str]:
        return {"connect.ems.lost.offsets.policy": "CONTINUE"}


class RetentionContinueAct(RetentionAct):
    """The same with CONTINUE: the log names what is gone, and the rest is delivered."""

    stops = False

    def keys(self) -> Mapping[str, str]:
        return {**super().keys(), **self.mended()}

    def play(self) -> None:
        self.until_said("running")
        time.sleep(3)
        self.topic.produce(500)
        self.overtake()
        self.topic.produce(800)
        self.until_said("offsets 0 to 199 were deleted")
        self.until(lambda: self.committed().get(0, 0) >= 1_000, "the rest was not delivered")
        self.saw("named the 200 deleted offsets and went on")


class ResetAct(Act):
    """An operator sets the group back while the connector runs: it does not fight it, stops, and begins there again."""

    stops = True

    def play(self) -> None:
        self.until_delivered()
        arguments = ("--group", f"connect-{self.name}", "--topic", self.topic.name)
        self.world.broker.consumer_groups(*arguments, "--reset-offsets", "--to-earliest", "--execute")
        self.until_failed("committed by", "an operator")
        self.must(self.group.committed() == {0: 0}, f"the reset was overwritten: {self.committed()}")
        self.first_sample = len(self.group.samples) - 1
        self.saw("stopped, left the reset as it was, and delivered all again at the next start")


class AbortedAct(Act):
    """Committed and aborted transactions, with their markers."""

    def make_topic(self) -> Topic:
        made = Topic(self.world.broker, self.name, transactional=True)
        for count, commit in ((120, True), (150, False), (30, True), (1, False), (250, True), (100, False)):
            made.transaction(count, commit=commit)
        made.transaction(50, commit=True)
        return made

    def keys(self) -> Mapping[str, str]:
        return {"consumer.override.isolation.level": "read_committed"}

    def delivered(self) -> bool:
        """With the last marker."""
        return self.committed() == {0: self.topic.ends()[0] + 1}

    def samples(self) -> Sequence[Sample]:
        """The oracle knows nothing of the marker behind the last record."""
        end = self.topic.ends()[0]
        return [Sample(one.at_ms, {0: min(one.committed[0], end)}) for one in super().samples()]

    def play(self) -> None:
        self.until_delivered()
        self.saw("committed records only, lag 0 behind the last marker")


class CompactedAct(Act):
    """Offsets that compaction took leave gaps."""

    def make_topic(self) -> Topic:
        config = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
        made = Topic(self.world.broker, self.name, config=config)
        for _ in range(4):
            made.produce(600)
            time.sleep(0.3)
        deadline, found = time.monotonic() + KAFKA_S, list[int]()
        while (now := offsets_in(self.bootstrap_servers, made.name)) != found or len(now) == 2_400:
            if time.monotonic() > deadline:
                raise Broke("Kafka did not compact the topic")
            found = now
            time.sleep(3)
        self._gone = made.forget(keep_offsets(found))
        return made

    def play(self) -> None:
        self.until_delivered()
        self.saw(f"{self._gone} of 2400 records were compacted before; all others delivered")


def offsets_in(bootstrap_servers: str, topic: str) -> list[int]:
    """Offsets of the records that a topic-partition still has."""
    options = {"bootstrap.servers": bootstrap_servers, "group.id": f"look-{topic}", "log_level": 0}
    with closing(Consumer({**options, "enable.partition.eof": True})) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[int] = []
        while True:
            for message in consumer.consume(1_000, 5.0):
                if message.error() is not None:
                    return found
                found.append(message.offset() or 0)


def _below_200(record: Record) -> bool:
    return record[1] < 200


def acts(world: World) -> list[Act]:
    """The rows of this part."""
    return [
        MadeAnewAct(Row("topic", "deleted and created again", "while running"), world),
        MadeAnewStoppedAct(Row("topic", "deleted and created again", "while stopped"), world),
        GrownAct(Row("topic", "topic-partitions added", "while running, 2 to 4"), world),
        RetentionAct(Row("topic", "retention overtakes", "lost.offsets.policy=STOP"), world),
        RetentionContinueAct(Row("topic", "retention overtakes", "lost.offsets.policy=CONTINUE"), world),
        ResetAct(Row("topic", "offsets reset", "while running, to earliest"), world),
        AbortedAct(Row("topic", "aborted transactions", "read_committed"), world),
        CompactedAct(Row("topic", "compacted", "gaps in offsets"), world),
    ]
