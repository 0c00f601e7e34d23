"""The history in SQLite."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.errors import HistoryUnusable
from parquet_sink.history import sqlite as history_file
from parquet_sink.history.records import Origin, UploadOutcome, UploadRecord
from parquet_sink.history.settings import HistorySettings
from parquet_sink.history.sqlite import SqliteHistory, read_history, write_history
from parquet_sink.history.store import ALL, HistoryQuery, HourSummary, Percentiles, percentiles, summarised
from parquet_sink.model.ranges import LearnedSchema
from parquet_sink.model.receipts import Archiving
from tests.history.uploads import HOUR_MS, span, upload


@pytest.fixture
def history(tmp_path: Path) -> Iterator[SqliteHistory]:
    """An empty one that keeps ten files for a day."""
    settings = HistorySettings(max_files=10, retention_ms=24 * HOUR_MS)
    with closing(write_history(tmp_path / "history.db", settings)) as opened:
        yield opened


def firsts(history: SqliteHistory, query: HistoryQuery = ALL) -> list[int]:
    """The first offsets of the files that are meant."""
    return [one.first_offset for one in history.files(query)]


def test_uploads_come_back_as_they_were(history: SqliteHistory) -> None:
    """All fields, with attempts and without, in order of time and then as they came."""
    records = [
        upload(0, 9),
        upload(10, 19, oldest_ms=None, digest=None, tried=(), attempts=0, answer_id=None, status=None),
        upload(20, 29, outcome=UploadOutcome.REFUSED, cause='it said: "no"\nand more'),
        upload(30, 39, topic="ünder\x7f'; drop table file"),
    ]
    history.append_files(records)
    assert list(history.files()) == records
    assert [UploadRecord.from_dict(one.to_dict()) for one in records] == records


def test_the_same_upload_is_added_once(history: SqliteHistory) -> None:
    """What is told twice, as after a failed micro-batch, is one upload."""
    history.append_files([upload(0), upload(10, 19)])
    history.append_files([upload(0), upload(20, 29)])
    assert firsts(history) == [0, 10, 20]
    assert [one.repeat for one in history.files()] == [0, 0, 0]


def test_repeats_are_counted(history: SqliteHistory) -> None:
    """A file that is accepted again under its name is another upload, with a number; elsewhere it is the first."""
    history.append_files([upload(at_ms=at_ms) for at_ms in (1, 2, 3)])
    history.append_files([upload(at_ms=4, outcome=UploadOutcome.REFUSED), upload(at_ms=5)])
    history.append_files([upload(at_ms=6, target="https://other.example"), upload(at_ms=7, table="U")])
    assert [one.repeat for one in history.files()] == [0, 1, 2, 3, 3, 0, 0]


def test_a_waiting_upload_gives_way(history: SqliteHistory) -> None:
    """What comes of a file takes the place of what was said while it waited, also where it is cut anew; of it alone."""
    waiting = upload(10, 19, outcome=UploadOutcome.WAITING)
    other = replace(waiting, partition=1)
    parked = replace(waiting, origin=Origin.PARKED)
    history.append_files([waiting, other])
    history.append_files([replace(parked, at_ms=1)])
    history.append_files([replace(parked, outcome=UploadOutcome.ACCEPTED, at_ms=2)])
    assert [(one.at_ms, one.outcome) for one in history.files()] == [(2, "accepted"), *[(5_000, "waiting")] * 2]
    history._connection.execute("delete from file where at_ms = 2")
    history.append_files([upload(10, 19, at_ms=6_000, outcome=UploadOutcome.WAITING, attempts=5)])
    assert [(one.partition, one.attempts) for one in history.files()] == [(1, 2), (0, 5)]
    history.append_files([upload(0, 14, at_ms=7_000)])
    assert [(one.partition, one.outcome) for one in history.files()] == [(1, "waiting"), (0, "accepted")]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (HistoryQuery.offset("orders", 0, 9), [0]),
        (HistoryQuery.offset("orders", 0, 10), [10]),
        (HistoryQuery.offset("orders", 0, 30), []),
        (HistoryQuery(first_offset=9, last_offset=20), [0, 10, 20]),
        (HistoryQuery(first_offset=20), [20, 100]),
        (HistoryQuery(last_offset=9), [0]),
        (HistoryQuery(partition=1), [100]),
        (HistoryQuery("other"), []),
        (HistoryQuery(since_ms=2_000), [10, 20, 100]),
        (HistoryQuery(since_ms=2_000, until_ms=3_000), [10]),
        (HistoryQuery(outcomes=frozenset({UploadOutcome.REFUSED, UploadOutcome.FAILED})), [20]),
        (HistoryQuery(file_names=frozenset({upload(100, 109, 1).file_name, "none"})), [100]),
        (HistoryQuery(newest=2), [20, 100]),
        (HistoryQuery(newest=9), [0, 10, 20, 100]),
    ],
)
def test_queries(history: SqliteHistory, query: HistoryQuery, found: list[int]) -> None:
    """Each condition alone, bounds included where they are said to be."""
    history.append_files([upload(0, 9, at_ms=1_000), upload(10, 19, at_ms=2_000), upload(100, 109, 1, at_ms=4_000)])
    history.append_files([upload(20, 29, at_ms=3_000, outcome=UploadOutcome.REFUSED)])
    assert firsts(history, query) == found


def test_ranges_come_back_once(history: SqliteHistory) -> None:
    """With what was known, of which nothing is kept twice; one that is repeated is there once, one cut anew again."""
    first = span(0, 10)
    history.append_ranges([replace(first, done_until=4), span(10, 20), span(0, 10, known=LearnedSchema())])
    history.append_ranges([replace(first, at_ms=9_000, done_until=9), span(0, 10, recipe="other", at_ms=9_500)])
    history.append_ranges([replace(first, done_until=7)])
    assert [(one.start, one.known, one.recipe, one.done_until) for one in history.ranges()] == [
        (0, first.known, "r", 9),
        (10, first.known, "r", 0),
        (0, LearnedSchema(), "r", 0),
        (0, first.known, "other", 0),
    ]
    assert [one.start for one in history.ranges(HistoryQuery.offset("orders", 0, 10))] == [10]
    assert next(history.ranges()).planned().known == first.known


def test_the_number_of_uploads_is_bounded(history: SqliteHistory) -> None:
    """The oldest beyond it go, and ranges likewise."""
    history.append_files([upload(n * 10, n * 10 + 9, at_ms=n) for n in range(25)])
    history.append_ranges([span(n, n + 1, known=LearnedSchema(bytes([n]))) for n in range(25)])
    assert history.prune(now_ms=1_000) == 15
    assert firsts(history) == [n * 10 for n in range(15, 25)]
    assert [one.known.schema for one in history.ranges()] == [bytes([n]) for n in range(15, 25)]
    assert history.prune(now_ms=1_000) == 0


def test_uploads_grow_too_old(history: SqliteHistory) -> None:
    """What is older than the retention goes."""
    history.append_files([upload(at_ms=0), upload(10, 19, at_ms=HOUR_MS)])
    history.append_ranges([span(at_ms=0)])
    assert history.prune(now_ms=24 * HOUR_MS) == 0
    assert history.prune(now_ms=25 * HOUR_MS) == 1
    assert firsts(history) == [10]
    assert list(history.ranges()) == []


def test_the_size_is_bounded(tmp_path: Path) -> None:
    """The oldest go until the rest has room, and the file shrinks."""
    path, bound = tmp_path / "history.db", 400_000
    with closing(write_history(path, HistorySettings(max_bytes=bound))) as history:
        history.append_files([upload(n, n, at_ms=n, cause="x" * 1_000) for n in range(1_000)])
        history.append_ranges([span(n, n + 1, known=LearnedSchema(bytes([n % 256]) * 500)) for n in range(100)])
        assert history.extent().size_bytes > bound
        gone = history.prune(now_ms=1_000)
        extent = history.extent()
        kept = firsts(history)
    assert extent.size_bytes <= bound
    assert path.stat().st_size <= bound
    assert 100 < len(kept) == extent.files
    assert kept[-1] == 999
    assert gone >= 1_000 - len(kept)


def test_a_reader_sees_what_a_writer_adds(tmp_path: Path) -> None:
    """It asks while the connector runs, and after; it makes nothing."""
    path = tmp_path / "history.db"
    with pytest.raises(FileNotFoundError):
        read_history(path)
    assert not path.exists()
    with closing(write_history(path, HistorySettings())) as writer, closing(read_history(path)) as reader:
        assert list(reader.files()) == []
        writer.append_files([upload()])
        assert list(reader.files()) == [upload()]
        with pytest.raises(HistoryUnusable, match="readonly"):
            reader.append_files([upload(at_ms=9)])
    with closing(read_history(path)) as reader:
        assert (reader.extent().files, reader.extent().first_ms) == (1, 5_000)


@pytest.mark.parametrize(
    "content", [b"no database at all, but long enough to be one" * 9, b"SQLite format 3\0" + b"\xff" * 5_000]
)
def test_what_is_no_history_is_told(tmp_path: Path, content: bytes) -> None:
    """Reading and writing name the file and say that it is damaged."""
    path = tmp_path / "history.db"
    path.write_bytes(content)
    with pytest.raises(HistoryUnusable, match=str(path)) as caught:
        write_history(path, HistorySettings())
    assert caught.value.damaged
    with pytest.raises(HistoryUnusable, match=str(path)) as caught:
        list(read_history(path).files())
    assert caught.value.damaged
    assert path.read_bytes() == content


def test_an_upload_that_cannot_be_written_damages_nothing(history: SqliteHistory) -> None:
    """What is wrong with it is no fault of the file, and the others of its batch are not half there."""
    for odd in (object(), "\ud800"):
        with pytest.raises(HistoryUnusable) as caught:
            history.append_files([upload(), upload(10, 19, cause=odd)])
        assert not caught.value.damaged
    assert list(history.files()) == []


def test_a_history_is_read_where_nothing_may_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite would make a log beside it even to read; where it cannot, the file alone is read, if there is no log."""
    path = tmp_path / "history.db"
    with closing(write_history(path, HistorySettings())) as history:
        history.append_files([upload()])
    really = history_file._opened_read_only

    def refusing(path: Path, options: str) -> sqlite3.Connection:
        if "immutable" in options:
            return really(path, options)
        error = sqlite3.OperationalError("unable to open database file")
        error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        raise error

    monkeypatch.setattr(history_file, "_opened_read_only", refusing)
    with closing(read_history(path)) as history:
        assert list(history.files()) == [upload()]
    path.with_name("history.db-wal").write_bytes(b"what is in it would be missing")
    with pytest.raises(HistoryUnusable, match="unable to open"):
        read_history(path)


