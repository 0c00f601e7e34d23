"""Readers and writers of the config and status topics: a state that follows a topic, and what changes it.

Readers take committed records alone (`read_committed`). The config topic is written by transactions under one
transactional id: whoever begins to write ends the former writer's right to, at the broker.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final, Generic, TypeVar

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from parquet_sink.distributed.records import Entry, Records
from parquet_sink.distributed.state import TopicState
from parquet_sink.errors import BrokerAway, KafkaFailed, TopicGone
from parquet_sink.kafka.client import errors as client_errors
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.client.errors import Trouble
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.client.rights import to_fence, to_read, to_write
from parquet_sink.kafka.cluster.cluster import KafkaCluster
from parquet_sink.kafka.cluster.requests import SILENT
from parquet_sink.kafka.group.fence import is_fenced
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.process.threads import in_thread

log = logging.getLogger(__name__)

POLL_S: Final = 0.1
FETCH_WAIT_MS: Final = 50
"""How long a broker holds an answer back that has no record. The end of a transaction is seen with the next answer."""
MOST_AT_ONCE: Final = 1_000
LOOK_S: Final = 10.0
"""How often a reader looks whether its topic is still there and the same."""
SOON_S: Final = 1.0
MISSES: Final = 3
"""Looks in a row that have to agree that a topic is gone: a broker that starts may not know it yet."""
_CURE: Final = "Stop all workers, restore the topic's records, and start the workers."
WRITE_S: Final = 10.0
"""How long a transaction may take. One that its writer left open is aborted by the brokers after this time."""
SERVE_S: Final = 0.5
_WRITING: Final[Mapping[str, str]] = {
    "enable.idempotence": "true",
    "acks": "all",
    "linger.ms": "0",
    "compression.type": "zstd",
    "message.max.bytes": "1000000000",
}
"""An assignment may be large: the client's own bound on a record is not to be below that of the topic."""
S = TypeVar("S", bound=TopicState)


class NotConfirmed(KafkaFailed):
    """A transaction of the config topic failed. may_be_written: whether it may have taken effect all the same.

    If so, that is decided as soon as a writer was opened again, by whatever worker; the topic's end then tells.
    """

    def __init__(self, message: str, may_be_written: bool) -> None:
        super().__init__(message, may_be_written)
        self.message, self.may_be_written = message, may_be_written

    def __str__(self) -> str:
        return self.message


class Deposed(NotConfirmed):
    """Another worker writes the config topic now."""


class NotAnswered(NotConfirmed, BrokerAway):
    """No broker answered in time."""


