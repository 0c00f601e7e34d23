"""An archive beside the history: what is missing, alien, forgotten, or not noted yet."""

from dataclasses import replace

from parquet_sink.archive.archive import ArchivedFile, path_of
from parquet_sink.archive.comparison import Comparison, Gap, compared, expected
from parquet_sink.files.naming import file_name, frame_file_name
from parquet_sink.history.records import Origin, UploadOutcome, UploadRecord
from parquet_sink.model.frames import FrameSlice
from parquet_sink.model.receipts import Archiving
from tests.history.uploads import span, upload

PLACE = "directory:/a"
HERE = Archiving(PLACE, 5_000)


def archived(one: UploadRecord) -> ArchivedFile:
    """As the archive has it."""
    return ArchivedFile(path_of(one.topic, one.file_name), one.size_bytes)


def comparison(
    files: list[ArchivedFile], uploads: list[UploadRecord], waiting: frozenset[str] = frozenset()
) -> Comparison:
    """Of these files with this history."""
    return compared(files, expected(uploads), [span(0, 100)], waiting, PLACE)


def test_what_both_have_is_complete() -> None:
    """A file that was sent twice is one; replays, and files that were not accepted, are not expected."""
    one, other = upload(0, 9, archive=HERE), upload(10, 19, archive=HERE)
    uploads = [
        *(one, replace(one, at_ms=9_000, repeat=1), other, replace(upload(20, 29), origin=Origin.REPLAY)),
        replace(upload(30, 39), outcome=UploadOutcome.REFUSED),
    ]
    found = comparison([archived(one), archived(other)], uploads)
    assert [len(x) for x in (found.known, found.missing, found.alien, found.gaps)] == [2, 0, 0, 0]


def test_what_is_missing_is_told_as_gaps() -> None:
    """Neighbouring files are one gap, whatever topic-partitions lie between; with what the history has of the cause."""
    full = Archiving(PLACE, 5_000, "full")
    files = [upload(n * 10, n * 10 + 9, archive=full if n == 2 else HERE) for n in range(5)]
    elsewhere = upload(20, 29, partition=1, archive=HERE)
    found = comparison([archived(files[0]), archived(files[3])], [*files, elsewhere])
    assert found.gaps == [
        Gap("orders", 0, 10, 29, (files[1].file_name, files[2].file_name), ("full",)),
        Gap("orders", 0, 40, 49, (files[4].file_name,)),
        Gap("orders", 1, 20, 29, (elsewhere.file_name,)),
    ]


def test_all_of_an_archive_may_be_missing() -> None:
    """An archive that was emptied is no archive that has not begun."""
    assert len(comparison([], [upload(0, 9, archive=HERE)]).missing) == 1


def test_what_was_accepted_before_the_archive_began_is_no_gap() -> None:
    """Nor is what waits for it; what was accepted without it later on is a gap."""
    before, first = upload(0, 9, at_ms=1_000), upload(10, 19, at_ms=2_000, archive=HERE)
    without, waits = upload(20, 29, at_ms=3_000), upload(30, 39, at_ms=4_000)
    other = replace(upload(40, 49, at_ms=500), archive=Archiving("directory:/other", 500))
    uploads = [before, first, without, waits, other]
    found = comparison([archived(first)], uploads, frozenset({path_of("orders", waits.file_name)}))
    assert (found.missing, found.waiting, found.earlier_uploads) == ([without], 1, 2)


def test_files_that_the_history_does_not_have() -> None:
    """By their offsets: forgotten, or not noted yet; what lies between, is called or placed otherwise, is alien."""
    known = upload(50, 59, archive=HERE)
    offsets = {"forgotten": (0, 9), "between": (52, 55), "later": (100, 109)}
    names = {what: file_name("orders", 0, *both, 7, 3) for what, both in offsets.items()}
    files = {what: ArchivedFile(path_of("orders", name), 7) for what, name in names.items()}
    frame = frame_file_name("orders", FrameSlice("id", None, 0), 0, 9, 7, 10)
    aliens = [
        files["between"],
        ArchivedFile("orders/notes.txt", 1),
        replace(files["later"], where=files["later"].where.replace("orders/", "payments/", 1)),
        replace(files["later"], size_bytes=8),
    ]
    found = compared(
        [archived(known), files["forgotten"], files["later"], ArchivedFile(f"id/{frame}", 7), *aliens],
        expected([known]),
        [span(50, 100, done_until=100)],
        frozenset(),
        PLACE,
    )
    assert (found.earlier, found.later, found.alien) == ([files["forgotten"]], [files["later"]], aliens)
    assert [one.where for one in found.frames] == [f"id/{frame}"]
