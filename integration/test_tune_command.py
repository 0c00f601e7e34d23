"""`parquet-sink tune` on real topics: what it learns of them, and that it leaves no trace."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from integration.conftest import TopicFactory
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.cli.main import main
from tests.messages import assert_says

FILE = """\
name={name}
topics={topic}
value.converter=JsonConverter
value.converter.schemas.enable=false
connect.ems.endpoint=https://127.0.0.1:9/nowhere
connect.ems.authorization.key=AppKey demo
connect.ems.target.table=T
connect.ems.commit.size.bytes=10000000
connect.ems.commit.records=100000
connect.ems.commit.interval.ms=60000
connect.ems.tmp.dir={folder}/tmp
consumer.override.bootstrap.servers={servers}
"""


@pytest.fixture
def connector(tmp_path: Path, broker: Broker, topic: TopicFactory) -> tuple[str, str]:
    """A topic with two topic-partitions, and the connector file that reads it."""
    name = topic(partitions=2, prefix="tuned")
    path = tmp_path / "orders.properties"
    path.write_text(FILE.format(name=name, topic=name, folder=tmp_path, servers=broker.bootstrap_servers))
    return name, str(path)


def fill(producer: Producer, topic: str, seconds: int, every_s: float = 0.1) -> None:
    """Records of the last seconds: topic-partition 0 gets three of four. Some in the middle are broken JSON."""
    now = time.time()
    for number in range(int(seconds / every_s)):
        value = json.dumps({"id": number, "name": f"name {number % 7}", "amount": number / 4}).encode()
        at_ms = int((now - seconds + number * every_s) * 1000)
        producer.produce(topic, b"broken" if number == 50 else value, partition=int(number % 4 == 3), timestamp=at_ms)
        producer.poll(0)
    assert producer.flush(30) == 0


def check_rates(found: dict[str, Any]) -> None:
    """Three of four records are in the first topic-partition; of the time up to now a part is behind the last one."""
    first, second = (one["records_per_second"] for one in found["load"]["partitions"])
    assert first / second == pytest.approx(3, rel=0.03)
    assert 5 < first + second < 10.1


def groups(broker: Broker) -> set[str]:
    """All consumer groups that Kafka knows."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    return {one.group_id for one in admin.list_consumer_groups().result().valid}


def tuned(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """What the command says as JSON."""
    assert main(["tune", "--json", "--freshness", "2m", *words]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_what_topics_get_is_learned(
    connector: tuple[str, str], producer: Producer, broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rates, skew, sizes and records without a row are those of the topic; no group appears, nothing is committed."""
    topic, path = connector
    fill(producer, topic, 300)
    before = groups(broker)
    found = tuned(capsys, "--sample", "4m", path)
    check_rates(found)
    points = found["load"]["partitions"][0]["file_bytes"]
    assert points[0][0] == 0
    assert points == sorted(points)
    assert points[-1][0] > 1_000
    assert found["load"]["span_s"] == pytest.approx(240, abs=2)
    assert found["present"]["keys"]["connect.ems.commit.interval.ms"] == 60_000
    assert found["recommended"]["freshness"]["p99_s"] <= 120
    assert groups(broker) == before
    whole = tuned(capsys, "--records", "100000", path)
    assert whole["load"]["described"].startswith("3,000 records of ")
    assert any("1 of 3,000 sampled records" in one and "have no row" in one for one in whole["load"]["notes"])


def test_a_part_of_a_long_topic_is_read(
    connector: tuple[str, str], producer: Producer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where more came than is to be read, the broker is asked when the others came: the rates are the same."""
    topic, path = connector
    fill(producer, topic, 300)
    found = tuned(capsys, "--sample", "4m", "--records", "200", path)
    assert any("200 of 2," in one for one in found["load"]["notes"])
    check_rates(found)


def test_topics_without_records(connector: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """An empty topic, and one that is not there, are named with the cure; the status says so."""
    topic, path = connector
    assert main(["tune", path]) == 2
    assert_says(capsys.readouterr().err, f"no record of {topic}", "Send some", "state the load")
    text = Path(path).read_text()
    Path(path).write_text(text.replace(f"topics={topic}", "topics=not-there"))
    assert main(["tune", path]) == 1
    assert "Topic not-there does not exist" in capsys.readouterr().err


def test_topics_without_recent_or_readable_records(
    connector: tuple[str, str], producer: Producer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Old records are found by number and not by time; records none of which has a row are told, with what to do."""
    topic, path = connector
    for number in range(50):
        producer.produce(topic, b"broken", partition=0, timestamp=1_600_000_000_000 + number * 1_000)
    assert producer.flush(30) == 0
    assert main(["tune", "--sample", "10m", path]) == 2
    assert_says(capsys.readouterr().err, "No record", "last 10 min", "longer --sample", "--records N")
    assert main(["tune", "--records", "50", path]) == 2
    assert_says(capsys.readouterr().err, "None of the 50 records", topic, "has a row")


def test_an_interrupt_ends_it(connector: tuple[str, str], producer: Producer, tmp_path: Path) -> None:
    """Ctrl-C ends the command at once with 130 and without a trace; the connector file is as it was."""
    topic, path = connector
    fill(producer, topic, 600, 0.02)
    before = Path(path).read_text()
    words = [sys.executable, "-m", "parquet_sink", "tune", "--progress", "--sample", "10m", "--apply", path]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}) as one:
        assert one.stderr is not None
        for line in one.stderr:
            if line.startswith("simulating settings"):
                break
        one.send_signal(signal.SIGINT)
        assert "Traceback" not in one.stderr.read()
        assert one.wait(60) == 130
    assert Path(path).read_text() == before
    assert sorted(found.name for found in tmp_path.iterdir()) == ["orders.properties"]
