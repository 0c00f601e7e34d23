"""Notices of accepted files, on a real broker and over real HTTP: none is missing, and no webhook holds files up."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import TopicFactory
from integration.harness import Run, Sink
from integration.letters import letters
from integration.numbered import numbered
from integration.replaying import Command, replay
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.model.events import FileNotified
from parquet_sink.worker.loop.status import Status

__all__ = ["replay"]
SECRET = "a secret of some length"


class Receiver(ThreadingHTTPServer):
    """Takes notices, or answers as a test says: with another status, or not at all for some seconds."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status, self.wait_s = 200, 0.0
        self.got: list[tuple[str, dict[str, Any]]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        time.sleep(self.server.wait_s)
        if self.server.status == 200:
            self.server.got.append((self.headers["ce-id"], json.loads(body)))
        self.send_response(self.server.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base class
        """Says nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """One of this test."""
    made = Receiver()
    yield made
    made.shutdown()
    made.server_close()


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
    assert dict(receiver.got) == dict(found)  # at least once: an answer that is late has one posted again
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
    receiver.status, receiver.wait_s = status, wait_s
    run = sink.start(name, notify_url=receiver.url, notify_max_waiting=2, commit_records=10)
    broker.produce(name, numbered(100))
    run.until(lambda: sink.offsets(name) == [100])
    assert len(run.look() or run.receipts) == 10
    run.until(lambda: len([one for one in run.events if isinstance(one, FileNotified)]) >= 7)
    given_up = [one for one in run.events if isinstance(one, FileNotified)]
    assert all("notify.max.waiting=2" in (one.given_up or "") for one in given_up)
    receiver.status, receiver.wait_s = 200, 0.0
    run.stop()


def test_notices_that_wait_outlive_the_connector(
    sink: Sink, broker: Broker, topic: TopicFactory, receiver: Receiver
) -> None:
    """The webhook is down while it runs; the next start posts them."""
    name = topic()
    receiver.status = 503
    broker.produce(name, numbered(10))
    run = sink.drain(name, notify_url=receiver.url)
    assert (run.status, receiver.got, len(list(sink.tmp_dir.rglob(".notices/*.json")))) == (Status.DONE, [], 1)
    receiver.status = 200
    again = sink.start(name, notify_url=receiver.url)
    again.until(lambda: named(receiver.got) == accepted(run))
    again.stop()
