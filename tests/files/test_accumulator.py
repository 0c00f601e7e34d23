"""Rows of a range become files: rotation, splits, schemas, verification."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.errors import StorageFailed
from parquet_sink.files import accumulator as module
from parquet_sink.files import parquet
from parquet_sink.files.accumulator import Accumulator, FinishedFile, Place
from parquet_sink.files.group import RecordTimes
from parquet_sink.files.rotation import Limits, Reason
from parquet_sink.files.settings import FileSettings
from parquet_sink.kafka.settings import FlushSettings
from parquet_sink.model.records import RecordBatch
from parquet_sink.planner.admission import due_range
from parquet_sink.rows.row_builder import RowBuilder, Run
from parquet_sink.rows.settings import ShapeSettings
from tests.messages import assert_says, saying
from tests.thorough import FIXTURES_SHARED, examples

PLACE = Place("orders sink", "orders", 3, "0123456789abcdef" * 2)
MANY = Limits(10**9, 10**9)


def run(first: int, rows: list[dict[str, object]], *, incompatible: bool = False) -> Run:
    """A run of rows without gaps."""
    return with_offsets(pa.Table.from_pylist(rows), list(range(first, first + len(rows))), incompatible=incompatible)


def with_offsets(rows: pa.Table, offsets: list[int], *, incompatible: bool = False) -> Run:
    """A run of rows with these offsets, repeated where a record has several rows."""
    return Run(rows, len(set(offsets)), offsets[0], offsets[-1], incompatible, pa.array(offsets, pa.int64()))


def ids(first: int, count: int) -> Run:
    """A run of `count` numbered rows."""
    return run(first, [{"id": first + i, "text": f"row {first + i}"} for i in range(count)])


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Accumulator]:
    """Makes accumulators below one folder."""

    def made(limits: Limits = MANY, hint: float | None = None, group: int | None = None) -> Accumulator:
        files = FileSettings(str(tmp_path), row_group_size_bytes=group)
        return Accumulator(PLACE, limits, files, bytes_per_row=hint, clock=lambda: 1000.0)

    return made


def read(file: FinishedFile) -> list[dict[str, object]]:
    """The rows of a file."""
    return list(pq.read_table(file.path).to_pylist())


def finish(accumulator: Accumulator, reason: Reason = Reason.INTERVAL) -> FinishedFile:
    """Ends a range that has rows."""
    file = accumulator.finish(reason)
    assert file is not None
    return file


def times(first: int, ms: Sequence[int]) -> RecordTimes:
    """Of records without gaps."""
    return RecordTimes.of(pa.array(range(first, first + len(ms)), pa.int64()), pa.array(ms, pa.int64()))


def test_a_range_becomes_one_file(make: Callable[..., Accumulator]) -> None:
    """Runs of one schema end in one file with the range's reason, and every field of it is true."""
    accumulator = make()
    assert accumulator.add(ids(100, 3), times(100, [60, 50, 70])) == []
    assert accumulator.add(ids(103, 2), times(103, [40, 80])) == []
    file = finish(accumulator, Reason.STOP)
    size = os.path.getsize(file.path)
    assert (file.first_offset, file.last_offset, file.records, file.rows) == (100, 104, 5, 5)
    assert (file.reason, file.size_bytes, file.opened_at, file.oldest_ms) == (Reason.STOP, size, 1000.0, 40)
    assert file.name == f"topic-orders_partition-3_firstOffset-100_lastOffset-104_bytes-{size}_rows-5.parquet"
    assert file.digest == hashlib.sha256(Path(file.path).read_bytes()).hexdigest()
    assert [row["id"] for row in read(file)] == [100, 101, 102, 103, 104]


def test_each_file_has_the_age_of_its_own_records(make: Callable[..., Accumulator]) -> None:
    """A block that is cut into files gives each the oldest timestamp of its records, not that of the block."""
    accumulator = make(Limits(10**9, 4))
    ms = [900, 300, 800, 700, 600, 200, 500, 400, 0, 1_000]
    files = [*accumulator.add(ids(0, 10), times(0, ms)), finish(accumulator)]
    assert [(one.records, one.oldest_ms) for one in files] == [(4, 300), (4, 200), (2, 1_000)]


