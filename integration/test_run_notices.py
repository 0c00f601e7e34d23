"""Notices of accepted files, on a real broker and over real HTTP: none is missing, and no webhook holds files up."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from integration import buckets
from integration import dataframes as frames
from integration.conftest import TopicFactory
from integration.harness import Run, Sink
from integration.letters import letters
from integration.numbered import numbered
from integration.replaying import Command, replay
from integration.s3.server import S3Server
from parquet_sink import spark as parquet_sink
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.model.events import FileNotified
from parquet_sink.worker.loop.status import Status
from tests.notify.receiver import Receiver, receiver

__all__ = ["receiver", "replay"]
SECRET = "a secret of some length"


def told(broker: Broker, topic: str) -> list[tuple[str, dict[str, Any]]]:
    """Ids and data of the notices in a topic."""
    found = []
    for message in letters(broker, topic):
        headers = dict(message.headers() or ())
        found.append((str(headers["ce_id"], "utf-8"), json.loads(message.value() or b"")))
    return found


def accepted(run: Run) -> list[tuple[str, str | None]]:
    """Names and digests of files."""
    return sorted((one.file_name, one.digest) for one in run.receipts)


def named(notices: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, str | None]]:
    """Likewise, of notices."""
    return sorted((one["file"], one["sha256"]) for _, one in notices)


def test_each_accepted_file_has_a_notice(
    sink: Sink, broker: Broker, topic: TopicFactory, receiver: Receiver, tmp_path: Path, replay: Command
) -> None:
    """In the topic by the commit, at the webhook soon after, with the same id; a replay gives it again."""
    name, notices = topic(2), topic()
    for partition in range(2):
        broker.produce(name, numbered(100), partition)
    (tmp_path / "archive").mkdir()
    ems = {
        "commit_records": 40,
        "notify_topic": notices,
        "notify_url": receiver.url,
        "notify_secret": SECRET,
        "archive_url": f"directory:{tmp_path / 'archive'}",
    }
    run = sink.drain(name, **ems)
    assert run.status is Status.DONE
    found = told(broker, notices)
    assert len(found) == 6
    assert named(found) == accepted(run)
    assert {(one["connector"], one["topic"], one["table"]) for _, one in found} == {(sink.name, name, sink.table)}
    assert dict(receiver.taken) == dict(found)  # at least once: an answer that is late has one posted again
    assert [one.given_up for one in run.events if isinstance(one, FileNotified)] == [None] * 6
    assert not list(sink.tmp_dir.rglob(".notices/*"))
    status, again = replay(sink.properties(name, **ems), "--last", "6")
    assert (status, again["same"]) == (0, 6)
    ids = [id_ for id_, _ in told(broker, notices)]
    assert (set(ids), len(ids)) == ({id_ for id_, _ in found}, 12)


def test_nothing_is_committed_whose_notice_is_missing(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """While the topic is not there the range comes again; the target gets the file once; then all goes on."""
    name = topic()
    notices = f"late-{name}"
    broker.produce(name, numbered(10))
    run = sink.start(name, notify_topic=notices, max_retries=100)
    run.until(lambda: bool(sink.rows()))
    time.sleep(2)
    run.look()
    assert (sink.offsets(name), run.receipts) == ([0], [])
    broker.create_topic(notices, 1)
    run.until(lambda: sink.offsets(name) == [10])
    run.stop()
    assert named(told(broker, notices)) == accepted(run)


@pytest.mark.parametrize(("status", "wait_s"), [(500, 0.0), (200, 30.0)])
def test_a_webhook_that_takes_nothing_holds_nothing_up(
    status: int, wait_s: float, sink: Sink, broker: Broker, topic: TopicFactory, receiver: Receiver
) -> None:
    """It answers 500, or hangs: files are committed; what it does not take is given up, told and counted."""
    name = topic()
    receiver.answers, receiver.wait_s = [(status, {})], wait_s
    run = sink.start(name, notify_url=receiver.url, notify_max_waiting=2, commit_records=10)
    broker.produce(name, numbered(100))
    run.until(lambda: sink.offsets(name) == [100])
    assert len(run.look() or run.receipts) == 10
    run.until(lambda: len([one for one in run.events if isinstance(one, FileNotified)]) >= 7)
    given_up = [one for one in run.events if isinstance(one, FileNotified)]
    assert all("notify.max.waiting=2" in (one.given_up or "") for one in given_up)
    receiver.answers, receiver.wait_s = [(200, {})], 0.0
    run.stop()


def test_notices_that_wait_outlive_the_connector(
    sink: Sink, broker: Broker, topic: TopicFactory, receiver: Receiver
) -> None:
    """The webhook is down while it runs; the next start posts them."""
    name = topic()
    receiver.answers = [(503, {})]
    broker.produce(name, numbered(10))
    run = sink.drain(name, notify_url=receiver.url)
    assert (run.status, receiver.taken, len(list(sink.tmp_dir.rglob(".notices/*.json")))) == (Status.DONE, [], 1)
    receiver.answers = [(200, {})]
    again = sink.start(name, notify_url=receiver.url)
    again.until(lambda: named(receiver.taken) == accepted(run))
    again.stop()


def test_files_in_a_bucket_have_notices(
    sink: Sink, broker: Broker, topic: TopicFactory, receiver: Receiver, s3: S3Server
) -> None:
    """In topic and webhook alike; they name the bucket, and the file by the end of its key."""
    name, notices, bucket = topic(), topic(), s3.bucket()
    broker.produce(name, numbered(100))
    keys = buckets.properties(sink, name, bucket, s3.endpoint, notify_topic=notices, notify_url=receiver.url)
    run = buckets.drain(sink, keys)
    assert run.status is Status.DONE
    found = told(broker, notices)
    assert named(found) == accepted(run)
    assert all(bucket in one["target"] for _, one in found)
    assert sorted(key.rpartition("/")[2] for key in s3.keys(bucket)) == sorted(one["file"] for _, one in found)
    assert dict(receiver.taken) == dict(found)


def test_files_of_a_dataframe_have_notices(
    sink: Sink, broker: Broker, topic: TopicFactory, receiver: Receiver, tmp_path: Path
) -> None:
    """The program posts them, and archives what waits for that, before it lets go; topics need brokers of their own."""
    notices, archive = topic(), tmp_path / "archive"
    archive.mkdir()
    parquet_sink.register(sink.spark)
    behind = {"archive_url": f"directory:{archive}", "archive_required": "false", "notify_url": receiver.url}
    file = Path(frames.connector_file(sink, tmp_path, notify_topic=notices, **behind))
    with pytest.raises(InvalidConfiguration, match=rf"notify\.topic\].*{notices}.*producer\.override\.bootstrap"):
        frames.once(sink, tmp_path, str(file))
    file.write_text(f"{file.read_text()}producer.override.bootstrap.servers={broker.bootstrap_servers}\n")
    frames.land(sink, tmp_path, range(10))
    frames.once(sink, tmp_path, str(file))
    found = told(broker, notices)
    assert sorted(one["file"] for _, one in found) == sorted(frames.names(sink))
    assert len(found) == 3
    assert dict(receiver.taken) == dict(found)
    assert sorted(one.name for one in archive.rglob("*.parquet")) == sorted(frames.names(sink))
    assert not list(sink.tmp_dir.rglob(".notices/*"))
