"""What docs/explanation/reliability.md promises, checked against the truth: what Kafka had, and what the target has.

Each record is accepted, set aside, or still to come, or its loss was told; nothing is committed before; offsets never
go back; a file of one name has the same rows for ever, in offset order; a record that was accepted comes again in the
same file alone, unless what files depend on was lost or changed in between, and never once it is committed; files of a
topic-partition are sent in offset order. A connector stops for a cause that there is.

What is broken is collected, because the sink would take an exception for trouble of its own; `check` raises it.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.model.events import Event, OffsetsPassedOver
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.receipts import Failure
from parquet_sink.model.rejected import Rejected, Stage
from tests.life.kafka import Kafka, Log
from tests.life.records import Kind, Record
from tests.life.target import Stored, Target


class Hand(StrEnum):
    """What others than the sink put their hand to."""

    FILES = "files below tmp.dir"
    TOPICS = "topics, or their retention"
    GROUP = "the group: an operator, or another instance"
    BROKERS = "brokers that do not answer"
    PROCESSES = "killed processes"
    TARGET = "answers of the target"
    TRANSACTIONS = "transactions that stay open"


MOST_RESTARTS = 3
"""Starts of a query without progress, after which a connector stops with the cause of the last."""
EXPLAINS: dict[str, set[Hand]] = {
    "UploadRefused": {Hand.TARGET},
    "UploadExhausted": {Hand.TARGET},
    "OffsetsLost": {Hand.TOPICS, Hand.GROUP},
    "AnotherInstance": {Hand.GROUP, Hand.FILES},
    "KafkaFailed": {Hand.TOPICS, Hand.GROUP, Hand.BROKERS},
    "BrokerAway": {Hand.TOPICS, Hand.GROUP, Hand.BROKERS},
    "TopicGone": {Hand.TOPICS, Hand.GROUP},
    "StorageFailed": {Hand.FILES},
    "RunFilesLost": {Hand.FILES},
    "Defect": {Hand.PROCESSES},
    "TransactionOpen": {Hand.TRANSACTIONS},
}
"""What a connector may stop for, by the name of its error; a record without a row beside these."""

UNNOTED = {Hand.PROCESSES, Hand.BROKERS}
"""What may come between a commit and the connector's note of it."""


@dataclass
class Acceptance:
    """Of a record in a file of one name. cuts: how often files could be cut anew before the file was planned.

    by_current: whether the instance sent it that took the group over last. committed: where the group stood then.
    """

    name: str
    cuts: int
    by_current: bool
    committed: int


