"""Somebody removes what a running connector uses, at the worst moment: everything arrives, once under each name."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from integration import scripted_target as script
from integration.conftest import TopicFactory
from integration.faults.front import Front, kept
from integration.harness import WORKER, Run, Sink
from integration.letters import letters
from integration.numbered import PATIENCE_S, numbered, numbers
from integration.scripted_target import Behaviour
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.connectors.loading import load
from parquet_sink.files import naming
from parquet_sink.worker.loop.status import Status
from parquet_sink.worker_config.worker_file import load_worker

BUSY: Behaviour = script.answer(503, b"", "Retry-After: 3")
"""After which the task gives its slot back: whether the range comes again is in the state file alone."""


def folder_of(sink: Sink) -> Path:
    """Of the connector's own files."""
    return Path(naming.connector_folder(str(sink.tmp_dir), sink.name))


@contextmanager
def front_of(sink: Sink, first: Behaviour) -> Iterator[Front]:
    """Before the target; the first attempt is answered by `first`, all others are passed on."""
    with Front(int(sink.target.url.rpartition(":")[2]), [first]) as front:
        yield front


def after(remove: Callable[[], object], behave: Behaviour) -> Behaviour:
    """The whole file has come, something is removed, and then comes the answer."""

    def both(connection: script.Connection) -> None:
        connection.read_body()
        remove()
        behave(connection)

    return both


def names(front: Front) -> list[tuple[str, str | None]]:
    """Names and digests of what was sent, in order."""
    return [(one.name, one.digest) for one in front.attempts]


@pytest.mark.parametrize("lost", [".state.db", ".state.db-wal", ".state.db-shm"])
def test_the_state_file_goes_during_an_upload_that_is_to_come_again(
    sink: Sink, broker: Broker, topic: TopicFactory, lost: str
) -> None:
    """What became of the range is not known, so it is not committed; it comes again as the same file."""
    name = topic()
    broker.produce(name, numbered(30))
    remove = after((folder_of(sink) / lost).unlink, BUSY)
    with front_of(sink, remove) as front:
        run = sink.start(name, endpoint=front.endpoint)
        run.until(lambda: sink.offsets(name) == [30])
        broker.produce(name, numbered(5, 30))
        run.until(lambda: sink.offsets(name) == [35]).stop()
    assert sorted(set(numbers(sink.rows()))) == list(range(35))
    first, again, *later = names(front)
    assert first == again
    assert len(later) == 1
    assert run.status is Status.DONE


def test_tmp_dir_goes_between_a_file_s_acceptance_and_its_note(
    sink: Sink, broker: Broker, topic: TopicFactory, caplog: pytest.LogCaptureFixture
) -> None:
    """The range comes again as the same files, under the same names, also when later records are there by then."""
    name = topic()
    broker.produce(name, numbered(30))

    def remove() -> None:
        sink.remove_files()
        broker.produce(name, [(None, json.dumps({"n": n, "new": "column"}).encode()) for n in range(30, 40)])

    accepted = kept(after(remove, script.accept))
    with front_of(sink, accepted) as front:
        run = sink.start(name, endpoint=front.endpoint)
        run.until(lambda: sink.offsets(name) == [40]).stop()
    assert sorted(set(numbers(sink.rows()))) == list(range(40))
    first, again, *later = names(front)
    assert first == again
    assert len(later) == 1
    assert "was removed while" in caplog.text


def is_active(sink: Sink) -> bool:
    """Whether its query has not ended."""
    return any(query.name == sink.name for query in sink.spark.streams.active)


def test_the_state_file_of_a_source_goes_while_it_sends(
    sink: Sink, broker: Broker, topic: TopicFactory, tmp_path: Path
) -> None:
    """Lines that are sent without their positions being stored come once more, and not for ever."""
    name, lines, positions = topic(), tmp_path / "lines.txt", tmp_path / "positions"
    lines.write_text("one\ntwo\n")
    source = {
        "name": sink.name,
        "connector.class": "FileStreamSource",
        "file": str(lines),
        "topic": name,
        "connect.ems.tmp.dir": str(sink.tmp_dir),
    }

    def stored() -> int | None:
        """The position, as any other start would find it."""
        if not positions.exists():
            return None
        found = json.loads(positions.read_text())["connectors"].get(sink.name, [])
        return next((one["offset"]["position"] for one in found), None)

    keys = {**WORKER, "offset.storage.file.filename": str(positions)}
    worker = load_worker(keys, source="worker", bootstrap_option=broker.bootstrap_servers).require()
    settings: Any = load(source, worker, source="test").settings
    run = Run(sink.spark, settings, tmp_path / "run").start()
    run.until(lambda: stored() == lines.stat().st_size)
    (folder_of(sink) / ".state.db").unlink()
    with lines.open("a") as file:
        file.write("three\n")
    deadline = time.monotonic() + PATIENCE_S  # nobody looks after the query meanwhile
    while is_active(sink) and len(letters(broker, name)) < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    run.until(lambda: stored() == lines.stat().st_size)
    with lines.open("a") as file:
        file.write("four\n")
    run.until(lambda: stored() == lines.stat().st_size).stop()
    sent = [json.loads(one.value() or b"") for one in letters(broker, name)]
    assert sent in (["one", "two", "three", "four"], ["one", "two", "three", "three", "four"])
