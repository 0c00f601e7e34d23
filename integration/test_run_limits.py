"""Sizes at the edge, and a target that is away: all arrives, and little is held meanwhile."""

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from integration.conftest import TopicFactory
from integration.harness import Sink, ends
from integration.numbered import numbered, numbers
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.worker.loop.status import Status


def nested(depth: int) -> dict[str, Any]:
    """Objects within objects, `depth` levels with the outermost."""
    tree: dict[str, Any] = {"x": 1}
    for _ in range(depth - 1):
        tree = {"a": tree}
    return tree


def test_records_of_all_sizes_arrive(sink: Sink, topic: TopicFactory, broker: Broker) -> None:
    """A tiny object, a text of 8 MiB, 2,000 columns, 100 levels and 1,000 headers each become a row."""
    name = topic(config={"max.message.bytes": str(16 << 20)})
    text = "ü" * (4 << 20)
    columns = {f"c{n}": n for n in range(2_000)}
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "message.max.bytes": 16 << 20})
    for value in ({"i": 0}, {"i": 1, "text": text}, {"i": 2, **columns}, {"i": 3, "deep": nested(99)}):
        producer.produce(name, json.dumps(value, ensure_ascii=False).encode())
    producer.produce(name, b'{"i":4}', headers=[(f"h{n}", b"x" * 10) for n in range(1_000)])
    assert producer.flush(60) == 0
    run = sink.drain(name)
    assert run.status is Status.DONE
    rows = sink.rows()
    assert [row["i"] for row in rows] == [0, 1, 2, 3, 4]
    assert rows[1]["text"] == text
    assert rows[2]["c1999"] == 1_999
    assert next(value for key, value in rows[3].items() if key.startswith("deep") and value is not None) == 1
    assert sink.offsets(name) == ends(broker, name)


def test_a_target_that_is_away_fills_no_disk(
    sink: Sink, topic: TopicFactory, broker: Broker, target: TargetProcess
) -> None:
    """While nothing is accepted, at most three files are on disk (sent, waiting, handed over); then all arrives."""
    name = topic()
    broker.produce(name, numbered(2_000))
    target.client.order_faults({"status": 503, "next": 4})
    run = sink.start(name, commit_records=100, retry_interval=1_000)
    most = 0

    def arrived() -> bool:
        nonlocal most
        most = max(most, len(files_below(sink.tmp_dir)))
        return run.records >= 2_000

    run.until(arrived, 120)
    assert 1 <= most <= 3
    assert max(receipt.attempts for receipt in run.accepted) == 5
    run.stop()
    assert numbers(sink.rows()) == list(range(2_000))
    assert files_below(sink.tmp_dir) == []


@pytest.mark.parametrize("value", [b"", b" ", b"7"])
def test_the_smallest_values_are_named(sink: Sink, topic: TopicFactory, broker: Broker, value: bytes) -> None:
    """A value that is not an object stops the connector at its offset, however small."""
    name = topic()
    broker.produce(name, [*numbered(2), (None, value)])
    run = sink.drain(name)
    assert run.status is Status.FAILED
    assert f"topic {name}, topic-partition 0, offset 2:" in run.failure.message
    assert sink.offsets(name) == [2]


def files_below(folder: Path) -> list[Path]:
    """Parquet files that stand below a folder, finished or not."""
    return [path for path in folder.rglob("*.parquet.part") if path.is_file()]