class TopicReader(Generic[S]):
    """Follows a topic from its beginning, in a thread of its own, until it is closed.

    on_change: called after each change of the state, in that thread.
    Brokers that do not answer are waited for without end, which is logged once. Raises InvalidConfiguration.

    Where the topic ends is asked for by an admin client: a consumer's own question for it never returns while another
    thread polls, and would wait for the fetch before it.
    """

    def __init__(
        self, kafka: KafkaSettings, topic: str, empty: S, on_change: Callable[[], None] = lambda: None
    ) -> None:
        self._topic, self._on_change = topic, on_change
        self.state = empty
        """As far as the topic was read."""
        self.failed: KafkaFailed | None = None
        """Why the state follows the topic no more and never will: it was deleted, made anew, or lost records."""
        self._client_log = ClientLog(kafka.whose)
        self._trouble = Trouble(f"Topic {topic} cannot be read", self._client_log, to_read(topic))
        self._cluster = KafkaCluster(replace(kafka, topics=(topic,), topics_regex=None), self._client_log)
        self._consumer: Consumer = client_options.build(
            Consumer, _reading(kafka), self._client_log, client_options.OWN_KEYS
        )
        self._next: dict[int, int] = {}
        self._id: str | None = None
        self._look_at_s, self._misses = 0.0, 0
        self._changed, self._closing = threading.Condition(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"reads {topic}", daemon=True)
        self._thread.start()

    def read_to_end(self, timeout_s: float) -> bool:
        """Waits until the state has all that was written before this was called; False when that took too long.

        A transaction that is not decided yet counts as written: one whose commit was acknowledged may still be hidden.
        Raises `failed`.
        """
        deadline_s = time.monotonic() + timeout_s
        with self._changed:
            self._changed.wait_for(lambda: bool(self._next) or self._ended, timeout_s)
        ends = self._ends(deadline_s)
        with self._changed:
            if ends is not None:
                self._changed.wait_for(lambda: self._is_at(ends) or self._ended, deadline_s - time.monotonic())
            if self.failed is not None:
                raise self.failed
            return ends is not None and self._is_at(ends)

    def close(self) -> None:
        """The state stays as it is."""
        self._closing.set()
        with self._changed:
            self._changed.notify_all()
        self._thread.join(timeout=WRITE_S)

    @property
    def _ended(self) -> bool:
        return self.failed is not None or self._closing.is_set()

    def _is_at(self, ends: Mapping[int, int]) -> bool:
        return all(self._next[number] >= end for number, end in ends.items())

    def _ends(self, deadline_s: float) -> Mapping[int, int] | None:
        """The high watermark of each topic-partition; None when brokers do not say so in time."""
        keys = [(self._topic, number) for number in self._next]
        while keys and not self._ended and (left_s := deadline_s - time.monotonic()) > 0:
            try:
                found = in_thread(lambda: self._cluster.high_watermarks(keys)).result(left_s)
            except TimeoutError:
                return None
            except KafkaFailed as error:
                self._trouble.met(error)
                found = {}
            if len(found) == len(keys):
                return {number: end for (_, number), end in found.items()}
            self._closing.wait(POLL_S)
        return None

    def _run(self) -> None:
        try:
            while not self._closing.is_set():
                self._look()
                self._take()
        except KafkaFailed as error:
            log.error("%s", error)  # noqa: TRY400 - the message says all
            self.failed = error
        except Exception:
            log.exception("Topic %s is not read any more", self._topic)
            self.failed = KafkaFailed(f"Topic {self._topic} is not read any more: see the log. Start the worker again.")
        finally:
            with self._changed:
                self._changed.notify_all()
            self._consumer.close()

    def _look(self) -> None:
        """Begins with topic-partitions that are new. Raises KafkaFailed when the topic is gone, or another one."""
        if (now_s := time.monotonic()) < self._look_at_s:
            return
        self._look_at_s = now_s + LOOK_S
        try:
            there = self._cluster.topics()
        except KafkaFailed as error:
            self._trouble.met(error)
            self._look_at_s = now_s + (LOOK_S if self._next else SOON_S)
            return
        found = there.ids.get(self._topic)
        if found is None or not there.partitions:
            self._missed(now_s)
            return
        self._misses, self._id = 0, self._id or found
        if found not in {self._id, ""}:
            raise KafkaFailed(f"Topic {self._topic} was deleted and created again while workers ran. {_CURE}")
        if added := [number for _, number in there.partitions if number not in self._next]:
            self._consumer.incremental_assign([TopicPartition(self._topic, one, OFFSET_BEGINNING) for one in added])
            with self._changed:
                self._next = {**self._next, **dict.fromkeys(added, 0)}
                self._changed.notify_all()

    def _missed(self, now_s: float) -> None:
        """There is no such topic, says a broker."""
        self._misses, self._look_at_s = self._misses + 1, now_s + SOON_S
        gone = TopicGone(f"Topic {self._topic} does not exist. {_CURE}")
        self._trouble.met(gone)
        if self._next and self._misses >= MISSES:
            raise gone

    def _take(self) -> None:
        """Takes what has come, and waits a moment where nothing has."""
        first = self._consumer.poll(POLL_S)
        if first is None:
            return
        entries: list[Entry] = []
        reached: dict[int, int] = {}
        for message in (first, *self._consumer.consume(MOST_AT_ONCE, 0)):
            number, offset = message.partition() or 0, message.offset() or 0
            if (error := message.error()) is None:
                entries.append(Entry(message.key(), message.value(), offset))
                reached[number] = offset + 1
            elif error.code() == client_options.END_OF_PARTITION:
                reached[number] = offset
            else:
                self._cannot_read(message, error)
        if reached:
            self._trouble.over()
            self._publish(entries, reached)

    def _cannot_read(self, message: Message, error: KafkaError) -> None:
        """Raises KafkaFailed when it would stay so."""
        if error.code() in client_options.OUT_OF_RANGE:
            raise KafkaFailed(
                f"Topic {self._topic} was recreated while workers ran, or lost records of topic-partition "
                f"{message.partition()} ({error.str()}). {_CURE}"
            )
        if error.code() not in client_errors.UNKNOWN:
            self._trouble.met(self._trouble.failure(error))
        elif not self._misses:
            self._look_at_s = 0.0

    def _publish(self, entries: Sequence[Entry], reached: Mapping[int, int]) -> None:
        state = self.state.fold(entries)
        with self._changed:
            self.state = state
            self._next = {**self._next, **reached}
            self._changed.notify_all()
        if entries:
            self._on_change()


