"""Whether lines can be appended, told before anything runs."""

import os
import socket
from pathlib import Path

import pytest

from parquet_sink.addons.file_sink.settings import FileSinkSettings
from parquet_sink.config.files import this_machine
from parquet_sink.connectors.loading import load
from parquet_sink.errors import RecordSinkFailed
from parquet_sink.targets.outcome import Health
from parquet_sink.worker_config.worker import Worker
from tests.messages import assert_says, saying

HOST = socket.gethostname()


def test_a_file_that_can_be_made_or_appended_to(tmp_path: Path) -> None:
    """Trying it writes nothing."""
    file = tmp_path / "out.txt"
    settings = FileSinkSettings(str(file), "/dev/stdout", HOST)
    assert (settings.problems(), settings.address) == ((), f"file {file}")
    found = settings.probe(1.0)
    assert (found.health, file.exists()) == (Health.OK, False)
    assert_says(found.text, f"{file} can be made")
    file.write_text("")
    assert_says(settings.probe(1.0).text, f"{file} can be appended to")


def test_what_cannot_be_written_is_told_with_the_key(tmp_path: Path) -> None:
    """A folder, and a file without a folder; `check --connect` says the same."""
    for path, words in ((tmp_path, "is a folder"), (tmp_path / "a" / "b", f"has no folder to be in: {tmp_path}/a")):
        settings = FileSinkSettings(str(path), "/dev/stdout", HOST)
        (problem,) = settings.problems()
        assert_says(problem, "[file]", f'"{path}"', words, "name a file", "append to")
        assert (settings.probe(1.0).health, settings.probe(1.0).text) == (Health.FAILED, problem)


def test_standard_output_must_be_one_that_others_can_open(tmp_path: Path) -> None:
    """A socket is none, as a service manager may give it; a pipe is."""
    ours, theirs = socket.socketpair()
    read, write = os.pipe()
    with ours, theirs:
        (problem,) = FileSinkSettings(None, f"/proc/self/fd/{ours.fileno()}", HOST).problems()
        assert_says(problem, "[file]", "missing", "a socket", "cannot open", "name a file")
    settings = FileSinkSettings(None, f"/proc/self/fd/{write}", HOST)
    assert (settings.problems(), settings.probe(1.0).text) == ((), "standard output can be written")
    os.close(read)
    os.close(write)


def test_standard_output_of_another_machine_is_refused() -> None:
    """A path there leads to some other process here."""
    with pytest.raises(
        RecordSinkFailed, match=saying("Standard output", "elsewhere", HOST, "Name a file", "--master local")
    ):
        FileSinkSettings(None, "/dev/null", "elsewhere").open()


def test_lines_give_no_notices_of_files(tmp_path: Path) -> None:
    """As of any sink of records: who asks for notices is refused, not left without them."""
    keys = {"connector.class": "FileStreamSink", "name": "lines", "topics": "t", "value.converter": "StringConverter"}
    notices = {"connect.ems.notify.topic": "n", "connect.ems.notify.url": "https://example.com"}
    loaded = load(
        {**keys, **notices, "file": str(tmp_path / "out.txt")}, Worker(machine=this_machine()), source="lines"
    )
    for name, problem in zip(notices, loaded.problems, strict=True):
        assert_says(problem, f"[{name}]", "Notices are of files", "leave it out")