def test_what_became_of_a_file_at_an_archive_is_kept(history: SqliteHistory) -> None:
    """With the upload, or noted later in place of what was known; it is forgotten with its file."""
    place = Archiving("directory:/a", 5_000)
    history.append_files([upload(0, 9, archive=place), upload(10, 19), upload(20, 29)])
    history.note_archived(upload(10, 19).file_name, Archiving("directory:/a", 6_000, "full"))
    history.note_archived(upload(10, 19).file_name, Archiving("directory:/a", 7_000))
    assert [one.archive for one in history.files()] == [place, Archiving("directory:/a", 7_000), None]
    assert next(UploadRecord.from_dict(one.to_dict()).archive for one in history.files()) == place
    history.prune(25 * HOUR_MS)
    history.append_files([upload(0, 9, at_ms=26 * HOUR_MS)])
    assert [one.archive for one in history.files()] == [None]


def test_a_history_of_a_time_without_archives_is_read_and_written(tmp_path: Path) -> None:
    """Its uploads have none, until one is noted."""
    path = tmp_path / "history.db"
    with closing(write_history(path, HistorySettings())) as history:
        history.append_files([upload()])
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("drop table archived")
    with closing(read_history(path)) as history:
        assert [one.archive for one in history.files()] == [None]
    with closing(write_history(path, HistorySettings())) as history:
        history.note_archived(upload().file_name, Archiving("directory:/a", 1))
        assert [one.archive for one in history.files()] == [Archiving("directory:/a", 1)]


