"""Config and status topics of distributed workers on a real broker: what readers see, and who may write."""

import logging
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from integration.conftest import TopicFactory
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.distributed import log, records
from parquet_sink.distributed.assignment import Release
from parquet_sink.distributed.log import ConfigWriter, Deposed, NotAnswered, StatusWriter, TopicReader
from parquet_sink.distributed.records import ConnectorReport, Records
from parquet_sink.distributed.state import ConfigState, StatusState
from parquet_sink.errors import KafkaFailed, KafkaRefused, TopicGone
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.worker.herder.values import State
from tests.messages import saying

COMPACTED = {"cleanup.policy": "compact"}


def kafka(broker: Broker) -> KafkaSettings:
    """Of a worker's own clients."""
    return KafkaSettings(group="cluster", client={"bootstrap.servers": broker.bootstrap_servers})


def config_reader(broker: Broker, topic: str) -> TopicReader[ConfigState]:
    """Of a config topic."""
    return TopicReader(kafka(broker), topic, ConfigState())


def opened(broker: Broker, topic: str, timeout_s: float = 30.0) -> ConfigWriter:
    """The leader's."""
    writer = ConfigWriter(kafka(broker), topic, f"connect-cluster-{topic}", timeout_s)
    writer.open()
    return writer


def connector(name: str) -> Records:
    """What creates a connector."""
    return records.CONNECTOR.record(name, {"name": name})


def murmur2(key: bytes) -> int:
    """As Kafka's Utils.murmur2, made positive."""
    mask, factor = 0xFFFFFFFF, 0x5BD1E995
    found = (0x9747B28C ^ len(key)) & mask
    for at in range(0, len(key) - 3, 4):
        four = int.from_bytes(key[at : at + 4], "little") * factor & mask
        found = (found * factor & mask) ^ ((four ^ four >> 24) * factor & mask)
    if rest := key[len(key) & ~3 :]:
        found = (found ^ int.from_bytes(rest, "little")) * factor & mask
    found = (found ^ found >> 13) * factor & mask
    return (found ^ found >> 15) & 0x7FFFFFFF


def until(holds: Callable[[], object], timeout_s: float = 60.0) -> None:
    """Waits for what happens in a thread of its own."""
    deadline_s = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


@pytest.fixture
def own() -> Iterator[Broker]:
    """A broker to stop."""
    with Broker() as started:
        yield started


def test_a_reader_has_what_was_written_before_and_after_it_began(broker: Broker, topic: TopicFactory) -> None:
    """`read_to_end` waits for each transaction whose commit was acknowledged: brokers hide it for a moment more."""
    name = topic(config=COMPACTED)
    with closing(opened(broker, name)) as writer:
        writer.write(connector("before"))
        with closing(config_reader(broker, name)) as reader:
            assert reader.read_to_end(30)
            assert [*reader.state.connectors] == ["before"]
            for number in range(30):
                writer.write({**connector(f"c{number}"), **records.CONNECTOR.record(f"c{number - 1}", None)})
                assert reader.read_to_end(30)
                assert [*reader.state.connectors] == ["before", f"c{number}"]


def test_whoever_waits_for_a_change_is_woken(broker: Broker, topic: TopicFactory) -> None:
    """Once the state has it, and not where nothing has changed; a closed reader keeps nobody waiting for the end."""
    name, changed = topic(config=COMPACTED), threading.Event()
    with (
        closing(opened(broker, name)) as writer,
        closing(TopicReader(kafka(broker), name, ConfigState(), changed.set)) as reader,
    ):
        assert reader.read_to_end(30)
        assert not changed.is_set()
        writer.write(connector("a"))
        assert changed.wait(30)
        assert reader.state.connectors == {"a": {"name": "a"}}
        writer.write(connector("b"))
    began = time.monotonic()
    reader.read_to_end(30)
    assert time.monotonic() - began < 20


