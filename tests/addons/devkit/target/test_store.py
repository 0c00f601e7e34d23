"""Durable acceptance: files, journal, repetitions, and what a crash leaves."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parquet_sink.addons.devkit.target.contract import BadUpload, RepeatedName, Repeats, UploadParameters
from parquet_sink.addons.devkit.target.store import Acceptance, FileStore
from tests.messages import assert_says, saying

PARAMETERS = UploadParameters("p", "orders", "c", "me", 80, ("id", "region"), "o")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    """A store in an empty folder."""
    made = FileStore(tmp_path / "data")
    yield made
    made.journal.close()


def parquet(tmp_path: Path, rows: int) -> bytes:
    """The bytes of a Parquet file with that many rows."""
    pq.write_table(pa.table({"id": list(range(rows))}), tmp_path / "made.parquet")
    return (tmp_path / "made.parquet").read_bytes()


def upload(
    store: FileStore, data: bytes, name: str = "f.parquet", parameters: UploadParameters = PARAMETERS
) -> Acceptance:
    """One upload, received at 1000 ms."""
    part = store.open_part()
    try:
        part.write(data)
        return store.accept(part, name, parameters, 1_000)
    finally:
        part.drop()


def left_over(store: FileStore, folder: str) -> list[str]:
    """The names of the files in one of the store's folders."""
    return sorted(path.name for path in (store.scratch_path().parent.parent / folder).iterdir())


def test_an_accepted_file_is_stored_with_all_that_was_asked(store: FileStore, tmp_path: Path) -> None:
    """Bytes, row count from the footer, and parameters come back from the journal."""
    data = parquet(tmp_path, 3)
    accepted = upload(store, data)
    stored = store.journal.file(accepted.file.id)
    assert stored == accepted.file
    assert (stored.parameters, stored.rows, stored.bytes, stored.state) == (PARAMETERS, 3, len(data), "waiting")
    assert store.path(stored).read_bytes() == data
    assert left_over(store, "incoming") == []


def test_a_repeated_file_is_counted_and_not_stored_twice(store: FileStore, tmp_path: Path) -> None:
    """A name that comes again with the same bytes is the same file."""
    first = upload(store, parquet(tmp_path, 3))
    again = upload(store, parquet(tmp_path, 3))
    assert (first.repeated, again.repeated, again.file.id) == (False, True, first.file.id)
    totals = store.journal.totals()
    assert (totals.files, totals.rows, totals.repeated, totals.altered) == (1, 3, 1, 0)
    assert len(left_over(store, "files")) == 1


