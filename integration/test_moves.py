"""A connector moves to another worker: what it left in its folder at the first one is neither lost nor hidden."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIGTERM
from typing import Any, Final, cast

import pytest

from integration.harness import Sink, undeclared
from integration.letters import letters
from integration.numbered import numbered, numbers
from integration.s3.server import ACCESS_KEY, REGION, SECRET_KEY, S3Server
from integration.worker_group import WorkerGroup, create
from integration.worker_process import WorkerProcess
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.cli.main import main
from tests.notify.receiver import Receiver, receiver

__all__ = ["receiver"]
COUNT: Final = 20
BUCKET: Final = "archived"


@pytest.fixture
def group(tmp_path: Path, broker: Broker) -> Iterator[WorkerGroup]:
    """Two workers that have found each other."""
    made = WorkerGroup(tmp_path, broker, 2)
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
def sink(broker: Broker, target: TargetProcess, tmp_path: Path) -> Sink:
    """Properties, rows and offsets of the connector."""
    return Sink(cast(Any, None), broker, target, tmp_path)


def archive_keys(server: S3Server) -> dict[str, object]:
    """Return the keys of a connector that does not wait for its archive."""
    return {
        "archive_url": f"s3://{BUCKET}/kept",
        "archive_required": "false",
        "s3_endpoint": server.endpoint,
        "s3_region": REGION,
        "s3_access_key_id": ACCESS_KEY,
        "s3_secret_access_key": SECRET_KEY,
    }


def move(group: WorkerGroup, name: str, begin: Callable[[], None]) -> tuple[WorkerProcess, WorkerProcess]:
    """Stop the worker that has a connector. Return it, and the one that runs it now. begin: once it is running."""
    asked = group.workers[0]
    group.until(lambda: asked.states() == {name: "RUNNING"})
    owner = group.worker_of(name, asked)
    left = next(worker for worker in group.workers if worker is not owner)
    begin()
    owner.command.send(SIGTERM)
    assert owner.command.ended() == 0, owner.command.said[-3_000:]
    group.until(lambda: left.states() == {name: "RUNNING"} and group.worker_of(name, left) is left)
    return owner, left


def test_what_waits_at_one_worker_is_sent_by_it(
    group: WorkerGroup, sink: Sink, broker: Broker, receiver: Receiver
) -> None:
    """Archive and webhook take nothing; the connector moves; once they do, its former worker sends what it has."""
    topic, bucket = f"topic-{time.time_ns()}", S3Server()
    broker.create_topic(topic, 1)
    receiver.answers = [(503, {})]
    create(group.workers[0], [sink], [topic], notify_url=receiver.url, **archive_keys(bucket))

    def begin() -> None:
        broker.produce(topic, numbered(COUNT))
        group.until(lambda: sorted(numbers(sink.rows())) == list(range(COUNT)) and sink.offsets(topic) == [COUNT])

    owner, left = move(group, sink.name, begin)
    waiting = [*sink.tmp_dir.rglob(".archive/*/*.parquet"), *sink.tmp_dir.rglob(".notices/*.json")]
    assert len(waiting) >= 2
    receiver.answers = [(204, {})]
    with bucket:
        bucket.client.create_bucket(Bucket=BUCKET)
        owner.start()
        group.until(lambda: not any(path.exists() for path in waiting))
        archived = {key.rpartition("/")[2] for key in bucket.keys(BUCKET, "kept/")}
    assert group.worker_of(sink.name, owner) is left
    names = {file["name"] for file in sink.target.client.files(sink.table)}
    assert archived == names
    assert {notice["file"] for _, notice in receiver.taken} == names
    assert "this worker does not run it" in owner.command.said


def say(capsys: pytest.CaptureFixture[str], worker: WorkerProcess, *words: str) -> tuple[int, str]:
    """Return status and words of a command that asks a worker."""
    capsys.readouterr()
    status = main([*words, "--url", worker.url])
    printed = capsys.readouterr()
    return status, printed.out + printed.err


def test_what_one_worker_has_is_asked_of_it(
    group: WorkerGroup, sink: Sink, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Parked records, history and archive: its former worker is asked too, and named where it does not answer.

    In the end a purge by any worker removes what both have.
    """
    topic, archive = f"topic-{time.time_ns()}", tmp_path / "archive"
    broker.create_topic(topic, 1)
    archive.mkdir()
    parks = {"error_policy": "CONTINUE", "flattener_jsonblob_chunks": 1, "data_fallback_varchar_length": 40}
    create(group.workers[0], [sink], [topic], archive_url=f"directory:{archive}", **parks)

    def send(first: int) -> None:
        records = [{"n": first}, {"n": first + 1, "t": "x" * 60}]
        broker.produce(topic, [(b"key", json.dumps(record).encode()) for record in records])
        group.until(lambda: sink.offsets(topic) == [first + 2])

    owner, left = move(group, sink.name, lambda: send(0))
    owner_id = owner.url.removeprefix("http://")
    send(2)
    of_it = ("--connector", sink.name)
    for command in (("parked", "list"), ("parked", "replay"), ("history",), ("archive", "verify")):
        status, words = say(capsys, left, *command, *of_it)
        assert status == 1, words
        assert f"Worker {owner_id} does not answer" in words
        assert "complete:" not in words
    owner.start()
    group.until(lambda: say(capsys, left, "parked", "list", *of_it)[0] == 0)
    status, words = say(capsys, left, "archive", "verify", *of_it)
    assert (status, "complete: 2 files" in words) == (0, True), words
    assert left.ask("DELETE", f"/connectors/{sink.name}?purge=true").status_code == 409
    status, words = say(capsys, left, "parked", "drop", "--all", "--yes", *of_it)
    assert (status, words.count("1 record dropped")) == (0, 2), words
    folders = list(sink.tmp_dir.glob(f"*/{sink.name}"))
    assert len(folders) == 2
    assert [path for folder in folders for path in undeclared(folder)] == []
    assert left.do("DELETE", f"/connectors/{sink.name}?purge=true") == {"left": [], "warnings": []}
    assert [folder for folder in folders if folder.exists()] == []


