"""`parquet-sink status`, as it is typed, against a worker on a real socket."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from integration.scripted_target import cut
from integration.scripted_worker import ScriptedWorker
from parquet_sink.cli.main import main
from parquet_sink.worker.herder.values import (
    ConnectorProgress,
    ConnectorStatus,
    LastError,
    LastUpload,
    PartitionProgress,
    State,
    TaskStatus,
)
from tests.messages import assert_says

Shown = Callable[..., tuple[int, str, str]]
WORKER = "10.0.0.7:8083"
NOW_S = 1_700_000_000.0
TASKS = (TaskStatus(0, State.RUNNING, WORKER), TaskStatus(1, State.RUNNING, WORKER))
UPLOAD = LastUpload("orders", 3, 1000, 1999, 1_000, 34_211, NOW_S - 5)
GOOD = ConnectorProgress(
    ConnectorStatus("orders", State.RUNNING, WORKER, TASKS),
    files=12,
    rows=120_000,
    size_bytes=4_100_000,
    set_aside=3,
    last_upload=UPLOAD,
    last_error=None,
    partitions=(
        PartitionProgress("orders", 0, 0, None, 0.0, away=False),
        PartitionProgress("orders", 3, 1_200, 12.34, 55.4, away=True),
    ),
)
CAUSE = "The target refuses the key.\nGive another in connect.ems.authorization.key."
FAILED = ConnectorProgress(
    ConnectorStatus("audit", State.FAILED, WORKER, (), trace="UploadRefused: no\n\tat x"),
    0,
    0,
    0,
    0,
    None,
    LastError(CAUSE, NOW_S - 7_200),
    (),
)


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this machine's environment; a clock that stands."""
    for name in ("URL", "USER", "PASSWORD", "CLIENT_FILE"):
        monkeypatch.delenv(f"PARQUET_SINK_{name}", raising=False)
    monkeypatch.setattr("parquet_sink.addons.commands.status.time", SimpleNamespace(time=lambda: NOW_S))


@pytest.fixture
def worker() -> Iterator[ScriptedWorker]:
    """A worker that tells of a connector that runs well."""
    with ScriptedWorker() as started:
        started.progress = [as_json(GOOD)]
        yield started


