"""Raw mode on real parts: what was produced is in files as it was, comes again the same, and is shaped later."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

from integration.conftest import TopicFactory
from integration.harness import WORKER, Sink
from integration.replaying import Command, replay
from integration.s3.server import ACCESS_KEY, SECRET_KEY, S3Server
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.cli.main import main
from parquet_sink.worker.loop.status import Status

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
    sink.remove_files()
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


def test_raw_files_in_a_bucket(
    sink: Sink, broker: Broker, topic: TopicFactory, s3: S3Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bucket takes them, an archive keeps them; from both they are reshaped into a bucket, as the same file."""
    name, bucket, other = topic(config={"retention.ms": "-1"}), s3.bucket(), s3.bucket()
    produce(broker, name, 0)
    (tmp_path / "archive").mkdir()
    access = {
        "connect.ems.s3.endpoint": s3.endpoint,
        "connect.ems.s3.access.key.id": ACCESS_KEY,
        "connect.ems.s3.secret.access.key": SECRET_KEY,
    }
    of_bucket = {**access, "connect.ems.target.type": "s3", "connect.ems.s3.bucket": bucket}
    archived = {"connect.ems.archive.url": f"directory:{tmp_path / 'archive'}"}
    run = sink.drain(name, {**of_bucket, **archived}, mode="raw", commit_records=40)
    assert run.status is Status.DONE
    kept = {path.name for path in (tmp_path / "archive").rglob("*.parquet")}
    assert kept == {path.rpartition("/")[2] for path in keys(s3, bucket)} == {one.file_name for one in run.receipts}
    shaped, path = sink.properties(name, data_primary_key="kafkaPartition,kafkaOffset"), tmp_path / "c.properties"
    lines = {**shaped, **access, "errors.tolerance": "all", **WORKER}
    path.write_text("".join(f"{key}={text}\n" for key, text in lines.items()))
    words = ["reshape", str(path), f"s3://{bucket}/{name}", "--out", f"s3://{other}/lake/{{topic}}"]
    assert main(words) == 2
    assert "Invalid [--rejected]. It is missing" in capsys.readouterr().err
    words += ["--rejected", str(tmp_path / "bad")]
    for _ in range(2):
        assert main(words) == 0
    (key,) = (one for one in keys(s3, other) if "/.reshaped/" not in one)
    assert key.startswith(f"lake/{name}/topic-{name}_partition-0_firstOffset-0_lastOffset-99_")
    body = io.BytesIO(s3.client.get_object(Bucket=other, Key=key)["Body"].read())
    assert pq.read_metadata(body).num_rows == 97
    assert main([*words[:2], str(tmp_path / "archive"), *words[3:]]) == 0
    s3.client.put_object(Bucket=bucket, Key=f"{name}/a.parquet", Body=b"")
    s3.client.put_object(Bucket=bucket, Key="other/a.txt", Body=b"")
    assert main([*words[:3], f"s3://{bucket}/other", "s3://no-such-bucket/", *words[3:]]) == 2
    told = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[0] for line in told if line.startswith("Invalid")] == [
        f"Invalid [FILES]. s3://{one}" for one in (f"{bucket}/{name}/a.parquet", f"{bucket}/other", "no-such-bucket/")
    ]


def keys(s3: S3Server, bucket: str) -> list[str]:
    """Of all objects."""
    return [one["Key"] for one in s3.client.list_objects_v2(Bucket=bucket).get("Contents", ())]
