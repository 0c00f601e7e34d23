"""ColumnBuilder are put back into the order of their records."""

from itertools import pairwise

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.rows.run import ColumnBatch, Interleaving, TreeBatch, join
from parquet_sink.rows.schema.evolution import merged
from tests.thorough import examples


def batch(name: str, positions: list[int]) -> ColumnBatch:
    """One column of texts that tell the position and the number of the row."""
    texts = [f"{name}{position}.{row}" for row, position in enumerate(positions)]
    return ColumnBatch(pa.array(positions, pa.int64()), (pa.field(name, pa.string()),), (pa.array(texts),))


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[ColumnBatch], int]:
    """Up to 40 records dealt to up to 3 batches, some with several rows or none, and where to stop."""
    names = draw(st.lists(st.sampled_from("abc"), max_size=40))
    rows = [draw(st.integers(0, 2)) for _ in names]
    dealt = [
        batch(name, [position for position, own in enumerate(names) if own == name for _ in range(rows[position])])
        for name in sorted(set(names))
    ]
    return dealt, draw(st.integers(0, len(names) + 1))


@settings(max_examples=examples(100), deadline=None)
@given(batches(), st.lists(st.integers(0, 40), max_size=3))
def test_every_row_once_and_in_order(given_sheets: tuple[list[ColumnBatch], int], cuts: list[int]) -> None:
    """Whatever the batches and the cuts, rows come in the order of their records, those from `stop` on are left out."""
    dealt, stop = given_sheets
    columns = ()
    for one in dealt:
        columns, _ = merged(columns, one.columns)
    wanted = sorted(
        (position, name, text)
        for one in dealt
        for name in [one.columns[0].name]
        for position, text in zip(one.positions.to_pylist(), one.arrays[0].to_pylist(), strict=True)
        if position < stop
    )
    interleaving = Interleaving(dealt, stop)
    names = [column.name for column in columns]
    found = []
    for end in sorted({*(cut for cut in cuts if cut < stop), stop}):
        positions, arrays = join([interleaving.taken(number, end) for number in range(len(dealt))], columns) or ([], [])
        for index, position in enumerate(positions):
            values = {name: array[index].as_py() for name, array in zip(names, arrays, strict=True)}
            ((name, text),) = [(name, text) for name, text in values.items() if text is not None]
            found.append((position.as_py(), name, text))
    assert found == sorted(wanted, key=lambda row: (row[0], row[1], int(row[2].split(".")[1])))


@settings(max_examples=examples(100), deadline=None)
@given(batches())
def test_tells_where_the_part_changes(given_sheets: tuple[list[ColumnBatch], int]) -> None:
    """Each stretch of records of one part is told once, from its first record to that of the next."""
    dealt, stop = given_sheets
    owners = {at: number for number, one in enumerate(dealt) for at in one.positions.to_pylist() if at < stop}
    told = list(Interleaving(dealt, stop).stretches())
    assert [(number, at) for number, start, end in told for at in sorted(owners) if start <= at < end] == [
        (owners[at], at) for at in sorted(owners)
    ]
    assert all(one != other for (one, *_), (other, *_) in pairwise(told))


def test_records_without_a_schema_are_parts_too() -> None:
    """They stand in the order with the others."""
    interleaving = Interleaving([batch("a", [0, 1, 1, 4]), TreeBatch([2, 3], [[{}], [{}]])], 5)
    assert list(interleaving.stretches()) == [(0, 0, 2), (1, 2, 4), (0, 4, 5)]
    assert [interleaving.row(0, position) for position in (0, 1, 2, 4)] == [0, 1, 3, 3]


def test_a_single_sheet_is_not_copied() -> None:
    """Records of one schema, the usual case, go through as they are."""
    only = batch("a", [0, 1, 2])
    interleaving = Interleaving([only], 3)
    assert list(interleaving.stretches()) == [(0, 0, 3)]
    joined = join([interleaving.taken(0, 3)], only.columns)
    assert joined is not None
    assert joined[1][0].buffers()[2].address == only.arrays[0].buffers()[2].address
