"""A file of an archive that is sent as it is."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from parquet_sink.archive.opening import open_archive
from parquet_sink.archive.target import local_file
from parquet_sink.errors import ArchiveUnusable, UploadRefused
from parquet_sink.replay.copies import Copy
from parquet_sink.replay.sending_copies import CopySender
from parquet_sink.targets.outcome import Outcome, Verdict
from tests.archive.files import SECONDS, Taking, archive_in, finished, stored
from tests.factories import settings


def scene(tmp_path: Path, taking: Taking) -> tuple[CopySender, Copy]:
    """An archive with one file, and who sends it."""
    file, archive = finished(tmp_path / "made"), open_archive(archive_in(tmp_path))
    archive.keep(local_file(file), SECONDS)
    copy = Copy(local_file(file).where, file.name, "orders", 0, 0, 9, 12, 10, 7, sha256(b"content").hexdigest())
    return CopySender(settings(tmp_path / "work"), lambda: archive, taking), copy


def test_it_is_sent_with_its_name_and_bytes(tmp_path: Path) -> None:
    """The receipt is that of the first time, and no local file is left."""
    sender, copy = scene(tmp_path, Taking())
    receipt = sender.send(copy)
    assert receipt.accepted
    assert (receipt.file_name, receipt.digest, receipt.rows, receipt.next_offset) == (copy.name, copy.digest, 12, 10)
    assert stored(tmp_path / "work") == {}


def test_what_was_altered_is_not_sent(tmp_path: Path) -> None:
    """Nor what is gone; of a file that the history has forgotten the size alone is known."""
    taking = Taking()
    sender, copy = scene(tmp_path, taking)
    [path] = (tmp_path / "archive").rglob("*.parquet")
    path.write_bytes(b"CONTENT")
    with pytest.raises(ArchiveUnusable, match="is not what was accepted"):
        sender.send(copy)
    assert taking.pushed == 0
    assert sender.send(replace(copy, digest=None)).accepted
    path.unlink()
    with pytest.raises(ArchiveUnusable, match="no longer has"):
        sender.send(copy)
    assert stored(tmp_path / "work") == {}


def test_what_the_target_refuses_is_told(tmp_path: Path) -> None:
    """As of any file; no local file is left."""
    sender, copy = scene(tmp_path, Taking(Outcome(Verdict.REFUSED, "no", "Mend it")))
    with pytest.raises(UploadRefused):
        sender.send(copy)
    assert stored(tmp_path / "work") == {}
