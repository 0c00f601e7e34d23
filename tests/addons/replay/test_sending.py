"""A file of an archive that is sent as it is."""

import random
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parquet_sink.addons.replay.copies import Copy
from parquet_sink.addons.replay.sending import CopySender
from parquet_sink.archive.archive import open_archive
from parquet_sink.archive.target import local_file
from parquet_sink.errors import ArchiveUnusable, UploadRefused
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.targets.outcome import Outcome, Verdict
from tests.archive.files import SECONDS, Taking, archive_in, finished, stored
from tests.factories import settings
from tests.messages import saying

DATED = "connect.ems.s3.prefix=events/date={yyyy}-{MM}-{dd}/{HH}"
FIRST, AT_MS = random.randrange(10**9), random.randrange(10**12, 2 * 10**12)


class Remembering(Taking):
    """A target that remembers the timestamps of the files it took."""

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        self.first_ms = file.first_ms
        return super().push(file, seconds_left)


def archived(folder: Path, **columns: list[int | None]) -> tuple[CopySender, Copy, Remembering]:
    """An archive with a Parquet file of these columns, and who sends it to a bucket whose prefix has a date."""
    folder.mkdir()
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()}), sink)
    content = sink.getvalue().to_pybytes()
    file, archive = finished(folder / "made", content), open_archive(archive_in(folder))
    archive.keep(local_file(file), SECONDS)
    copy = Copy("orders", 0, file.name, FIRST, FIRST + 9, 2, 10, len(content), where=local_file(file).where)
    taking = Remembering()
    return CopySender(settings(folder / "work"), lambda: archive, taking, dated=DATED), copy, taking


def scene(tmp_path: Path, taking: Taking) -> tuple[CopySender, Copy]:
    """An archive with one file, and who sends it."""
    file, archive = finished(tmp_path / "made"), open_archive(archive_in(tmp_path))
    archive.keep(local_file(file), SECONDS)
    copy = Copy("orders", 0, file.name, 0, 9, 12, 10, 7, sha256(b"content").hexdigest(), where=local_file(file).where)
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
    with pytest.raises(
        ArchiveUnusable, match=saying(copy.name, "not what was accepted", "parquet-sink archive verify")
    ):
        sender.send(copy)
    assert taking.pushed == 0
    assert sender.send(replace(copy, digest=None)).accepted
    path.unlink()
    with pytest.raises(ArchiveUnusable, match=saying(copy.name, "no longer has")):
        sender.send(copy)
    assert stored(tmp_path / "work") == {}


def test_what_the_target_refuses_is_told(tmp_path: Path) -> None:
    """As of any file; no local file is left."""
    sender, copy = scene(tmp_path, Taking(Outcome(Verdict.REFUSED, "no", "Mend it")))
    with pytest.raises(UploadRefused):
        sender.send(copy)
    assert stored(tmp_path / "work") == {}


@pytest.mark.parametrize(
    ("offset", "stamp"), [("kafkaOffset", "kafkaTimestamp"), ("offset", "timestamp")], ids=["metadata", "raw"]
)
@pytest.mark.parametrize("at_ms", [AT_MS, 0, -1])
def test_a_prefix_with_a_date_gets_that_of_the_first_record(
    tmp_path: Path, offset: str, stamp: str, at_ms: int
) -> None:
    """As the file itself tells it, so that it comes under the name of the first time; 1970 only where that was so."""
    columns: dict[str, list[int | None]] = {"a": [1, 2], offset: [FIRST, FIRST + 9], stamp: [at_ms, 7]}
    sender, copy, taking = archived(tmp_path / "x", **columns)
    assert sender.send(copy).accepted
    assert taking.first_ms == (at_ms if at_ms > 0 else None)


@pytest.mark.parametrize(
    "columns",
    [
        {"a": [1]},
        {"kafkaTimestamp": [AT_MS]},
        {"kafkaOffset": [FIRST + 1], "kafkaTimestamp": [AT_MS]},
        {"offset": [FIRST], "when": [AT_MS]},
    ],
)
def test_a_date_that_nothing_tells_is_not_invented(tmp_path: Path, columns: dict[str, list[int | None]]) -> None:
    """Rows would be there twice, below another date: it is told, with what may be done; without a date it is sent."""
    sender, copy, taking = archived(tmp_path / "x", **columns)
    with pytest.raises(ArchiveUnusable, match=saying(copy.name, "no timestamp", DATED)):
        sender.send(copy)
    assert (taking.pushed, stored(tmp_path / "x" / "work")) == (0, {})
    archive = open_archive(archive_in(tmp_path / "x"))
    plain = CopySender(settings(tmp_path / "y"), lambda: archive, taking)
    assert plain.send(copy).accepted
