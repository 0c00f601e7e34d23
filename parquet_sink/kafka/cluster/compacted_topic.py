"""Internal topics of Kafka Connect's kind: each is there and compacted, or is made so by whoever opens it first."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource, NewTopic  # type: ignore[attr-defined]

from parquet_sink.errors import BrokerAway, KafkaFailed, KafkaRefused
from parquet_sink.kafka.client import errors as client_errors
from parquet_sink.kafka.client.rights import Right, to_create
from parquet_sink.kafka.cluster.native_admin import described
from parquet_sink.kafka.cluster.requests import CHECK, AdminRequests

_POLICY: Final = "cleanup.policy"
_LOOK_AGAIN_S: Final = 0.1
_REFUSED: Final = frozenset(
    {KafkaError.TOPIC_EXCEPTION, KafkaError.POLICY_VIOLATION, KafkaError.INVALID_PARTITIONS, KafkaError.INVALID_CONFIG}
)


@dataclass(frozen=True)
class CompactedTopic:
    """A topic as it is wanted."""

    name: str
    keys: str
    """How the keys begin that say so: `offset.storage.`, behind which are `topic`, `partitions`, ..."""
    holds: str
    """What the records in it are, in the plural: `positions`."""
    partitions: int
    """Where it is made, like all that follows; -1: as brokers do."""
    replication_factor: int
    settings: Mapping[str, str] = field(default_factory=dict)
    """By Kafka's names."""


class CompactedTopics(AdminRequests):
    """Asks and makes them by one admin client."""

    def ensure(self, wanted: CompactedTopic) -> int:
        """How many topic-partitions it has. Raises BrokerAway, KafkaRefused (not compacted, no right), KafkaFailed."""
        found = self.look(wanted)
        if found is None:
            self._create(wanted)
            return self._appeared(wanted)
        return found

    def look(self, wanted: CompactedTopic, *, trying: bool = False) -> int | None:
        """How many topic-partitions it has; None: it is not there. Raises as `ensure`.

        trying: whether it could be made then; nothing is made.
        """
        found = self._partitions(wanted)
        if found is None:
            if trying:
                self._create(wanted, only_try=True)
            return None
        if (policy := self._policy(wanted)) not in {None, "compact"}:
            raise KafkaRefused(
                f"Topic {wanted.name} [{wanted.keys}topic] has {_POLICY}={policy}, so {wanted.holds} in it would be "
                f"deleted by age. Set its {_POLICY} to compact, or name another topic."
            )
        return found

    def _appeared(self, wanted: CompactedTopic) -> int:
        """The broker that is asked may learn of a topic later than the one that made it. Raises BrokerAway."""
        until = time.monotonic() + self._timeout_s
        while (found := self._partitions(wanted)) is None:
            if time.monotonic() > until:
                raise BrokerAway(f"Topic {wanted.name} [{wanted.keys}topic] was made, and no broker has it. {CHECK}.")
            time.sleep(_LOOK_AGAIN_S)
        return found

    def _partitions(self, wanted: CompactedTopic) -> int | None:
        try:
            found = self._answer(described(self._admin, (wanted.name,), self._timeout_s)[wanted.name])
        except KafkaException as error:
            if error.args[0].code() in client_errors.UNKNOWN:
                return None
            right = Right("Describe", "topic", (wanted.name,))
            raise self._refusal(wanted, error.args[0], "cannot be looked up", right) from None
        return len(found.partitions)

    def _policy(self, wanted: CompactedTopic) -> str | None:
        """None where the brokers do not say, because the user may not ask."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, wanted.name)
        asked = self._admin.describe_configs([resource], request_timeout=self._timeout_s)
        try:
            return str(self._answer(asked[resource])[_POLICY].value)
        except (KafkaException, KeyError):
            return None

    def _create(self, wanted: CompactedTopic, *, only_try: bool = False) -> None:
        config = {**wanted.settings, _POLICY: "compact"}
        asked = self._admin.create_topics(
            [NewTopic(wanted.name, wanted.partitions, wanted.replication_factor, config=config)],
            request_timeout=self._timeout_s,
            operation_timeout=self._timeout_s,
            validate_only=only_try,
        )
        try:
            self._answer(asked[wanted.name])
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise self._refusal(wanted, error.args[0], "cannot be made", to_create(wanted.name)) from None

    def _refusal(self, wanted: CompactedTopic, error: KafkaError, what: str, right: Right) -> KafkaFailed:
        keys, said = wanted.keys, error.str().rstrip(".")
        topic = f"Topic {wanted.name} [{keys}topic] {what} on {self._servers}"
        if error.code() == KafkaError.INVALID_REPLICATION_FACTOR:
            return KafkaRefused(
                f"{topic} with {wanted.replication_factor} replicas: {said}. Set [{keys}replication.factor] to at most "
                "the number of brokers, or make the topic, compacted."
            )
        if error.code() in _REFUSED:
            return KafkaRefused(f"{topic}: {said}. Correct the keys [{keys}*], or make the topic, compacted.")
        cause = self._client_log.cause_of_silence()
        return client_errors.failure(error, topic, asked=self._servers, cause=cause, ending=CHECK, needs=(right,))
