"""Internal topics of the worker and of Kafka: connectors neither read nor write them."""

from collections.abc import Mapping

import pytest

from parquet_sink.connectors.loading import load
from parquet_sink.worker_config.internal_topics import find_internal_topics
from parquet_sink.worker_config.worker import Worker
from parquet_sink.worker_config.worker_file import load_worker
from tests.messages import assert_says

TOPICS = {
    "config.storage.topic": "connect-configs",
    "status.storage.topic": "connect-status",
    "offset.storage.topic": "connect-offsets",
}
NAMES = {**TOPICS, "parquet-sink.state.storage.topic": "connect-cluster-state"}
SINK = {
    "name": "orders",
    "topics": "orders",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "connect.ems.endpoint": "https://h/x",
    "connect.ems.authorization.key": "AppKey k",
    "connect.ems.target.table": "ORDERS",
    "connect.ems.commit.size.bytes": "100000",
    "connect.ems.commit.records": "10",
    "connect.ems.commit.interval.ms": "1000",
}
SOURCE = {
    "name": "lines",
    "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
    "file": "/tmp/lines.txt",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}


def worker_of(keys: Mapping[str, str]) -> Worker:
    """Return the worker of a file with these keys."""
    return load_worker({"bootstrap.servers": "localhost:9092", **keys}, source="worker.properties").worker


GROUP = worker_of({"group.id": "connect-cluster", **TOPICS, "parquet-sink.config.secrets": "plain"})


@pytest.mark.parametrize(("key", "topic"), NAMES.items())
@pytest.mark.parametrize("more", [{}, {"consumer.override.bootstrap.servers": "127.0.0.1:9092"}], ids=["same", "other"])
def test_a_topic_of_the_workers_is_refused_by_name(key: str, topic: str, more: dict[str, str]) -> None:
    """The problem names the connector's key, the topic and the key of the worker file, whatever the brokers are."""
    (problem,) = load({**SINK, **more, "topics": f"orders,{topic}"}, GROUP, source="orders").problems
    assert_says(problem, "Invalid [topics]", f'"{topic}"', f"[{key}]", "name another topic")


@pytest.mark.parametrize("key", ["errors.deadletterqueue.topic.name", "connect.ems.notify.topic"])
def test_no_record_is_written_to_a_topic_of_the_workers(key: str) -> None:
    """Dead letters and notices cannot go into the config topic."""
    more = {key: "connect-configs", "errors.tolerance": "all"}
    (problem,) = load({**SINK, **more}, GROUP, source="orders").problems
    assert_says(problem, f"Invalid [{key}]", '"connect-configs"', "[config.storage.topic]")


def test_a_source_does_not_write_to_a_topic_of_the_workers() -> None:
    """A file source cannot forge configurations."""
    (problem,) = load({**SOURCE, "topic": "connect-configs"}, GROUP, source="lines").problems
    assert_says(problem, "Invalid [topic]", '"connect-configs"', "[config.storage.topic]")


def test_kafkas_own_topics_are_refused_without_a_worker_file() -> None:
    """A connector of `run` reads neither offsets nor transactions."""
    for topic in ("__consumer_offsets", "__transaction_state"):
        (problem,) = load({**SINK, "topics": topic}, Worker(), source="orders").problems
        assert_says(problem, "Invalid [topics]", f'"{topic}"', "internal topic of Kafka")
    assert load({**SINK, "topics": "__own"}, Worker(), source="orders").problems == ()


def test_a_pattern_leaves_them_out() -> None:
    """Everything else that matches is read."""
    pattern = {key: text for key, text in SINK.items() if key != "topics"} | {"topics.regex": ".*"}
    kafka = load(pattern, GROUP, source="orders").require().kafka
    read = [topic for topic in (*NAMES.values(), "__consumer_offsets", "__own", "orders") if kafka.reads(topic)]
    assert read == ["orders"]


def test_a_topic_of_positions_is_one_also_of_a_worker_alone() -> None:
    """Sources of a single worker keep positions there."""
    alone = worker_of({"offset.storage.topic": "positions"})
    assert find_internal_topics(alone) == {"positions": "offset.storage.topic"}
    assert load({**SINK, "topics": "positions"}, alone, source="orders").problems