def _reading(kafka: KafkaSettings) -> dict[str, Any]:
    """Settings of a consumer that is not a member of its group, and commits nothing."""
    return {
        **client_options.admin_options(kafka, prefix=""),
        "group.id": kafka.group,
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": str(FETCH_WAIT_MS),
        "check.crcs": "true",
    }


class _ServedProducer:
    """A producer, and the thread that takes what it logs.

    options: beside those of every producer. client: for no longer than a call; its end may take long where brokers are
    silent, and is left to the thread.
    """

    def __init__(self, kafka: KafkaSettings, client_log: ClientLog, **options: str) -> None:
        settings = {**client_options.admin_options(kafka, prefix=""), **_WRITING, **options}
        self.client: Producer = client_options.build(Producer, settings, client_log, client_options.OWN_KEYS)
        self._discarded = threading.Event()
        in_thread(partial(_serve, self.client, self._discarded))

    def discard(self) -> None:
        """With whatever is on its way. `close` of the client would wait for that, and warn of what it cannot abort."""
        self._discarded.set()
        del self.client


_RAISED: Final = (KafkaException, SystemError)
"""What a client's calls raise once it was fenced. It raises that before it tells of records that were not delivered,
and Python makes a SystemError of a callback that runs meanwhile."""


def _told(raised: KafkaException | SystemError) -> KafkaError:
    """Raises what is no client's error."""
    cause = raised.__cause__ if isinstance(raised, SystemError) else raised
    if not isinstance(cause, KafkaException):
        raise raised
    error: KafkaError = cause.args[0]
    return error


def _serve(client: Producer, discarded: threading.Event) -> None:
    while not discarded.is_set():
        with suppress(*_RAISED):  # of a transaction: whoever began it is told
            client.poll(SERVE_S)
    client.purge(blocking=False)


