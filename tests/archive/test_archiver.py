"""Files that wait for an archive: sent, tried again, given up, and left to the next start."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from parquet_sink.archive.archive import Archive, LocalFile, open_archive
from parquet_sink.archive.archiver import Archiver
from parquet_sink.archive.settings import ArchiveSettings
from parquet_sink.archive.target import ThenArchivedTarget, local_file
from parquet_sink.archive.waiting import WaitingFolder
from parquet_sink.files.lock import ConnectorLock
from parquet_sink.files.naming import waiting_folder
from parquet_sink.model.receipts import Archiving
from parquet_sink.targets.outcome import Outcome, Verdict
from parquet_sink.targets.settings import RetrySettings
from tests.archive.files import SECONDS, Taking, archive_in, finished, stored
from tests.messages import assert_says

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
    assert_says(caplog.text, "will not be archived", "connect.ems.archive.url")
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
    assert_says(caplog.text, "3 files wait", "at the next start")
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


class Odd:
    """An archive that meets what nobody foresaw, so many times; then it is the one in the folder."""

    name = "odd"

    def __init__(self, settings: ArchiveSettings, times: int, error: Exception) -> None:
        self._archive, self._times, self._error = open_archive(settings), times, error
        self.close = self._archive.close

    def keep(self, file: LocalFile, seconds_left: float) -> Outcome:
        self._times -= 1
        if self._times >= 0:
            raise self._error
        return self._archive.keep(file, seconds_left)


def run(settings: ArchiveSettings, opened: Callable[[ArchiveSettings], object] = open_archive) -> dict[str, Archiving]:
    """What an archiver notes until nothing waits."""
    noted = dict[str, Archiving]()
    archiver = Archiver(settings, SOON, opened, noted.__setitem__)  # type: ignore[arg-type]
    archiver.start()
    until(lambda: not WaitingFolder(settings.waiting).files())
    until(lambda: archiver.finished(TIMEOUT_S))
    archiver.close()
    return noted


@pytest.mark.parametrize("error", [KeyError("UploadId"), ValueError("no date"), RuntimeError(), RecursionError("deep")])
def test_an_odd_answer_costs_an_attempt_and_not_the_archive(tmp_path: Path, error: Exception) -> None:
    """Whatever is raised at one file: it is tried again, and all others are archived."""
    settings = filled(tmp_path, 7)
    noted = run(settings, lambda settings: Odd(settings, 1, error))
    assert len(stored(tmp_path / "archive")) == 7
    assert {one.cause for one in noted.values()} == {None}


def test_what_is_odd_for_ever_is_given_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """After the retry policy's attempts, noted with what was raised; the files after it are archived."""
    settings = filled(tmp_path, 6)
    noted = run(settings, lambda settings: Odd(settings, 8, KeyError("UploadId")))
    assert len(stored(tmp_path / "archive")) == 2
    causes = [one.cause for one in noted.values() if one.cause]
    assert len(causes) == 4
    for cause in causes:
        assert_says(cause, "not foreseen", "KeyError: 'UploadId'")
    assert "will not be archived" in caplog.text


