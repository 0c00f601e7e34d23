"""The history of uploads, as real runs leave it."""

import hashlib
import json
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Producer

from integration.conftest import TopicFactory
from integration.harness import Sink
from integration.numbered import numbered
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.cli.main import main
from parquet_sink.history.locating import locate
from parquet_sink.history.sqlite import read_history

T0 = 1_700_000_000_000
JSON = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}


def test_what_was_sent_is_known_afterwards(
    sink: Sink,
    broker: Broker,
    topic: TopicFactory,
    producer: Producer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each file's digest, attempts and age are true, a repetition is counted, and the command finds a record."""
    name = topic(1, config={"retention.ms": "-1"})
    for n in range(25):
        producer.produce(name, json.dumps({"n": n}).encode(), partition=0, timestamp=T0 + (25 - n) * 1_000)
    assert producer.flush(20) == 0
    sink.target.client.order_faults({"status": 503, "next": 1})
    run = sink.drain(name, commit_records=10, debug_keep_parquet_files=True)
    path = Path(run.settings.history_file)
    kept = sink.tmp_dir / sink.name / name / "0"
    with closing(read_history(path)) as history:
        first, second, last = history.files()
        (span, *more) = history.ranges()
        assert locate(history, name, 0, 25).delivered is False
    assert [one.reason for one in (first, second, last)] == ["records", "records", "end_of_input"]
    assert [one.oldest_ms for one in (first, second, last)] == [T0 + 16_000, T0 + 6_000, T0 + 1_000]
    for one in (first, second, last):
        content = (kept / f"{one.last_offset}.parquet").read_bytes()
        assert (one.digest, one.size_bytes) == (hashlib.sha256(content).hexdigest(), len(content))
    assert [(one.verdict, one.status) for one in first.tried] == [("unknown", 503), ("accepted", 200)]
    assert (first.attempts, second.attempts, first.topic_id) == (2, 1, span.topic_id)
    assert (span.start, max(one.done_until for one in (span, *more))) == (0, 25)
    assert span.topic_id != ""

    broker.consumer_groups("--reset-offsets", "--group", sink.group, "--topic", name, "--to-offset", "0", "--execute")
    sink.drain(name, commit_records=10)
    file = tmp_path / "sink.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in (sink.properties(name) | JSON).items()))
    words = ["--bootstrap-servers", broker.bootstrap_servers, str(file)]
    capsys.readouterr()
    assert main(["history", "--json", "--offset", "12", *words]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["file_name"], one["digest"], one["repeat"]) for one in found] == [
        (second.file_name, second.digest, 0),
        (second.file_name, second.digest, 1),
    ]
    assert main(["history", "--where", f"{name}:0:12", *words]) == 0
    assert f"in file {second.file_name} " in capsys.readouterr().out


def test_a_history_that_breaks_stops_nothing(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """Torn while it runs, or not to be written at all: everything is delivered, and what comes later is kept."""
    name = topic()
    broker.produce(name, numbered(10))
    run = sink.start(name).until_records(10)
    path = Path(run.settings.history_file)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.unlink()
    path.mkdir()
    broker.produce(name, numbered(10, 10))
    run.until_records(20)
    path.rmdir()
    path.write_bytes(b"no database" * 1_000)
    broker.produce(name, numbered(10, 20))
    run.until_records(30).stop()
    assert sink.offsets(name) == [30]
    with closing(read_history(path)) as history:
        assert locate(history, name, 0, 25).delivered
        assert not locate(history, name, 0, 15).delivered
