"""Which topics and topic-partitions there are, and where they end: one request for all of them, never one each."""

import logging
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ListOffsetsResultInfo,
    OffsetSpec,
    TopicDescription,
    TopicMetadata,
)

from parquet_sink.errors import KafkaFailed, TopicGone
from parquet_sink.kafka.client import errors as client_errors
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.client.timeouts import in_thread
from parquet_sink.kafka.group.offsets import Key
from parquet_sink.kafka.settings import KafkaSettings

log = logging.getLogger(__name__)

TIMEOUT_S: Final = 10.0
CONTROLLER_S: Final = 4.0
"""How long the controller has to answer before another is looked for."""
GRACE_S: Final = 5.0
"""Beyond which a request counts as lost, although the client promised an answer by then."""
HEAR_S: Final = 0.25
"""How often what the client says is taken while a request waits."""
SOON_S: Final = 2.0
LATE_S: Final = 4.0
"""When a request that waits is told of, with a cause and without one."""
NOTHING_SAID: Final = "The connection stands, or is being made, and nothing comes"
CHECK: Final = "Check [bootstrap.servers] and the broker"
_SILENT: Final = KafkaError(KafkaError._TIMED_OUT)  # noqa: SLF001 - the client's public name
T = TypeVar("T")
NO_ID: Final = "A" * 22
"""Zero, in the text form of Kafka's ids: before Kafka 2.8 topics have none."""


