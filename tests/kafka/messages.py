"""What a consumer of the Kafka client gives, for doubles of it."""

from confluent_kafka import KafkaError

from parquet_sink.model.partitions import PartitionKey


class Message:
    """As librdkafka hands them out: a record, or an event with an error."""

    def __init__(
        self,
        offset: int,
        value: bytes | None = b"{}",
        error: KafkaError | None = None,
        key: PartitionKey | None = None,
    ) -> None:
        """key: of its topic-partition; None where nobody asks, or for an event of the client itself."""
        self._offset, self._value, self._error, self._key = offset, value, error, key

    def topic(self) -> str | None:
        return None if self._key is None else self._key[0]

    def partition(self) -> int | None:
        return None if self._key is None else self._key[1]

    def key(self) -> bytes | None:
        return None

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes | None:
        return self._value

    def error(self) -> KafkaError | None:
        return self._error

    def timestamp(self) -> tuple[int, int]:
        return (1, 1_000 + self._offset)
