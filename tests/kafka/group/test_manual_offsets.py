"""Offsets that an operator sets: judged before any is committed."""

from collections.abc import Sequence

import pytest
from confluent_kafka import KafkaError, TopicPartition

from parquet_sink.errors import BrokerAway, KafkaFailed, KafkaRefused, TopicGone
from parquet_sink.kafka.group import manual_offsets as module
from parquet_sink.kafka.group.committed import Committed
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.partitions import PartitionKey
from tests.messages import saying

KAFKA = KafkaSettings(topics=("orders",), group="connect-orders")
ONE, TWO = ("orders", 0), ("orders", 1)


class Kafka:
    """Topic-partitions with their first and next offsets, and the group's. away: their leaders do not answer."""

    there: dict[PartitionKey, tuple[int, int]]
    away: set[PartitionKey]
    committed_offsets: dict[PartitionKey, int]
    error: KafkaError | None

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka

    def topic_partitions(self, *, allow_missing: bool = False) -> list[PartitionKey]:
        missing = set(self._kafka.topics) - {topic for topic, _ in Kafka.there}
        if missing and not allow_missing:
            raise TopicGone(f"Topic {missing.pop()} does not exist")
        return [key for key in Kafka.there if key[0] in self._kafka.topics]

    def beginning_offsets(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        return {key: Kafka.there[key][0] for key in keys if key not in Kafka.away}

    def high_watermarks(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        return {key: Kafka.there[key][1] for key in keys if key not in Kafka.away}

    def committed(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, Committed]:
        return {key: Committed(Kafka.committed_offsets[key], "") for key in keys if key in Kafka.committed_offsets}

    def commit(self, offsets: list[TopicPartition]) -> KafkaError | None:
        if Kafka.error is None:
            Kafka.committed_offsets |= {(one.topic, one.partition): one.offset for one in offsets}
        return Kafka.error

    def uncommitted(self, error: KafkaError, topics: set[str]) -> KafkaFailed:
        return KafkaFailed(f"offsets of {', '.join(sorted(topics))} cannot be committed")

    def close(self) -> None:
        """Nothing to close."""


@pytest.fixture(autouse=True)
def kafka(monkeypatch: pytest.MonkeyPatch) -> type[Kafka]:
    """Two topic-partitions: one from 10 to 100, an empty one."""
    Kafka.there, Kafka.away, Kafka.committed_offsets, Kafka.error = {ONE: (10, 100), TWO: (0, 0)}, set(), {}, None
    monkeypatch.setattr(module, "KafkaCluster", Kafka)
    monkeypatch.setattr(module, "GroupClient", Kafka)
    return Kafka


def test_offsets_of_the_connector_s_topics_are_read() -> None:
    """Those that are committed, each with its end as far as it is known; of topics that are not there none."""
    Kafka.committed_offsets = {ONE: 50, TWO: 0, ("other", 0): 1}
    assert module.read(KAFKA) == {ONE: (50, 100), TWO: (0, 0)}
    Kafka.away = {ONE}
    assert module.read(KAFKA) == {ONE: (50, None), TWO: (0, 0)}
    assert module.read(KafkaSettings(topics=("gone",), group="g")) == {}


@pytest.mark.parametrize("offset", [10, 50, 100])
def test_offsets_that_kafka_has_are_committed(offset: int) -> None:
    """From the first record to behind the last."""
    module.alter(KAFKA, {ONE: offset, TWO: 0})
    assert Kafka.committed_offsets == {ONE: offset, TWO: 0}


@pytest.mark.parametrize(
    ("offsets", "why"),
    [
        ({TWO: 0, ONE: 9}, ("Offset 9 ", "orders, topic-partition 0", "not there", "from 10 to 100")),
        ({TWO: 0, ONE: 101}, ("Offset 101",)),
        ({TWO: 0, ONE: -1}, ("Offset -1",)),
        ({TWO: 0, ("orders", 2): 0}, ("Topic orders", "no topic-partition 2")),
    ],
)
def test_offsets_that_are_not_there_are_refused_whole(
    offsets: dict[PartitionKey, int | None], why: tuple[str, ...]
) -> None:
    """None of them is committed."""
    with pytest.raises(KafkaRefused, match=saying(*why)):
        module.alter(KAFKA, offsets)
    assert Kafka.committed_offsets == {}


def test_an_unknown_topic_is_refused() -> None:
    """By its name."""
    with pytest.raises(TopicGone, match=saying("Topic gone", "not exist")):
        module.alter(KAFKA, {ONE: 50, ("gone", 0): 0})
    assert Kafka.committed_offsets == {}


def test_a_leader_that_is_away_is_told() -> None:
    """Nobody knows what it has."""
    Kafka.away = {TWO}
    with pytest.raises(BrokerAway, match=saying("topic-partition 1", "unavailable", "nothing was changed")):
        module.alter(KAFKA, {ONE: 50, TWO: 0})
    assert Kafka.committed_offsets == {}


@pytest.mark.parametrize(("reset", "offset"), [("earliest", 10), ("latest", 100)])
def test_a_removed_offset_is_where_the_connector_would_begin(reset: str, offset: int) -> None:
    """Kafka's client cannot remove one of a group's offsets."""
    module.alter(KafkaSettings(topics=("orders",), group="g", offset_reset=reset), {ONE: None})  # type: ignore[arg-type]
    assert Kafka.committed_offsets == {ONE: offset}


def test_an_offset_without_which_it_would_not_start_stays() -> None:
    """With auto.offset.reset=none."""
    with pytest.raises(KafkaRefused, match="auto.offset.reset=none"):
        module.alter(KafkaSettings(topics=("orders",), group="g", offset_reset="none"), {ONE: None})


def test_a_commit_that_is_refused_is_told() -> None:
    """With the topics that it was for."""
    Kafka.error = KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)
    with pytest.raises(KafkaFailed, match=saying("offsets of orders", "cannot be committed")):
        module.alter(KAFKA, {ONE: 50})


def test_nothing_to_change_asks_nobody() -> None:
    """Kafka is not needed for it."""
    module.alter(KafkaSettings(topics=("gone",), group="g"), {})
