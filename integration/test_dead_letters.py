"""Dead letters on a real broker: what was rejected is in the topic as it was, or the store says that it is not."""

import time
import uuid
from collections.abc import Iterator

import pytest

from integration.conftest import TopicFactory
from integration.letters import letters
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.errors import KafkaRefused
from parquet_sink.kafka.dead_letter_topic import DeadLetterTopic
from parquet_sink.kafka.dead_letters import NOT_KEPT, PREFIX, DeadLetters, HeaderWriter
from parquet_sink.kafka.producer_cache import ProducerCache
from parquet_sink.kafka.settings import DeadLetterSettings
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.rejected import Rejected, Stage
from parquet_sink.validate.probe_kafka import probe_dead_letters
from tests.messages import assert_says, saying

RANGE = PlannedRange("orders", 3, 0, 10, "records")
NOW_MS = int(time.time() * 1000)
"""Brokers delete what is older than a week."""


@pytest.fixture
def cache() -> Iterator[ProducerCache]:
    """Producers of this test alone."""
    made = ProducerCache()
    yield made
    made.sweep(10**12)


def settings_for(broker: Broker, topic: str, **more: object) -> DeadLetterSettings:
    """Brokers of the test, one replica."""
    client = {"bootstrap.servers": broker.bootstrap_servers}
    return DeadLetterSettings(topic, 1, producer=client, admin=client, **more)  # type: ignore[arg-type]


def rejected(offset: int, value: bytes | None, key: bytes | None = b"k", *, headers: object = ()) -> Rejected:
    """A record of the range."""
    return Rejected("orders", 3, offset, Stage.VALUE_CONVERTER, "größer", key, value, headers, NOW_MS + offset)  # type: ignore[arg-type]


def test_a_dead_letter_is_the_record_as_it_was(broker: Broker, cache: ProducerCache) -> None:
    """Nulls, empty texts, repeated and null headers, timestamps; the topic is made; the producer is kept."""
    topic = f"dead-{uuid.uuid4().hex[:8]}"
    given = [
        rejected(0, b"", None),
        rejected(1, None, b""),
        rejected(2, b"x" * 3_000_000, headers=(("a", b"1"), ("a", None), ("", b""), ("größe", b"\xff"))),
        rejected(3, b"v", headers=None),
        rejected(4, b"v", headers=(("ok", b"1"), ("bad\udcff", b"2"))),
    ]
    settings = settings_for(broker, topic)
    broker.create_topic(topic, 1, {"max.message.bytes": "8000000"})
    store = DeadLetters(settings, HeaderWriter("sink", context=False), cache=cache)
    for one in given:
        store.put(one)
    store.flush(RANGE)
    found = letters(broker, topic)
    assert [(m.key(), m.value(), m.timestamp()[1]) for m in found] == [
        (one.key, one.value, one.timestamp_ms) for one in given
    ]
    lost = [(NOT_KEPT, b"a name is not UTF-8")]
    assert [m.headers() or [] for m in found] == [[], [], list(given[2].headers or ()), lost, [("ok", b"1"), *lost]]
    store.close()
    again = DeadLetters(settings, HeaderWriter("sink", context=False), cache=cache)
    again.put(given[0])
    again.flush(RANGE)
    assert again._taken is store._taken or again._taken is not None
    again.close()
    assert len(letters(broker, topic)) == 6


def test_headers_tell_why_a_record_is_there(broker: Broker, cache: ProducerCache) -> None:
    """By Connect's names, in UTF-8, behind the record's own; the topic is made where there is none."""
    topic = f"dead-{uuid.uuid4().hex[:8]}"
    classes = {Stage.VALUE_CONVERTER: "org.example.Converter"}
    store = DeadLetters(settings_for(broker, topic), HeaderWriter("sink", True, classes), cache=cache)
    store.put(rejected(7, b"v", headers=(("a", b"1"),)))
    store.flush(RANGE)
    store.close()
    (found,) = letters(broker, topic)
    assert [(name, value.decode()) for name, value in found.headers() or ()] == [
        ("a", "1"),
        (f"{PREFIX}topic", "orders"),
        (f"{PREFIX}partition", "3"),
        (f"{PREFIX}offset", "7"),
        (f"{PREFIX}connector.name", "sink"),
        (f"{PREFIX}task.id", "0"),
        (f"{PREFIX}stage", "VALUE_CONVERTER"),
        (f"{PREFIX}class.name", "org.example.Converter"),
        (f"{PREFIX}exception.class.name", "parquet_sink.errors.InvalidRecord"),
        (f"{PREFIX}exception.message", "größer"),
        (f"{PREFIX}exception.stacktrace", "parquet_sink.errors.InvalidRecord: größer"),
    ]


