"""What is asked of Kafka and the history before a replay, and what is wrong with a choice by what they answer."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from parquet_sink.addons.replay import survey as module
from parquet_sink.addons.replay.plan import Held
from parquet_sink.addons.replay.selection import Selection
from parquet_sink.addons.replay.survey import past_of, survey
from parquet_sink.errors import BrokerAway, InvalidConfiguration, TopicGone
from parquet_sink.history.records import Origin, UploadOutcome
from parquet_sink.history.settings import HistorySettings
from parquet_sink.history.sqlite import write_history
from parquet_sink.kafka.group.committed import Committed
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.partitions import PartitionKey
from tests.addons.replay.uploads import uploaded
from tests.messages import saying

KAFKA = KafkaSettings(("orders",), None, "connect-orders", {})
BY_PATTERN = KafkaSettings((), "ord.*", "connect-orders", {})


class Cluster:
    """Topic `orders` with two topic-partitions, or none. away: topic-partitions that do not answer."""

    there = ("orders",)
    away: frozenset[PartitionKey] = frozenset()

    def __init__(self, kafka: KafkaSettings) -> None:
        self.topics = kafka.topics or self.there

    def topic_partitions(self, *, allow_missing: bool = False) -> list[PartitionKey]:
        if not allow_missing and not set(self.topics) <= set(self.there):
            raise TopicGone("it is not there")
        return [(topic, number) for topic in self.topics if topic in self.there for number in (0, 1)]

    def beginning_offsets(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        return {key: 10 * key[1] for key in keys if key not in self.away}

    def end_offsets(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        return dict.fromkeys(keys, 100)

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        return {topic: f"id of {topic}" for topic in topics}

    def compacted(self, topics: Sequence[str]) -> dict[str, bool]:
        return {}

    def offsets_since(self, keys: Sequence[PartitionKey], at_ms: int) -> dict[PartitionKey, int | None]:
        return dict.fromkeys(keys, None if at_ms > 1000 else 50)

    def unavailable_reason(self, key: PartitionKey) -> str:
        return "its leader does not answer"


class Group:
    """A group that stands somewhere on one topic-partition."""

    def __init__(self, kafka: KafkaSettings) -> None:
        pass

    def committed(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, Committed]:
        return {("orders", 1): Committed(70, "")}

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked in place of a broker."""
    monkeypatch.setattr(module, "KafkaCluster", Cluster)
    monkeypatch.setattr(module, "GroupClient", Group)


def test_what_kafka_holds() -> None:
    """First and last offsets, topic ids, where the group stands, and where times are; after all records the end."""
    found = survey(KAFKA, Selection(since_ms=500, until_ms=5_000))
    assert found.held == {
        ("orders", 0): Held(0, 100, "id of orders", None),
        ("orders", 1): Held(10, 100, "id of orders", None),
    }
    assert found.delivered == {("orders", 1): 70}
    assert (set(found.since.values()), set(found.until.values())) == ({50}, {100})


@pytest.mark.parametrize(
    ("kafka", "selection", "words"),
    [
        (KAFKA, Selection("other"), ("[--topic]", "not read other", "orders")),
        (BY_PATTERN, Selection("other"), ("[--topic]", "not read other", "match ord.*")),
        (BY_PATTERN, Selection("ordinary"), ("[--topic]", "Topic ordinary", "not exist")),
        (KAFKA, Selection(partition=7), ("[--partition]", "no topic-partition 7", "0 to 1")),
    ],
)
def test_what_is_not_there(kafka: KafkaSettings, selection: Selection, words: tuple[str, ...]) -> None:
    """The option, and what there is."""
    with pytest.raises(InvalidConfiguration, match=saying(*words)):
        survey(kafka, selection)


def test_what_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left out in silence; others can be chosen."""
    monkeypatch.setattr(Cluster, "away", frozenset({("orders", 0)}))
    told = saying("Topic orders", "topic-partition 0", "its leader does not answer", "try again", "--partition")
    with pytest.raises(BrokerAway, match=told):
        survey(KAFKA, Selection())
    assert list(survey(KAFKA, Selection(partition=1)).held) == [("orders", 1)]


def test_the_first_time_is_what_the_connector_delivered(tmp_path: Path) -> None:
    """Not what was refused, nor what was sent by replays."""
    history = write_history(tmp_path / "history.db", HistorySettings())
    first = uploaded(0, 1, 0, 9)
    history.append_files(
        [
            first,
            replace(first, at_ms=2, origin=Origin.REPLAY),
            replace(first, at_ms=3, outcome=UploadOutcome.REFUSED),
            uploaded(1, 4, 0, 9),
        ]
    )
    found = past_of(history, [("orders", 0), ("orders", 2)])
    history.close()
    assert [one.at_ms for one in found["orders", 0].files] == [1]
    assert list(found["orders", 2].files) == []


def test_a_topic_that_only_an_archive_has() -> None:
    """It ends behind its last file there, with all of it gone; topics that the connector does not read are left out."""
    kafka = KafkaSettings(("orders", "old"), None, "connect-orders", {})
    found = survey(kafka, Selection(), {("old", 0): 30, ("orders", 0): 90, ("other", 0): 9})
    assert found.held["old", 0] == Held(30, 30)
    assert found.delivered["old", 0] == 30
    assert found.held["orders", 0].high == 100
    assert ("other", 0) not in found.held
    assert list(survey(kafka, Selection(topic="old"), {("old", 0): 30}).held) == [("old", 0)]