def test_hours_are_summed_up() -> None:
    """Each by itself, at its bounds; of files that were not accepted only how many, and their attempts."""
    records = [
        upload(0, 9, at_ms=HOUR_MS),
        upload(10, 29, at_ms=2 * HOUR_MS - 1, reason="interval", repeat=1, upload_s=4.0, oldest_ms=None),
        upload(30, 39, at_ms=2 * HOUR_MS - 1, outcome=UploadOutcome.REFUSED),
        upload(30, 39, at_ms=2 * HOUR_MS, outcome=UploadOutcome.WAITING),
    ]
    four, waits = Percentiles(4_000, 4_000, 4_000, 4_000), Percentiles(2.25, 4.0, 4.0, 4.0)
    assert summarised(records) == [
        HourSummary(HOUR_MS, 2, 1, 30, 30, 2_468, 6, {"records": 1, "interval": 1}, {"refused": 1}, four, waits),
        HourSummary(2 * HOUR_MS, 0, 0, 0, 0, 0, 2, {}, {"waiting": 1}, None, None),
    ]


@pytest.mark.parametrize("again", [{"repeat": 2}, {"origin": Origin.REPLAY}, {"origin": Origin.PARKED}])
def test_what_is_sent_again_is_not_stale(again: dict[str, object]) -> None:
    """A replay sends old records; that says nothing of how fresh the target is kept."""
    (hour,) = summarised([upload(0, 9), upload(10, 19, oldest_ms=1, **again)])
    assert (hour.files, hour.freshness_ms) == (2, Percentiles(4_000, 4_000, 4_000, 4_000))


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, None), (1, (1, 1, 1, 1)), (2, (1, 2, 2, 2)), (100, (50, 95, 99, 100)), (1_000, (500, 950, 990, 1_000))],
)
def test_percentiles_are_nearest_ranks(count: int, expected: tuple[int, ...] | None) -> None:
    """The smallest value that so many of a hundred do not exceed."""
    assert percentiles(range(count, 0, -1)) == (None if expected is None else Percentiles(*expected))


@given(st.lists(st.floats(0, 1e9), min_size=1))
def test_percentiles_are_values(values: list[float]) -> None:
    """In order, and each of them was there."""
    found = percentiles(values)
    assert found is not None
    ordered = [found.p50, found.p95, found.p99, found.most]
    assert ordered == sorted(ordered)
    assert set(ordered) <= set(values)