class ConfigWriter:
    """Writes the config topic, which has one topic-partition: the leader's, used by one thread at a time.

    To open one ends the right to write of whoever had the same transactional id; so only the leader opens one, and
    looks whether it still leads before it does so again. timeout_s: of one transaction.
    """

    def __init__(self, kafka: KafkaSettings, topic: str, transactional_id: str, timeout_s: float = WRITE_S) -> None:
        self._kafka, self._topic, self._id, self._timeout_s = kafka, topic, transactional_id, timeout_s
        self._client_log = ClientLog(kafka.whose)
        needs = to_write(topic), to_fence(transactional_id)
        self._trouble = Trouble(f"Topic {topic} cannot be written", self._client_log, *needs)
        self._producer: _ServedProducer | None = None

    @property
    def is_open(self) -> bool:
        """Whether `write` may be called."""
        return self._producer is not None

    def open(self) -> None:
        """Ends the former writer's right, and its transaction: what it wrote is decided now.

        Raises Deposed when another one does so at this moment, NotAnswered, KafkaFailed, InvalidConfiguration.
        """
        self.close()
        limit_ms = str(int(self._timeout_s * 1000))
        options = {
            "transactional.id": self._id,
            "transaction.timeout.ms": limit_ms,
            "message.timeout.ms": limit_ms,
            "retry.backoff.ms": "10",
        }
        self._producer = _ServedProducer(self._kafka, self._client_log, **options)
        try:
            self._producer.client.init_transactions(self._timeout_s)
        except KafkaException as error:
            self.close()
            raise self._failure(error.args[0], may_be_written=False) from None

    def write(self, records: Records) -> None:
        """All of them, or none. `TopicReader.read_to_end` waits until they are seen.

        Raises Deposed and NotAnswered, which say whether it may be so all the same, and KafkaFailed: nothing was
        written. The writer is closed then: the next `open` ends the transaction that it left, which hides what comes
        after it.
        """
        assert self._producer is not None, "open() comes first"
        failed = self._transaction(self._producer.client, records)
        if failed is not None:
            error, asked = failed
            self.close()
            raise self._failure(error, may_be_written=asked and not error.txn_requires_abort())

    def close(self) -> None:
        """Throws away what is not committed."""
        if self._producer is not None:
            self._producer.discard()
            self._producer = None

    def _transaction(self, client: Producer, records: Records) -> tuple[KafkaError, bool] | None:
        """What went wrong, and whether the commit was asked for by then: before that, nothing is written for sure.

        The client asks for no commit of a transaction of which a record was not delivered, and says why.
        """
        told: list[KafkaError | None] = []
        asked = False
        try:
            client.begin_transaction()
            for key, value in records.items():
                client.produce(self._topic, value, key, 0, on_delivery=lambda error, _: told.append(error))
            if client.flush(self._timeout_s):
                return SILENT, asked
            asked = not any(told)
            client.commit_transaction(self._timeout_s)
        except _RAISED as error:
            return _told(error), asked
        return None

    def _failure(self, error: KafkaError, *, may_be_written: bool) -> KafkaFailed:
        written = "It may have been written" if may_be_written else "Nothing was written"
        if is_fenced(error):
            return Deposed(
                f"Topic {self._topic} is written by another worker now, which took the transactional id {self._id} "
                f"({error.str()}). {written}.",
                may_be_written,
            )
        failure = self._trouble.failure(error)
        if may_be_written or isinstance(failure, BrokerAway):
            return NotAnswered(f"{failure} {written}.", may_be_written)
        return failure


class StatusWriter:
    """Writes the status topic, without waiting. Raises InvalidConfiguration.

    A record that no broker takes within two minutes, or that is refused, is lost, and that is logged once: whoever sent
    it sees by the topic's state that it is not there, and sends it again.
    """

    def __init__(self, kafka: KafkaSettings, topic: str) -> None:
        self._topic, client_log = topic, ClientLog(kafka.whose)
        self._trouble = Trouble(f"Topic {topic} cannot be written", client_log, to_write(topic))
        partitioned = {"partitioner": "murmur2_random", "delivery.timeout.ms": "120000"}
        self._producer = _ServedProducer(kafka, client_log, **partitioned)

    def send(self, records: Records) -> None:
        """To the topic-partitions to which Kafka Connect would send them; records of a key stay in order."""
        try:
            for key, value in records.items():
                self._producer.client.produce(self._topic, value, key, on_delivery=self._delivered)
        except KafkaException as error:
            self._trouble.met(self._trouble.failure(error.args[0]))
        except BufferError:
            self._trouble.met(self._trouble.failure(SILENT))

    def flush(self, timeout_s: float = 2.0) -> bool:
        """Whether nothing is on its way any more. By default it waits as long as a worker may for its last words."""
        return self._producer.client.flush(timeout_s) == 0

    def close(self) -> None:
        """Throws away what is on its way."""
        self._producer.discard()

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self._trouble.over()
        else:
            self._trouble.met(self._trouble.failure(error))
