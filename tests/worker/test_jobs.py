"""Jobs of a worker: a command in a real process, with the settings of a connector, followed and stopped."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from parquet_sink.config.machine import Machine
from parquet_sink.connectors.loading import load
from parquet_sink.parked.folder import ParkedFolder
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.worker import jobs
from parquet_sink.worker.jobs import Job, JobProgress, Jobs, TooManyJobs
from parquet_sink.worker_config.worker import Worker
from tests.cli.connector_file import connector_lines
from tests.messages import assert_says
from tests.parked.records import offsets, rejected

WAITS = """
import json, sys
print(json.dumps({"progress": [1, 4, "of four"]}), flush=True)
print("no JSON", flush=True)
sys.stdin.readline()
print(json.dumps({"line": sys.stdin.readline().strip(), "error": True}), flush=True)
sys.exit(7)
"""
TALKS = """
import json
for n in range(40_000):
    print(json.dumps({"line": f"line {n}", "error": False}))
"""


@pytest.fixture
def settings(tmp_path: Path) -> SinkSettings:
    """Of a connector whose target is a folder."""
    (tmp_path / "out").mkdir()
    return load(connector_lines(tmp_path), Worker(machine=Machine()), source="orders").require()


def child(text: str) -> Callable[[], "subprocess.Popen[bytes]"]:
    """Starts a program in place of the command."""
    return lambda: subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.fixture
def wait() -> Iterator[Callable[[Job], Job]]:
    """Until a job has ended."""

    def until_ended(job: Job) -> Job:
        end_s = time.monotonic() + 60
        while job.runs:
            assert time.monotonic() < end_s
            time.sleep(0.01)
        return job

    return until_ended


def test_a_job_is_followed_and_stopped(settings: SinkSettings, wait: Callable[[Job], Job]) -> None:
    """Progress, lines and status; a stop reaches it, and what is no line of it is passed over."""
    found = Jobs(child(WAITS))
    job = found.begin(("replay", "--dry-run"), settings)
    while job.report().progress is None:
        time.sleep(0.01)
    assert (job.report().progress, job.report().exit_status) == (JobProgress(1, 4, "of four"), None)
    job.stop()
    report = wait(job).report()
    assert (report.exit_status, [(one.text, one.error) for one in report.lines]) == (7, [("stop", True)])
    assert found.of("orders") == [job]
    assert found.of("another") == []
    job.stop()


def test_only_so_many_run_at_once_and_the_last_are_kept(
    settings: SinkSettings, wait: Callable[[Job], Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One more is refused until one has ended."""
    monkeypatch.setattr(jobs, "MOST_KEPT", 3)
    found = Jobs(child(WAITS))
    running = [found.begin(("replay",), settings) for _ in range(jobs.MOST_AT_ONCE)]
    with pytest.raises(TooManyJobs):
        found.begin(("replay",), settings)
    for job in running:
        job.stop()
        wait(job)
    for _ in range(4):
        last = found.begin(("replay",), settings)
        last.stop()
        wait(last)
    kept = found.of("orders")
    assert (len(kept), kept[-1]) == (3, last)


def test_lines_are_bounded_and_told_by_their_number(settings: SinkSettings, wait: Callable[[Job], Job]) -> None:
    """The last ones are kept, and known by where they stand among all."""
    report = wait(Jobs(child(TALKS)).begin(("replay",), settings)).report()
    assert (report.first_line, len(report.lines)) == (30_000, jobs.MOST_LINES)
    assert (report.lines[0].text, report.lines[-1].text) == ("line 30000", "line 39999")


def test_a_command_runs_with_the_settings_that_it_is_given(settings: SinkSettings, wait: Callable[[Job], Job]) -> None:
    """No file is read, and what it would say on a terminal is what is kept of it."""
    folder = ParkedFolder(settings.parked_folder, "orders", settings.parked.max_bytes)
    folder.prepare()
    folder.append("orders", 0, [rejected(1), replace(rejected(2), value=b'{"n": 1}')], 1_000)
    report = wait(Jobs().begin(("parked", "replay", "--topic=orders"), settings)).report()
    texts = [one.text for one in report.lines if not one.error]
    assert report.exit_status == 1
    assert_says(texts[-1], "connector orders", "1 records done with", "1 stay parked")
    assert offsets(folder) == [1]


def test_what_a_command_refuses_is_kept_of_it(settings: SinkSettings, wait: Callable[[Job], Job]) -> None:
    """With the status of wrong options."""
    report = wait(Jobs().begin(("replay", "--connector", "orders", "--times=0"), settings)).report()
    assert report.exit_status == 2
    assert any("[--times]" in one.text for one in report.lines)


def test_a_job_ends_when_its_worker_is_gone(settings: SinkSettings) -> None:
    """However that ended: its pipe is closed then."""
    order = json.loads(jobs._order(("target", "--port", "0"), settings, None))
    with jobs._start() as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.close()
        assert process.wait(60) in (0, 130)
