"""The upserting thread's work, done here in the open, step by step."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parquet_sink.addons.devkit.target import upsert
from parquet_sink.addons.devkit.target.contract import UploadParameters
from parquet_sink.addons.devkit.target.store import FileStore
from parquet_sink.addons.devkit.target.tables import Tables
from parquet_sink.addons.devkit.target.upsert import Upserter


class Bench:
    """A store, its tables and the upserter, over a folder that survives `reopen`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._names = folder, iter(range(1_000))
        self.open()

    def open(self) -> None:
        self.store = FileStore(self.folder / "data")
        self.tables = Tables(self.folder / "tables.duckdb")
        self.upserter = Upserter(self.store, self.tables)

    def close(self) -> None:
        self.tables.close()
        self.store.journal.close()

    def reopen(self) -> None:
        self.close()
        self.open()

    def upload(self, columns: dict[str, Any], target: str = "t", keys: tuple[str, ...] = ("k",)) -> int:
        path = self.folder / "made.parquet"
        pq.write_table(pa.table(columns), path)
        part = self.store.open_part()
        part.write(path.read_bytes())
        return self.store.accept(
            part, str(next(self._names)), UploadParameters("p", target, primary_keys=keys), 0
        ).file.sequence

    def work_off(self) -> int:
        turns = 0
        while self.upserter.work():
            turns += 1
        return turns

    def states(self) -> list[str]:
        return [file.state for file in self.store.journal.files(100, 0)]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Everything, empty."""
    made = Bench(tmp_path)
    yield made
    made.close()


def test_waiting_files_of_one_schema_go_in_together(bench: Bench) -> None:
    """Three files take one turn, and the last of them wins."""
    for value in ("a", "b", "c"):
        bench.upload({"k": [1], "v": [value]})
    assert bench.work_off() == 1
    assert bench.tables.rows("t", 10, 0, None, descending=False) == [{"k": 1, "v": "c"}]
    assert bench.states() == ["upserted"] * 3


def test_another_schema_another_key_or_another_target_takes_its_own_turn(bench: Bench) -> None:
    """What differs is not mixed; the order of acceptance stays within a target."""
    bench.upload({"k": [1], "v": ["a"]})
    bench.upload({"k": [1], "w": [5]})
    bench.upload({"k": [1], "w": [6]}, keys=("k", "w"))
    bench.upload({"k": [1]}, target="u")
    assert bench.work_off() == 4
    assert bench.states() == ["upserted"] * 4


def test_a_bad_file_fails_alone_with_its_reason(bench: Bench) -> None:
    """Files before and after it are upserted."""
    bench.upload({"k": [1], "v": [1]})
    bench.upload({"k": [2], "v": ["text"]})
    bench.upload({"k": [3], "v": [3]})
    bench.work_off()
    assert bench.states() == ["upserted", "failed", "upserted"]
    assert bench.tables.count("t") == 2
    assert "column v" in (bench.store.journal.files(1, 1)[0].error or "")


def test_a_file_that_breaks_a_group_does_not_take_others_with_it(bench: Bench) -> None:
    """When the statement for several files fails, each is tried by itself."""
    first, second = (bench.upload({"k": [number]}) for number in (1, 2))
    broken = bench.store.path(bench.store.journal.files(1, 1)[0])
    whole = broken.read_bytes()
    broken.write_bytes(whole[:4] + bytes([whole[4] ^ 0xFF] * 40) + whole[44:])
    bench.work_off()
    assert (first, second, bench.states()) == (1, 2, ["upserted", "failed"])
    assert bench.tables.count("t") == 1


def test_a_file_that_vanished_is_a_failed_upsert(bench: Bench) -> None:
    """Somebody cleaned up: told, not endured."""
    bench.upload({"k": [1]})
    bench.store.path(bench.store.journal.files(1, 0)[0]).unlink()
    bench.work_off()
    assert bench.states() == ["failed"]


def test_a_crash_before_the_journal_heard_of_it_appends_nothing_twice(bench: Bench) -> None:
    """Rows that are in the table are not put in again, although the journal still says waiting."""
    sequence = bench.upload({"k": [1, 2]}, keys=())
    path = bench.store.path(bench.store.journal.files(1, 0)[0])
    bench.tables.apply("t", {sequence: path}, [], None, {"k": "BIGINT"})
    assert bench.states() == ["waiting"]
    bench.reopen()
    bench.upserter.start()
    bench.upserter.stop()
    assert (bench.states(), bench.tables.count("t")) == (["upserted"], 2)


def test_waiting_files_are_taken_up_again_after_a_restart(bench: Bench) -> None:
    """The journal is replayed."""
    bench.upload({"k": [1]})
    bench.reopen()
    bench.work_off()
    assert (bench.states(), bench.tables.count("t")) == (["upserted"], 1)


def test_files_that_come_one_after_the_other_go_in_together(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are gathered for a while; who waits for them has them put in now."""
    groups: list[int] = []
    idle, work, apply = threading.Event(), bench.upserter.work, bench.tables.apply

    def working() -> bool:
        if done := work():
            return done
        idle.set()
        return False

    def applying(target: str, paths: dict[int, Path], *more: Any) -> None:
        groups.append(len(paths))
        apply(target, paths, *more)

    monkeypatch.setattr(upsert, "GATHER_S", 60.0)
    monkeypatch.setattr(bench.upserter, "work", working)
    monkeypatch.setattr(bench.tables, "apply", applying)
    bench.upserter.start()
    assert idle.wait(60)
    for number in range(3):
        bench.upload({"k": [number]})
        bench.upserter.notify()
    assert bench.states() == ["waiting"] * 3
    idle.clear()
    bench.upserter.hurry()
    assert idle.wait(30)
    bench.upserter.stop()
    assert (bench.states(), groups) == (["upserted"] * 3, [3])


def test_a_defect_does_not_end_the_thread(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An error of a kind nobody foresaw is logged; the file still waits, and goes in once the cause is gone."""
    bench.upload({"k": [1]})
    bench.upserter._tables = None  # type: ignore[assignment]
    working = bench.upserter._thread
    working.start()
    while not caplog.records:
        working.join(0.01)
    assert (working.is_alive(), bench.states()) == (True, ["waiting"])
    bench.upserter._tables = bench.tables
    while bench.states() == ["waiting"]:
        bench.upserter.notify()
        working.join(0.01)
    bench.upserter.stop()
    assert bench.states() == ["upserted"]
