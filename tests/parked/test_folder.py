"""Parked records: whole files or none, no record twice, bounded, and few files however they come."""

import os
import resource
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.errors import ParkedFull, StorageFailed
from parquet_sink.parked import folder as module
from parquet_sink.parked.folder import ParkedFolder
from parquet_sink.parked.locks import changing
from parquet_sink.parked.scan import scan
from parquet_sink.parked.settings import ParkedSettings
from tests.messages import assert_says, saying
from tests.parked.conftest import MAX
from tests.parked.crashes import Crash, crash_at
from tests.parked.records import offsets, rejected
from tests.thorough import FIXTURES_SHARED, examples


def test_a_record_is_kept_with_all_that_it_has(folder: ParkedFolder) -> None:
    """Place, bytes, headers, stage, reason, and when it was parked; null stays null, and empty stays empty."""
    bare = rejected(8, key=None, value=None, headers=None, timestamp_ms=0)
    empty = rejected(9, key=b"", value=b"", headers=())
    assert folder.append("orders", 0, [rejected(7), bare, empty], 5_000) == 3
    (file,) = scan(folder.path).files
    assert (file.topic, file.partition, file.rows, file.first_offset, file.last_offset) == ("orders", 0, 3, 7, 9)
    first, second, third = file.read().to_pylist()
    assert (first["connector"], first["topic"], first["partition"], first["offset"]) == ("sink", "orders", 0, 7)
    assert (first["key"], first["value"], first["timestamp"].timestamp()) == (b"k7", b"not JSON 7", 1.007)
    assert first["headers"] == [{"key": "a", "value": b"1"}, {"key": "a", "value": None}]
    assert (first["stage"], first["reason"]) == ("VALUE_CONVERTER", "the value is not JSON")
    assert first["parked_at"].timestamp() == 5
    assert [second[name] for name in ("key", "value", "headers", "timestamp")] == [None] * 4
    assert [third[name] for name in ("key", "value", "headers")] == [b"", b"", []]


def test_a_reason_that_is_no_whole_text_is_kept(folder: ParkedFolder) -> None:
    """Half a character, as a field's name may have, does not keep its record from being parked."""
    odd = replace(rejected(1), reason="field \ud800 is not a number")
    assert folder.append("orders", 0, [odd], 1) == 1
    assert scan(folder.path).files[0].read().column("reason").to_pylist() == ["field \\ud800 is not a number"]


