"""A folder as the target, on a real broker: files arrive in order, offsets are committed, trouble passes or is told."""

import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from confluent_kafka import Producer

from integration.conftest import TopicFactory
from integration.harness import Run, Sink
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.model.events import RangePostponed
from parquet_sink.worker.loop.status import Status
from tests.messages import assert_says


def numbered(count: int, first: int = 0) -> list[tuple[None, bytes]]:
    """Records {"n": first}, {"n": first + 1} and so on, without keys."""
    return [(None, json.dumps({"n": n}).encode()) for n in range(first, first + count)]


def produce_at_one_time(producer: Producer, topic: str, records: Iterable[tuple[None, bytes]]) -> None:
    """With one timestamp: how many different ones a file has alters its size."""
    now_ms = int(time.time() * 1_000)
    for _, value in records:
        producer.produce(topic, value, timestamp=now_ms)
    assert producer.flush(30) == 0


def properties(sink: Sink, topic: str, folder: Path, **ems: object) -> dict[str, str]:
    """A connector file for a folder, without a credential."""
    keys = sink.properties(topic, endpoint=f"directory:{folder}", commit_records=40, **ems)
    return {key: text for key, text in keys.items() if key != "connect.ems.authorization.key"}


def rows(folder: Path) -> list[dict[str, Any]]:
    """All rows of all files, in the order of topic-partition and offset."""
    found = [row for path in folder.glob("*.parquet") for row in pq.read_table(path).to_pylist()]
    return sorted(found, key=lambda row: (row["kafkaPartition"], row["kafkaOffset"]))


def names(folder: Path) -> list[str]:
    """What is in the folder."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def drain(sink: Sink, keys: Mapping[str, str]) -> Run:
    """To the end of what there is."""
    return sink.make(keys, until_caught_up=True).start().until_ended()


def test_files_are_in_the_folder_before_offsets_are_committed(
    sink: Sink, broker: Broker, topic: TopicFactory, tmp_path: Path
) -> None:
    """Every record once, in files of the right names; a second run over the same offsets finds them there."""
    name, out = topic(2), tmp_path / "out"
    out.mkdir()
    for partition in range(2):
        broker.produce(name, numbered(100, partition * 1_000), partition)
    run = drain(sink, properties(sink, name, out))
    assert run.status is Status.DONE
    folder = out / sink.table
    assert [row["n"] for row in rows(folder)] == [*range(100), *range(1_000, 1_100)]
    assert names(folder) == sorted(receipt.file_name for receipt in run.receipts)
    assert {(receipt.first_offset, receipt.records) for receipt in run.receipts} == {(0, 40), (40, 40), (80, 20)}
    assert sink.offsets(name, 2) == [100, 100]
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.parquet")}
    sink.remove_files()
    again = sink.make(
        {**properties(sink, name, out), "consumer.override.group.id": f"again-{sink.name}"}, until_caught_up=True
    )
    assert again.start().until_ended().status is Status.DONE
    assert {path.name: path.stat().st_mtime_ns for path in folder.glob("*.parquet")} == before


def test_a_folder_that_goes_away_is_waited_for(sink: Sink, broker: Broker, topic: TopicFactory, tmp_path: Path) -> None:
    """While it is gone nothing is committed and nothing is made in its place; then all of it arrives."""
    name, out = topic(), tmp_path / "out"
    out.mkdir()
    keys = properties(sink, name, out, retry_interval=5_000)
    run = sink.make(keys).start().until(lambda: bool(sink.offsets(name)))
    out.rename(tmp_path / "away")
    broker.produce(name, numbered(10))
    run.until(lambda: any(isinstance(event, RangePostponed) for event in run.events))
    assert (run.records, out.exists()) == (0, False)
    (tmp_path / "away").rename(out)
    run.until_records(10).stop()
    assert [row["n"] for row in rows(out / sink.table)] == list(range(10))
    assert sink.offsets(name) == [10]


def test_another_file_of_the_name_stops_the_connector(
    sink: Sink, broker: Broker, topic: TopicFactory, tmp_path: Path
) -> None:
    """It is not overwritten, both files are named, and nothing is committed past it."""
    name, out = topic(), tmp_path / "out"
    out.mkdir()
    broker.produce(name, numbered(50))
    run = drain(sink, properties(sink, name, out))
    last = out / sink.table / run.receipts[-1].file_name
    last.write_bytes(b"another")
    again = {**properties(sink, name, out), "consumer.override.group.id": f"again-{sink.name}"}
    sink.remove_files()
    failed = sink.make(again, until_caught_up=True).start().until_ended()
    assert failed.status is Status.FAILED
    assert failed.failure.kind == "UploadRefused"
    assert_says(failed.failure.message, f"{last} is there", "another content", f"{sink.tmp_dir}")
    assert last.read_bytes() == b"another"
    assert sink.offsets(name, group=f"again-{sink.name}") == [40]


def test_a_topic_made_again_is_named_as_the_cause(
    sink: Sink, broker: Broker, topic: TopicFactory, producer: Producer, tmp_path: Path
) -> None:
    """Its offsets begin at 0 again, so a file of the same size has the name of an old one; nobody else wrote there."""
    name, out = topic(), tmp_path / "out"
    out.mkdir()
    produce_at_one_time(producer, name, numbered(40))
    keys = properties(sink, name, out, parquet_compression_codec="none")
    assert drain(sink, keys).status is Status.DONE
    [old] = names(out / sink.table)
    broker.delete_topic(name)
    broker.create_topic(name)
    sink.remove_files()
    produce_at_one_time(producer, name, numbered(40, 100))
    failed = drain(sink, {**keys, "consumer.override.group.id": f"again-{sink.name}"})
    assert (failed.status, names(out / sink.table)) == (Status.FAILED, [old])
    assert_says(
        failed.failure.message, f"Topic {name}", "topic-partition 0", "offsets 0 to 39", "was deleted and made again"
    )
    assert [row["n"] for row in rows(out / sink.table)] == list(range(40))