def test_what_was_aborted_is_never_seen(broker: Broker, topic: TopicFactory) -> None:
    """The end is not reached while a transaction is open, because it may still count."""
    name = topic(config=COMPACTED)
    other = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name})
    other.init_transactions(30)
    other.begin_transaction()
    other.produce(name, b'{"properties":{}}', b"connector-a")
    assert other.flush(30) == 0
    with closing(config_reader(broker, name)) as reader:
        assert not reader.read_to_end(3)
        other.abort_transaction(30)
        assert reader.read_to_end(30)
        assert reader.state == ConfigState()


def test_a_new_leader_ends_the_former_ones_right_to_write(broker: Broker, topic: TopicFactory) -> None:
    """The former one is told so at its next write, which has no effect."""
    name = topic(config=COMPACTED)
    former = opened(broker, name)
    former.write(connector("a"))
    with closing(opened(broker, name)) as leader, closing(config_reader(broker, name)) as reader:
        with pytest.raises(Deposed, match=saying("another worker now", "Nothing was written")) as deposed:
            former.write(connector("late"))
        assert (deposed.value.may_be_written, former.is_open) == (False, False)
        leader.write(connector("b"))
        assert reader.read_to_end(30)
        assert [*reader.state.connectors] == ["a", "b"]


class _LateFlush(Producer):
    """Looks once everything waits to be told."""

    def flush(self, timeout: float = -1) -> int:
        time.sleep(1)
        return super().flush(timeout)


