"""One admin client of a cluster: topics, their ids and topic-partitions, and where these begin and end."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Final, NamedTuple

from confluent_kafka import (
    OFFSET_END,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    ConfigResource,
    ListOffsetsResultInfo,
    OffsetSpec,
    ResourceType,
    TopicMetadata,
)

from parquet_sink.errors import KafkaFailed
from parquet_sink.kafka.client import errors as client_errors
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.client.options import Build
from parquet_sink.kafka.cluster import native_admin
from parquet_sink.kafka.cluster.native_admin import Description, End, described, described_in_c
from parquet_sink.kafka.cluster.requests import SILENT, AdminRequests
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.process.threads import in_thread

log = logging.getLogger(__name__)

NONE_SO_LATE: Final = -1
"""What a broker answers when no record has such a timestamp, and never otherwise."""
CONTROLLER_S: Final = 4.0
"""How long the controller has to answer before another is looked for."""
ASKED: Final = 1_000
"""Topic-partitions of one call of the admin client, which merges the answers of a call in quadratic time: 10,000 take
13 µs of CPU each so, and 60 in one call."""
ASKED_QUICKLY: Final = 250
"""Likewise of `quick_ends`: 3 µs each, 6 with 1,000, and 40 in one call."""
QUICK_S: Final = 2.0
"""How long a call of `quick_ends` may take."""
MANY: Final = 100
"""Of so many topic-partitions topics are described and offsets listed in C: to find out whether that can be done takes
20 ms of CPU once, and each request that much less for 1,000 of them."""
NO_ID: Final = "A" * 22
"""Zero, in the text form of Kafka's ids: before Kafka 2.8 topics have none."""
_URL_SAFE: Final = str.maketrans("+/", "-_")
"""Kafka's tools write ids so."""


class Topics(NamedTuple):
    """Of one connector: its topic-partitions, in order, and the ids of its topics, as of `KafkaCluster.topic_ids`."""

    partitions: list[PartitionKey]
    ids: dict[str, str]