def test_a_file_that_was_rotated_is_read_to_its_end_elsewhere(
    group: WorkerGroup, broker: Broker, tmp_path: Path
) -> None:
    """Its next lines are in a file of another name by the time another worker runs the source."""
    source, topic = tmp_path / "lines.txt", f"lines-{time.time_ns()}"
    broker.create_topic(topic, 1)
    source.write_text(lines(0, 1_000))
    string = "org.apache.kafka.connect.storage.StringConverter"
    config = {"connector.class": "FileStreamSource", "file": str(source), "topic": topic, "value.converter": string}
    group.workers[0].do("POST", "/connectors", {"name": "lines-in", "config": config})

    def received() -> set[str]:
        return {str(letter.value() or b"", "utf-8") for letter in letters(broker, topic)}

    def begin() -> None:
        group.until(lambda: len(received()) == 1_000)
        group.workers[0].do("PUT", "/connectors/lines-in/pause")
        group.until(lambda: set(group.workers[0].states().values()) == {"PAUSED"})
        with source.open("a") as file:
            file.write(lines(1_000, 2_000))
        source.rename(tmp_path / "lines.txt.1")
        source.write_text(lines(2_000, 3_000))

    asked = group.workers[0]
    group.until(lambda: asked.states() == {"lines-in": "RUNNING"})
    owner = group.worker_of("lines-in", asked)
    begin()
    owner.command.send(SIGTERM)
    assert owner.command.ended() == 0, owner.command.said[-3_000:]
    left = next(worker for worker in group.workers if worker is not owner)
    group.until(lambda: group.worker_of("lines-in", left) is left)
    left.do("PUT", "/connectors/lines-in/resume")
    group.until(lambda: len(received()) == 3_000)
    assert received() == set(lines(0, 3_000).splitlines())


def lines(first: int, end: int) -> str:
    """Return numbered lines."""
    return "".join(f"line {number}\n" for number in range(first, end))
