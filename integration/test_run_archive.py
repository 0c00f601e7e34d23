"""Connectors with an archive, on a real broker: what is archived when, and what follows where it is not."""

from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from integration.conftest import TopicFactory
from integration.harness import WORKER, Run, Sink
from integration.numbered import numbered
from integration.replaying import Command, replay
from integration.s3.server import ACCESS_KEY, REGION, SECRET_KEY, S3Server
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.cli import main as cli
from parquet_sink.history.records import UploadRecord
from parquet_sink.history.sqlite import read_history
from parquet_sink.model.events import FileArchived
from parquet_sink.worker.loop.status import Status
from tests.messages import assert_says

__all__ = ["replay"]


def kept(folder: Path) -> dict[str, str]:
    """Digests of what an archive has, by the path within."""
    files = (path for path in folder.rglob("*.parquet"))
    return {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in files}


def uploads(run: Run) -> list[UploadRecord]:
    """What the history has."""
    with closing(read_history(Path(run.settings.history_file))) as history:
        return list(history.files())


def verified(sink: Sink, properties: Mapping[str, str], folder: Path) -> int:
    """The status of `archive verify` for a connector file with these properties."""
    file, worker = folder / "archived.properties", folder / "worker.properties"
    file.write_text("".join(f"{key}={text}\n" for key, text in properties.items()))
    shared = {**WORKER, "bootstrap.servers": sink.broker.bootstrap_servers}
    worker.write_text("".join(f"{key}={text}\n" for key, text in shared.items()))
    return cli.main(["archive", "verify", "--worker", str(worker), str(file)])


