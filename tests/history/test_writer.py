"""Writing the history stops nobody."""

import logging
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from parquet_sink.history.settings import HistorySettings
from parquet_sink.history.sqlite import read_history, write_history
from parquet_sink.history.writer import PRUNE_FILES, HistoryWriter, writer_for
from tests.history.uploads import HOUR_MS, span, upload


class Clock:
    """Epoch seconds."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a file that is not there yet."""
    return tmp_path / "history.db"


@pytest.fixture
def clock() -> Clock:
    """One that stands still."""
    return Clock()


@pytest.fixture
def writer(path: Path, clock: Clock) -> Iterator[HistoryWriter]:
    """One that keeps three files."""
    with closing(HistoryWriter("orders", path, HistorySettings(max_files=3), now=clock)) as made:
        yield made


def firsts(path: Path) -> list[int]:
    """First offsets of the files within."""
    with closing(read_history(path)) as history:
        return [one.first_offset for one in history.files()]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was warned of."""
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]


@pytest.mark.parametrize("content", [b"no database" * 999, b"SQLite format 3\0" + b"\xff" * 5_000, b""])
def test_a_torn_file_is_made_anew(
    path: Path, writer: HistoryWriter, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """It costs what it held, a line says so, and the torn one is there to be looked at; an empty one is none."""
    path.write_bytes(content)
    writer.add([upload()], [span()])
    assert firsts(path) == [0]
    aside = path.with_name("history.db.damaged")
    assert ([aside.read_bytes()] if aside.exists() else []) == [content] * bool(content)
    assert len(warnings(caplog)) == bool(content)
    assert all(str(path) in text and "connector orders" in text for text in warnings(caplog))


def test_a_file_of_another_version_is_made_anew(path: Path, writer: HistoryWriter) -> None:
    """Its tables are others; the file is put aside."""
    with closing(write_history(path, HistorySettings())) as history:
        history._connection.execute("pragma user_version = 99")
    writer.check()
    writer.add([upload(10, 19)])
    assert firsts(path) == [10]
    assert path.with_name("history.db.damaged").exists()


def test_a_file_that_is_torn_in_the_middle_is_found_at_the_start(
    path: Path, writer: HistoryWriter, caplog: pytest.LogCaptureFixture
) -> None:
    """All of it is looked at, so that nobody who asks later finds it so."""
    with closing(write_history(path, HistorySettings())) as history:
        history.append_files([upload(n, n, cause="x" * 500) for n in range(500)])
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(os.urandom(50_000))
    writer.check()
    writer.add([upload()])
    assert firsts(path) == [0]
    assert any("damaged" in text for text in warnings(caplog))


def test_a_file_that_is_torn_while_it_is_open_is_made_anew(path: Path, writer: HistoryWriter) -> None:
    """Removed or overwritten by somebody: what comes next is kept."""
    writer.add([upload()])
    path.unlink()
    writer.add([upload(10, 19)])
    assert firsts(path) == [10]
    path.rename(path.with_name("elsewhere"))
    path.write_bytes(b"rubbish" * 5_000)
    writer.add([upload(20, 29)])
    assert 20 in firsts(path)


def test_trouble_is_told_until_it_is_over(tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """One line for a folder that is not there, whatever number of uploads; and another when it goes away again."""
    folder = tmp_path / "folder"
    with closing(HistoryWriter("orders", folder / "history.db", HistorySettings(), now=clock)) as writer:
        writer.add([upload()])
        writer.add([upload(10, 19)])
        assert len(warnings(caplog)) == 1
        folder.mkdir()
        writer.add([upload(20, 29)])
        assert firsts(folder / "history.db") == [20]
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        writer.add([upload(30, 39)])
        assert len(warnings(caplog)) == 2


def test_a_writer_does_not_wait_for_ever(path: Path, writer: HistoryWriter, caplog: pytest.LogCaptureFixture) -> None:
    """Another process that holds the file costs history, and no more than a moment."""
    writer.add([upload()])
    writer._history()._connection.execute("pragma busy_timeout = 10")
    with closing(write_history(path, HistorySettings())) as other:
        other._connection.execute("begin immediate")
        writer.add([upload(10, 19)])
        other._connection.execute("rollback")
    writer.add([upload(20, 29)])
    assert firsts(path) == [0, 20]
    assert ["locked" in text for text in warnings(caplog)] == [True]


def test_it_is_pruned_now_and_then(path: Path, writer: HistoryWriter, clock: Clock) -> None:
    """After a minute, or many uploads; not at each one."""
    writer.add([upload(n, n) for n in range(5)])
    assert firsts(path) == [2, 3, 4]
    writer.add([upload(n, n) for n in range(5, 9)])
    assert firsts(path) == list(range(2, 9))
    clock.now_s += 60
    writer.add([upload(9, 9)])
    assert firsts(path) == [7, 8, 9]
    writer.add([upload(n, n) for n in range(10, 10 + PRUNE_FILES)])
    assert firsts(path) == [1_007, 1_008, 1_009]
    clock.now_s -= 3_600
    writer.add([upload(n, n) for n in range(2_000, 2_005)])
    assert firsts(path) == [2_002, 2_003, 2_004], "also when the machine's clock was set back"


def test_a_start_forgets_what_is_too_old(path: Path) -> None:
    """Also of a connector that sends nothing any more."""
    settings = HistorySettings(retention_ms=HOUR_MS)
    with closing(HistoryWriter("orders", path, settings, now=lambda: 2.0)) as writer:
        writer.add([upload(at_ms=1_000)])
    with closing(HistoryWriter("orders", path, settings, now=lambda: 3_602.0)) as writer:
        writer.check()
    assert firsts(path) == []


def test_none_is_kept_where_none_is_wanted(path: Path) -> None:
    """With connect.ems.history.enable=false nothing is written."""
    with closing(HistoryWriter("orders", path, HistorySettings(enabled=False))) as writer:
        writer.add([upload()], [span()])
        writer.check()
    assert not path.exists()


def test_a_process_has_one_writer_for_a_file(path: Path) -> None:
    """It stays open from micro-batch to micro-batch."""
    first = writer_for("orders", path, HistorySettings())
    assert writer_for("orders", path, HistorySettings()) is first
    assert writer_for("other", path.with_name("other"), HistorySettings()) is not first