def test_an_archive_that_cannot_be_opened_yet_is_opened_later(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its certificates are not there, say: that is told, and what waits goes on waiting."""
    settings, failures = filled(tmp_path), [OSError("no such file"), RuntimeError("odd")]

    def opened(settings: ArchiveSettings) -> Archive:
        if failures:
            raise failures.pop()
        return open_archive(settings)

    assert len(run(settings, opened)) == 3
    assert len(stored(tmp_path / "archive")) == 3
    assert caplog.text.count("connector orders: the archive directory:") == 2


def test_a_note_that_fails_is_made_again(tmp_path: Path) -> None:
    """The file waits until what became of it is noted."""
    settings, noted = filled(tmp_path), list[str]()

    def note(name: str, archiving: Archiving) -> None:
        noted.append(name)
        if len(noted) == 1:
            raise RuntimeError("odd")

    archiver = Archiver(settings, SOON, open_archive, note)
    archiver.start()
    until(lambda: not WaitingFolder(settings.waiting).files())
    until(lambda: archiver.finished(TIMEOUT_S))
    assert (len(noted), len(set(noted))) == (4, 3)


def test_an_odd_archive_holds_nothing_up_where_no_program_is(tmp_path: Path) -> None:
    """The target has the file: it is accepted, with the cause that it is not archived."""
    settings = archive_in(tmp_path, required=False)
    odd: Archive = Odd(settings, 1, KeyError("UploadId"))  # type: ignore[assignment]
    target = ThenArchivedTarget(Taking(), odd, WaitingFolder(settings.waiting, 10))
    gone, there = finished(tmp_path / "tmp", number=1), finished(tmp_path / "tmp")
    causes = [(outcome.verdict, outcome.archive and outcome.archive.cause) for outcome in [target.push(there, SECONDS)]]
    os.unlink(gone.path)
    causes += [(outcome.verdict, outcome.archive and outcome.archive.cause) for outcome in [target.push(gone, SECONDS)]]
    assert [verdict for verdict, _ in causes] == [Verdict.ACCEPTED] * 2
    assert ["KeyError" in str(causes[0][1]), "No such file" in str(causes[1][1])] == [True, True]


def waiting_content(settings: ArchiveSettings) -> list[Path]:
    """The files that wait, as they are on the disk."""
    return [Path(one.file.path) for one in WaitingFolder(settings.waiting).files()]


TEARS: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda content: content[: random.randrange(len(content))],
    "zeros": lambda content: content[: len(content) // 2] + bytes(len(content) - len(content) // 2),
    "longer": lambda content: content + b"\0",
    "a bit": lambda content: bytes([content[0] ^ 1]) + content[1:],
    "empty": lambda content: b"",
}


@pytest.mark.parametrize("tear", TEARS)
def test_a_torn_file_is_never_archived(tmp_path: Path, tear: str, caplog: pytest.LogCaptureFixture) -> None:
    """What a power failure left of it is compared with what began to wait; it is told, and the others are archived."""
    settings = archive_in(tmp_path, required=False)
    waiting = WaitingFolder(settings.waiting, settings.max_waiting_bytes)
    contents = [random.randbytes(random.randrange(10, 200_000)) for _ in range(5)]
    for number, content in enumerate(contents):
        assert waiting.put(local_file(finished(tmp_path / "tmp", content, number))) is None
    torn = random.choice(waiting_content(settings))
    whole = torn.read_bytes()
    torn.write_bytes(TEARS[tear](whole))
    noted = run(settings)
    assert sorted(stored(tmp_path / "archive").values()) == sorted(one for one in contents if one != whole)
    [cause] = [one.cause for one in noted.values() if one.cause]
    assert "is not what began to wait" in cause
    assert "will not be archived" in caplog.text
    assert stored(tmp_path / "waiting") == {}


def test_a_file_that_comes_again_replaces_a_torn_one(tmp_path: Path) -> None:
    """After a power failure its range is repeated: what was just verified waits, once."""
    settings = archive_in(tmp_path, required=False)
    waiting = WaitingFolder(settings.waiting, settings.max_waiting_bytes)
    local = local_file(finished(tmp_path / "tmp", b"whole"))
    for made_anew in (False, True):
        if made_anew:
            os.truncate(waiting_content(settings)[0], 2)
            os.unlink(local.path)
            finished(tmp_path / "tmp", b"whole")
        for _ in range(2):
            assert waiting.put(local) is None
    assert list(stored(tmp_path / "waiting").values()) == [b"whole"]
    assert waiting.size_bytes == 5
    run(settings)
    assert list(stored(tmp_path / "archive").values()) == [b"whole"]


def test_what_waits_survives_a_power_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a file waits its bytes and all names above it are on the disk: what was not synced is lost here."""
    synced, fsync = set[int](), os.fsync

    def noting(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    settings = filled(tmp_path)
    for folder, _, names in os.walk(settings.waiting):
        assert {os.stat(one).st_ino for one in (folder, os.path.dirname(folder))} <= synced
        for path in (os.path.join(folder, name) for name in names):
            if os.stat(path).st_ino not in synced:
                os.truncate(path, 0)
    run(settings)
    assert sorted(stored(tmp_path / "archive").values()) == [b"0", b"1", b"2"]


def test_what_waits_of_an_older_version_is_archived(tmp_path: Path) -> None:
    """It waits under its own name, and nothing tells what it was."""
    settings = archive_in(tmp_path, required=False)
    file = finished(tmp_path / "tmp")
    place = Path(settings.waiting) / local_file(file).where
    place.parent.mkdir(parents=True)
    os.link(file.path, place)
    run(settings)
    assert list(stored(tmp_path / "archive")) == [f"orders/orders/{file.name}"]


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