def dated_names(run: Run) -> set[str]:
    """Names of files below day and hour of their first record, which was the oldest."""
    return {
        f"{datetime.fromtimestamp((one.oldest_ms or 0) / 1000, UTC):%Y-%m-%d/%H}/{one.file_name}"
        for one in run.receipts
    }


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An empty folder."""
    (tmp_path / "archive").mkdir()
    return tmp_path / "archive"


def test_what_the_target_took_is_archived_before_it_counts(
    sink: Sink, broker: Broker, topic: TopicFactory, archive: Path
) -> None:
    """The same files with the same bytes; a resend is the same there; without the archive nothing is committed."""
    name = topic(2)
    for partition in range(2):
        broker.produce(name, numbered(100), partition)
    ems = {"commit_records": 40, "archive_url": f"directory:{archive}"}
    run = sink.drain(name, **ems)
    assert run.status is Status.DONE
    expected = {f"{sink.name}/{name}/{one.file_name}": one.digest for one in run.receipts}
    assert kept(archive) == expected
    assert len(expected) == 6
    assert [one.archive and (one.archive.place, one.archive.cause) for one in uploads(run)] == [
        (f"directory:{archive}", None)
    ] * 6
    assert verified(sink, sink.properties(name, **ems), archive.parent) == 0
    sink.remove_files()
    again = {**sink.properties(name, **ems), "consumer.override.group.id": f"again-{sink.name}"}
    assert sink.make(again, until_caught_up=True).start().until_ended().status is Status.DONE
    assert kept(archive) == expected
    archive.rename(archive.parent / "away")
    broker.produce(name, numbered(10))
    failed = sink.drain(name, **ems, max_retries=2)
    assert (failed.status, failed.failure.kind) == (Status.FAILED, "UploadExhausted")
    assert_says(failed.failure.message, "is not archived", "connect.ems.archive.url", "archive directory:")
    assert sink.offsets(name, 2) == [100, 100]


def test_an_archive_that_is_not_required_holds_nothing_up(
    sink: Sink, broker: Broker, topic: TopicFactory, archive: Path
) -> None:
    """While it is away files are accepted and wait; once it is back they are archived, and the history says so."""
    name = topic()
    archive.rename(archive.parent / "away")
    ems = {"archive_url": f"directory:{archive}", "archive_required": "false", "retry_interval": 1_000}
    run = sink.start(name, **ems)
    broker.produce(name, numbered(10))
    run.until_records(10).until(lambda: sink.offsets(name) == [10])
    assert list(sink.tmp_dir.rglob(".archive/*/*.parquet"))
    (archive.parent / "away").rename(archive)
    run.until(lambda: [one.archive is not None for one in uploads(run)] == [True])
    run.stop()
    [told] = [one for one in run.events if isinstance(one, FileArchived)]
    assert (told.file_name, told.archive.cause) == (run.receipts[0].file_name, None)
    assert kept(archive) == {f"{sink.name}/{name}/{one.file_name}": one.digest for one in run.receipts}
    assert not list(sink.tmp_dir.rglob(".archive/*/*.parquet"))


def test_a_replay_takes_from_the_archive_what_kafka_no_longer_has(
    sink: Sink, broker: Broker, topic: TopicFactory, archive: Path, tmp_path: Path, replay: Command
) -> None:
    """Deleted by retention, then with the whole topic: the same files come again, and a dry run says from where."""
    name = topic()
    ems = {"commit_records": 40, "archive_url": f"directory:{archive}"}
    broker.produce(name, numbered(100))
    first = {one.file_name: one.digest for one in sink.drain(name, **ems).receipts}
    assert len(first) == 3
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_records([TopicPartition(name, 0, 50)])[TopicPartition(name, 0)].result(20)
    properties = sink.properties(name, **ems)
    status, foretold = replay(properties, "--dry-run", "--from", "0", "--to", "99")
    assert (status, foretold["missing"]) == (0, [])
    assert [one["from_archive"] for one in foretold["ranges"] if one["from"] < 50] == [True, True]
    assert sum(one["files"] for one in foretold["ranges"]) == 3
    admin.delete_topics([name])[name].result(20)
    (tmp_path / "other").mkdir()
    status, found = replay(properties, "--target", f"directory:{tmp_path / 'other'}")
    assert (status, found["same"], found["from_archive"]) == (0, 3, 3)
    sent = {path.name: sha256(path.read_bytes()).hexdigest() for path in (tmp_path / "other").rglob("*.parquet")}
    assert sent == first


def test_a_bucket_is_an_archive(
    sink: Sink,
    broker: Broker,
    topic: TopicFactory,
    s3: S3Server,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    replay: Command,
) -> None:
    """Kept, verified, sent again from there; what was altered, or cannot be read, is told."""
    name, bucket = topic(), s3.bucket()
    ems = {
        "commit_records": 40,
        "archive_url": f"s3://{bucket}/kept",
        "s3_endpoint": s3.endpoint,
        "s3_region": REGION,
        "s3_access_key_id": ACCESS_KEY,
        "s3_secret_access_key": SECRET_KEY,
    }
    properties = sink.properties(name, **ems)
    broker.produce(name, numbered(100))
    run = sink.drain(name, **ems)
    where = {f"kept/{sink.name}/{name}/{one.file_name}": one.digest for one in run.receipts}
    assert {one["Key"] for one in s3.client.list_objects_v2(Bucket=bucket)["Contents"]} == set(where)
    assert verified(sink, properties, tmp_path) == 0
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_records([TopicPartition(name, 0, 100)])[TopicPartition(name, 0)].result(20)
    status, found = replay(properties, "--from", "0", "--to", "99")
    assert (status, found["same"], found["from_archive"]) == (0, 3, 3)
    other = s3.bucket()
    status, found = replay(properties, "--target", f"s3://{other}/lake/{{topic}}")
    objects = s3.client.list_objects_v2(Bucket=other)["Contents"]
    assert (status, found["same"]) == (0, 3)
    assert {one["Key"] for one in objects} == {f"lake/{name}/{one.file_name}" for one in run.receipts}
    status, _ = replay(properties, "--target", f"s3://{other}/days/{{yyyy}}-{{MM}}-{{dd}}/{{HH}}")
    assert (status, set(s3.keys(other, "days/"))) == (0, {f"days/{one}" for one in dated_names(run)})
    first, second, _ = sorted(where)
    s3.client.delete_object(Bucket=bucket, Key=first)
    size_bytes = s3.client.head_object(Bucket=bucket, Key=second)["ContentLength"]
    s3.client.put_object(Bucket=bucket, Key=second, Body=b"x" * size_bytes)
    capsys.readouterr()
    assert verified(sink, properties, tmp_path) == 1
    told = capsys.readouterr().out
    assert_says(told, "1 file missing", "1 file altered", "2 files")
    assert verified(sink, {**properties, "connect.ems.archive.url": f"s3://{bucket}-away/kept"}, tmp_path) == 1
    said = capsys.readouterr().err
    assert "connect.ems.archive.url" in said
    assert "start the connector" not in said