class Watermarks:
    """Asks the cluster for topic-partitions, and for their first and last offsets, through one admin client.

    client_log: takes what the client says of itself. waiting: is told, once a request, when no broker answers soon.
    `epochs`: of the leaders, as they were told with the ends that were asked for last.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        client_log: ClientLog | None = None,
        waiting: Callable[[str], None] = lambda why: None,
    ) -> None:
        self._kafka, self._waiting = kafka, waiting
        self._client_log = client_log or ClientLog(kafka.group)
        self._servers = str(kafka.client.get("bootstrap.servers", ""))
        self._pattern = re.compile(kafka.topics_regex) if kafka.topics_regex else None
        self._admin: AdminClient = client_options.build(
            AdminClient, client_options.admin_options(kafka), self._client_log
        )
        self._timeout_s = min(TIMEOUT_S, client_options.seconds(kafka, "default.api.timeout.ms", TIMEOUT_S))
        committed = kafka.isolation_level == "read_committed"
        self._isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        self._told_untold = False
        self._why: dict[Key, str] = {}
        self.epochs: dict[Key, int] = {}

    def topic_partitions(self, *, allow_missing: bool = False) -> list[Key]:
        """All topic-partitions of the connector's topics, in order; of topics that are not there it has none.

        Raises TopicGone when a topic that the connector names is not there, unless `allow_missing` may be; KafkaFailed.
        """
        if self._pattern is None:
            named = self._described(self._kafka.topics).items()
            return sorted(key for topic, about in named for key in self._of(topic, about, allow_missing))
        pattern = self._pattern
        return sorted(
            (topic, partition)
            for topic, about in self._all_topics().items()
            if pattern.fullmatch(topic) and not topic.startswith("__")
            for partition in about.partitions
        )

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        """The id of each topic, which no other topic ever has; those that do not exist are absent. One request.

        "" where the cluster gives none, or does not tell us: the log says so once. Raises BrokerAway, KafkaFailed.
        """
        if not topics:
            return {}
        found = {topic: self._id(topic, about) for topic, about in self._described(topics).items()}
        untold = sorted(topic for topic, found_id in found.items() if found_id == "")
        if untold and not self._told_untold:
            self._told_untold = True
            log.warning(
                "%s does not tell the ids of %d topics (%s is one): that such a topic was deleted and made anew is "
                "noticed only when it then ends below where the group stands.",
                self._servers, len(untold), untold[0],
            )  # fmt: skip
        return {topic: found_id for topic, found_id in found.items() if found_id is not None}

    def _id(self, topic: str, about: "Future[TopicDescription]") -> str | None:
        """None when there is no such topic; "" when it is not told."""
        try:
            found = str(self._answer(about).topic_id)
        except KafkaException as error:
            code = error.args[0].code()
            if code in client_errors.UNKNOWN:
                return None
            if code in client_errors.REFUSALS:
                return ""
            raise self._failed(error.args[0], f"Topic {topic}") from None
        return "" if found == NO_ID else found.translate(_URL_SAFE)

    def _described(self, topics: Sequence[str]) -> "dict[str, Future[TopicDescription]]":
        """Asks for the topics by name, which never creates one.

        The client asks the broker that it knows as the controller, for minutes also one that is gone; a list of all
        topics tells it another.
        """
        described = self._describe(topics, min(CONTROLLER_S, self._timeout_s))
        try:
            self._answer(next(iter(described.values())))
        except KafkaException as error:
            if error.args[0].code() in client_errors.PASSING:
                self._all_topics()
                return self._describe(topics, self._timeout_s)
        return described

    def _describe(self, topics: Sequence[str], timeout_s: float) -> "dict[str, Future[TopicDescription]]":
        described: dict[str, Future[TopicDescription]] = self._admin.describe_topics(
            TopicCollection(list(topics)), request_timeout=timeout_s
        )
        return described

    def _of(self, topic: str, about: "Future[TopicDescription]", allow_missing: bool) -> list[Key]:
        try:
            return [(topic, info.id) for info in self._answer(about).partitions]
        except KafkaException as error:
            if allow_missing and error.args[0].code() in client_errors.UNKNOWN:
                return []
            raise self._failed(error.args[0], f"Topic {topic}") from None

    def _all_topics(self) -> "dict[str, TopicMetadata]":
        try:
            return self._answer(in_thread(lambda: self._admin.list_topics(timeout=self._timeout_s))).topics
        except KafkaException as error:
            raise self._failed(error.args[0], "The list of topics") from None

    def poll(self) -> None:
        """Takes what the client says of itself."""
        self._admin.poll(0)

    def end_offsets(self, keys: Sequence[Key]) -> dict[Key, int]:
        """Where each topic-partition ends, exclusive; one request. Those that are away are absent.

        The last stable offset; the high watermark when uncommitted records are read. Raises BrokerAway when none
        answers, KafkaFailed.
        """
        found = self._list(keys, OffsetSpec.latest(), self._isolation)  # type: ignore[no-untyped-call]
        self.epochs.update({key: epoch for key, (_, epoch) in found.items() if epoch is not None})
        return {key: offset for key, (offset, _) in found.items()}

    def end_offsets_if_available(self, keys: Sequence[Key]) -> dict[Key, int]:
        """As `ends`, for topic-partitions that were away: nobody is told that it takes long, and none is no failure."""
        try:
            found = self._list(keys, OffsetSpec.latest(), self._isolation, tell=False)  # type: ignore[no-untyped-call]
        except KafkaFailed:
            return {}
        return {key: offset for key, (offset, _) in found.items()}

    def high_watermarks(self, keys: Sequence[Key]) -> dict[Key, int]:
        """The high watermarks, whatever is read; otherwise as `ends`."""
        found = self._list(keys, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)  # type: ignore[no-untyped-call]
        return {key: offset for key, (offset, _) in found.items()}

    def beginning_offsets(self, keys: Sequence[Key]) -> dict[Key, int]:
        """The first offset that Kafka still holds; otherwise as `ends`."""
        found = self._list(keys, OffsetSpec.earliest(), self._isolation)  # type: ignore[no-untyped-call]
        return {key: offset for key, (offset, _) in found.items()}

    def unavailable_reason(self, key: Key) -> str:
        """Why the last request got no answer for a topic-partition."""
        return self._why.get(key, "its leader does not answer")

    def _list(
        self, keys: Sequence[Key], spec: Any, isolation: IsolationLevel, *, tell: bool = True
    ) -> dict[Key, tuple[int, int | None]]:
        """Offset and leader epoch of each; absent: those that are unavailable."""
        if not keys:
            return {}
        asked = {TopicPartition(t, p): spec for t, p in keys}
        futures = self._admin.list_offsets(asked, isolation_level=isolation, request_timeout=self._timeout_s)
        out: dict[Key, tuple[int, int | None]] = {}
        first: KafkaFailed | None = None
        for tp, future in futures.items():
            key = (tp.topic, tp.partition)
            found = self._offset(future, tell=tell)
            if isinstance(found, tuple):
                out[key] = found
                continue
            failed = self._failed(found, f"Topic {tp.topic}, topic-partition {tp.partition}")
            if found.code() not in client_errors.PASSING:
                raise failed
            self._why[key] = found.str()
            first = first or failed
        if first is not None and not out:
            raise first
        return out

    def _offset(self, future: "Future[ListOffsetsResultInfo]", *, tell: bool) -> tuple[int, int | None] | KafkaError:
        try:
            told = self._answer(future, tell=tell)
        except KafkaException as error:
            said: KafkaError = error.args[0]
            return said
        if told.offset < 0:  # what the client says, as no error, of a leader that kept silent while others answered
            return _SILENT
        return told.offset, told.leader_epoch

    def _answer(self, future: "Future[T]", *, tell: bool = True) -> T:
        """What a request gets. Hears what the client says meanwhile, and tells who waits when it takes long."""
        asked, told = time.monotonic(), not tell
        while not future.done():
            self.poll()
            with suppress(TimeoutError):
                future.exception(HEAR_S)
            waited = time.monotonic() - asked
            if waited >= self._timeout_s + GRACE_S:
                raise KafkaException(_SILENT)
            why, cure = self._client_log.cause()
            if not told and waited >= (SOON_S if why else LATE_S):
                told = True
                self._waiting(f"No answer from {self._servers} yet. {why or NOTHING_SAID}. {cure or CHECK}.")
        found = future.result()
        self._client_log.clear()
        return found

    def _failed(self, error: Any, what: str) -> KafkaFailed:
        code = error.code()
        if code in client_errors.UNKNOWN:
            return TopicGone(f"{what} does not exist on {self._servers}. Create the topic, or correct [topics].")
        why, cure = self._client_log.cause()
        return client_errors.failure(error, what, asked=self._servers, why=why, away=cure or CHECK)


_URL_SAFE: Final = str.maketrans("+/", "-_")
"""Kafka's tools write ids so."""
