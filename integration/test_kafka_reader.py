"""What a reader gets of a real broker: keys and headers, topics that are deleted, logs that are cut back."""

import random
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from integration.conftest import TopicFactory
from integration.harness import Sink, committed
from integration.numbered import numbered, offsets
from integration.raw_producer import send_with_header
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.errors import TopicGone
from parquet_sink.kafka.range_reader import RangeReader
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.kafka.several_ranges import SmallRanges
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import RecordParts
from parquet_sink.worker.loop.status import Status
from tests.messages import assert_says, saying

BOTH = RecordParts(keys=True, headers=True)


def test_keys_and_headers_are_read_as_they_are(broker: Broker, topic: TopicFactory, producer: Producer) -> None:
    """Null, empty and repeated ones are told apart; a header's name that is not UTF-8 hides that record's headers only.

    Read often in one process, because Python changes how it calls what is called often: the batches are equal.
    """
    name = topic()
    producer.produce(name, b"v", b"", headers=[("a", b"1"), ("a", None), ("", b""), ("größe", "x")])
    producer.produce(name, None, b"k", headers=[])
    producer.produce(name, b"v", None)
    assert producer.flush(30) == 0
    send_with_header(broker.bootstrap_servers, name, b"caf\xe9")
    producer.produce(name, b"last", b"k")
    assert producer.flush(30) == 0
    settings = KafkaSettings((name,), None, "connect-parts", {"bootstrap.servers": broker.bootstrap_servers})
    (batch,) = RangeReader(settings, name, 0, 0, 5, parts=BOTH).batches()
    assert batch.values.to_pylist() == [b"v", None, b"v", b"v", b"last"]
    assert batch.keys is not None
    assert batch.keys.to_pylist() == [b"", b"k", None, None, b"k"]
    first = (("a", b"1"), ("a", None), ("", b""), ("größe", b"x"))
    assert [batch.headers_of(index) for index in range(5)] == [first, (), (), None, ()]
    for _ in range(5):
        assert list(RangeReader(settings, name, 0, 0, 5, parts=BOTH).batches()) == [batch]
    (bare,) = RangeReader(settings, name, 0, 0, 5).batches()
    assert (bare.keys, bare.headers) == (None, None)


def test_small_ranges_are_read_together_as_they_are_alone(broker: Broker, topic: TopicFactory) -> None:
    """Those of committed and aborted transactions, too; one whose records were deleted is left to its own reader."""
    name = topic(partitions=60)
    chance = random.Random(name)
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    for commits in (True, False, True):
        producer = Producer({**servers, "transactional.id": f"{name}-{commits}"})
        producer.init_transactions(30)
        producer.begin_transaction()
        for partition in range(60):
            for number in range(chance.randint(1, 20)):
                producer.produce(name, chance.choice([b"v" * number, None]), b"k", partition=partition)
        producer.commit_transaction(30) if commits else producer.abort_transaction(30)
    consumer = Consumer({**servers, "group.id": name})
    ends = [consumer.get_watermark_offsets(TopicPartition(name, number))[1] for number in range(60)]
    consumer.close()
    ranges = [PlannedRange(name, number, chance.randint(0, end - 2), end, "age") for number, end in enumerate(ends)]
    gone = replace(ranges[7], start=0)
    ranges[7] = gone
    admin = AdminClient(servers)
    admin.delete_records([TopicPartition(name, 7, 1)])[TopicPartition(name, 7)].result(30)
    settings = KafkaSettings((name,), None, "connect-small", servers)
    reader = SmallRanges(settings, ranges, BOTH)
    found = [reader.take(one) for one in ranges]
    assert found.pop(7) is None
    ranges.remove(gone)
    assert found == [
        list(RangeReader(settings, name, one.partition, one.start, one.end, parts=BOTH).batches()) for one in ranges
    ]


def test_a_topic_that_is_deleted_while_it_is_read(broker: Broker, topic: TopicFactory) -> None:
    """The client says nothing of it; the reader finds out within seconds."""
    name = topic()
    count = 20_000
    broker.produce(name, [(None, b"x" * 1_000)] * count)
    client = {"bootstrap.servers": broker.bootstrap_servers, "queued.max.messages.kbytes": "1024"}
    batches = RangeReader(KafkaSettings((name,), None, "connect-deleted", client), name, 0, 0, count).batches()
    next(batches)
    broker.delete_topic(name)
    begun = time.monotonic()
    with pytest.raises(TopicGone, match=saying(f"Topic {name}", "topic-partition 0", "was deleted")):
        list(batches)
    assert time.monotonic() - begun < 60


@pytest.fixture
def cut(tmp_path: Path) -> Iterator[Broker]:
    """A broker whose topic lost records and has others there now: 60 of the first, then 40, which are 80 others."""
    with Broker(data_dir=tmp_path / "kafka") as own:
        own.create_topic("orders")
        own.produce("orders", numbered(60))
        own.stop()
        (log,) = (tmp_path / "kafka").rglob("orders-0")
        shutil.copytree(log, tmp_path / "copy")
        own.start()
        own.produce("orders", numbered(40, 60))
        yield own


def lose_records(broker: Broker, folder: Path) -> None:
    """What an unclean leader election does: the log ends earlier, and grows again under a leader of a later epoch."""
    broker.stop()
    (log,) = (folder / "kafka").rglob("orders-0")
    shutil.rmtree(log)
    shutil.copytree(folder / "copy", log)
    broker.start()
    broker.produce("orders", numbered(80, 1_000))


@pytest.mark.in_turn
def test_a_log_that_was_cut_back_and_grew_again(sink: Sink, cut: Broker, tmp_path: Path) -> None:
    """That an offset is within the log again is not enough: the connector stops and names the records that differ."""

    def run(losses: list[tuple[int, int, str]] | None = None, **ems: object) -> Status:
        made = sink.make(sink.properties("orders", **ems), until_caught_up=True, broker=cut).start().until_ended()
        if made.status is Status.FAILED:
            assert made.failure.kind == "OffsetsLost"
            assert_says(made.failure.message, "at offset 100", "was cut back to 60")
        assert made.losses == (losses or [])
        return made.status

    assert run() is Status.DONE
    lose_records(cut, tmp_path)
    assert run() is Status.FAILED
    assert (len(offsets(sink)), committed(cut, sink.group, "orders")[0][0]) == (100, 100)
    assert run([(60, 100, "truncated")], lost_offsets_policy="CONTINUE") is Status.DONE
    assert ([row["n"] for row in sink.rows()][100:], committed(cut, sink.group, "orders")[0][0]) == (
        list(range(1_040, 1_080)),
        140,
    )
