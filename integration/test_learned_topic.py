"""What a connector learned goes with it to the worker that has it next: a range that comes again is the same files."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from integration.conftest import TopicFactory
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.errors import KafkaRefused
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.cluster.cluster import KafkaCluster
from parquet_sink.kafka.settings import FlushSettings, KafkaSettings
from parquet_sink.model.instance import Instance
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.planner import learned_topic
from parquet_sink.planner.planner import Planner, kafka_planner
from parquet_sink.settings.connector import with_cluster
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.spark.handoff import Handoff, state_path
from parquet_sink.spark.sink import Outcomes, PushWriter
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.targets.directory.settings import DirectorySettings
from parquet_sink.task.outcome import RangeOutcome
from parquet_sink.task.task import TaskFlush
from tests import factories
from tests.messages import saying

Files = dict[str, str]


class Worker:
    """One that has the connector, with a folder of its own: planner, task and committer, without Spark between them."""

    def __init__(self, settings: SinkSettings, folder: Path) -> None:
        self._target = folder / "target"
        self._target.mkdir(parents=True)
        files = replace(settings.files, tmp_dir=str(folder))
        self._settings = replace(settings, files=files, target=DirectorySettings(str(self._target), "t"))
        self.state = SqliteStore.for_new_run(_made(state_path(self._settings)))
        self._given = Handoff(self._settings, Instance.new(), str(folder), self.state.ids)
        self.planner: Planner = kafka_planner(self._settings, self.state, self._given.instance, reported=True)

    def plan(self, done: tuple[RangeOutcome, ...] = ()) -> list[PlannedRange]:
        """What the next tick with work plans, once what was done is committed."""
        finished = {(one.planned.topic, one.planned.partition): one.planned.end for one in done}
        deadline = time.monotonic() + 60
        while not (planned := self.planner.tick(finished)):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        return planned

    def flush(self, planned: list[PlannedRange]) -> tuple[RangeOutcome, ...]:
        """As a Spark task does it."""
        return TaskFlush(self._settings, replans=True).run(planned)

    def report(self, outcomes: tuple[RangeOutcome, ...]) -> None:
        """As the committer does it."""
        PushWriter(self._given).commit([Outcomes(outcomes)], 0)

    def files(self) -> Files:
        """Name and content of all that was sent."""
        return {one.name: sha256(one.read_bytes()).hexdigest() for one in sorted(self._target.glob("*/*.parquet"))}

    def close(self) -> None:
        """As when it is killed: nothing is committed."""
        self.planner.close()
        self.state.close()


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@pytest.fixture
def state_topic(topic: TopicFactory) -> str:
    """Of a cluster of workers."""
    return topic(3, prefix="state", config={"cleanup.policy": "compact"})


@pytest.fixture
def settings(broker: Broker, topic: TopicFactory, tmp_path: Path) -> SinkSettings:
    """A connector with a topic of its own, five records to a flush, which no worker shares yet."""
    name = topic()
    kafka = KafkaSettings((name,), None, f"connect-{name}", {"bootstrap.servers": broker.bootstrap_servers})
    return replace(factories.settings(tmp_path, name), kafka=kafka, flush=FlushSettings(1_000_000, 5, 600_000))


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Callable[[SinkSettings], Worker]]:
    """Starts workers, each with a folder of its own."""
    with ExitStack() as stack:

        def begin(settings: SinkSettings) -> Worker:
            worker = stack.enter_context(closing(Worker(settings, tmp_path / f"worker-{time.monotonic_ns()}")))
            worker.planner.begin()
            return worker

        yield begin


def shared(settings: SinkSettings, state_topic: str | None) -> SinkSettings:
    """The connector of a cluster."""
    return with_cluster(settings, fence=f"parquet-sink-{settings.kafka.group}", state_topic=state_topic)


def failover(broker: Broker, settings: SinkSettings, work: Callable[[SinkSettings], Worker]) -> tuple[Files, Files]:
    """The files of one range, as its first owner sends them and dies, and as the next one does."""
    topic = settings.kafka.topics[0]
    broker.produce(topic, [(None, b'{"id": %d, "once": "a"}' % number) for number in range(5)])
    first = work(settings)
    done = first.flush(first.plan())
    first.report(done)
    before = first.files()
    broker.produce(topic, [(None, b'{"id": %d, "late": 1.5}' % number) for number in range(5)])
    first.flush(first.plan(done))
    sent = {name: digest for name, digest in first.files().items() if name not in before}
    second = work(settings)
    second.flush(second.plan())
    return sent, second.files()


def test_the_next_owner_makes_the_same_files(
    broker: Broker, settings: SinkSettings, state_topic: str, work: Callable[[SinkSettings], Worker]
) -> None:
    """The range that was under way comes again with the columns that were known: same name, same bytes."""
    sent, again = failover(broker, shared(settings, state_topic), work)
    assert len(sent) == 1
    assert again == sent


def test_without_the_topic_they_are_others(
    broker: Broker, settings: SinkSettings, work: Callable[[SinkSettings], Worker]
) -> None:
    """An empty store knows no column that the records of the range do not have."""
    sent, again = failover(broker, shared(settings, None), work)
    assert again.keys() != sent.keys() or again != sent


def test_a_store_that_goes_on_keeps_what_it_learned_since(
    broker: Broker, settings: SinkSettings, state_topic: str, work: Callable[[SinkSettings], Worker]
) -> None:
    """What was not committed yet is known here alone; one that another owner is ahead of takes what that one has."""
    kafka = shared(settings, state_topic).kafka
    broker.produce(kafka.topics[0], [(None, b'{"id": 1}')] * 5)
    first = work(shared(settings, state_topic))
    first.report(first.flush(first.plan()))
    known = first.state.learned_rows()
    assert known["knowledge"]
    again = kafka_planner(shared(settings, state_topic), first.state, Instance.new(), reported=True)
    with closing(again):
        again.begin()
        assert first.state.learned_rows()["knowledge"] == known["knowledge"]
    second = work(shared(settings, state_topic))
    assert second.state.learned_rows()["knowledge"] == known["knowledge"]
    second.report(done := second.flush(second.plan()))
    broker.produce(kafka.topics[0], [(None, b'{"id": 1, "other": 2}')] * 5)
    second.report(second.flush(second.plan(done)))
    third = kafka_planner(shared(settings, state_topic), first.state, Instance.new(), reported=True)
    with closing(third):
        third.begin()
        there = learned(settings, state_topic)
        assert first.state.learned_rows() == there
        assert there["knowledge"].keys() <= second.state.learned_rows()["knowledge"].keys()


def learned(settings: SinkSettings, state_topic: str) -> dict[str, dict[tuple[object, ...], dict[str, object]]]:
    """What the topic has of a connector."""
    kafka = shared(settings, state_topic).kafka
    return learned_topic.LearnedTopic(settings.name, kafka, KafkaCluster(kafka), ClientLog())._read()


def test_rows_are_in_the_transaction_of_the_offset(
    broker: Broker, settings: SinkSettings, state_topic: str, work: Callable[[SinkSettings], Worker]
) -> None:
    """A range that is recorded beside its offset has its row, by connector, table, topic and topic-partition."""
    topic = settings.kafka.topics[0]
    broker.produce(topic, [(None, b'{"id": 1}')] * 5)
    (planned,) = work(shared(settings, state_topic)).plan()
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "look", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([state_topic])
    with closing(consumer):
        messages = (message for message in iter(partial(consumer.poll, 1.0), consumer) if message is not None)
        planned_key = f"{settings.name}/planned/{topic}/0".encode()
        message = next(message for message in messages if message.key() == planned_key)
    row = json.loads(message.value() or b"")
    assert (row["version"], row["start"], row["end"]) == (1, planned.start, planned.end)


def test_a_transaction_that_another_left_open_is_waited_for(
    broker: Broker, settings: SinkSettings, state_topic: str, work: Callable[[SinkSettings], Worker]
) -> None:
    """It hides what comes after it; what is read is not what was there before."""
    there = shared(settings, state_topic)
    broker.produce(there.kafka.topics[0], [(None, b'{"id": 1}')] * 5)
    first = work(there)
    other = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "other", "log_level": 0})
    other.init_transactions(30)
    other.begin_transaction()
    for partition in range(3):
        other.produce(state_topic, b"1", b"other", partition)
    assert other.flush(30) == 0
    first.plan()
    ended = threading.Timer(2.0, lambda: other.abort_transaction(30))
    ended.start()
    assert [*learned(settings, state_topic)["planned"]] == [(there.kafka.topics[0], 0)]
    ended.join()


def test_a_deleted_connector_leaves_nothing(
    broker: Broker, settings: SinkSettings, state_topic: str, work: Callable[[SinkSettings], Worker]
) -> None:
    """Whoever has its name next begins with nothing; others keep theirs. An absent topic has nothing to forget."""
    there = shared(settings, state_topic)
    broker.produce(there.kafka.topics[0], [(None, b'{"id": 1}')] * 5)
    work(there).plan()
    other = replace(settings, name=f"{settings.name}/planned")
    assert learned(settings, state_topic)["planned"]
    assert not any(learned(other, state_topic).values())
    learned_topic.forget(settings.name, there.kafka)
    assert not any(learned(settings, state_topic).values())
    learned_topic.forget(settings.name, shared(settings, "absent").kafka)
    with pytest.raises(KafkaRefused, match=saying("Topic absent", "parquet-sink.state.storage.topic", "is not there")):
        learned(settings, "absent")


def test_a_connector_of_another_cluster_makes_the_topic_there(
    broker: Broker, settings: SinkSettings, work: Callable[[SinkSettings], Worker]
) -> None:
    """A takeover sends the same files also where nobody has made the topic at the connector's brokers."""
    sent, again = failover(broker, shared(settings, f"made-{time.monotonic_ns()}"), work)
    assert len(sent) == 1
    assert again == sent