def test_a_known_name_with_other_content_is_another_file(
    store: FileStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is stored, marked as altered, and told loudly; from then on both contents are known."""
    first = upload(store, parquet(tmp_path, 3))
    assert caplog.text == ""
    other = upload(store, parquet(tmp_path, 4))
    assert_says(caplog.text, "f.parquet", "target orders", "OTHER CONTENT")
    assert (other.repeated, other.file.altered, other.file.rows) == (False, 1, 4)
    assert other.file.id != first.file.id
    assert store.journal.file(other.file.id) == other.file
    assert [upload(store, parquet(tmp_path, rows)).file.id for rows in (3, 4)] == [first.file.id, other.file.id]
    totals = store.journal.totals()
    assert (totals.files, totals.rows, totals.repeated, totals.altered) == (2, 7, 2, 1)
    assert len(left_over(store, "files")) == 2


@pytest.mark.parametrize("once", ["UNIQUE (target, name)", "UNIQUE (target, name, sha256)"])
def test_a_journal_of_an_earlier_version_goes_on(store: FileStore, tmp_path: Path, once: str) -> None:
    """Its files are still known, sequences go on, and other content under a known name is taken."""
    folder = store.scratch_path().parent.parent
    first = upload(store, parquet(tmp_path, 3)).file
    store.journal.close()
    with closing(sqlite3.connect(folder / "journal.sqlite")) as old:
        (new,) = old.execute("SELECT sql FROM sqlite_schema WHERE name = 'files'").fetchone()
        old.execute("ALTER TABLE files RENAME TO made")
        before = new.replace("again INTEGER NOT NULL DEFAULT 0", once)
        assert before != new
        old.execute(before)
        old.execute("ALTER TABLE made DROP COLUMN again")
        old.execute("INSERT INTO files SELECT * FROM made")
        old.execute("DROP TABLE made")
        old.execute("CREATE INDEX files_by_state ON files (state, sequence)")
        old.execute("UPDATE sqlite_sequence SET seq = 40")  # some were forgotten by a reset
        old.commit()
    for _ in range(2):
        again = FileStore(folder)
        assert again.journal.file(first.id) == first
        other = upload(again, parquet(tmp_path, 4)).file
        assert (other.sequence, other.altered) == (41, 1)
        again.journal.close()


def test_a_name_belongs_to_its_target(store: FileStore, tmp_path: Path) -> None:
    """The same name for another target is another file."""
    upload(store, parquet(tmp_path, 1))
    assert not upload(store, parquet(tmp_path, 1), parameters=UploadParameters("p", "other")).repeated


@pytest.mark.parametrize("data", [b"", b"PAR1", b"hello, world", b"PAR1" + bytes(100) + b"PAR1"])
def test_what_is_not_parquet_is_refused_and_leaves_nothing(store: FileStore, data: bytes) -> None:
    """Neither a file nor a row remains."""
    with pytest.raises(BadUpload, match="Parquet"):
        upload(store, data)
    assert (store.journal.totals().files, left_over(store, "incoming"), left_over(store, "files")) == (0, [], [])


def test_a_truncated_file_is_refused(store: FileStore, tmp_path: Path) -> None:
    """A Parquet file without its footer is none."""
    with pytest.raises(BadUpload):
        upload(store, parquet(tmp_path, 3)[:-10])


def test_a_start_removes_what_was_never_accepted_and_nothing_else(tmp_path: Path) -> None:
    """Parts and files without a journal row go; accepted files and what others put there stay."""
    store = FileStore(tmp_path / "data")
    kept = upload(store, parquet(tmp_path, 1)).file
    store.open_part().sync()
    store.path(kept).with_name("0" * 32 + ".parquet").write_bytes(b"never accepted")
    store.path(kept).with_name("notes.txt").write_text("mine")
    store.journal.close()
    again = FileStore(tmp_path / "data")
    assert left_over(again, "incoming") == []
    assert left_over(again, "files") == sorted([f"{kept.id}.parquet", "notes.txt"])
    assert again.journal.files(10, 0) == [kept]
    again.journal.close()


def test_clear_forgets_files_but_not_the_count(store: FileStore, tmp_path: Path) -> None:
    """A sequence is never given twice, so that notes about an old file cannot hit a new one."""
    first = upload(store, parquet(tmp_path, 1)).file
    store.clear()
    assert (store.journal.files(10, 0), left_over(store, "files")) == ([], [])
    assert upload(store, parquet(tmp_path, 1)).file.sequence > first.sequence


def test_waiting_gives_the_oldest_target_in_order(store: FileStore, tmp_path: Path) -> None:
    """Files of one target at a time, oldest first, settled ones no more."""
    data = parquet(tmp_path, 1)
    other = UploadParameters("p", "other")
    files = [upload(store, data, f"{i}", asked).file for i, asked in enumerate([PARAMETERS, other, PARAMETERS])]
    journal = store.journal
    assert [file.sequence for file in journal.waiting(10)] == [files[0].sequence, files[2].sequence]
    journal.settle([files[0].sequence, files[2].sequence], "upserted")
    assert [file.sequence for file in journal.waiting(10)] == [files[1].sequence]
    assert (journal.first_waiting(), journal.last()) == (files[1].sequence, files[2].sequence)
    journal.settle([files[1].sequence], "failed", "why")
    assert (journal.waiting(10), journal.first_waiting()) == ([], None)
    assert journal.totals().upserts == {"upserted": 2, "failed": 1}
    assert journal.files(10, 0, "other")[0].error == "why"


def test_pages_follow_the_order_of_acceptance(store: FileStore, tmp_path: Path) -> None:
    """Limit and offset cut the same list."""
    data = parquet(tmp_path, 1)
    names = [upload(store, data, f"{i}").file.name for i in range(5)]
    assert [file.name for file in store.journal.files(2, 3)] == names[3:5]


@pytest.mark.parametrize("repeats", ["forget", "refuse", "recognise"])
def test_what_becomes_of_a_file_that_comes_again(tmp_path: Path, repeats: Repeats) -> None:
    """Forgotten it is taken like a new one, refused it is not taken; each time repetitions are counted as such."""
    store = FileStore(tmp_path / "other", repeats)
    first = upload(store, parquet(tmp_path, 3)).file
    for _ in range(2):
        if repeats == "refuse":
            with pytest.raises(RepeatedName, match=saying("f.parquet", "accepted before")):
                upload(store, parquet(tmp_path, 3))
        else:
            upload(store, parquet(tmp_path, 3))
    received = {
        "forget": {"files": 3, "rows": 9, "repeated_files": 2, "repeated_rows": 6, "recognised_rows": 0},
        "refuse": {"files": 1, "rows": 3, "repeated_files": 0, "repeated_rows": 0, "recognised_rows": 0},
        "recognise": {"files": 3, "rows": 9, "repeated_files": 2, "repeated_rows": 6, "recognised_rows": 6},
    }[repeats]
    assert received.items() <= store.journal.totals("ORDERS").received().items()
    assert store.journal.totals("other").received()["files"] == 0
    taken = store.journal.files(10, 0)
    assert [(one.id == first.id, one.again, one.altered) for one in taken][1:] == [(False, 1, 0)] * (
        2 if repeats == "forget" else 0
    )
    assert len(store.journal.waiting(10)) == len(taken)
    store.journal.close()


def test_a_refusing_store_refuses_other_content_too(tmp_path: Path) -> None:
    """It goes by the name; and nothing of what was refused stays."""
    store = FileStore(tmp_path / "other", "refuse")
    upload(store, parquet(tmp_path, 3))
    with pytest.raises(RepeatedName):
        upload(store, parquet(tmp_path, 4))
    assert (len(left_over(store, "files")), left_over(store, "incoming")) == (1, [])
    store.journal.close()
