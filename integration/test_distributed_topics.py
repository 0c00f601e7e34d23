"""The internal topics of a cluster on a real broker: made as the worker file says, checked, and of one cluster."""

import time
import uuid
from collections.abc import Mapping
from contextlib import closing

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions  # type: ignore[attr-defined]

from integration.conftest import TopicFactory
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.distributed.topics import InternalTopics
from parquet_sink.errors import InvalidConfiguration, SetupError
from parquet_sink.worker_config.worker_file import load_worker
from tests.messages import assert_says, saying


def _topics(broker: Broker | None, more: Mapping[str, str] | None = None) -> InternalTopics:
    """Of a new cluster, with Kafka's own worker file but for the names."""
    group = f"cluster-{uuid.uuid4().hex[:10]}"
    keys = {"bootstrap.servers": "nowhere:1" if broker is None else broker.bootstrap_servers, "group.id": group}
    for name in ("config", "status", "offset"):
        keys |= {f"{name}.storage.topic": f"{group}-{name}s", f"{name}.storage.replication.factor": "1"}
    settings = load_worker({**keys, **(more or {})}, source="w").require().distributed
    assert settings is not None
    return InternalTopics(settings)


def _made(broker: Broker, group: str) -> dict[str, tuple[int, Mapping[str, str]]]:
    """Topic-partitions and settings of the topics that begin so."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    found = {}
    for name, topic in admin.list_topics(timeout=10).topics.items():
        if name.startswith(group):
            resource = ConfigResource(ConfigResource.Type.TOPIC, name)
            configs = admin.describe_configs([resource])[resource].result(10)
            found[name.removeprefix(group)] = len(topic.partitions), {one: configs[one].value for one in configs}
    return found


def test_topics_are_made_as_the_worker_file_says(broker: Broker) -> None:
    """All four are compacted; counts and other settings are those of the file; a second worker finds them good."""
    group = f"c-{uuid.uuid4().hex[:10]}"
    topics = {f"{name}.storage.topic": f"{group}-{name}s" for name in ("config", "status", "offset")}
    more = {"status.storage.partitions": "2", "config.storage.segment.ms": "60000"}
    for _worker in range(2):
        _topics(broker, {"group.id": group, **topics, **more}).ensure_all()
    made = _made(broker, group)
    counts = {"-configs": 1, "-statuss": 2, "-offsets": 25, "-state": 5}
    assert {name: count for name, (count, _) in made.items()} == counts
    assert {settings["cleanup.policy"] for _, settings in made.values()} == {"compact"}
    assert (made["-configs"][1]["segment.ms"], made["-statuss"][1]["segment.ms"]) == ("60000", "604800000")


def test_a_config_topic_with_two_partitions_is_refused(broker: Broker, topic: TopicFactory) -> None:
    """Its records would have no one order; topic, key and cure are named."""
    name = topic(2, config={"cleanup.policy": "compact"})
    with pytest.raises(SetupError) as told:
        _topics(broker, {"config.storage.topic": name}).ensure_all()
    assert_says(
        told.value, f"Topic {name}", "[config.storage.topic]", "2 topic-partitions", "no one order", "Name a topic"
    )


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
@pytest.mark.parametrize("key", ["config", "status", "offset", "parquet-sink.state"])
def test_a_topic_that_deletes_is_refused(broker: Broker, topic: TopicFactory, key: str, policy: str) -> None:
    """Connectors, states or positions in it would be gone after a week."""
    name = topic(config={"cleanup.policy": policy})
    with pytest.raises(
        SetupError, match=saying(f"Topic {name}", f"[{key}.storage.topic]", f"cleanup.policy={policy},")
    ):
        _topics(broker, {f"{key}.storage.topic": name}).ensure_all()


def test_more_replicas_than_brokers_are_refused_by_their_key(broker: Broker) -> None:
    """Kafka Connect's default of three needs three brokers."""
    with pytest.raises(SetupError, match=saying("3 replicas", "Set [config.storage.replication.factor]", "at most")):
        _topics(broker, {"config.storage.replication.factor": "3"}).ensure_all()


def test_a_setting_that_brokers_do_not_know_is_refused_by_its_keys(broker: Broker) -> None:
    """The broker's words, and the keys to correct."""
    with pytest.raises(
        SetupError, match=saying("Correct the keys", "[status.storage.*]", "make the topic", "compacted")
    ):
        _topics(broker, {"status.storage.min.insync.replica": "2"}).ensure_all()


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("send.buffer.bytes", "-1", ("-1 is out of range", "0 to 100000000")),
        ("security.protocol", "PLAIN", ("PLAIN is not a protocol", "PLAINTEXT, SSL, SASL_PLAINTEXT,")),
        ("ssl.truststore.location", "/nowhere.pem", ("/nowhere.pem",)),
        ("sasl.jaas.config", "canary", ()),
    ],
)
def test_settings_of_own_clients_are_refused_by_their_bare_names(key: str, value: str, reason: tuple[str, ...]) -> None:
    """Before anything is asked, and without a secret; no broker is there."""
    with pytest.raises(InvalidConfiguration) as told:
        _topics(None, {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", key: value})
    assert_says(told.value, f"Invalid [{key}]", *reason)
    assert "canary" not in str(told.value)


def test_a_config_topic_of_a_cluster_that_lives_is_refused(broker: Broker, topic: TopicFactory) -> None:
    """While it has a worker; once that has left, the topic may be taken over under another name."""
    other, topics = f"other-{uuid.uuid4().hex[:10]}", _topics(broker)
    for nobody in (other, ""):
        topics.refuse_other_cluster(nobody)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": other})
    with closing(consumer):
        consumer.subscribe([topic()])
        while not consumer.assignment():
            consumer.poll(0.1)
        with pytest.raises(SetupError, match=saying("another cluster", other, "1 worker", "Give each")):
            topics.refuse_other_cluster(other)
    topics.refuse_other_cluster(other)


def test_topic_partitions_that_are_added_are_counted(broker: Broker) -> None:
    """Of the topics in which the place of a key depends on their number."""
    topics = _topics(broker, {"group.id": (group := f"c-{uuid.uuid4().hex[:10]}"), "status.storage.partitions": "2"})
    assert topics.shared_counts() == {}
    topics.ensure_all()
    (status,) = [name for name, count in topics.shared_counts().items() if count == 2]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_partitions([NewPartitions(status, 3)])[status].result(10)
    deadline = time.monotonic() + 30
    while topics.shared_counts() != {status: 3, f"{group}-state": 5}:
        assert time.monotonic() < deadline