def test_many_dead_letters_are_all_acknowledged(broker: Broker, cache: ProducerCache, topic: TopicFactory) -> None:
    """More than the client's memory, and ours, have room for; in the order of their offsets."""
    name = topic(prefix="dead")
    settings = settings_for(broker, name)
    settings = DeadLetterSettings(name, 1, producer={**settings.producer, "buffer.memory": "1048576"})
    store = DeadLetters(settings, HeaderWriter("sink", context=True), cache=cache, ensure_topic=lambda one: None)
    for offset in range(30_000):
        store.put(rejected(offset, b"v" * 700))
    store.flush(RANGE)
    store.close()
    assert [m.timestamp()[1] - NOW_MS for m in letters(broker, name)] == list(range(30_000))


@pytest.mark.parametrize(
    ("limit", "value", "words"),
    [
        ({"max.message.bytes": "1000"}, b"v" * 2_000, ("raise", "max.message.bytes")),
        ({"cleanup.policy": "compact"}, b"v", ("compacted", "without a key")),
    ],
)
def test_what_the_topic_does_not_take_is_not_kept(
    broker: Broker,
    cache: ProducerCache,
    topic: TopicFactory,
    limit: dict[str, str],
    value: bytes,
    words: tuple[str, ...],
) -> None:
    """A record larger than the topic takes, or without the key that it wants: the message names topic and cure."""
    name = topic(prefix="dead", config=limit)
    headers, there = HeaderWriter("sink", context=False), lambda one: None
    store = DeadLetters(settings_for(broker, name), headers, cache=cache, ensure_topic=there)
    store.put(rejected(0, value, None))
    with pytest.raises(KafkaRefused, match=saying(f"topic {name}", *words)):
        store.flush(RANGE)
    with pytest.raises(KafkaRefused):
        store.put(rejected(1, b"v"))
    store.flush(PlannedRange("orders", 4, 0, 10, "records"))
    store.close()


def test_a_topic_that_cannot_be_made_is_told(broker: Broker, cache: ProducerCache) -> None:
    """More replicas than brokers, or a name that no topic can have."""
    for topic, factor, words in (("dead", 3, "replication.factor"), ("no topic", 1, "topic.name")):
        client = {"bootstrap.servers": broker.bootstrap_servers}
        settings = DeadLetterSettings(topic, factor, producer=client, admin=client)
        store = DeadLetters(settings, HeaderWriter("sink", context=False), cache=cache)
        with pytest.raises(KafkaRefused, match=saying(f"Dead-letter topic {topic}", "cannot be", "errors.", words)):
            store.put(rejected(0, b"v"))
        store.close()


def test_check_looks_for_the_topic_and_makes_nothing(broker: Broker) -> None:
    """There, absent, not to be made, or not to be asked for."""
    topic = f"dead-{uuid.uuid4().hex[:8]}"
    settings = settings_for(broker, topic)
    for _ in range(2):
        fine, text = probe_dead_letters(settings)
        assert fine
        assert_says(text, "not exist", "created at the start", "1 replica")
    broker.create_topic(topic)
    assert probe_dead_letters(settings) == (True, "it is there")
    fine, text = probe_dead_letters(DeadLetterSettings(f"{topic}-2", 3, admin=settings.admin))
    assert not fine
    assert "[errors.deadletterqueue.topic.replication.factor]" in text
    compacted = f"{topic}-3"
    broker.create_topic(compacted, config={"cleanup.policy": "compact,delete"})
    fine, text = probe_dead_letters(settings_for(broker, compacted))
    assert not fine
    assert_says(text, f"Dead-letter topic {compacted}", "is compacted", "only the last", "cleanup.policy to delete")
    with pytest.raises(KafkaRefused, match="cleanup.policy to delete"):
        DeadLetterTopic(settings_for(broker, compacted)).ensure()
    fine, text = probe_dead_letters(DeadLetterSettings("no topic", 1, admin=settings.admin))
    assert not fine
