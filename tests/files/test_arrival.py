"""The same rows give the same files, however they arrive."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parquet_sink.files import accumulator as module
from parquet_sink.files import group
from parquet_sink.files.accumulator import Accumulator, FinishedFile, Place
from parquet_sink.files.rotation import Limits, Reason
from parquet_sink.files.settings import FileSettings
from parquet_sink.model.records import RecordBatch
from parquet_sink.rows.row_builder import RowBuilder, Run
from parquet_sink.rows.settings import ShapeSettings
from tests.thorough import FIXTURES_SHARED, examples

PLACE = Place("c", "t", 0, "0" * 32)
MIB = 1 << 20


@dataclass(frozen=True)
class Bounds:
    """All that may cut a file or a row group."""

    size: int = 10**9
    records: int = 10**9
    group_size: int | None = None
    memory: int = module.GROUP_MEMORY_BYTES
    group_rows: int = module.GROUP_ROWS
    chunk_rows: int = group.CHUNK_ROWS
    hint: float | None = None


def written(folder: Path, runs: Sequence[Run], bounds: Bounds) -> list[tuple[str, str, int, Reason]]:
    """Name, digest of the content, rows, and reason of each file that the runs become."""
    out: list[tuple[str, str, int, Reason]] = []

    def take(files: Sequence[FinishedFile]) -> None:
        for file in files:
            content = Path(file.path).read_bytes()
            Path(file.path).unlink()
            out.append((file.name, hashlib.sha256(content).hexdigest(), file.rows, file.reason))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "GROUP_MEMORY_BYTES", bounds.memory)
        patch.setattr(module, "GROUP_ROWS", bounds.group_rows)
        patch.setattr(group, "CHUNK_ROWS", bounds.chunk_rows)
        settings = FileSettings(str(folder), row_group_size_bytes=bounds.group_size)
        accumulator = Accumulator(PLACE, Limits(bounds.size, bounds.records), settings, bytes_per_row=bounds.hint)
        for run in runs:
            take(accumulator.add(run))
        last = accumulator.finish(Reason.END_OF_RANGE)
    take([] if last is None else [last])
    return out


def split(run: Run, cuts: Sequence[int]) -> list[Run]:
    """The run in parts, cut before these rows where a record begins there."""
    offsets = run.offsets.to_pylist()
    whole = [0, *sorted({c for c in cuts if 0 < c < len(offsets) and offsets[c] != offsets[c - 1]}), len(offsets)]
    parts = []
    for start, end in pairwise(whole):
        mine = offsets[start:end]
        rows = run.rows.slice(start, end - start)
        starts_anew = run.incompatible and not start
        parts.append(Run(rows, len(set(mine)), mine[0], mine[-1], starts_anew, run.offsets.slice(start, end - start)))
    return parts


def of_rows(rows: pa.Table, offsets: Sequence[int], *, incompatible: bool = False) -> Run:
    """A run with these offsets."""
    return Run(rows, len(set(offsets)), offsets[0], offsets[-1], incompatible, pa.array(offsets, pa.int64()))


# ---- small rows, every kind of change


VALUES: dict[pa.DataType, st.SearchStrategy[object]] = {
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-5, 5) | st.just(2**53 + 1),
    pa.float64(): st.floats(-1e6, 1e6),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=40),
    pa.binary(): st.binary(max_size=40),
    pa.list_(pa.string()): st.lists(st.none() | st.text(max_size=9), max_size=3),
    pa.struct({"x": pa.int64(), "y": pa.string()}): st.fixed_dictionaries(
        {"x": st.none() | st.integers(-5, 5), "y": st.none() | st.text(max_size=9)}
    ),
    pa.map_(pa.string(), pa.int64()): st.lists(
        st.tuples(st.text(max_size=3), st.integers(-5, 5)), max_size=3, unique_by=lambda pair: pair[0]
    ),
}


@st.composite
def changing(draw: st.DrawFn) -> list[Run]:
    """Runs whose columns come, go, widen and become incompatible; records with several rows; gaps."""
    runs, offset = [], 0
    types = st.sampled_from(list(VALUES))
    for _ in range(draw(st.integers(1, 5))):
        schema = draw(st.dictionaries(st.sampled_from("abcd"), types, min_size=1))
        count = draw(st.integers(1, 30))
        seed = draw(st.lists(st.tuples(*(st.none() | VALUES[t] for t in schema.values())), min_size=1, max_size=4))
        columns = [
            pa.array([seed[row % len(seed)][place] for row in range(count)], of)
            for place, of in enumerate(schema.values())
        ]
        offsets = []
        for row in range(count):
            offset += max(draw(st.integers(0, 2)), 0 if row else 1)
            offsets.append(offset)
        incompatible = bool(runs) and draw(st.integers(0, 5)) == 0
        runs.append(of_rows(pa.table(dict(zip(schema, columns, strict=True))), offsets, incompatible=incompatible))
    return runs


BOUNDS = st.builds(
    Bounds,
    size=st.sampled_from([400, 1_000, 3_000, 10**9]),
    records=st.sampled_from([1, 3, 10, 10**9]),
    group_size=st.none() | st.sampled_from([100, 1_000]),
    memory=st.sampled_from([1, 100, 700, 10**9]),
    group_rows=st.sampled_from([1, 7, 10**9]),
    chunk_rows=st.sampled_from([1, 4, 10**9]),
    hint=st.none() | st.sampled_from([0.5, 20.0]),
)


@settings(
    max_examples=examples(35),
    deadline=None,
    suppress_health_check=FIXTURES_SHARED,
)
@given(runs=changing(), bounds=BOUNDS, cuts=st.lists(st.lists(st.integers(1, 29), max_size=6), min_size=5, max_size=5))
def test_files_do_not_depend_on_how_rows_arrive(
    tmp_path: Path, runs: list[Run], bounds: Bounds, cuts: list[list[int]]
) -> None:
    """Runs cut anywhere between records give the same files, byte for byte, whatever bound or change cuts them."""
    parts = [part for run, where in zip(runs, cuts, strict=False) for part in split(run, where)]
    assert written(tmp_path, parts, bounds) == written(tmp_path, runs, bounds)


# ---- files of tens of MB


def large(seed: int, first: int, count: int, note: int, *, nulls: bool, late: bool, rows_each: int = 1) -> Run:
    """`count` rows with texts of up to `note` characters, in a run of their own."""
    chance = np.random.default_rng([seed, first])
    letters = chance.integers(97, 123, int(count * note * 0.75), dtype=np.uint8).tobytes().decode()
    ends = np.minimum(np.cumsum(chance.integers(0, note, count)), len(letters)).tolist()
    texts: list[str | None] = [letters[a:b] for a, b in zip([0, *ends], ends, strict=False)]
    columns: dict[str, pa.Array] = {
        "id": pa.array(range(first, first + count), pa.int64()),
        "note": pa.array([None if nulls and place % 3 == 0 else text for place, text in enumerate(texts)]),
        "state": pa.array(["new", "paid", None, "gone"] * (count // 4) + ["new"] * (count % 4)),
        "tags": pa.array([[text[:3] or "x", text[3:9]] if text else None for text in texts]),
    }
    if late:
        columns["late"] = pa.array(chance.random(count))
    return of_rows(pa.table(columns), [first + row // rows_each for row in range(count)])


LARGE = {
    "one file": (Bounds(), 300, {"late": True}),
    "by size": (Bounds(size=8 * MIB), 300, {"late": True}),
    "by size, known": (Bounds(size=8 * MIB, hint=100.0), 300, {"late": False}),
    "row groups": (Bounds(size=12 * MIB, group_size=MIB), 300, {"late": False}),
    "by records": (Bounds(records=33_333), 300, {"late": True, "nulls": True}),
    "by memory": (Bounds(memory=3 * MIB), 300, {"late": True, "nulls": True}),
    "long rows": (Bounds(size=20 * MIB), 3_000, {"late": False, "nulls": True}),
    "several rows each": (Bounds(size=8 * MIB), 200, {"late": True, "rows_each": 7}),
}


@pytest.mark.parametrize("case", LARGE)
def test_large_files_do_not_depend_on_how_rows_arrive(tmp_path: Path, case: str) -> None:
    """The same with many data pages in a column, and a column that comes while rows wait in memory."""
    bounds, note, more = LARGE[case]
    count = 24 * MIB // note
    options = {"nulls": False, "rows_each": 1, **more}
    each = int(options["rows_each"])
    first = large(1, 0, count // 3 // each * each, note, **{**options, "late": False})
    second = large(2, 0, count, note, **options)
    offsets = pa.array([offset + first.last_offset + 1 for offset in second.offsets.to_pylist()], pa.int64())
    second = replace(second, first_offset=offsets[0].as_py(), last_offset=offsets[-1].as_py(), offsets=offsets)
    chance = np.random.default_rng(7)
    whole = written(tmp_path, [first, second], bounds)
    parts = [part for run in (first, second) for part in split(run, chance.integers(1, len(run.offsets), 9).tolist())]
    assert written(tmp_path, parts, bounds) == whole
    assert sum(rows for _, _, rows, _ in whole) == len(first.offsets) + len(second.offsets)


# ---- with real shaping


@settings(
    max_examples=examples(18),
    deadline=None,
    suppress_health_check=FIXTURES_SHARED,
)
@given(
    amounts=st.lists(st.sampled_from([1, 2, 0.5, None]), min_size=1, max_size=60),
    cuts=st.sets(st.integers(1, 59), max_size=8),
    bounds=BOUNDS,
)
@example(amounts=[1, 1, 0.5, 1], cuts={2}, bounds=Bounds(group_rows=2))
def test_blocks_may_be_cut_anywhere_where_columns_are_known(
    tmp_path: Path, amounts: list[float | None], cuts: set[int], bounds: Bounds
) -> None:
    """Plain JSON whose columns are known at the start: types that widen cut at the record, not at the block."""
    values = [
        None if n % 11 == 10 else json.dumps({"id": n, "amount": amount, "s": "x" * n}).encode()
        for n, amount in enumerate(amounts)
    ]
    teacher = RowBuilder(ShapeSettings())
    list(teacher.shape(RecordBatch.of("t", 0, [0], [5], [b'{"id":1,"amount":1,"s":"x"}'])))
    known = teacher.known

    def runs(ends: Sequence[int]) -> list[Run]:
        shaper, out, start = RowBuilder(ShapeSettings(), known), [], 0
        for end in ends:
            block = RecordBatch.of("t", 0, range(start, end), [5] * (end - start), values[start:end])
            out += list(shaper.shape(block))
            start = end
        return out

    ends = [*sorted(c for c in cuts if c < len(values)), len(values)]
    assert written(tmp_path, runs(ends), bounds) == written(tmp_path, runs([len(values)]), bounds)