def test_only_this_user_reads_what_is_parked(folder: ParkedFolder) -> None:
    """Records are somebody's data: folders and files are private."""
    folder.append("orders", 0, [rejected(1)], 1)
    for path in (Path(folder.path), *Path(folder.path).rglob("parked-*"), *Path(folder.path).rglob("0")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_one_at_a_time_makes_one_file(folder: ParkedFolder) -> None:
    """Each is added to the last file of its topic-partition, so that a trickle leaves no heap of tiny files."""
    for offset in range(50):
        assert folder.append("orders", 0, [rejected(offset)], offset) == 1
    assert offsets(folder) == list(range(50))
    assert [file.rows for file in scan(folder.path).files] == [50]


def test_a_full_file_is_followed_by_another(folder: ParkedFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit into the last file begins a new one, and files stay of bounded size."""
    monkeypatch.setattr(module, "FILE_BYTES", 20_000)
    for offset in range(60):
        folder.append("orders", 0, [rejected(offset, value=os.urandom(1_000))], offset)
    found = scan(folder.path).files
    assert offsets(folder) == list(range(60))
    assert 3 <= len(found) <= 6
    assert all(file.size_bytes < 25_000 for file in found)


def test_topic_partitions_have_files_of_their_own(folder: ParkedFolder) -> None:
    """Whatever a topic is called, it stays below the folder, and its name is in the file."""
    for topic in ("orders", "../../etc", ".", "a" * 249):
        for partition in (0, 12):
            folder.append(topic, partition, [rejected(1)], 1)
    found = scan(folder.path)
    assert {(file.topic, file.partition) for file in found.files} == {
        (topic, partition) for topic in ("orders", "../../etc", ".", "a" * 249) for partition in (0, 12)
    }
    assert found.skipped == ()


def test_a_repeated_range_adds_nothing(folder: ParkedFolder) -> None:
    """After a crash the same records come again, perhaps with others: only those are added."""
    folder.append("orders", 0, [rejected(n) for n in (1, 5, 9)], 1)
    before = scan(folder.path).size_bytes
    assert folder.append("orders", 0, [rejected(n) for n in (5, 9)], 2) == 0
    assert scan(folder.path).size_bytes == before
    assert folder.append("orders", 0, [rejected(n) for n in (5, 7, 9, 11)], 3) == 2
    assert sorted(offsets(folder)) == [1, 5, 7, 9, 11]


def test_another_record_at_the_same_offset_is_another_record(folder: ParkedFolder) -> None:
    """A topic that was deleted and recreated has other records at the offsets of before; none replaces another."""
    folder.append("orders", 0, [rejected(5)], 1)
    assert folder.append("orders", 0, [rejected(5, value=b"other")], 2) == 1
    assert folder.append("orders", 0, [rejected(5, value=None)], 2) == 1
    assert offsets(folder) == [5, 5, 5]


def fill(folder: ParkedFolder) -> None:
    """Adds far more than a small folder may hold."""
    for offset in range(1_000):
        folder.append("orders", 0, [rejected(offset, value=os.urandom(1_000))], 1)


def test_the_bound_holds(tmp_path: Path) -> None:
    """At the bound nothing is added, the error names record, key, value and cure, and what was there stays."""
    folder = ParkedFolder(str(tmp_path), "sink", 30_000)
    folder.prepare()
    with pytest.raises(ParkedFull) as caught:
        fill(folder)
    said, last = str(caught.value), max(offsets(folder))
    assert_says(said, f"Topic orders, topic-partition 0, offset {last + 1}:", "not JSON")
    assert_says(said, "connect.ems.parked.max.bytes=30000", "parquet-sink parked list", "parquet-sink parked replay")
    assert 20_000 < scan(folder.path).size_bytes <= 30_000
    assert offsets(folder) == list(range(last + 1))
    assert [path.name for path in tmp_path.rglob("*.part")] == []


def test_a_linked_folder_is_refused(folder: ParkedFolder, tmp_path: Path) -> None:
    """What is parked is put nowhere that somebody else chose."""
    (tmp_path / "link").symlink_to(folder.path)
    with pytest.raises(StorageFailed, match=saying("connect.ems.parked.dir", "symbolic link", "folder of your own")):
        ParkedFolder(str(tmp_path / "link"), "sink", MAX).prepare()


def test_a_folder_that_vanished_stops(folder: ParkedFolder, tmp_path: Path) -> None:
    """It is not made anew in silence: what was parked before would seem never to have been."""
    os.rename(folder.path, tmp_path / "elsewhere")
    gone = saying(folder.path, "connect.ems.parked.dir", "not there any more", "Bring it back")
    with pytest.raises(StorageFailed, match=gone):
        folder.append("orders", 0, [rejected(1)], 1)
    os.mkdir(folder.path)
    with pytest.raises(StorageFailed, match=gone):
        folder.append("orders", 0, [rejected(1)], 1)


@pytest.mark.parametrize("number", [28, 30, 13])
def test_a_disk_that_takes_nothing_stops(folder: ParkedFolder, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Full, read-only, not ours: the error says so and names the key, and what was parked before is whole."""
    folder.append("orders", 0, [rejected(1)], 1)

    def refuse(*_args: Any, **_more: Any) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(StorageFailed) as caught:
            folder.append("orders", 0, [rejected(2)], 2)
    assert os.strerror(number) in str(caught.value)
    assert "connect.ems.parked.dir" in str(caught.value)
    assert "connect.ems.tmp.dir" not in str(caught.value)
    assert offsets(folder) == [1]
    assert folder.append("orders", 0, [rejected(2)], 2) == 1


def test_a_disk_that_ends_in_the_middle_of_a_file_stops(folder: ParkedFolder) -> None:
    """Really: the system takes no more than the first bytes. Nothing of the file is left, what was there is whole."""
    folder.append("orders", 0, [rejected(1)], 1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(StorageFailed, match=saying("File too large", "connect.ems.parked.max.bytes")):
            folder.append("orders", 0, [rejected(2, value=os.urandom(50_000))], 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert offsets(folder) == [1]
    assert list(Path(folder.path).rglob("*.part")) == []
    assert folder.append("orders", 0, [rejected(2, value=os.urandom(50_000))], 2) == 1


def test_foreign_and_torn_files_are_named_and_kept(folder: ParkedFolder) -> None:
    """They are neither read, nor added to, nor removed, and their names are not used again."""
    folder.append("orders", 0, [rejected(1)], 1)
    (file,) = scan(folder.path).files
    place = Path(file.path).parent
    whole = Path(file.path).read_bytes()
    (place / "parked-000002.parquet").write_bytes(whole[: len(whole) // 2])
    (place / "parked-000003.parquet").write_bytes(b"")
    pq.write_table(pa.table({"offset": [1]}), place / "parked-000004.parquet")
    (place / "notes.txt").write_text("mine")
    (Path(folder.path) / "notes.txt").write_text("mine")
    (place / "parked-000005.parquet").symlink_to(file.path)
    folder.append("orders", 0, [rejected(2)], 2)
    found = scan(folder.path)
    assert sorted(offsets(folder)) == [1, 2]
    why = {os.path.basename(path): reason for path, reason in found.skipped}
    assert why.keys() == {*(f"parked-00000{n}.parquet" for n in (2, 3, 4, 5)), "notes.txt"}
    assert len(found.skipped) == 6
    assert_says(why["parked-000002.parquet"], "not a whole", "Parquet file")
    assert_says(why["parked-000004.parquet"], "not one of", "parked records")
    assert all(os.path.lexists(path) for path, _ in found.skipped)


@pytest.mark.parametrize("step", range(9))
def test_a_crash_leaves_whole_files(folder: ParkedFolder, step: int) -> None:
    """At whichever change of the disk: what was acknowledged is there, and repeating brings the rest, nothing twice."""
    folder.append("orders", 0, [rejected(1)], 1)
    more, elsewhere = [rejected(1), rejected(2)], [rejected(7)]
    crashed = False
    with crash_at(step):
        try:
            folder.append("orders", 0, more, 2)
            folder.append("orders", 1, elsewhere, 2)
        except Crash:
            crashed = True
    assert crashed or step >= 8
    assert [one for one in scan(folder.path).skipped if not one[0].endswith(".part")] == []
    assert offsets(folder)[0] == 1
    for _ in range(2):
        folder.append("orders", 0, more, 3)
        folder.append("orders", 1, elsewhere, 3)
    assert offsets(folder) == [1, 2, 7]
    assert [path.name for path in Path(folder.path).rglob("*.part")] == []


ranges = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12), st.integers(0, 12)), min_size=1, max_size=8)


@settings(
    suppress_health_check=FIXTURES_SHARED,
    max_examples=examples(60),
    deadline=None,
)
@given(ranges, st.integers(200, 5_000))
def test_however_ranges_are_repeated_each_record_is_there_once(
    tmp_path: Path, spans: list[tuple[int, int, int]], file_bytes: int
) -> None:
    """Cut at random, overlapping, crashed at random: all that was acknowledged is there, and no record twice."""
    folder = ParkedFolder(str(tmp_path / os.urandom(8).hex()), "sink", MAX)
    folder.prepare()
    acknowledged: set[int] = set()
    before, module.FILE_BYTES = module.FILE_BYTES, file_bytes  # type: ignore[misc]
    try:
        for start, count, step in spans:
            wanted = range(start, start + count)
            try:
                with crash_at(step):
                    folder.append("orders", 0, [rejected(offset) for offset in wanted], 1)
                acknowledged |= set(wanted)
            except Crash:
                pass
            found = offsets(folder)
            assert len(found) == len(set(found))
            assert acknowledged <= set(found)
    finally:
        module.FILE_BYTES = before  # type: ignore[misc]


def test_where_a_connectors_parked_records_are() -> None:
    """Below its folder in `tmp.dir`, which no topic's name reaches, or below the folder that is named."""
    assert ParkedSettings().folder("/tmp/x", "a/b") == "/tmp/x/a%2Fb/.parked"
    assert ParkedSettings("/data").folder("/tmp/x", "a/b") == "/data/a%2Fb"


def test_processes_take_turns(folder: ParkedFolder) -> None:
    """Tasks of one connector park side by side, in one folder and even for one topic-partition: nothing is lost."""

    def park(first: int) -> None:
        own = ParkedFolder(folder.path, "sink", MAX)
        for offset in range(first, first + 20):
            own.append("orders", 0, [rejected(offset)], 1)
            own.append("orders", 1 + first, [rejected(offset)], 1)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(park, (0, 10, 20)))
    found = scan(folder.path).files
    assert sorted(file.read(["offset"]).num_rows for file in found if file.partition) == [20, 20, 20]
    assert sorted(
        offset for file in found if not file.partition for offset in file.read(["offset"])[0].to_pylist()
    ) == [*range(40)]


def test_a_lock_that_is_never_let_go_stops(folder: ParkedFolder) -> None:
    """Whoever waits for it does not wait for ever, and says which folder it is."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    def wait() -> None:
        with changing(folder.path, 5.0, monotonic=lambda: now[0], sleep=sleep):
            pytest.fail("two hold one lock")

    with (
        changing(folder.path),
        pytest.raises(StorageFailed, match=saying(folder.path, "changing parked records", "end it")),
    ):
        wait()
    assert now[0] >= 5
