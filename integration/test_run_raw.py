"""Raw mode on real parts: what was produced is in files as it was, comes again the same, and is shaped later."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
from confluent_kafka import Producer

from integration.conftest import TopicFactory
from integration.harness import Sink
from integration.replaying import Command, replay
from parquet_sink.cli import main
from parquet_sink.devkit.broker import Broker
from parquet_sink.runtime.status import Status

__all__ = ["replay"]

KEYS: Final = "topic,partition,offset"
STAMP: Final = 1_700_000_000_000
Record = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]
RECORDS: Final[Sequence[Record]] = [
    (None, b'{"n": 1}', []),
    (b"", b"", [("", b"")]),
    (b"\xff\x00", None, [("a", None), ("a", b"\x80"), ("\u00e9", b"x")]),
    (b"k", b"no JSON {", []),
    *((b"k-%d" % n, b'{"n": %d}' % n, [("n", b"%d" % n)] if n % 3 else []) for n in range(96)),
]


def produce(broker: Broker, topic: str, partition: int) -> None:
    """All records, each a millisecond later than the one before."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for at, (key, value, headers) in enumerate(RECORDS):
        producer.produce(topic, value, key, partition, timestamp=STAMP + at, headers=headers)
    assert producer.flush(30) == 0


def expected(topic: str, partition: int) -> list[dict[str, Any]]:
    """The rows of all records."""
    return [
        {
            "key": key,
            "value": value,
            "headers": [{"key": name, "value": text} for name, text in headers],
            "timestamp": STAMP + at,
            "timestamp_type": "CreateTime",
            "topic": topic,
            "partition": partition,
            "offset": at,
        }
        for at, (key, value, headers) in enumerate(RECORDS)
    ]


def rows(folder: Path) -> list[dict[str, Any]]:
    """All rows of all files, in the order of topic-partition and offset."""
    found = [row for path in folder.glob("*.parquet") for row in pq.read_table(path).to_pylist()]
    return sorted(found, key=lambda row: (row["partition"], row["offset"]))


def test_records_are_kept_as_they_came(
    sink: Sink, broker: Broker, topic: TopicFactory, replay: Command, tmp_path: Path
) -> None:
    """Null and empty, tombstones and spoilt ones, byte for byte, in a folder as at a push API, and again by replay.

    Reshaped they are the rows that a shaped connector makes of the topic.
    """
    name, out = topic(2, config={"retention.ms": "-1"}), tmp_path / "out"
    out.mkdir()
    for partition in range(2):
        produce(broker, name, partition)
    raw = {"mode": "raw", "data_primary_key": KEYS, "commit_records": 40}
    assert sink.drain(name, **raw).status is Status.DONE
    assert sink.offsets(name, 2) == [100, 100]
    sent = {one["name"]: one["sha256"] for one in sink.target.client.files(sink.table)}
    assert len(sent) == 6
    status, found = replay(sink.properties(name, **raw))
    assert (status, found["same"], found["different"], found["new"]) == (0, 6, 0, 0)
    assert len(sink.rows()) == 200
    shutil.rmtree(sink.tmp_dir)
    keys = sink.properties(name, endpoint=f"directory:{out}", **raw)
    again = sink.make({**keys, "consumer.override.group.id": f"again-{sink.name}"}, until_caught_up=True)
    assert again.start().until_ended().status is Status.DONE
    assert {path.name for path in (out / sink.table).glob("*.parquet")} == set(sent)
    assert rows(out / sink.table) == [*expected(name, 0), *expected(name, 1)]
    shaped = sink.properties(name, data_primary_key="kafkaPartition,kafkaOffset", commit_records=30)
    shaped |= {"errors.tolerance": "all", "connect.ems.endpoint": f"directory:{tmp_path}"}
    by_files = reshaped(shaped, out / sink.table, tmp_path)
    direct = sink.make({**shaped, "consumer.override.group.id": f"direct-{sink.name}"}, until_caught_up=True)
    assert direct.start().until_ended().status is Status.DONE
    assert by_files == shaped_rows(tmp_path / sink.table)
    assert len(by_files) == 2 * 97


def reshaped(properties: dict[str, str], raw: Path, folder: Path) -> list[dict[str, Any]]:
    """Rows that the command makes of raw files."""
    path, out = folder / "shaped.properties", folder / "reshaped"
    lines = {**properties, "value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
    path.write_text("".join(f"{key}={text}\n" for key, text in lines.items()))
    assert main(["reshape", str(path), str(raw), "--out", str(out)]) == 0
    (table,) = (one for one in out.iterdir() if one.name not in ("_rejected", ".reshaped"))
    return shaped_rows(table)


def shaped_rows(folder: Path) -> list[dict[str, Any]]:
    """All rows of all files, in the order of topic-partition and offset."""
    found = [row for path in folder.glob("*.parquet") for row in pq.read_table(path).to_pylist()]
    return sorted(found, key=lambda row: (row["kafkaPartition"], row["kafkaOffset"]))


def test_who_gives_timestamps_is_kept(sink: Sink, broker: Broker, topic: TopicFactory, tmp_path: Path) -> None:
    """The broker's own are told from the producer's."""
    name, out = topic(config={"message.timestamp.type": "LogAppendTime"}), tmp_path / "out"
    out.mkdir()
    broker.produce(name, [(None, b"a")])
    assert sink.drain(name, mode="raw", endpoint=f"directory:{out}").status is Status.DONE
    (row,) = rows(out / sink.table)
    assert (row["timestamp_type"], row["timestamp"] > STAMP) == ("LogAppendTime", True)
