"""Files that wait for an archive: sent, tried again, given up, and left to the next start."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from parquet_sink.archive.archiver import Archiver
from parquet_sink.archive.opening import open_archive
from parquet_sink.archive.settings import ArchiveSettings
from parquet_sink.archive.target import ThenArchivedTarget, local_file
from parquet_sink.archive.waiting import WaitingFolder
from parquet_sink.files.lock import ConnectorLock
from parquet_sink.files.naming import waiting_folder
from parquet_sink.model.archiving import Archiving
from parquet_sink.targets.settings import RetrySettings
from tests.archive.files import SECONDS, Taking, archive_in, finished, stored

SOON = RetrySettings(max_retries=2, retry_interval_ms=10)
LATER = RetrySettings(max_retries=100, retry_interval_ms=60_000)
TIMEOUT_S = 20.0


def until(condition: Callable[[], bool]) -> None:
    """Waits for what threads do."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def filled(folder: Path, count: int = 3) -> ArchiveSettings:
    """An archive, and files that wait for it."""
    settings = archive_in(folder, required=False)
    waiting = WaitingFolder(settings.waiting, settings.max_waiting_bytes)
    for number in range(count):
        assert waiting.put(local_file(finished(folder / "tmp", b"%d" % number, number))) is None
    return settings


def test_what_waits_is_archived_and_noted(tmp_path: Path) -> None:
    """All of it, each once; then nothing waits, and the connector may be closed at once."""
    settings, noted = filled(tmp_path), dict[str, Archiving]()
    archiver = Archiver(settings, SOON, open_archive, noted.__setitem__)
    archiver.start()
    until(lambda: len(noted) == 3)
    until(lambda: archiver.finished(TIMEOUT_S))
    archiver.close()
    assert sorted(stored(tmp_path / "archive").values()) == [b"0", b"1", b"2"]
    assert [(one.place, one.cause) for one in noted.values()] == [(settings.address, None)] * 3
    assert stored(tmp_path / "waiting") == {}


def test_an_archive_that_stays_away_keeps_no_files_for_ever(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """After the retry policy's attempts a file is given up: warned of, noted with the cause, and removed."""
    settings, noted = filled(tmp_path, 1), dict[str, Archiving]()
    (tmp_path / "archive").rmdir()
    archiver = Archiver(settings, SOON, open_archive, noted.__setitem__)
    archiver.start()
    until(lambda: len(noted) == 1)
    until(lambda: archiver.finished(TIMEOUT_S))
    [one] = noted.values()
    assert "No such file" in str(one.cause)
    assert "will not be archived: connect.ems.archive.url: " in caplog.text
    assert stored(tmp_path / "waiting") == {}


def test_a_stop_ends_with_the_archive_away(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What waits is left where it is, told, and archived by the next run."""
    settings, noted = filled(tmp_path), dict[str, Archiving]()
    (tmp_path / "archive").rmdir()
    archiver = Archiver(settings, LATER, open_archive, noted.__setitem__)
    archiver.start()
    until(lambda: "not archived yet" in caplog.text)
    until(lambda: archiver.finished(TIMEOUT_S))
    archiver.close()
    assert not noted
    assert "3 files wait for the archive" in caplog.text
    (tmp_path / "archive").mkdir()
    again = Archiver(settings, LATER, open_archive, lambda name, archiving: None)
    again.start()
    until(lambda: again.finished(TIMEOUT_S))
    assert len(stored(tmp_path / "archive")) == 3


@pytest.mark.parametrize("pause_ms", [1_500, 60_000])
def test_a_stop_tries_each_file_once_more(tmp_path: Path, pause_ms: int, caplog: pytest.LogCaptureFixture) -> None:
    """However long the pause would still be, short or long: an archive that is back has all of it at the end."""
    settings, noted = filled(tmp_path, 9), dict[str, Archiving]()
    (tmp_path / "archive").rmdir()
    archiver = Archiver(
        settings, RetrySettings(max_retries=100, retry_interval_ms=pause_ms), open_archive, noted.__setitem__
    )
    archiver.start()
    until(lambda: caplog.text.count("not archived yet") == 4)
    (tmp_path / "archive").mkdir()
    until(lambda: archiver.finished(TIMEOUT_S))
    archiver.close()
    assert (len(stored(tmp_path / "archive")), len(noted)) == (9, 9)


def test_what_waits_is_bounded(tmp_path: Path) -> None:
    """A file beyond is accepted all the same, with the cause that it is not archived."""
    lock = ConnectorLock(str(tmp_path), "orders")
    (tmp_path / "orders").mkdir()
    lock.acquire()
    settings = archive_in(tmp_path, required=False)
    waiting = WaitingFolder(waiting_folder(str(tmp_path), "orders"), 10)
    target = ThenArchivedTarget(Taking(), open_archive(settings), waiting)
    first = target.push(finished(tmp_path / "tmp", b"x" * 8), SECONDS)
    second = target.push(finished(tmp_path / "tmp", b"x" * 8, 1), SECONDS)
    lock.release()
    assert (first.archive, waiting.size_bytes) == (None, 8)
    assert second.archive is not None
    assert "connect.ems.archive.max.waiting.bytes" in str(second.archive.cause)


def test_without_the_connectors_program_it_is_tried_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """On an executor elsewhere nobody would archive what waits; trouble is told and holds nothing up."""
    settings = archive_in(tmp_path, required=False)
    target = ThenArchivedTarget(Taking(), open_archive(settings), WaitingFolder(settings.waiting, 10))
    outcome = target.push(finished(tmp_path / "tmp"), SECONDS)
    assert outcome.archive is not None
    assert outcome.archive.cause is None
    (tmp_path / "archive").rename(tmp_path / "away")
    outcome = target.push(finished(tmp_path / "tmp", number=1), SECONDS)
    assert outcome.archive is not None
    assert outcome.archive.cause
    assert "is not archived in" in caplog.text
    assert stored(tmp_path / "waiting") == {}


HANGS = """
import sys, time
from pathlib import Path
from types import SimpleNamespace
from parquet_sink.archive.archiver import Archiver
from tests.archive.test_archiver import LATER, filled

archive = SimpleNamespace(keep=lambda file, seconds_left: time.sleep(600), close=lambda: None)
archiver = Archiver(filled(Path(sys.argv[1])), LATER, lambda settings: archive, print)
archiver.start()
while not archiver.finished(0.5):
    time.sleep(0.01)
archiver.close()
"""


def test_an_archive_that_hangs_keeps_no_process_alive(tmp_path: Path) -> None:
    """The program ends with a stop's time, though no attempt has; what waits is archived at the next start."""
    subprocess.run([sys.executable, "-c", HANGS, str(tmp_path)], timeout=60, check=True)
    assert len(stored(tmp_path / "waiting")) == 3