def test_a_former_leader_is_told_whichever_thread_hears_of_it(
    broker: Broker, topic: TopicFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its client tells whoever polls; the writer hears of its lost records while the client raises why."""
    monkeypatch.setattr(log, "_serve", lambda client, discarded: discarded.wait(60))
    monkeypatch.setattr(log, "Producer", _LateFlush)
    name = topic(config=COMPACTED)
    former = opened(broker, name)
    with closing(opened(broker, name)):
        with pytest.raises(Deposed, match=saying("another worker now", "Nothing was written")) as deposed:
            former.write({**connector("late"), **connector("later")})
        assert not deposed.value.may_be_written


def test_a_record_that_is_refused_takes_its_transaction_with_it(broker: Broker, topic: TopicFactory) -> None:
    """Nothing of it is written, also once the leader opened its writer again."""
    name = topic(config={**COMPACTED, "max.message.bytes": "2000"})
    large = random.Random(1).randbytes(8_000).hex()
    with closing(opened(broker, name)) as writer, closing(config_reader(broker, name)) as reader:
        with pytest.raises(KafkaRefused, match=saying(f"Topic {name}", "cannot be written", "the broker refuses")):
            writer.write({**connector("a"), **records.CONNECTOR.record("b", {"x": large})})
        writer.open()
        writer.write(connector("c"))
        assert reader.read_to_end(30)
        assert [*reader.state.connectors] == ["c"]


def _is_told(message: str) -> bool:
    return "no answer from" in message or message.endswith("that is over.")


@pytest.mark.in_turn
def test_brokers_that_are_silent_are_waited_for(own: Broker, caplog: pytest.LogCaptureFixture) -> None:
    """A reader goes on when they are back, and says once that they were not; a write says that nothing was written."""
    caplog.set_level(logging.INFO, "parquet_sink")
    own.create_topic("configs", 1, COMPACTED)
    with closing(opened(own, "configs")) as slow, closing(config_reader(own, "configs")) as reader:
        slow.write(connector("a"))
        assert reader.read_to_end(30)
        writer = opened(own, "configs", timeout_s=3)
        os.kill(own.pid, signal.SIGSTOP)
        try:
            with pytest.raises(NotAnswered, match=saying("no answer from", "Nothing was written")) as silence:
                writer.write(connector("b"))
            began = time.monotonic()
            assert not reader.read_to_end(1)
            assert time.monotonic() - began < 10
        finally:
            os.kill(own.pid, signal.SIGCONT)
        assert (silence.value.may_be_written, writer.is_open) == (False, False)
        own.stop()
        assert not reader.read_to_end(3)
        own.start()
        writer = opened(own, "configs")
        writer.write(connector("c"))
        assert reader.read_to_end(60)
        assert ([*reader.state.connectors], reader.failed) == (["a", "c"], None)
        until(lambda: any(one.endswith("that is over.") for one in caplog.messages))
        told = ["over" if one.endswith("that is over.") else "no answer" for one in caplog.messages if _is_told(one)]
        assert all(one != following for one, following in pairwise(told)), "each time once"
        writer.close()


@pytest.fixture
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers look often whether their topic is the same."""
    monkeypatch.setattr(log, "LOOK_S", 0.5)


@pytest.mark.usefixtures("quick_looks")
def test_a_topic_that_is_deleted_ends_its_readers(broker: Broker, topic: TopicFactory) -> None:
    """The state stays as it was, and whoever asks for the end is told."""
    name = topic(config=COMPACTED)
    with closing(opened(broker, name)) as writer, closing(config_reader(broker, name)) as reader:
        writer.write(connector("a"))
        assert reader.read_to_end(30)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.delete_topics([name])[name].result(30)
        until(lambda: reader.failed is not None)
        with pytest.raises(TopicGone, match=saying(f"Topic {name}", "does not exist", "Stop all workers")):
            reader.read_to_end(30)
        assert [*reader.state.connectors] == ["a"]


@pytest.mark.usefixtures("quick_looks")
@pytest.mark.parametrize("written", [0, 5])
def test_a_topic_that_is_made_anew_ends_its_readers(broker: Broker, topic: TopicFactory, written: int) -> None:
    """Also one that has more records by then than the reader had read."""
    name = topic(config=COMPACTED)
    with closing(opened(broker, name)) as writer, closing(config_reader(broker, name)) as reader:
        writer.write(connector("a"))
        assert reader.read_to_end(30)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.delete_topics([name])[name].result(30)
        broker.create_topic(name, 1, COMPACTED)
        plain = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for number in range(written):
            plain.produce(name, b'{"properties":{}}', f"connector-{number}".encode())
        assert plain.flush(30) == 0
        until(lambda: reader.failed is not None)
        with pytest.raises(
            KafkaFailed, match=saying(f"Topic {name}", "created", "while workers ran", "Stop all workers")
        ):
            reader.read_to_end(30)


def test_statuses_go_where_kafka_connect_would_send_them(broker: Broker, topic: TopicFactory) -> None:
    """So what it wrote of a connector and what we write of it lie in one topic-partition, where the later one stays."""
    name = topic(5, config=COMPACTED)
    release = Release("w:8083", "member", 3)
    with (
        closing(StatusWriter(kafka(broker), name)) as writer,
        closing(TopicReader(kafka(broker), name, StatusState())) as reader,
    ):
        for number in range(40):
            report = ConnectorReport(State.RUNNING, "", "w:8083", number)
            writer.send(records.TASK_STATUS.record(records.task_name("a", number), report))
        writer.send(records.TASK_STATUS.record(records.task_name("a", 39), None))
        writer.send(records.RELEASE.record("a", release))
        assert writer.flush(30)
        assert reader.read_to_end(30)
        assert {task: one.generation for task, one in reader.state.tasks["a"].items()} == {n: n for n in range(39)}
        assert reader.state.releases == {"a": release}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": name})
    consumer.assign([TopicPartition(name, number, OFFSET_BEGINNING) for number in range(5)])
    placed = {message.key(): message.partition() for message in consumer.consume(42, 30)}
    consumer.close()
    assert placed == {key: murmur2(key) % 5 for key in placed}
    assert len(placed) == 41


@pytest.mark.usefixtures("quick_looks")
def test_topic_partitions_that_are_added_are_read(broker: Broker, topic: TopicFactory) -> None:
    """Writers use them as soon as they know of them."""
    name = topic(1, config=COMPACTED)
    with closing(TopicReader(kafka(broker), name, StatusState())) as reader:
        assert reader.read_to_end(30)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_partitions([NewPartitions(name, 3)])[name].result(30)
        plain = Producer({"bootstrap.servers": broker.bootstrap_servers})
        until(lambda: len(plain.list_topics(name).topics[name].partitions) == 3)
        ((key, value),) = records.LEAVING.record("w", "m").items()
        plain.produce(name, value, key, partition=2)
        assert plain.flush(30) == 0
        until(lambda: reader.state.leaving == {"w": "m"})