def test_an_empty_range_has_no_file(make: Callable[..., Accumulator], tmp_path: Path) -> None:
    """Nothing in, nothing out, nothing on disk."""
    accumulator = make()
    empty = pa.array([], pa.int64())
    assert accumulator.add(Run(pa.table({"a": empty}), 0, 5, 4, incompatible=False, offsets=empty)) == []
    assert accumulator.finish(Reason.INTERVAL) is None
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_split_at_commit_records(make: Callable[..., Accumulator]) -> None:
    """No file has more records than commit.records, and the offsets continue without gap or overlap."""
    accumulator = make(Limits(10**9, 4))
    files = [*accumulator.add(ids(0, 10)), finish(accumulator)]
    assert [(f.first_offset, f.last_offset, f.reason) for f in files] == [
        (0, 3, Reason.RECORDS),
        (4, 7, Reason.RECORDS),
        (8, 9, Reason.INTERVAL),
    ]


def test_splits_follow_offsets_with_gaps(make: Callable[..., Accumulator]) -> None:
    """Where tombstones or transaction markers leave gaps, a split takes the offsets of its own rows."""
    accumulator = make(Limits(10**9, 2))
    files = accumulator.add(with_offsets(pa.table({"a": [1, 2, 3, 4]}), [10, 11, 20, 30]))
    assert [(f.first_offset, f.last_offset) for f in files] == [(10, 11), (20, 30)]


def test_contradicting_counts_are_a_defect(make: Callable[..., Accumulator]) -> None:
    """A run whose rows, records and offsets are not of one number is not guessed at."""
    two = pa.table({"a": [1, 2]})
    with pytest.raises(ValueError, match=saying("2 rows", "3 records", "3 offsets", "3 of them different")):
        make().add(with_offsets(two, [10, 20, 30]))
    for records in (0, 1, 3):
        with pytest.raises(
            ValueError, match=saying("2 rows", f"{records} records", "2 offsets", "2 of them different")
        ):
            make().add(Run(two, records, 10, 11, incompatible=False, offsets=pa.array([10, 11])))


@pytest.mark.parametrize("first", [9, 10])
def test_a_run_that_goes_on_with_a_record_is_a_defect(make: Callable[..., Accumulator], first: int) -> None:
    """A record's rows in two runs might end in two files, and the first would seem complete."""
    accumulator = make()
    accumulator.add(ids(8, 3))
    with pytest.raises(ValueError, match=saying(f"offsets {first} to {first}", "after 10")):
        accumulator.add(ids(first, 1))
    with pytest.raises(ValueError, match="decrease"):
        make().add(with_offsets(pa.table({"a": [1, 2, 3]}), [11, 10, 10]))


def exploded(sizes: list[int], first: int = 0) -> Run:
    """A run of records with so many rows each."""
    offsets = [first + index for index, size in enumerate(sizes) for _ in range(size)]
    return with_offsets(pa.table({"n": pa.array(range(len(offsets)), pa.int64())}), offsets)


def test_records_are_counted_and_not_rows(make: Callable[..., Accumulator]) -> None:
    """commit.records and the file's name count Kafka records; the file knows both."""
    accumulator = make(Limits(10**9, 3))
    files = [*accumulator.add(exploded([2, 1, 4, 3, 1])), *accumulator.add(exploded([2, 5], 5)), finish(accumulator)]
    assert [(f.first_offset, f.last_offset, f.records, f.rows) for f in files] == [
        (0, 2, 3, 7),
        (3, 5, 3, 6),
        (6, 6, 1, 5),
    ]
    assert [f.name.rpartition("_")[2] for f in files] == ["rows-3.parquet", "rows-3.parquet", "rows-1.parquet"]


