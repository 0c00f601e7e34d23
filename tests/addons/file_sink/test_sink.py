"""Lines of a range: all of them in the file, or none, whatever the disk has room for."""

import random
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from parquet_sink.addons.file_sink.appender import Appender, FileSink
from parquet_sink.errors import ConnectorError
from tests.messages import saying


def records(first: int, count: int, width: int) -> Any:
    """Records with texts of their numbers, so wide."""
    texts = [(n, f"{n:0{width}d}") for n in range(first, first + count)]
    return SimpleNamespace(in_order=lambda _: iter(texts))


def ranged(file: Path, batches: list[tuple[int, int, int]]) -> None:
    """One range, as a task puts it: batches, then the flush."""
    sink = FileSink(Appender(str(file)))
    try:
        for batch in batches:
            sink.put(records(*batch))
        sink.flush()
    finally:
        sink.close()


def batches(megabytes: int) -> list[tuple[int, int, int]]:
    """Of random sizes, so much in all; each record once."""
    found, first, left = [], 0, megabytes << 20
    while left > 0:
        width, count = random.randrange(100, 1_000), random.randrange(100, 9_000)
        found.append((first, count, width))
        first, left = first + count, left - count * (width + 1)
    return found


@contextmanager
def tmpfs(folder: Path, megabytes: int) -> Iterator[None]:
    """A small disk of its own; without the right to mount one, a limit on the size of files."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode == 0:
        try:
            yield
        finally:
            subprocess.run(["umount", "-l", str(folder)], check=True)
        return
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (megabytes << 20, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("room_mb", [12, 20, 37])
def test_a_range_that_does_not_fit_leaves_nothing(tmp_path: Path, room_mb: int) -> None:
    """However many times what is kept in memory it is long: none of its lines is there, and none comes twice."""
    folder, given = tmp_path / "disk", batches(33)
    folder.mkdir()
    file, kept = folder / "out.txt", [(0, 1_000, 100)]
    with tmpfs(folder, room_mb):
        ranged(file, kept)
        before = file.read_bytes()
        with pytest.raises(ConnectorError, match=saying("out.txt", "Nothing is lost")):
            ranged(file, given)
        assert file.read_bytes() == before
        with pytest.raises(ConnectorError):
            ranged(file, given)
        assert file.read_bytes() == before


def test_a_range_that_fits_is_there_once(tmp_path: Path) -> None:
    """In order, after a time in which there was no room; nothing else stays in the folder."""
    given = batches(25)
    file = tmp_path / "out.txt"
    ranged(file, given)
    ranged(file, [])
    numbers = [int(line) for line in file.read_text().splitlines()]
    assert numbers == list(range(given[-1][0] + given[-1][1]))
    assert {path.name for path in tmp_path.iterdir()} == {"out.txt", ".out.txt.parquet-sink"}


DIES = """
import os, sys
from pathlib import Path
from parquet_sink.addons.file_sink import appender
from tests.addons.file_sink.test_sink import ranged
left, write = int(sys.argv[2]), os.write
def some(descriptor, data):
    global left
    left -= len(data)
    return os._exit(9) if left < 0 else write(descriptor, data)
appender.os.write = some
ranged(Path(sys.argv[1]), [(n * 1_000, 1_000, 999) for n in range(25)])
"""


@pytest.mark.parametrize("after_mb", [0, 5, 9, 17])
def test_a_range_whose_task_died_is_there_once(tmp_path: Path, after_mb: int) -> None:
    """Wherever in its lines that was: whoever comes next takes all of them back first."""
    file, given = tmp_path / "out.txt", [(n * 1_000, 1_000, 999) for n in range(25)]
    died = subprocess.run([sys.executable, "-c", DIES, str(file), str(after_mb << 20)], check=False, timeout=60)
    assert died.returncode == 9
    ranged(file, given)
    assert [int(line) for line in file.read_text().splitlines()] == list(range(25_000))
