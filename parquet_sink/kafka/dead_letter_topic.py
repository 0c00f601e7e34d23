"""The dead-letter topic is there, or is made: by a connector when it begins, and by whoever writes to it first."""

from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource, NewTopic  # type: ignore[attr-defined]

from parquet_sink.errors import KafkaFailed, KafkaRefused
from parquet_sink.kafka.client import errors as client_errors
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.client.rights import Right, to_create
from parquet_sink.kafka.cluster.native_admin import described
from parquet_sink.kafka.cluster.requests import AdminRequests
from parquet_sink.kafka.settings import NAME_KEY, REPLICATION_KEY, DeadLetterSettings, KafkaSettings

PARTITIONS: Final = 1
"""As in Kafka Connect."""
_NO_RIGHT: Final = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED})


class DeadLetterTopic(AdminRequests):
    """One connector's dead-letter topic, asked for by an admin client of its own."""

    def __init__(self, settings: DeadLetterSettings, client_log: ClientLog | None = None) -> None:
        admin = KafkaSettings(group=settings.label, client=settings.admin)
        super().__init__(admin, client_log or ClientLog(f"dead-letter topic {settings.topic}"), prefix="admin.")
        self._settings = settings

    def ensure(self) -> None:
        """Makes the topic when it is absent. Raises BrokerAway, KafkaRefused (nobody may make it), KafkaFailed.

        A compacted one is refused: of the dead letters of one key it keeps the last alone.
        """
        if not self.exists():
            self._create(validate_only=False)
        elif self._is_compacted():
            raise KafkaRefused(
                f"Dead-letter topic {self._settings.topic} is compacted, so of the dead letters of one key only the "
                f"last would stay. Set its cleanup.policy to delete, or name another topic in [{NAME_KEY}]."
            )

    def problem(self) -> str | None:
        """Why `ensure` would fail, asked of the brokers; None: it would not. Makes nothing. Raises KafkaFailed."""
        try:
            if self.exists():
                self.ensure()
            else:
                self._create(validate_only=True)
        except KafkaRefused as error:
            return str(error)
        return None

    def exists(self) -> bool:
        """Whether it is there. Raises KafkaFailed."""
        try:
            self._answer(described(self._admin, (self._settings.topic,), self._timeout_s)[self._settings.topic])
        except KafkaException as error:
            if error.args[0].code() in client_errors.UNKNOWN:
                return False
            raise self._refusal(error.args[0], "cannot be looked up", self._to_see) from None
        return True

    def _is_compacted(self) -> bool:
        """False, too, where the brokers do not say, because the user may not ask."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, self._settings.topic)
        asked = self._admin.describe_configs([resource], request_timeout=self._timeout_s)
        try:
            policy = self._answer(asked[resource])["cleanup.policy"].value
        except (KafkaException, KeyError):
            return False
        return "compact" in str(policy)

    def _create(self, *, validate_only: bool) -> None:
        name, factor = self._settings.topic, self._settings.replication_factor
        asked = self._admin.create_topics(
            [NewTopic(name, PARTITIONS, factor, config={"cleanup.policy": "delete"})],
            request_timeout=self._timeout_s,
            operation_timeout=self._timeout_s,
            validate_only=validate_only,
        )
        try:
            self._answer(asked[name])
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise self._refusal(error.args[0], "cannot be made", to_create(name)) from None

    @property
    def _to_see(self) -> Right:
        return Right("Describe", "topic", (self._settings.topic,), included="Write")

    def _refusal(self, error: KafkaError, what: str, right: Right) -> KafkaFailed:
        topic = f"Dead-letter topic {self._settings.topic} {what} on {self._servers}"
        if error.code() == KafkaError.INVALID_REPLICATION_FACTOR:
            said = error.str().rstrip(".")
            return KafkaRefused(
                f"{topic} with {self._settings.replication_factor} replicas: {said}. Set [{REPLICATION_KEY}] to at "
                "most the number of brokers, or make the topic."
            )
        if error.code() in _NO_RIGHT:
            return KafkaRefused(
                f"{topic}: the brokers refuse. {right.cure('the user of [admin.override.*]')}, or make the topic, or "
                f"correct [{NAME_KEY}]."
            )
        if error.code() in {KafkaError.TOPIC_EXCEPTION, KafkaError.POLICY_VIOLATION, KafkaError.INVALID_PARTITIONS}:
            return KafkaRefused(f"{topic}: {error.str().rstrip('.')}. Make the topic, or correct [{NAME_KEY}].")
        return client_errors.failure(error, topic, asked=self._servers, cause=self._client_log.cause_of_silence())
