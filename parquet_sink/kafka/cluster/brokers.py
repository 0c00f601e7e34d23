"""Whether brokers answer, and let us in."""

from confluent_kafka import KafkaException

from parquet_sink.kafka.cluster.requests import AdminRequests
from parquet_sink.process.threads import in_thread


class Brokers(AdminRequests):
    """Of one connector."""

    def count_and_cluster(self) -> tuple[int, str]:
        """How many brokers there are, and the id of their cluster. Raises BrokerAway, KafkaRefused, KafkaFailed."""
        try:
            found = self._answer(in_thread(lambda: self._admin.list_topics(timeout=self._timeout_s)))
        except KafkaException as error:
            raise self._failed(error.args[0], "The list of brokers") from None
        return len(found.brokers), str(found.cluster_id)
