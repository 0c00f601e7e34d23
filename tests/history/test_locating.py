"""Where an offset is."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from parquet_sink.history.locating import Place, locate
from parquet_sink.history.records import Origin, UploadOutcome
from parquet_sink.history.settings import HistorySettings
from parquet_sink.history.sqlite import SqliteHistory, write_history
from tests.history.uploads import span, upload


@pytest.fixture
def history(tmp_path: Path) -> Iterator[SqliteHistory]:
    """An empty one."""
    with closing(write_history(tmp_path / "history.db", HistorySettings())) as opened:
        yield opened


@pytest.mark.parametrize(
    ("offset", "place", "delivered"),
    [
        (99, Place.EARLIER, False),
        (100, Place.FILE, True),
        (109, Place.FILE, True),
        (110, Place.NO_ROW, True),
        (130, Place.FILE, False),
        (140, Place.UNDER_WAY, False),
        (150, Place.GAP, False),
        (200, Place.NO_ROW, True),
        (210, Place.LATER, False),
    ],
)
def test_each_offset_has_its_place(history: SqliteHistory, offset: int, place: Place, delivered: bool) -> None:
    """Ends of files and ranges, what has no row, what waits, and what nobody knows of; with what there is around it."""
    history.append_files([upload(100, 109), upload(120, 129), upload(130, 139, outcome=UploadOutcome.WAITING)])
    history.append_ranges([span(100, 150, done_until=130), span(200, 210, done_until=210)])
    found = locate(history, "orders", 0, offset)
    assert (found.place, found.delivered) == (place, delivered)
    assert found.bounds == ((100, 209) if place in (Place.EARLIER, Place.LATER, Place.GAP) else None)
    assert locate(history, "orders", 1, offset).place is Place.NOTHING


def test_an_acceptance_counts_whatever_came_after_it(history: SqliteHistory) -> None:
    """A record that the target has is delivered, also when a repetition was refused; how often is counted."""
    history.append_files([upload(at_ms=1), upload(at_ms=2), upload(at_ms=3, outcome=UploadOutcome.REFUSED)])
    found = locate(history, "orders", 0, 5)
    assert found.file is not None
    assert (found.file.at_ms, found.sent, found.delivered) == (2, 2, True)


def test_what_the_connector_sent_counts_first(history: SqliteHistory) -> None:
    """Not what a replay sent elsewhere since, nor a file of parked records that spans the offset; else these do."""
    elsewhere = upload(at_ms=8, origin=Origin.REPLAY, target="https://other.example")
    parked = upload(0, 99, at_ms=9, origin=Origin.PARKED)
    history.append_files([upload(at_ms=1), upload(at_ms=2, origin=Origin.REPLAY), elsewhere, parked])
    history.append_files([upload(20, 29, at_ms=10, outcome=UploadOutcome.PASSED_OVER)])
    found = [locate(history, "orders", 0, offset) for offset in (5, 25)]
    assert [(one.file and one.file.at_ms, one.sent) for one in found] == [(2, 2), (9, 1)]


def test_a_set_aside_file_is_done_with(history: SqliteHistory) -> None:
    """Nothing waits for it; a refused one does, for its operator."""
    history.append_files(
        [upload(0, 9, outcome=UploadOutcome.PASSED_OVER), upload(10, 19, outcome=UploadOutcome.REFUSED)]
    )
    assert [locate(history, "orders", 0, offset).delivered for offset in (5, 15)] == [True, False]


def test_a_topic_that_was_made_anew(history: SqliteHistory) -> None:
    """Its own files are meant; where it has none, the earlier topic's are told as such."""
    history.append_files([upload(0, 9, topic_id="old"), upload(10, 19, topic_id="old"), upload(0, 4, topic_id="new")])
    history.append_ranges([span(0, 20, at_ms=1, topic_id="old"), span(0, 5, at_ms=9, topic_id="new", done_until=5)])
    found = [locate(history, "orders", 0, offset) for offset in (3, 7, 15, 25)]
    assert [one.file and one.file.topic_id for one in found] == ["new", "old", "old", None]
    assert [one.former for one in found] == [False, True, True, False]
    assert found[3].bounds == (0, 4)
    assert not found[2].delivered


@pytest.mark.parametrize("offset", [5, 15])
def test_files_without_ranges_are_found(history: SqliteHistory, offset: int) -> None:
    """Parked records that were replayed come from no range."""
    history.append_files([upload(0, 9, topic_id="")])
    assert locate(history, "orders", 0, offset).place is (Place.FILE if offset == 5 else Place.LATER)
