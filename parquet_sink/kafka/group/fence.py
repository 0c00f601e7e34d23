"""Commits a group's offsets in transactions, so that whoever owned the connector before can commit nothing more.

Who takes the fence (`init_transactions` with the connector's transactional id) ends a transaction that another left
open, and every later commit of that one is refused. So what was read after the fence was taken cannot have changed when
a commit succeeds: a look at who signed the offsets and the commit after it are one step (`kafka.group.offsets`).

An open transaction hides the offsets it is about: brokers answer `UNSTABLE_OFFSET_COMMIT` to who reads committed ones,
which all of our clients do, until it ends, after TRANSACTION_MS at the latest. Taking the fence ends it at once, so it
comes before the first read.

A transaction with a group's offsets passes also while the group has members, other than a plain commit. So it is asked
for members, once each time that the fence is taken.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from parquet_sink.errors import KafkaFailed
from parquet_sink.kafka.client import errors as client_errors
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.client.rights import to_fence
from parquet_sink.kafka.cluster.requests import CHECK, AdminRequests
from parquet_sink.kafka.group.committed import TOO_LARGE, split
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.process.threads import in_thread

log = logging.getLogger(__name__)

TIMEOUT_S: Final = 15.0
_LONGER_THAN_ALLOWED: Final = 2**31 - 1
"""Milliseconds of a transaction: brokers allow 15 minutes, or what transaction.max.timeout.ms says."""
FENCED: Final = frozenset(
    {
        KafkaError._FENCED,  # noqa: SLF001 - the client's public name
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
    }
)
"""Another took the fence; or the broker ended a transaction that took longer than TRANSACTION_MS."""


@dataclass(frozen=True)
class StateRecords:
    """Records that are written in the transaction of a commit, all to one topic-partition; None: a key is gone.

    on_committed: called once they are there. failed: makes the error of one that cannot be written.
    """

    topic: str
    partition: int
    records: Sequence[tuple[bytes, bytes | None]]
    on_committed: Callable[[], None]
    failed: Callable[[KafkaError], KafkaFailed]


class _Members(AdminRequests):
    def refuse(self, group: str) -> None:
        """Raises KafkaException where a group has members, as a plain commit would."""
        if self._members(group):
            raise KafkaException(KafkaError(KafkaError.UNKNOWN_MEMBER_ID))


class Fence:
    """Of one group, for one process. build: makes the clients.

    After anything went wrong it is not taken any more: the next `take` makes a new producer, which also ends what the
    old one left open.
    """

    def __init__(
        self, kafka: KafkaSettings, client_log: ClientLog, build: client_options.Build = client_options.build
    ) -> None:
        self._kafka, self._client_log, self._build = kafka, client_log, build
        self._producer: Producer | None = None

    @property
    def taken(self) -> bool:
        """Whether it was taken here; another may have it by now, as the next commit says."""
        return self._producer is not None

    def take(self) -> None:
        """Has it, where it was not taken. Raises KafkaException, KafkaFailed, InvalidConfiguration."""
        if self._producer is not None:
            return
        options = client_options.fence_options(self._kafka)
        producer: Producer = self._build(Producer, options, self._client_log)
        try:
            producer.init_transactions(TIMEOUT_S)
            _Members(self._kafka, self._client_log, build=self._build).refuse(self._kafka.group)
        except BaseException:
            _discard(producer)
            raise
        self._producer = producer

    def commit(
        self, offsets: Sequence[list[TopicPartition]], group_metadata: Any, state: StateRecords | None = None
    ) -> None:
        """Commits all of them in one transaction, a request for each list; smaller ones if a broker says so.

        group_metadata: of a consumer that is not a member. state: written with them. Raises KafkaException, and what
        `StateRecords.failed` makes; then nothing is committed, or, where no answer came, perhaps all.
        """
        self.take()
        assert self._producer is not None
        try:
            self._producer.begin_transaction()
            if state is not None:
                self._write(self._producer, state)
            for some in offsets:
                self._producer.send_offsets_to_transaction(some, group_metadata, TIMEOUT_S)
            self._producer.commit_transaction(TIMEOUT_S)
        except KafkaFailed:
            self._drop()
            raise
        except KafkaException as error:
            self._drop()
            if error.args[0].code() not in TOO_LARGE or all(len(some) == 1 for some in offsets):
                raise
        else:
            if state is not None:
                state.on_committed()
            return
        self.commit([half for some in offsets for half in split(some) if half], group_metadata, state)

    def _write(self, producer: Producer, state: StateRecords) -> None:
        """Raises KafkaException, KafkaFailed."""
        errors: list[KafkaError] = []

        def on_delivery(error: KafkaError | None, message: object) -> None:
            if error is not None:
                errors.append(error)

        for key, value in state.records:
            producer.produce(state.topic, value, key, state.partition, on_delivery)
        if producer.flush(TIMEOUT_S) and not errors:
            errors.append(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - the client's public name
        if errors and not is_fenced(errors[0]):
            raise state.failed(errors[0])
        if errors:
            raise KafkaException(errors[0])

    def poll(self) -> None:
        """Takes what the client logs."""
        if self._producer is not None:
            self._producer.poll(0)

    def close(self) -> None:
        """Whoever comes next may take it."""
        self._drop()

    def _drop(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            _discard(producer)


def _discard(producer: Producer) -> None:
    """In the background: its end may take long where brokers are silent."""
    producer.purge(blocking=False)
    in_thread(producer.close)


def try_fence(kafka: KafkaSettings, transactional_id: str, prefix: str = "consumer.") -> None:
    """Whether the user may have this transactional id; whoever has it keeps it.

    It is asked for with a longer timeout than brokers allow, which they refuse once they have looked at the right.
    prefix: as of `AdminRequests`. Raises KafkaFailed, InvalidConfiguration.
    """
    client_log = ClientLog(kafka.whose)
    options = {
        **client_options.admin_options(kafka, prefix),
        "transactional.id": transactional_id,
        "transaction.timeout.ms": str(_LONGER_THAN_ALLOWED),
        "enable.idempotence": True,
    }
    producer: Producer = client_options.build(Producer, options, client_log)
    try:
        producer.init_transactions(TIMEOUT_S)
    except KafkaException as error:
        if (found := error.args[0]).code() != KafkaError.INVALID_TRANSACTION_TIMEOUT:
            needs, cause = (to_fence(transactional_id),), client_log.cause_of_silence()
            raise client_errors.failure(found, transactional_id, cause=cause, ending=CHECK, needs=needs) from None
    finally:
        _discard(producer)


def is_fenced(error: KafkaError) -> bool:
    """Whether a commit failed because another took the fence."""
    return error.code() in FENCED
