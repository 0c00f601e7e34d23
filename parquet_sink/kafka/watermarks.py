"""Which topics and topic-partitions there are, and where they end: one request for all of them, never one each."""

import logging
import re
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, Final

from confluent_kafka import IsolationLevel, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec, TopicDescription, TopicMetadata  # type: ignore[attr-defined]

from parquet_sink.config.settings import KafkaSettings
from parquet_sink.errors import KafkaFailed, TopicGone
from parquet_sink.kafka import answers, clients
from parquet_sink.kafka.offsets import Key

log = logging.getLogger(__name__)

TIMEOUT_S: Final = 10.0
NO_ID: Final = "A" * 22
"""Zero, in the text form of Kafka's ids: before Kafka 2.8 topics have none."""


class Watermarks:
    """Asks the cluster for topic-partitions, and for their first and last offsets, through one admin client.

    `epochs`: of the leaders, as they were told with the ends that were asked for last.
    """

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka
        self._servers = str(kafka.client.get("bootstrap.servers", ""))
        self._pattern = re.compile(kafka.topics_regex) if kafka.topics_regex else None
        self._admin: AdminClient = clients.build(AdminClient, clients.administering(kafka))
        self._timeout_s = min(TIMEOUT_S, clients.seconds(kafka, "default.api.timeout.ms", TIMEOUT_S))
        committed = kafka.isolation_level == "read_committed"
        self._isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        self._told_untold = False
        self.epochs: dict[Key, int] = {}

    def topic_partitions(self, *, missing_too: bool = False) -> list[Key]:
        """All topic-partitions of the connector's topics, in order; of topics that are not there it has none.

        Raises TopicGone when a topic that the connector names is not there, unless `missing_too` may be; KafkaFailed.
        """
        if self._pattern is None:
            named = self._described(self._kafka.topics).items()
            return sorted(key for topic, about in named for key in self._of(topic, about, missing_too))
        pattern = self._pattern
        return sorted(
            (topic, partition)
            for topic, about in self._all_topics().items()
            if pattern.fullmatch(topic) and not topic.startswith("__")
            for partition in about.partitions
        )

    def ids(self, topics: Sequence[str]) -> dict[str, str]:
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
            found = str(about.result().topic_id)
        except KafkaException as error:
            code = error.args[0].code()
            if code in answers.UNKNOWN:
                return None
            if code in answers.REFUSALS:
                return ""
            raise self._failed(error.args[0], f"Topic {topic}") from None
        return "" if found == NO_ID else found.translate(_URL_SAFE)

    def _described(self, topics: Sequence[str]) -> "dict[str, Future[TopicDescription]]":
        """Asks for the topics by name, which never creates one."""
        described: dict[str, Future[TopicDescription]] = self._admin.describe_topics(
            TopicCollection(list(topics)), request_timeout=self._timeout_s
        )
        return described

    def _of(self, topic: str, about: "Future[TopicDescription]", missing_too: bool) -> list[Key]:
        try:
            return [(topic, info.id) for info in about.result().partitions]
        except KafkaException as error:
            if missing_too and error.args[0].code() in answers.UNKNOWN:
                return []
            raise self._failed(error.args[0], f"Topic {topic}") from None

    def _all_topics(self) -> "dict[str, TopicMetadata]":
        try:
            return self._admin.list_topics(timeout=self._timeout_s).topics
        except KafkaException as error:
            raise self._failed(error.args[0], "The list of topics") from None

    def ends(self, keys: Sequence[Key]) -> dict[Key, int]:
        """Where each topic-partition ends, exclusive; one request. Raises BrokerAway, KafkaFailed.

        The last stable offset; the high watermark when uncommitted records are read.
        """
        found = self._list(keys, OffsetSpec.latest(), self._isolation)  # type: ignore[no-untyped-call]
        self.epochs.update({key: epoch for key, (_, epoch) in found.items() if epoch is not None})
        return {key: offset for key, (offset, _) in found.items()}

    def highs(self, keys: Sequence[Key]) -> dict[Key, int]:
        """The high watermarks, whatever is read. One request. Raises BrokerAway, KafkaFailed."""
        found = self._list(keys, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)  # type: ignore[no-untyped-call]
        return {key: offset for key, (offset, _) in found.items()}

    def starts(self, keys: Sequence[Key]) -> dict[Key, int]:
        """The first offset that Kafka still holds. One request. Raises BrokerAway, KafkaFailed."""
        found = self._list(keys, OffsetSpec.earliest(), self._isolation)  # type: ignore[no-untyped-call]
        return {key: offset for key, (offset, _) in found.items()}

    def _list(self, keys: Sequence[Key], spec: Any, isolation: IsolationLevel) -> dict[Key, tuple[int, int | None]]:
        """Offset and leader epoch of each."""
        if not keys:
            return {}
        asked = {TopicPartition(t, p): spec for t, p in keys}
        futures = self._admin.list_offsets(asked, isolation_level=isolation, request_timeout=self._timeout_s)
        out: dict[Key, tuple[int, int | None]] = {}
        for tp, future in futures.items():
            try:
                told = future.result()
                out[tp.topic, tp.partition] = told.offset, told.leader_epoch
            except KafkaException as error:
                raise self._failed(error.args[0], f"Topic {tp.topic}, topic-partition {tp.partition}") from None
        return out

    def _failed(self, error: Any, what: str) -> KafkaFailed:
        code = error.code()
        if code in answers.UNKNOWN:
            return TopicGone(f"{what} does not exist on {self._servers}. Create the topic, or correct [topics].")
        return answers.failure(error, what, asked=self._servers, away="Check [bootstrap.servers] and the broker")


_URL_SAFE: Final = str.maketrans("+/", "-_")
"""Kafka's tools write ids so."""
