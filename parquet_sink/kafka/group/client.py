"""Requests to the group's coordinator, each within a bounded time: what is committed, and commits."""

import logging
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from parquet_sink.errors import AnotherInstance, BrokerAway, ConnectorError
from parquet_sink.kafka.client import errors as client_errors
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.client.renewal import RENEW_S, Renewal, TimeLimited
from parquet_sink.kafka.client.rights import REFUSED, Right, to_commit, to_fence, to_read, to_see, to_see_group
from parquet_sink.kafka.group.committed import Committed
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.process.threads import in_thread

log = logging.getLogger(__name__)

TIMEOUT_S: Final = 15.0
SOON_S: Final = 4.0
"""After so long without an answer it is looked whether there will be one."""
MOST_EVENTS: Final = 100
CLOSE_S: Final = 2.0
UNKNOWN_EPOCH: Final = -1
"""The leader epoch of an offset whose epoch is not known."""


class GroupClient:
    """A consumer that is not a member of its group. client_log: takes what it logs. build: makes the client."""

    def __init__(
        self,
        kafka: KafkaSettings,
        client_log: ClientLog | None = None,
        build: client_options.Build | None = None,
    ) -> None:
        self._kafka, self._group, self._build = kafka, kafka.group, build or client_options.build
        self._fence = None if kafka.owned.fence is None else to_fence(kafka.owned.fence)
        self._client_log = client_log or ClientLog(kafka.whose)
        self._renewal = Renewal()
        self._consumer, self._commits = self._made(), TimeLimited(TIMEOUT_S)

    def _made(self) -> Consumer:
        made: Consumer = self._build(Consumer, client_options.group_options(self._kafka), self._client_log)
        return made

    def _heard(self, error: KafkaError | None) -> None:
        """How a request ended; the client is replaced when it has got no answer for long.

        Not while a commit is on its way by it (a minute at most): that might arrive after a later one.
        """
        if error is None:
            self._renewal.answered()
        elif not self._commits.busy and self._renewal.is_due(error.code()):
            log.debug("group %s: no answer for %g s; a new client", self._group, RENEW_S)
            in_thread(self._consumer.close)  # its end may take long
            self._consumer = self._made()

    def committed(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, Committed]:
        """What is committed for these topic-partitions; those without a commit are absent. Raises ConnectorError."""
        self._renewal.asked()
        try:
            found = self._fetch([TopicPartition(t, p) for t, p in keys])
        except KafkaException as error:
            self._heard(error.args[0])
            raise self._unread(error.args[0], {topic for topic, _ in keys}) from None
        self._heard(None)
        bad = next((tp for tp in found if tp.error), None)
        if bad is not None and bad.error is not None:
            raise self._unread(bad.error, {bad.topic})
        return {
            (tp.topic, tp.partition): Committed(tp.offset, tp.metadata or "", tp.leader_epoch)
            for tp in found
            if tp.offset >= 0
        }

    def _fetch(self, asked: list[TopicPartition]) -> list[TopicPartition]:
        """Asks, and once more. Without the right to see the group no answer comes, but an event says why."""
        # Not `AdminClient.list_consumer_group_offsets`: with confluent-kafka 2.16.1 that ends the process with a
        # segmentation fault while the group's coordinator is not up yet.
        try:
            return self._consumer.committed(asked, timeout=SOON_S)
        except KafkaException as error:
            if error.args[0].code() not in client_errors.PASSING:
                raise
            if (refusal := self._refusal()) is not None:
                raise KafkaException(refusal) from None
        return self._consumer.committed(asked, timeout=TIMEOUT_S - SOON_S)

    def _refusal(self) -> KafkaError | None:
        """What the brokers refuse this client, as its events tell."""
        for _ in range(MOST_EVENTS):
            event = self._consumer.poll(0)
            error = None if event is None else event.error()
            if error is None or error.code() in REFUSED:
                return error
        return None

    def commit(self, offsets: list[TopicPartition]) -> KafkaError | None:
        """Commits offsets with their metadata and epochs, in one request. The error, if there was one."""
        self._renewal.asked()
        error = self._commit(offsets)
        self._heard(error)
        return error

    def _commit(self, offsets: list[TopicPartition]) -> KafkaError | None:
        try:
            done = self._commits.run(lambda: self._consumer.commit(offsets=offsets, asynchronous=False))
        except KafkaException as error:
            answer: KafkaError = error.args[0]
            return answer
        except TimeoutError:
            return KafkaError(KafkaError._TIMED_OUT)  # noqa: SLF001 - the client's public name
        return next((tp.error for tp in done or () if tp.error), None)

    def metadata(self) -> Any:
        """Of the group, for a transaction: this client is not a member of it."""
        return self._consumer.consumer_group_metadata()

    def _unread(self, error: KafkaError, topics: Collection[str]) -> ConnectorError:
        needs = (to_see_group(self._group), *map(to_see, sorted(topics)))
        return self._failure("its offsets cannot be read", error, needs)

    def uncommitted(self, error: KafkaError, topics: Collection[str]) -> ConnectorError:
        """The error that says why offsets of these topics could not be committed."""
        needs = (to_commit(self._group), to_read(*sorted(topics)), *([] if self._fence is None else [self._fence]))
        return self._failure("offsets cannot be committed", error, needs)

    def _failure(self, what: str, error: KafkaError, needs: Sequence[Right]) -> ConnectorError:
        if error.code() in client_errors.MEMBERS_ONLY:
            return AnotherInstance(
                f"Group {self._group}: {what}, because the group has active members: the connector still runs in Kafka "
                f"Connect, or another consumer uses this group. Stop that first."
            )
        if error.code() in client_errors.UNKNOWN:
            return BrokerAway(f"Group {self._group}: {what}. A topic is being made or deleted.")
        cause = self._client_log.cause()
        return client_errors.failure(error, f"Group {self._group}: {what}", cause=cause, needs=needs)

    def poll(self) -> None:
        """Takes what the client logs; there are no records for one that is assigned to nothing."""
        self._consumer.poll(0)

    def close(self) -> None:
        """A broker that hangs holds the client, and the commits before it; it is waited for CLOSE_S."""
        with suppress(TimeoutError):
            TimeLimited(CLOSE_S).run(self._consumer.close)