class KafkaCluster(AdminRequests):
    """One client of a cluster. Topics are those of one connector: which it names, or which match its pattern.

    epochs: of the leaders, as they came with the ends that were taken last.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        client_log: ClientLog | None = None,
        on_wait: Callable[[str], None] = lambda why: None,
        build: Build | None = None,
    ) -> None:
        super().__init__(kafka, client_log, on_wait, build=build)
        committed = kafka.isolation_level == "read_committed"
        self._isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        self._reasons: dict[PartitionKey, str] = {}
        self.epochs: dict[PartitionKey, int] = {}
        self._warned_of_ids = self._has_many = False
        self._quick: Consumer | None = None

    def topic_partitions(self, *, allow_missing: bool = False) -> list[PartitionKey]:
        """All topic-partitions of the connector's topics, in order; of topics that are not there it has none.

        Raises TopicGone when a topic that the connector names is not there, unless `allow_missing` may be; KafkaFailed.
        """
        if not self._kafka.topics_regex:
            named = self._described(self._kafka.topics).items()
            return sorted(key for topic, about in named for key in self._of(topic, about, allow_missing))
        return sorted(
            (topic, partition)
            for topic, about in self._all_topics().items()
            if self._kafka.reads(topic)
            for partition in about.partitions
        )

    def topics(self) -> Topics:
        """What is there of the connector's topics; one request where it names them. Raises BrokerAway, KafkaFailed."""
        if self._kafka.topics_regex:
            keys = self.topic_partitions()
            self._has_many = len(keys) >= MANY
            return Topics(keys, self.topic_ids(sorted({topic for topic, _ in keys})))
        named = self._described(self._kafka.topics)
        keys = sorted(key for topic, about in named.items() for key in self._of(topic, about, allow_missing=True))
        self._has_many = len(keys) >= MANY
        return Topics(keys, self._ids(named))

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        """The id of each topic, which no other topic ever has; those that do not exist are absent. One request.

        "" where the cluster gives none, or not to us, which is logged once. Raises BrokerAway, KafkaFailed.
        """
        return self._ids(self._described(topics)) if topics else {}

    def _ids(self, asked: "Mapping[str, Future[Description]]") -> dict[str, str]:
        found = {topic: self._id(topic, about) for topic, about in asked.items()}
        without = sorted(topic for topic, found_id in found.items() if found_id == "")
        if without and not self._warned_of_ids:
            self._warned_of_ids = True
            log.warning(
                "%s gives no ids of %d topics (%s is one): that such a topic was deleted and recreated is "
                "noticed only when it then ends below where the group stands.",
                self._servers, len(without), without[0],
            )  # fmt: skip
        return {topic: found_id for topic, found_id in found.items() if found_id is not None}

    def compacted(self, topics: Sequence[str]) -> dict[str, bool]:
        """Whether records of each topic may be taken out by compaction; absent: those that we may not ask about.

        Raises BrokerAway, KafkaFailed.
        """
        asked = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        if not asked:
            return {}
        answers = self._admin.describe_configs(asked, request_timeout=self._timeout_s)
        found: dict[str, bool] = {}
        for resource, future in answers.items():
            try:
                entry = self._answer(future).get("cleanup.policy")
            except KafkaException as error:
                if error.args[0].code() not in client_errors.REFUSALS:
                    raise self._failed(error.args[0], f"Topic {resource.name}", resource.name) from None
                continue
            if entry is not None:
                found[resource.name] = "compact" in str(entry.value)
        return found

    def _id(self, topic: str, about: "Future[Description]") -> str | None:
        """None when there is no such topic; "" when it is not known."""
        try:
            found = self._answer(about).topic_id
        except KafkaException as error:
            code = error.args[0].code()
            if code in client_errors.UNKNOWN:
                return None
            if code in client_errors.REFUSALS:
                return ""
            raise self._failed(error.args[0], f"Topic {topic}", topic) from None
        return "" if found == NO_ID else found.translate(_URL_SAFE)

    def _described(self, topics: Sequence[str]) -> "dict[str, Future[Description]]":
        """Asks for the topics by name, which never creates one.

        The client asks the broker that it knows as the controller, for minutes also one that is gone; a list of all
        topics names the current one.
        """
        describe = described_in_c if self._has_many and native_admin.is_asked(self._admin) else described
        answers = describe(self._admin, topics, min(CONTROLLER_S, self._timeout_s))
        try:
            self._answer(next(iter(answers.values())))
        except KafkaException as error:
            if error.args[0].code() in client_errors.PASSING:
                self._all_topics()
                return describe(self._admin, topics, self._timeout_s)
        return answers

    def _of(self, topic: str, about: "Future[Description]", allow_missing: bool) -> list[PartitionKey]:
        try:
            return [(topic, number) for number in self._answer(about).partitions]
        except KafkaException as error:
            if allow_missing and error.args[0].code() in client_errors.UNKNOWN:
                return []
            raise self._failed(error.args[0], f"Topic {topic}", topic) from None

    def _all_topics(self) -> "dict[str, TopicMetadata]":
        try:
            return self._answer(in_thread(lambda: self._admin.list_topics(timeout=self._timeout_s))).topics
        except KafkaException as error:
            raise self._failed(error.args[0], "The list of topics") from None

    def end_offsets(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        """Where each topic-partition ends, exclusive; unavailable ones are absent.

        One request for all: 40 connectors with many topic-partitions would otherwise ask hundreds of times a second.
        The last stable offset; the high watermark when uncommitted records are read. Raises BrokerAway when none
        answers, KafkaFailed.
        """
        return self.take_ends(self._list(keys, OffsetSpec.latest(), self._isolation))  # type: ignore[no-untyped-call]

    def ends_if_available(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, End]:
        """As `end_offsets`, for unavailable ones, from any thread: for `take_ends`, when they are made use of.

        `on_wait` is not called, and no answer is no failure.
        """
        try:
            return self._list(keys, OffsetSpec.latest(), self._isolation, report_wait=False)  # type: ignore[no-untyped-call]
        except KafkaFailed:
            return {}

    def quick_ends(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        """As `end_offsets`, of thousands in a quarter of the CPU time, and without epochs.

        Absent: those of which it is not known, for whatever reason; `end_offsets` tells. By a client of its own, made
        at the first call: the admin client makes a Python object for each topic-partition that it waits for.
        """
        found: dict[PartitionKey, int] = {}
        try:
            consumer = self._quick = self._quick or self._made_quick()
        except KafkaFailed:  # it gets no token
            return found
        consumer.poll(0)
        with suppress(KafkaException):
            for some in _pieces(keys, ASKED_QUICKLY):
                asked = [TopicPartition(*key, OFFSET_END) for key in some]
                ends = consumer.offsets_for_times(asked, timeout=min(QUICK_S, self._timeout_s))
                found |= {(one.topic, one.partition): one.offset for one in ends if not one.error and one.offset >= 0}
        if len(found) < len(keys):
            self._quick = None  # it goes on asking a broker that is no leader any more
            in_thread(consumer.close)  # its end may take long
        return found

    def _made_quick(self) -> Consumer:
        options = {**client_options.group_options(self._kafka), "isolation.level": self._kafka.isolation_level}
        made: Consumer = self._build(Consumer, options, self._client_log)
        return made

    def take_ends(self, found: Mapping[PartitionKey, End]) -> dict[PartitionKey, int]:
        """The offsets; from now on `epochs` has what came with them, and none where none came."""
        for key, (_, epoch) in found.items():
            self.epochs.pop(key, None)
            if epoch is not None:
                self.epochs[key] = epoch
        return {key: offset for key, (offset, _) in found.items()}

    def high_watermarks(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        """The high watermarks, whatever is read; otherwise as `end_offsets`."""
        found = self._list(keys, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)  # type: ignore[no-untyped-call]
        return {key: offset for key, (offset, _) in found.items()}

    def beginning_offsets(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        """The first offset that Kafka still holds; otherwise as `end_offsets`."""
        found = self._list(keys, OffsetSpec.earliest(), self._isolation)  # type: ignore[no-untyped-call]
        return {key: offset for key, (offset, _) in found.items()}

    def offsets_since(self, keys: Sequence[PartitionKey], at_ms: int) -> dict[PartitionKey, int | None]:
        """The first offset whose record has this Kafka timestamp or a later one, None where there is none.

        at_ms: epoch milliseconds. Otherwise as `end_offsets`.
        """
        spec = OffsetSpec.for_timestamp(at_ms)
        found = self._list(keys, spec, self._isolation, least=NONE_SO_LATE)
        return {key: None if offset == NONE_SO_LATE else offset for key, (offset, _) in found.items()}

    def unavailable_reason(self, key: PartitionKey) -> str:
        """Why the last request got no answer for a topic-partition."""
        return self._reasons.get(key, "its leader does not answer")

    def _list(
        self,
        keys: Sequence[PartitionKey],
        spec: OffsetSpec,
        isolation: IsolationLevel,
        *,
        report_wait: bool = True,
        least: int = 0,
    ) -> dict[PartitionKey, End]:
        """Of each; absent: unavailable ones. least: offset that an answer may have."""
        if not keys:
            return {}
        in_c = len(keys) >= MANY and native_admin.is_asked(self._admin)
        listed = self._listed_in_c if in_c else self._listed
        out: dict[PartitionKey, End] = {}
        first: KafkaFailed | None = None
        for key, found in listed(keys, spec, isolation, report_wait=report_wait):
            if isinstance(found, End) and found.offset >= least:
                out[key] = found
                continue
            # librdkafka 2.16 gives -1001, and no error, for a leader that kept silent while others answered.
            error = SILENT if isinstance(found, End) else found
            failed = self._failed(error, f"Topic {key[0]}, topic-partition {key[1]}", key[0]).at(key)
            if error.code() not in client_errors.PASSING:
                raise failed
            self._reasons[key] = error.str()
            first = first or failed
        if first is not None and not out:
            raise first
        return out

    def _listed(
        self, keys: Sequence[PartitionKey], spec: OffsetSpec, isolation: IsolationLevel, *, report_wait: bool
    ) -> Iterator[tuple[PartitionKey, End | KafkaError]]:
        futures: list[tuple[TopicPartition, Future[ListOffsetsResultInfo]]] = []
        for some in _pieces(keys, ASKED):
            asked = {TopicPartition(*key): spec for key in some}
            called = self._admin.list_offsets(asked, isolation_level=isolation, request_timeout=self._timeout_s)
            futures += called.items()
        for tp, future in futures:
            try:
                answer = self._answer(future, report_wait=report_wait)
            except KafkaException as error:
                yield (tp.topic, tp.partition), error.args[0]
            else:
                yield (tp.topic, tp.partition), End(answer.offset, answer.leader_epoch)

    def _listed_in_c(
        self, keys: Sequence[PartitionKey], spec: OffsetSpec, isolation: IsolationLevel, *, report_wait: bool
    ) -> Iterator[tuple[PartitionKey, End | KafkaError]]:
        asked = native_admin.listed_in_c(self._admin, keys, spec, isolation, self._timeout_s)
        try:
            yield from self._answer(asked, report_wait=report_wait).items()
        except KafkaException as error:
            yield from ((key, error.args[0]) for key in keys)


def _pieces(keys: Sequence[PartitionKey], most: int) -> Iterator[Sequence[PartitionKey]]:
    return (keys[at : at + most] for at in range(0, len(keys), most))
