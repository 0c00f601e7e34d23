"""The offsets topic is there and compacted, or is made so: by whoever opens it first."""

from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource, NewTopic  # type: ignore[attr-defined]

from parquet_sink.errors import KafkaFailed, KafkaRefused
from parquet_sink.kafka.client import errors as client_errors
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.client.rights import Right, to_create
from parquet_sink.kafka.cluster.cluster import described
from parquet_sink.kafka.cluster.requests import AdminRequests
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.worker_config.offset_storage import OffsetStorageSettings

TOPIC: Final = "offset.storage.topic"
PARTITIONS: Final = "offset.storage.partitions"
REPLICATION: Final = "offset.storage.replication.factor"
_CHECK: Final = "Check [bootstrap.servers] and the broker"


class OffsetsTopic(AdminRequests):
    """Asked for by an admin client of its own. name: of the topic."""

    def __init__(self, settings: OffsetStorageSettings, name: str, client_log: ClientLog) -> None:
        super().__init__(KafkaSettings(group=f"offsets-{name}", client=settings.client), client_log)
        self._settings, self._name = settings, name

    def ensure(self) -> int:
        """How many topic-partitions it has. Raises BrokerAway, KafkaRefused (not compacted, no right), KafkaFailed."""
        found = self._partitions()
        if found is None:
            self._create()
            return self._partitions() or 1
        if (policy := self._policy()) not in {None, "compact"}:
            raise KafkaRefused(
                f"Topic {self._name} [{TOPIC}] has cleanup.policy={policy}, so positions in it would be deleted by "
                "age. Set its cleanup.policy to compact, or name another topic."
            )
        return found

    def _partitions(self) -> int | None:
        try:
            found = self._answer(described(self._admin, (self._name,), self._timeout_s)[self._name])
        except KafkaException as error:
            if error.args[0].code() in client_errors.UNKNOWN:
                return None
            raise self._refusal(
                error.args[0], "cannot be looked up", Right("Describe", "topic", (self._name,))
            ) from None
        return len(found.partitions)

    def _policy(self) -> str | None:
        """None where the brokers do not say, because the user may not ask."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, self._name)
        asked = self._admin.describe_configs([resource], request_timeout=self._timeout_s)
        try:
            return str(self._answer(asked[resource])["cleanup.policy"].value)
        except (KafkaException, KeyError):
            return None

    def _create(self) -> None:
        count, factor = self._settings.partitions, self._settings.replication_factor
        asked = self._admin.create_topics(
            [NewTopic(self._name, count, factor, config={"cleanup.policy": "compact"})],
            request_timeout=self._timeout_s,
            operation_timeout=self._timeout_s,
        )
        try:
            self._answer(asked[self._name])
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise self._refusal(error.args[0], "cannot be made", to_create(self._name)) from None

    def _refusal(self, error: KafkaError, what: str, right: Right) -> KafkaFailed:
        topic, said = f"Topic {self._name} [{TOPIC}] {what} on {self._servers}", error.str().rstrip(".")
        if error.code() == KafkaError.INVALID_REPLICATION_FACTOR:
            return KafkaRefused(
                f"{topic} with {self._settings.replication_factor} replicas: {said}. Set [{REPLICATION}] to at most "
                "the number of brokers, or make the topic, compacted."
            )
        if error.code() in {KafkaError.TOPIC_EXCEPTION, KafkaError.POLICY_VIOLATION, KafkaError.INVALID_PARTITIONS}:
            return KafkaRefused(f"{topic}: {said}. Correct [{TOPIC}] or [{PARTITIONS}], or make the topic, compacted.")
        cause = self._client_log.cause_of_silence()
        return client_errors.failure(error, topic, asked=self._servers, cause=cause, ending=_CHECK, needs=(right,))