def test_a_record_is_never_divided_by_size(make: Callable[..., Accumulator], monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is full in the middle of a record's rows takes all of them first, as one row group."""
    monkeypatch.setattr(module, "GROUP_ROWS", 10)
    accumulator = make(Limits(2_000, 10**9))
    files = [*accumulator.add(exploded([1, 5_000, 1, 1]))]
    assert [(f.first_offset, f.last_offset, f.records, f.rows) for f in files] == [(0, 1, 2, 5_001)]
    assert (last := finish(accumulator)).rows == 2
    assert last.first_offset == 2


def test_bytes_are_learned_per_row_and_per_record(make: Callable[..., Accumulator]) -> None:
    """Row groups are planned in rows, ranges in records."""
    accumulator = make()
    assert accumulator.bytes_per_record is None
    accumulator.add(exploded([10] * 100))
    finish(accumulator)
    assert accumulator.bytes_per_row is not None
    assert accumulator.bytes_per_record == pytest.approx(10 * accumulator.bytes_per_row)


def test_size_is_learned_and_approached(make: Callable[..., Accumulator]) -> None:
    """Files come close to commit.size.bytes from an unknown start, and exceed it by no more than a row group."""
    accumulator = make(Limits(100_000, 10**9))
    files = [f for first in range(0, 40_000, 5_000) for f in accumulator.add(ids(first, 5_000))]
    assert len(files) >= 2
    assert all(f.reason is Reason.SIZE for f in files)
    assert all(90_000 <= f.size_bytes <= 110_000 for f in files)


def test_a_learned_size_gives_one_row_group(make: Callable[..., Accumulator]) -> None:
    """With bytes per row from an earlier receipt the first file is one row group already."""
    earlier = make()
    earlier.add(ids(0, 5_000))
    known = finish(earlier)
    accumulator = make(Limits(100_000, 10**9), hint=known.size_bytes / known.rows)
    files = accumulator.add(ids(5_000, 30_000))
    assert pq.ParquetFile(files[0].path).metadata.num_row_groups == 1


def test_row_groups_have_the_configured_size(make: Callable[..., Accumulator]) -> None:
    """With parquet.row.group.size.bytes set, row groups are of about that size, and the file's bound still holds."""
    accumulator = make(Limits(100_000, 10**9), group=10_240)
    first, *_ = accumulator.add(ids(0, 30_000))
    groups = pq.ParquetFile(first.path).metadata.num_row_groups
    assert 7 <= groups <= 20
    assert first.size_bytes <= 100_000 + 2 * 10_240


def test_memory_bounds_a_row_group(make: Callable[..., Accumulator], monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are written when they reach the bound on memory, long before the file is full."""
    monkeypatch.setattr(module, "GROUP_MEMORY_BYTES", 10_000)
    accumulator = make()
    accumulator.add(ids(0, 5_000))
    assert pq.ParquetFile(finish(accumulator).path).metadata.num_row_groups >= 5


def test_an_added_column_needs_no_file_while_in_memory(make: Callable[..., Accumulator]) -> None:
    """Rows still in memory take a new column as null and a widened one as double."""
    accumulator = make()
    assert accumulator.add(run(0, [{"a": 1}])) == []
    assert accumulator.add(run(1, [{"a": 1.5, "b": "x"}])) == []
    assert read(finish(accumulator)) == [{"a": 1.0, "b": None}, {"a": 1.5, "b": "x"}]


def test_an_added_column_after_a_row_group_rotates(
    make: Callable[..., Accumulator], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once rows are written, a new column starts a new file, for the reason of its schema."""
    monkeypatch.setattr(module, "GROUP_ROWS", 2)
    accumulator = make()
    accumulator.add(run(0, [{"a": 1}, {"a": 2}, {"a": 3}]))
    (closed,) = accumulator.add(run(3, [{"a": 4, "b": "x"}]))
    assert (closed.reason, closed.last_offset, closed.rows) == (Reason.SCHEMA, 2, 3)
    assert read(finish(accumulator)) == [{"a": 4, "b": "x"}]


def test_a_missing_column_never_rotates(make: Callable[..., Accumulator], monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that lack a column, or have integers where the file has doubles, enter the written file."""
    monkeypatch.setattr(module, "GROUP_ROWS", 1)
    accumulator = make()
    accumulator.add(run(0, [{"a": 0.5, "b": "x"}]))
    assert accumulator.add(run(1, [{"a": 2}])) == []
    assert read(finish(accumulator)) == [{"a": 0.5, "b": "x"}, {"a": 2.0, "b": None}]


ALTERNATING: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "null": ({"id": 1, "x": "a"}, {"id": 1, "x": None}),
    "absent": ({"id": 1, "x": "a"}, {"id": 1}),
    "absent in turn": ({"id": 1, "x": "a"}, {"id": 1, "y": 2}),
    "nested absent": ({"id": 1, "s": {"x": 1, "y": {"z": "a"}}}, {"id": 1, "s": {"x": 1, "y": {"u": 0.5}}}),
    "nested in a list": ({"id": 1, "l": [{"x": 1}, {"x": 2}]}, {"id": 1, "l": [{"x": 1, "y": "b"}]}),
    "integer and fraction": ({"id": 1, "amount": 7}, {"id": 1, "amount": 7.5}),
    "nested integer and fraction": ({"id": 1, "s": {"amount": 7}}, {"id": 1, "s": {"amount": 7.5}}),
}
"""A record, and the next; then the first again."""


@pytest.mark.parametrize("group_rows", [1_000_000, 4])
@pytest.mark.parametrize("case", ALTERNATING)
def test_alternating_schemas_end_in_one_file(
    make: Callable[..., Accumulator], monkeypatch: pytest.MonkeyPatch, case: str, group_rows: int
) -> None:
    """Forty records of two schemas in turn, each a run of its own, are one file: the reference makes forty."""
    monkeypatch.setattr(module, "GROUP_ROWS", group_rows)
    accumulator = make()
    for offset in range(40):
        assert accumulator.add(run(offset, [ALTERNATING[case][offset % 2]])) == []
    file = finish(accumulator)
    assert (file.first_offset, file.last_offset, file.records) == (0, 39, 40)
    assert [without_nulls(row) for row in read(file)] == [without_nulls(row) for row in ALTERNATING[case]] * 20


@pytest.mark.parametrize("flatten", [True, False])
@pytest.mark.parametrize("case", ALTERNATING)
def test_alternating_json_ends_in_one_file(make: Callable[..., Accumulator], case: str, flatten: bool) -> None:
    """The same from JSON without a schema through a real shaper, flattened and nested."""
    values = [json.dumps(ALTERNATING[case][offset % 2]).encode() for offset in range(40)]
    block = RecordBatch.of("orders", 3, range(40), [0] * 40, values)
    accumulator = make()
    for shaped in RowBuilder(ShapeSettings(embed_metadata=False, flatten=flatten)).shape(block):
        assert accumulator.add(shaped) == []
    assert finish(accumulator).records == 40


def without_nulls(value: object) -> object:
    """Without fields that are null."""
    if isinstance(value, dict):
        return {name: without_nulls(found) for name, found in value.items() if found is not None}
    return [without_nulls(found) for found in value] if isinstance(value, list) else value


@pytest.mark.parametrize("marked", [True, False])
def test_an_incompatible_schema_rotates(make: Callable[..., Accumulator], marked: bool) -> None:
    """Another type starts a new file, whether shaping marked the run or not."""
    accumulator = make()
    accumulator.add(run(0, [{"a": 1}]))
    (closed,) = accumulator.add(run(1, [{"a": "x"}], incompatible=marked))
    assert closed.reason is Reason.SCHEMA
    assert read(finish(accumulator)) == [{"a": "x"}]


def test_an_integer_too_large_for_a_double_rotates(make: Callable[..., Accumulator]) -> None:
    """A widening that would change a value starts a new file instead."""
    accumulator = make()
    accumulator.add(run(0, [{"a": 2**53 + 1}]))
    (closed,) = accumulator.add(run(1, [{"a": 0.5}]))
    assert read(closed) == [{"a": 2**53 + 1}]


def test_many_late_columns_do_not_multiply_what_waits_in_memory(make: Callable[..., Accumulator]) -> None:
    """A record with two thousand columns after a hundred thousand narrow ones: one array of nulls serves them all."""
    accumulator = make()
    narrow = pa.table({"id": pa.array(range(100_000), pa.int64())})
    accumulator.add(with_offsets(narrow, list(range(100_000))))
    before = pa.total_allocated_bytes()
    wide: dict[str, object] = {"id": 1, **{f"c{n}": float(n) for n in range(2_000)}}
    assert accumulator.add(run(100_000, [wide])) == []
    assert pa.total_allocated_bytes() - before < 32 << 20
    file = finish(accumulator)
    assert (file.rows, pq.read_schema(file.path).names[-1]) == (100_001, "c1999")
    assert pq.read_table(file.path, columns=["c7"])["c7"].null_count == 100_000


def test_abandon_removes_the_open_file(make: Callable[..., Accumulator], monkeypatch: pytest.MonkeyPatch) -> None:
    """Abandoning leaves no file that was not finished, and can be repeated."""
    monkeypatch.setattr(module, "GROUP_ROWS", 1)
    accumulator = make(Limits(10**9, 2))
    (finished,) = accumulator.add(ids(0, 3))
    accumulator.abandon()
    accumulator.abandon()
    assert os.listdir(os.path.dirname(finished.path)) == [os.path.basename(finished.path)]


def test_a_failure_leaves_no_file_that_was_not_handed_out(
    make: Callable[..., Accumulator], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Files finished in the same call that then fails are removed by abandoning: a full disk gets its space back."""
    accumulator = make(Limits(10**9, 2))
    true = parquet.footer_rows
    counts = iter([2, 1])
    monkeypatch.setattr(parquet, "footer_rows", lambda path: true(path) if next(counts) == 2 else 0)
    with pytest.raises(StorageFailed):
        accumulator.add(ids(0, 4))
    accumulator.abandon()
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_it_takes_what_shaping_gives(make: Callable[..., Accumulator]) -> None:
    """Runs of a real shaper, with a tombstone between and a column that comes later, end in one true file."""
    values = pa.array([b'{"a":1}', None, b'{"a":2.5,"b":"x"}'], pa.binary())
    block = RecordBatch("orders", 3, pa.array([7, 8, 9]), pa.array([100, 100, 100]), values)
    accumulator = make()
    for shaped in RowBuilder(ShapeSettings(embed_metadata=False)).shape(block):
        assert accumulator.add(shaped) == []
    file = finish(accumulator)
    assert (file.first_offset, file.last_offset, file.records) == (7, 9, 2)
    assert read(file) == [{"a": 1.0, "b": None}, {"a": 2.5, "b": "x"}]


def test_a_wrong_footer_is_never_handed_out(make: Callable[..., Accumulator], monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose footer states other rows than were written is not handed out."""
    monkeypatch.setattr(parquet, "footer_rows", lambda path: 4)
    accumulator = make()
    accumulator.add(ids(0, 5))
    with pytest.raises(StorageFailed, match=saying("topic-partition 3", "4 rows", "5 were written", "Check the disk")):
        accumulator.finish(Reason.INTERVAL)


def test_an_unwritable_folder_is_named(tmp_path: Path) -> None:
    """A folder that is a file is a storage failure with folder, cause, free space and cure."""
    (tmp_path / "file").write_text("")
    accumulator = Accumulator(PLACE, MANY, FileSettings(str(tmp_path / "file")))
    accumulator.add(ids(0, 1))
    told = saying(f"{tmp_path}/file", "Not a directory", "bytes free", "connect.ems.tmp.dir")
    with pytest.raises(StorageFailed, match=told):
        accumulator.finish(Reason.INTERVAL)


def test_a_full_disk_is_named(make: Callable[..., Accumulator], monkeypatch: pytest.MonkeyPatch) -> None:
    """A device without space is a storage failure that says so and what to do."""
    monkeypatch.setattr(parquet.naming, "attempt_name", lambda *_: "/dev/full")
    accumulator = make()
    accumulator.add(ids(0, 5))
    with pytest.raises(StorageFailed, match=saying("No space left", "bytes free", "Free space")):
        accumulator.finish(Reason.INTERVAL)


LIMITED = """
import resource, sys
import pyarrow as pa
from parquet_sink.files.settings import FileSettings
from parquet_sink.files.group import RecordTimes
from parquet_sink.planner.admission import due_range
from parquet_sink.kafka.settings import FlushSettings
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.errors import StorageFailed
from parquet_sink.files.accumulator import Accumulator, Place
from parquet_sink.files.rotation import Limits, Reason
from parquet_sink.rows.row_builder import Run
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
made = Accumulator(Place("c", "t", 0, "0" * 32), Limits(10**9, 10**9), FileSettings(sys.argv[1], codec="none"))
rows = pa.table({"a": list(range(10_000))})
try:
    made.add(Run(rows, 10_000, 0, 9_999, False, rows["a"].combine_chunks()))
    made.finish(Reason.STOP)
except StorageFailed as error:
    made.abandon()
    print(error)
"""


def test_a_file_too_large_for_the_system(tmp_path: Path) -> None:
    """A real write that the system cuts short is a storage failure, and abandoning leaves nothing behind."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stderr == ""
    assert_says(done.stdout, "a Parquet file", "File too large")
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


VALUE = {"int": st.integers(-(2**40), 2**40), "float": st.floats(-1e6, 1e6), "str": st.text(max_size=5)}


@st.composite
def runs(draw: st.DrawFn) -> list[Run]:
    """Runs with changing columns and types, and gaps between and within them."""
    made, offset = [], draw(st.integers(0, 1000))
    for _ in range(draw(st.integers(1, 6))):
        kinds = draw(st.dictionaries(st.sampled_from("abc"), st.sampled_from(sorted(VALUE)), min_size=1))
        rows = draw(st.lists(st.fixed_dictionaries({n: VALUE[k] for n, k in kinds.items()}), min_size=1, max_size=8))
        steps = draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
        offsets = [offset := offset + max(step, 0 if place else 1) for place, step in enumerate(steps)]
        made.append(with_offsets(pa.Table.from_pylist(rows), offsets))
    return made


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=FIXTURES_SHARED,
)
@given(runs=runs(), records=st.integers(1, 10), group_rows=st.integers(1, 10), size=st.integers(500, 5_000))
def test_what_goes_in_comes_out(
    tmp_path_factory: pytest.TempPathFactory, runs: list[Run], records: int, group_rows: int, size: int
) -> None:
    """However files rotate, all rows come out once, in order, unaltered, no record divided, in files that say so."""
    folder = tmp_path_factory.mktemp("out")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "GROUP_ROWS", group_rows)
        accumulator = Accumulator(PLACE, Limits(size, records), FileSettings(str(folder)))
        files = [f for run in runs for f in accumulator.add(run)]
        last = accumulator.finish(Reason.END_OF_INPUT)
    files += [last] if last else []
    out = [{k: v for k, v in row.items() if v is not None} for f in files for row in read(f)]
    assert out == [row for run in runs for row in run.rows.to_pylist()]
    offsets = [o for run in runs for o in run.offsets.to_pylist()]
    for file in files:
        mine, offsets = offsets[: file.rows], offsets[file.rows :]
        assert (file.first_offset, file.last_offset) == (mine[0], mine[-1])
        assert file.records == len(set(mine)) <= records
        assert f"_rows-{file.records}.parquet" in file.name
        assert mine[-1] not in offsets
    assert len({f.path for f in files}) == len(files)


@settings(max_examples=examples(100), deadline=None)
@given(runs=runs(), most=st.integers(1, 5), incompatible=st.booleans())
def test_parts_of_a_run_divide_no_record(runs: list[Run], most: int, incompatible: bool) -> None:
    """Parts hold all rows in order, at most so many records each, and say how many; only the first starts anew."""
    for one in runs:
        parts = list(replace(one, incompatible=incompatible).parts(most))
        assert [row for part in parts for row in part.rows.to_pylist()] == one.rows.to_pylist()
        assert [offset for part in parts for offset in part.offsets.to_pylist()] == one.offsets.to_pylist()
        assert [part.records for part in parts] == [len(set(part.offsets.to_pylist())) for part in parts]
        assert all(part.records <= most for part in parts)
        assert sum(part.records for part in parts) == one.records
        ends = [(part.offsets[0].as_py(), part.offsets[-1].as_py()) for part in parts]
        assert ends == [(part.first_offset, part.last_offset) for part in parts]
        assert [part.incompatible for part in parts] == [incompatible, *[False] * (len(parts) - 1)]


def test_a_range_that_is_due_by_size_is_one_file(make: Callable[..., Accumulator]) -> None:
    """What is taken for a full file fills one, without a few rows left over for a second."""
    flush = FlushSettings(commit_size_bytes=30_000, commit_records=10**9, commit_interval_ms=10**9)
    known = make()
    known.add(ids(0, 5_000))
    finish(known)
    for first in (5_000, 50_000):
        due = due_range(first, first + 10**6, None, known.bytes_per_record, flush, 0)
        assert due is not None
        accumulator = make(Limits(flush.commit_size_bytes, flush.commit_records), hint=known.bytes_per_row)
        files = accumulator.add(ids(first, due.file_records))
        last = accumulator.finish(due.reason)
        assert len([*files, *([] if last is None else [last])]) == 1
        known = accumulator