@dataclass
class Promises:
    """The ledger of every record, by its number. broken: what the sink did not keep, in words."""

    kafka: Kafka
    target: Target
    broken: list[str] = field(default_factory=list)
    records: dict[int, tuple[int, PartitionKey, Record]] = field(default_factory=dict)
    accepted: dict[int, list[Acceptance]] = field(default_factory=dict)
    files: dict[tuple[int, str], tuple[Stored, int]] = field(default_factory=dict)
    set_aside: set[int] = field(default_factory=set)
    passed: set[int] = field(default_factory=set)
    """Records that an operator passed over, whose loss was told, or that were deleted before the group began."""
    begun: set[tuple[int, PartitionKey]] = field(default_factory=set)
    """Topic-partitions, with the number of their topic, that the group has had an offset of."""
    cuts: Counter[PartitionKey] = field(default_factory=Counter)
    touched: set[Hand] = field(default_factory=set)
    interruptions: int = 0
    """Processes that died, and files of the state that were lost: each is one more start of the query."""
    sent: dict[str, Acceptance] = field(default_factory=dict)
    """By the names of files, what their rows are accepted as; a file may arrive long after it was sent."""
    sender_is_current: bool = True
    begins_late: bool = False
    """With `auto.offset.reset=latest` the first start begins at the end."""
    first_commit: int = 0
    """The number of the commit that was the connector's first."""
    memory_lost: bool = False
    """The connector may not know any more what it delivered: files of its state were lost, or it is elsewhere."""
    stands: dict[PartitionKey, tuple[int, int]] = field(default_factory=dict)
    """Number of the topic, and the offset that the connector itself committed last."""
    drain_ends: dict[PartitionKey, tuple[int, int]] = field(default_factory=dict)
    """Number of the topic, and the end that Kafka had when the connector was told to deliver what is there."""
    forgotten: dict[PartitionKey, tuple[int, int]] = field(default_factory=dict)
    """What `stands` had of topic-partitions when brokers forgot the group, until the connector says so."""
    cuts_at_tick: Counter[PartitionKey] = field(default_factory=Counter)
    """Ranges are planned from what was there when a tick began."""

    # what happens in the world
    def produced(self, key: PartitionKey, records: Iterable[Record]) -> None:
        number = self.kafka.topics[key[0]].number
        self.records |= {record.id: (number, key, record) for record in records}

    def may_cut_anew(self, keys: Iterable[PartitionKey] | None = None) -> None:
        """What files depend on was lost or changed: what is not committed may be cut anew."""
        for key in self.kafka.partitions() if keys is None else keys:
            self.cuts[key] += 1

    def passed_over(self, key: PartitionKey, start: int, end: int) -> None:
        """The loss of these offsets was told, or an operator wanted it."""
        log = self.kafka.log(key)
        self.passed |= {one.id for one in (*log.records, *log.deleted) if start <= one.offset < end}

    def group_forgotten(self) -> None:
        """Brokers forget all offsets of the group."""
        self.forgotten = {key: found for key, found in self.stands.items() if key in self.kafka.offsets}
        self.drain_ends = {}
        self.may_cut_anew()
        self.touched.add(Hand.GROUP)
        self.kafka.offsets = {}

    def forgotten_told(self, keys: Iterable[PartitionKey]) -> None:
        """The connector says that the group has lost these."""
        for key in keys:
            self.forgotten.pop(key, None)

    def drain_begins(self) -> None:
        """Note the ends up to which the connector is to deliver before it ends by itself."""
        topics = self.kafka.topics
        self.drain_ends = {key: (topics[key[0]].number, self.kafka.log(key).end) for key in self.kafka.partitions()}

    def caught_up(self) -> None:
        """Judge a connector that ended by itself, as after the delivery of what was there at its start."""
        for key, (number, end) in self.drain_ends.items():
            is_there = key in self.kafka.partitions() and self.kafka.topics[key[0]].number == number
            if is_there and (at := self.kafka.committed(key)) < end:
                self._broke(f"{key}: it ended as caught up at {at}, and there were records up to {end}")

    def tick_begins(self, *, current: bool) -> None:
        """Of the instance that took the group over last, or of an older one that does not know it yet."""
        self.sender_is_current, self.cuts_at_tick = current, Counter(self.cuts)

    # what the sink does
    def told(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, OffsetsPassedOver) and (event.topic, event.partition) in self.kafka.partitions():
                self.passed_over((event.topic, event.partition), event.start, event.end)

    def kept_aside(self, rejected: Iterable[Rejected]) -> None:
        """These are parked for good."""
        by_place = {(number, key, one.offset): one for number, key, one in self.records.values()}
        for one in rejected:
            key = (one.topic, one.partition)
            number = self.kafka.topics[key[0]].number
            record = by_place.get((number, key, one.offset))
            if record is None or record.value != one.value:
                continue  # of an earlier topic of that name
            self.set_aside.add(record.id)
            last = self.accepted.get(record.id, [])[-1:]
            if one.stage is Stage.TASK_PUT and last and last[0].by_current and last[0].cuts == self.cuts[key]:
                self._broke(f"{key} offset {one.offset} is set aside as refused, and accepted in {last[0].name}")

    def committed(self, key: PartitionKey, offset: int, metadata: str) -> None:
        """The sink commits; a commit for a topic that is gone is noticed by its id."""
        topic, (before, signed) = self.kafka.topics[key[0]], self.kafka.offsets.get(key, (0, ""))
        if json.loads(metadata).get("topic_id") != topic.id:
            return
        if (topic.number, key) not in self.begun:
            self.begun.add((topic.number, key))
            self.passed |= {one.id for one in topic.logs[key[1]].deleted if one.offset < offset}
        self._begins(topic.number, key, offset)
        if offset < before and (not signed or json.loads(signed).get("topic_id") == topic.id):
            self._broke(f"{key}: committed {offset} behind {before}")
        if missing := self._not_done(topic.logs[key[1]], offset):
            self._broke(f"{key}: committed {offset} before {shown(missing)}")

    def _begins(self, number: int, key: PartitionKey, offset: int) -> None:
        """Where the first start begins, and where it begins anew once the group was forgotten."""
        log = self.kafka.log(key)
        self.first_commit = self.first_commit if self.stands else self.kafka.commits
        is_new = self.memory_lost or self.first_commit == self.kafka.commits
        if self.begins_late and self.kafka.is_first_commit and is_new:
            self.passed |= {one.id for one in (*log.records, *log.deleted) if one.offset < offset}
        stood = self.forgotten.pop(key, None)
        if stood is not None and self.memory_lost:
            self.passed |= {one.id for one in log.deleted if one.offset < offset}
        elif stood is not None and stood[0] == number and offset < stood[1] and not self.touched & UNNOTED:
            self._broke(f"{key}: the group was forgotten at {stood[1]}, and it begins at {offset} without a word")
        self.stands[key] = number, offset

    def pushed(self, file: FinishedFile) -> None:
        """An attempt at a file: what comes before it was accepted."""
        key = (file.topic, file.partition)
        self.sent[file.name] = Acceptance(
            file.name, self.cuts_at_tick[key], self.sender_is_current, self.kafka.committed(key)
        )
        if not self.sender_is_current or self.cuts[key] != self.cuts_at_tick[key] or key not in self.kafka.partitions():
            return
        between = self.kafka.log(key).between(self.kafka.committed(key), file.first_offset)
        waits = [one for one in between if one.always_has_a_row and not self._done(one)]
        before = [one for one in waits if one.id not in self.target.refused]
        if before:
            self._broke(f"{file.name} is sent before {shown(before)}")

    def stored(self, found: Stored) -> None:
        """The target has taken a file."""
        key = (found.topic, found.partition)
        numbers = {self.records[number][0] for _, number in found.rows if number in self.records}
        offsets = [offset for offset, _ in found.rows]
        if offsets != sorted(set(offsets)):
            self._broke(f"{found.name}: rows are not in offset order")
        for offset, number in found.rows:
            _, of, record = self.records.get(number, (0, key, None))
            if record is None or (of, record.offset) != (key, offset):
                self._broke(f"{found.name}: row {number} at offset {offset} is invented")
        self._same_file(found, key, min(numbers, default=0))
        for offset, number in found.rows:
            self._same_name(found, key, offset, number)
            self.accepted.setdefault(number, []).append(self.sent[found.name])

    def _same_file(self, found: Stored, key: PartitionKey, life: int) -> None:
        before, cuts = self.files.setdefault((life, found.name), (found, self.sent[found.name].cuts))
        if before.rows != found.rows:
            self._broke(f"{found.name} has other rows than before")
        elif before.digest != found.digest and cuts == self.cuts[key]:
            self._broke(f"{found.name} has other bytes than before")

    def _same_name(self, found: Stored, key: PartitionKey, offset: int, number: int) -> None:
        before, sent = self.accepted.get(number), self.sent[found.name]
        if before is None or found.name in {one.name for one in before} or not sent.by_current:
            return
        life = self.records[number][0]
        if key in self.kafka.partitions() and self.kafka.topics[key[0]].number == life:
            if offset < sent.committed and number not in self.passed:
                self._broke(f"{found.name} has offset {offset}, which is committed, and accepted in {before[-1].name}")
            elif before[-1].by_current and before[-1].cuts == sent.cuts == self.cuts[key]:
                self._broke(f"{found.name} has offset {offset}, which was accepted in {before[-1].name}")

    def stopped(self, failure: Failure) -> None:
        """A connector failed: with a cause that there is."""
        if failure.kind == "InvalidRecord":
            records = [one for log in self._logs() for one in (*log.records, *log.deleted)]
            blamed = [one for one in records if f"offset {one.offset}:" in failure.message]
            explained = any(one.kind in {Kind.POISON, Kind.LATER} for one in blamed) or Hand.TOPICS in self.touched
        else:
            explained = bool(EXPLAINS.get(failure.kind, set()) & self.touched)
        if failure.kind == "RunFilesLost":
            explained = explained and self.interruptions > MOST_RESTARTS
        if not explained or (failure.kind == "Defect" and "was killed" not in failure.message):
            self._broke(f"it stopped without such a cause: {failure.kind}: {failure.message}")

    # what follows
    def check(self) -> None:
        """Raises AssertionError with all that is broken."""
        assert not self.broken, "\n".join(self.broken)

    def check_all_done(self) -> None:
        """Everything that Kafka has is accepted, set aside, or was passed over; and the group stands at the end."""
        for key in self.kafka.partitions():
            log = self.kafka.log(key)
            if missing := self._not_done(log, log.end):
                self._broke(f"{key}: in the end {shown(missing)} are missing")
            if self.kafka.committed(key) != log.end:
                self._broke(f"{key}: committed is {self.kafka.committed(key)} in the end, and the end is {log.end}")
        self.check()

    def _logs(self) -> list[Log]:
        return [self.kafka.log(key) for key in self.kafka.partitions()]

    def _not_done(self, log: Log, below: int) -> list[Record]:
        return [one for one in (*log.deleted, *log.records) if one.offset < below and not self._done(one)]

    def _done(self, record: Record) -> bool:
        done = record.id in self.accepted or record.id in self.set_aside or record.id in self.passed
        return done or record.kind is Kind.TOMBSTONE

    def _broke(self, what: str) -> None:
        if what not in self.broken:
            self.broken.append(what)


def shown(records: list[Record]) -> str:
    """For a message."""
    return ", ".join(f"offset {one.offset} ({one.kind}, number {one.id})" for one in records[:5])
