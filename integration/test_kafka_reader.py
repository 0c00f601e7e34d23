"""What a real broker does to a reader that it does not tell: topics that are deleted, logs that are cut back."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.conftest import TopicFactory
from integration.harness import Sink, committed
from integration.test_run_kafka import numbered, offsets
from parquet_sink.devkit.broker import Broker
from parquet_sink.errors import TopicGone
from parquet_sink.kafka.range_reader import RangeReader
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.runtime.status import Status


def test_a_topic_that_is_deleted_while_it_is_read(broker: Broker, topic: TopicFactory) -> None:
    """The client says nothing of it; the reader finds out within seconds."""
    name = topic()
    count = 20_000
    broker.produce(name, [(None, b"x" * 1_000)] * count)
    client = {"bootstrap.servers": broker.bootstrap_servers, "queued.max.messages.kbytes": "1024"}
    blocks = RangeReader(KafkaSettings((name,), None, "connect-deleted", client), name, 0, 0, count).blocks()
    next(blocks)
    broker.delete_topic(name)
    begun = time.monotonic()
    with pytest.raises(TopicGone, match=f"Topic {name}, topic-partition 0 was deleted while it was read"):
        list(blocks)
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


def test_a_log_that_was_cut_back_and_grew_again(sink: Sink, cut: Broker, tmp_path: Path) -> None:
    """That an offset is within the log again is not enough: the connector stops and names the records that differ."""

    def run(**ems: object) -> Status:
        made = sink.make(sink.properties("orders", **ems), until_caught_up=True, broker=cut).start().until_ended()
        if made.status is Status.FAILED:
            assert made.failure.kind == "OffsetsLost"
            assert "stands at offset 100, but the log was cut back to 60 since" in made.failure.message
        return made.status

    assert run() is Status.DONE
    lose_records(cut, tmp_path)
    assert run() is Status.FAILED
    assert (len(offsets(sink)), committed(cut, sink.group, "orders")[0][0]) == (100, 100)
    assert run(lost_offsets_policy="CONTINUE") is Status.DONE
    assert ([row["n"] for row in sink.rows()][100:], committed(cut, sink.group, "orders")[0][0]) == (
        list(range(1_040, 1_080)),
        140,
    )