@pytest.fixture
def shown(worker: ScriptedWorker, capsys: pytest.CaptureFixture[str]) -> Shown:
    """Runs the command; exit status, standard output and standard error."""

    def shown(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        return main(["status", *words, "--url", worker.url]), *capsys.readouterr()

    return shown


def as_json(one: ConnectorProgress) -> dict[str, Any]:
    """What `/progress` has of it."""
    found: dict[str, Any] = json.loads(json.dumps(asdict(one)))
    return found


def test_a_connector_that_runs_well(shown: Shown) -> None:
    """State, what was sent, lag with the age of the oldest record and where that is, and the last upload."""
    status, out, err = shown()
    assert (status, err) == (0, "")
    state, sent, lag, last = out.splitlines()
    assert_says(state, "orders  RUNNING", "2 of 2 tasks", WORKER)
    assert_says(sent, "  sent ", "12 files", "120,000 rows", "4.1 MB", "3 records diverted")
    assert_says(lag, "  lag ", "1,200 records", "2 topic-partitions", "12.3 s (orders 3)", "1 unavailable")
    assert_says(last, "  last ", "2023-11-14 22:13:15 UTC", "5.0 s ago", "orders 3", "1000 to 1999")
    assert_says(last, "1,000 rows", "34.2 kB")


def test_topic_partitions_have_lines_where_asked_for(shown: Shown) -> None:
    """--partitions adds lag, age and speed of each."""
    out = shown("--partitions")[1]
    assert [line.split() for line in out.splitlines()[-3:]] == [
        ["TOPIC", "TOPIC-PARTITION", "LAG", "OLDEST", "RECORDS/S"],
        ["orders", "0", "0", "-", "0"],
        ["orders", "3", "1,200", "12.3", "s", "55", "unavailable"],
    ]


def test_a_failure_is_told_with_its_cure(shown: Shown, worker: ScriptedWorker) -> None:
    """The trace's first line, the last error whole, and status 1, whatever else runs well."""
    worker.progress = [as_json(FAILED), as_json(GOOD)]
    status, out, _ = shown()
    assert status == 1
    state, trace, sent, lag, error, cure = out.splitlines()[:6]
    assert_says(state, "audit  FAILED", "no tasks", WORKER)
    assert_says(sent, "  sent ", "0 files", "0 rows", "0 bytes")
    assert_says(error, "  error ", "2023-11-14 20:13:20 UTC", "2 h ago")
    assert trace == "  UploadRefused: no"
    assert_says(lag, "  lag ", "not known since", "2023-11-14 20:13:20 UTC", "2 h ago")
    assert [error.partition("): ")[2], cure.strip()] == CAUSE.splitlines()


def test_a_stopped_connector_has_no_lag_to_tell_of(shown: Shown, worker: ScriptedWorker) -> None:
    """Nobody looks where its topics end; that is no failure."""
    stopped = replace(GOOD.status, state=State.STOPPED, tasks=())
    worker.progress = [as_json(replace(GOOD, status=stopped, partitions=()))]
    status, out, _ = shown()
    assert status == 0
    state, _, lag, *_ = out.splitlines()
    assert_says(state, "orders  STOPPED", "no tasks", WORKER)
    assert_says(lag, "  lag ", "not known", "stopped")


def test_a_task_that_failed_is_told(shown: Shown, worker: ScriptedWorker) -> None:
    """Also where the connector itself runs."""
    tasks = (TASKS[0], TaskStatus(1, State.FAILED, WORKER, "Boom\nmore"))
    worker.progress = [as_json(replace(GOOD, status=replace(GOOD.status, tasks=tasks)))]
    status, out, _ = shown()
    assert status == 1
    state, failed, *_ = out.splitlines()
    assert_says(state, "orders  RUNNING", "1 of 2 tasks", WORKER)
    assert failed == "  task 1 FAILED: Boom"


def test_what_is_waited_for_is_told(shown: Shown, worker: ScriptedWorker) -> None:
    """That is no failure."""
    what = "the target, next try in 5 s"
    worker.progress = [as_json(replace(GOOD, status=replace(GOOD.status, waits_for=what)))]
    status, out, _ = shown()
    assert status == 0
    assert out.splitlines()[1] == f"  waits for {what}"


def test_what_healed_is_marked(shown: Shown, worker: ScriptedWorker) -> None:
    """With how long it took; what did not heal has no such mark."""
    error = LastError("HTTP 503.\nGive it time.", NOW_S - 60, healed_s=NOW_S - 48)
    worker.progress = [as_json(replace(GOOD, last_error=error))]
    last, cure = shown()[1].splitlines()[-2:]
    assert_says(last, "  error ", "2023-11-14 22:12:20 UTC", "60.0 s ago", "healed 12.0 s later", ": HTTP 503.")
    assert cure.strip() == "Give it time."
    worker.progress = [as_json(replace(GOOD, last_error=replace(error, healed_s=None)))]
    last = shown()[1].splitlines()[-2]
    assert_says(last, "  error ", "60.0 s ago", ": HTTP 503.")
    assert "healed" not in last


def test_one_text_is_said_once(shown: Shown, worker: ScriptedWorker) -> None:
    """As what is waited for, or as the last error; not a second time as a trace, nor for each task."""
    waiting = replace(GOOD.status, waits_for="Topic orders, topic-partition 3: HTTP 503 (at 3 attempts); in 5 s.")
    worker.progress = [as_json(replace(GOOD, status=waiting, last_error=LastError("HTTP 503.", NOW_S - 60)))]
    out = shown()[1]
    assert out.count("503") == 1
    assert_says(out.splitlines()[-1], "  error ", "60.0 s ago", "what it waits for")
    trace = "UploadRefused: The target refuses the key.\n\tat x"
    tasks = tuple(TaskStatus(number, State.FAILED, WORKER, trace) for number in range(3))
    worker.progress = [as_json(replace(FAILED, status=replace(FAILED.status, trace=trace, tasks=tasks)))]
    assert shown()[1].count("The target refuses the key.") == 1
    tasks = tuple(replace(task, trace="Boom: other") for task in tasks)
    worker.progress = [as_json(replace(FAILED, status=replace(FAILED.status, trace=trace, tasks=tasks)))]
    (told,) = [line for line in shown()[1].splitlines() if "Boom" in line]
    assert_says(told, "tasks 0, 1, 2", "FAILED: Boom: other")


def test_long_names_are_cut(shown: Shown, worker: ScriptedWorker) -> None:
    """In lines for people; JSON has them whole."""
    name = "n" * 150
    worker.progress = [as_json(replace(GOOD, status=replace(GOOD.status, name=name)))]
    assert shown()[1].splitlines()[0].split()[0] == "n" * 47 + "…"
    assert name in shown("--json")[1]


def test_some_connectors_are_chosen(shown: Shown, worker: ScriptedWorker) -> None:
    """In the order in which they are named; one that is not there is an error that hides no other."""
    worker.progress = [as_json(FAILED), as_json(GOOD)]
    assert [one["status"]["name"] for one in json.loads(shown("orders", "audit", "--json")[1])] == ["orders", "audit"]
    assert shown("orders")[0] == 0
    status, out, err = shown("orders", "nobody")
    assert (status, out.splitlines()[0].split()[0]) == (1, "orders")
    assert err.count("\n") == 1
    assert_says(err, "nobody", "not found", worker.url)
    assert shown("nobody", "--json")[:2] == (1, "[]\n")


def test_fields_of_a_newer_worker_do_no_harm(shown: Shown, worker: ScriptedWorker) -> None:
    """They are in the JSON, and else passed over; fields that are missing are an error that says so."""
    worker.progress = [{**as_json(GOOD), "new": 1}]
    assert json.loads(shown("--json")[1])[0]["new"] == 1
    assert shown()[0] == 0
    worker.progress = [{"status": {"name": "x"}}]
    status, _, err = shown()
    assert (status, "it is of another version" in err) == (1, True)


def test_a_worker_of_kafka_connect_has_no_progress(shown: Shown, worker: ScriptedWorker) -> None:
    """The message says what works with it."""
    worker.progress = None
    status, _, err = shown()
    assert status == 1
    assert_says(err, "parquet-sink connectors list", "any worker")


def test_a_watch_as_json_has_one_document_a_line(worker: ScriptedWorker, tmp_path: Path) -> None:
    """An answer that does not come is told on standard error, and asked again; Ctrl-C ends it well."""
    words = [sys.executable, "-m", "parquet_sink", "status", "--watch", "0.05", "--json", "--url", worker.url]
    with (tmp_path / "err").open("wb") as err, started(words, stdout=subprocess.PIPE, stderr=err) as watch:
        assert watch.stdout is not None
        first = json.loads(watch.stdout.readline())
        worker._script.append(cut(None))
        deadline = time.monotonic() + 30
        while b"the connection broke" not in (tmp_path / "err").read_bytes():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        worker.progress = [as_json(FAILED)]
        while (later := json.loads(watch.stdout.readline())) == first:
            pass
        watch.send_signal(signal.SIGINT)
        assert watch.wait(20) == 0
    assert (first[0]["status"]["name"], later[0]["status"]["name"]) == ("orders", "audit")


def test_a_watch_on_a_terminal_draws_anew(worker: ScriptedWorker) -> None:
    """The screen shows how things stand now; Ctrl-C ends it well, and gives the screen back."""
    words = [sys.executable, "-m", "parquet_sink", "status", "--watch", "0.05", "--url", worker.url]
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
    with started(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as watch:
        os.close(theirs)
        seen = read_until(ours, b"1,200 records")
        worker.progress = [as_json(FAILED)]
        seen += read_until(ours, b"The target refuses the key.")
        watch.send_signal(signal.SIGINT)
        seen += read_until(ours, b"\x1b[?1049l")
        assert watch.wait(20) == 0
    os.close(ours)
    assert b"Traceback" not in seen
    assert b"Ctrl-C ends it" in seen


@contextmanager
def started(words: list[str], **options: Any) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that ends with the test, however that ends."""
    with subprocess.Popen(words, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(terminal: int, words: bytes) -> bytes:
    """What a terminal got, up to some words."""
    seen, deadline = b"", time.monotonic() + 30
    while words not in seen:
        assert time.monotonic() < deadline, seen
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 1 << 16)
    return seen
