"""The internal topics of a cluster: made, or checked, before a worker joins it; and that no other cluster has them.

What else in Kafka is named after the cluster or a connector in it stands here, too.
"""

from confluent_kafka import KafkaException

from parquet_sink.config.report import counted
from parquet_sink.errors import InvalidConfiguration, KafkaRefused, SetupError
from parquet_sink.kafka.client import errors as client_errors
from parquet_sink.kafka.client.check import problems
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.client.options import OWN_KEYS
from parquet_sink.kafka.client.rights import to_see_group
from parquet_sink.kafka.cluster.compacted_topic import CompactedTopic, CompactedTopics
from parquet_sink.kafka.cluster.requests import CHECK
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.worker_config.distributed import CONFIG, GROUP_ID, STATE, STATUS, DistributedSettings
from parquet_sink.worker_config.offset_storage import OFFSETS


def internal_topics(settings: DistributedSettings) -> tuple[CompactedTopic, ...]:
    """As the worker file wants them, the config topic first."""
    one, factors = settings, settings.topic_settings
    wanted = (
        (one.config_topic, CONFIG, "configurations", 1, one.config_replication),
        (one.status_topic, STATUS, "statuses", one.status_partitions, one.status_replication),
        (one.state_topic, STATE, "what connectors learned", one.state_partitions, one.state_replication),
        (one.offset_topic, OFFSETS, "positions", one.offset_partitions, one.offset_replication),
    )
    return tuple(
        CompactedTopic(name, keys, holds, partitions, replicas, factors.get(keys, {}))
        for name, keys, holds, partitions, replicas in wanted
    )


def leaders_id(settings: DistributedSettings) -> str:
    """The transactional id by which the leader writes the config topic: that of Kafka Connect's leader."""
    return f"connect-cluster-{settings.group_id}"


def fence_of(settings: ConnectorSettings) -> str | None:
    """The transactional id of a connector's commits; None for one without a consumer group."""
    return None if settings.group is None else f"parquet-sink-{settings.group}"


def state_topic_of(settings: ConnectorSettings, distributed: DistributedSettings) -> str | None:
    """Return the topic of what a sink learned; None for a source.

    It is at the connector's own brokers, however these are spelled, because it is written in the transactions of the
    connector's commits. The connector makes it in a cluster that is not the workers'.
    """
    return None if getattr(settings, "kafka", None) is None else distributed.state_topic


def refuse_several(wanted: CompactedTopic, found: int | None) -> None:
    """found: how many topic-partitions it has. Raises KafkaRefused."""
    if wanted.keys == CONFIG and found not in {None, 1}:
        raise KafkaRefused(
            f"Topic {wanted.name} [{CONFIG}topic] has {found} topic-partitions, so its records have no one order. Name "
            "a topic there that has one, or that is to be made."
        )


class InternalTopics(CompactedTopics):
    """Of one cluster, asked for and made by the worker's own admin client.

    Raises InvalidConfiguration with all that is wrong with the settings of the worker's own clients.
    """

    def __init__(self, settings: DistributedSettings, client_log: ClientLog | None = None) -> None:
        kafka = KafkaSettings(group=settings.group_id, client=settings.kafka)
        if wrong := problems(kafka):
            raise InvalidConfiguration([f"Invalid [{name or OWN_KEYS}]. {reason}" for name, reason in wrong])
        super().__init__(kafka, client_log, prefix="")
        self._settings = settings

    def ensure_all(self) -> None:
        """Makes those that are not there.

        Raises SetupError (not compacted, several topic-partitions, no right, too few brokers), BrokerAway, KafkaFailed.
        """
        try:
            for wanted in internal_topics(self._settings):
                refuse_several(wanted, self.ensure(wanted))
        except KafkaRefused as error:
            raise SetupError(str(error)) from None

    def shared_counts(self) -> dict[str, int]:
        """Topic-partitions of the topics in which each key has one: by name, of those that are there.

        Raises BrokerAway, KafkaFailed.
        """
        shared = [one for one in internal_topics(self._settings) if one.keys in {STATUS, STATE}]
        return {one.name: count for one in shared if (count := self.look(one)) is not None}

    def refuse_other_cluster(self, group: str) -> None:
        """group: that the config topic says it belongs to, or empty. A cluster without members has ended.

        Raises SetupError where that is another cluster with members, or nobody may know; BrokerAway, KafkaFailed.
        """
        if group in {"", self._settings.group_id}:
            return
        topic = f"Topic {self._settings.config_topic} [{CONFIG}topic] is that of"
        try:
            members = len(self._members(group))
        except KafkaException as error:
            what, needs = f"{topic} cluster {group}, which cannot be looked up", (to_see_group(group),)
            failed = client_errors.failure(error.args[0], what, asked=self._servers, ending=CHECK, needs=needs)
            raise (SetupError(str(failed)) if isinstance(failed, KafkaRefused) else failed) from None
        if members:
            raise SetupError(
                f"{topic} another cluster, {group}, which has {counted(members, 'worker')}. Give each cluster topics "
                f"of its own, or correct [{GROUP_ID}]."
            )
