"""A folder as an archive: kept whole and never over another file, listed and read back."""

import os
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from parquet_sink.archive.archive import ArchivedFile, LocalFile, open_archive, path_of
from parquet_sink.errors import ArchiveUnusable, StorageFailed
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.targets.outcome import Health, Verdict
from tests.archive.files import SECONDS, archive_in, finished, stored
from tests.messages import saying


def local(file: FinishedFile) -> LocalFile:
    """As the archive gets it."""
    return LocalFile(file.path, path_of(file.topic, file.name), file.size_bytes)


def test_a_file_is_kept_by_connector_and_topic(tmp_path: Path) -> None:
    """Under its own name, byte for byte; the same once more changes nothing, and the local file stays."""
    archive, file = open_archive(archive_in(tmp_path, "a/b")), finished(tmp_path / "tmp", topic="..")
    for cause in ("stored", "was stored before"):
        outcome = archive.keep(local(file), SECONDS)
        assert (outcome.verdict, outcome.cause) == (Verdict.ACCEPTED, cause)
    assert stored(tmp_path / "archive") == {f"a%2Fb/%2E./{file.name}": b"content"}
    assert Path(file.path).exists()


def test_another_content_is_told_and_never_overwritten(tmp_path: Path) -> None:
    """The key that names the archive is in the cure."""
    archive, file = open_archive(archive_in(tmp_path)), finished(tmp_path / "tmp")
    archive.keep(local(file), SECONDS)
    Path(file.path).write_bytes(b"CONTENT")
    outcome = archive.keep(local(file), SECONDS)
    assert outcome.verdict is Verdict.REFUSED
    assert "another content" in outcome.cause
    assert "connect.ems.archive.url" in outcome.cure
    assert list(stored(tmp_path / "archive").values()) == [b"content"]


def test_bytes_that_were_altered_are_not_kept(tmp_path: Path) -> None:
    """Of the size that they had: the digest tells, and nothing gets the name."""
    archive, file = open_archive(archive_in(tmp_path)), finished(tmp_path / "tmp", b"x" * 3_000_000)
    Path(file.path).write_bytes(b"x" * 2_999_999 + b"y")
    with pytest.raises(StorageFailed, match=saying("other bytes", "verified")):
        archive.keep(replace(local(file), digest=file.digest), SECONDS)
    assert stored(tmp_path / "archive") == {}


def test_folders_of_who_died_are_on_the_disk_before_a_file_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever made them may not have come to that: each process sees to it once."""
    synced, fsync = set[int](), os.fsync

    def noting(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    settings, file = archive_in(tmp_path), finished(tmp_path / "tmp")
    (tmp_path / "archive" / "orders" / "orders").mkdir(parents=True)
    monkeypatch.setattr(os, "fsync", noting)
    open_archive(settings).keep(local(file), SECONDS)
    folders = (tmp_path / "archive", tmp_path / "archive" / "orders", tmp_path / "archive" / "orders" / "orders")
    assert {one.stat().st_ino for one in folders} <= synced


def test_an_archive_that_is_away_is_not_made(tmp_path: Path) -> None:
    """Its folder may be an empty mount point: keeping waits for it, reading says so, and a probe finds it."""
    archive, file = open_archive(archive_in(tmp_path)), finished(tmp_path / "tmp")
    (tmp_path / "archive").rmdir()
    outcome = archive.keep(local(file), SECONDS)
    assert (outcome.verdict, (tmp_path / "archive").exists()) == (Verdict.RETRIABLE, False)
    assert archive.probe(SECONDS).health is Health.FAILED
    with pytest.raises(ArchiveUnusable, match="No such file"):
        list(archive.files())


def test_files_of_the_connector_alone_are_listed_and_read(tmp_path: Path) -> None:
    """Two connectors share an archive, with the same topic; what either does not have is told as absent."""
    file = finished(tmp_path / "tmp", b"mine")
    mine, other = open_archive(archive_in(tmp_path, "a")), open_archive(archive_in(tmp_path, "b"))
    assert list(mine.files()) == []
    mine.keep(local(file), SECONDS)
    other.keep(replace(local(finished(tmp_path / "tmp", b"theirs")), where=path_of("orders", "x")), SECONDS)
    where = path_of("orders", file.name)
    assert list(mine.files()) == [ArchivedFile(where, 4)]
    assert mine.digest(where) == sha256(b"mine").hexdigest()
    assert mine.digest(path_of("orders", "x")) is None
    assert mine.fetch(where, str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == b"mine"
    assert not mine.fetch(path_of("orders", "x"), str(tmp_path / "none"))
