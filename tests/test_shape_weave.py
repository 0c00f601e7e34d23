"""Sheets are put back into the order of their records."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.shape.evolve import merged
from parquet_sink.shape.sheet import Sheet
from parquet_sink.shape.weave import Weave


def sheet(name: str, positions: list[int]) -> Sheet:
    """One column of texts that tell the position and the number of the row."""
    texts = [f"{name}{position}.{row}" for row, position in enumerate(positions)]
    return Sheet(pa.array(positions, pa.int64()), (pa.field(name, pa.string()),), (pa.array(texts),))


@st.composite
def sheets(draw: st.DrawFn) -> tuple[list[Sheet], int]:
    """Up to 40 records dealt to up to 3 sheets, some with several rows or none, and where to stop."""
    names = draw(st.lists(st.sampled_from("abc"), max_size=40))
    rows = [draw(st.integers(0, 2)) for _ in names]
    dealt = [
        sheet(name, [position for position, own in enumerate(names) if own == name for _ in range(rows[position])])
        for name in sorted(set(names))
    ]
    return dealt, draw(st.integers(0, len(names) + 1))


@settings(max_examples=100, deadline=None)
@given(sheets(), st.lists(st.integers(0, 80), max_size=3))
def test_every_row_once_and_in_order(given_sheets: tuple[list[Sheet], int], cuts: list[int]) -> None:
    """Whatever the sheets and the cuts, rows come in the order of their records, those from `stop` on are left out."""
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
    weave = Weave(dealt, stop)
    assert len(weave) == len(wanted)
    found = []
    for end in sorted({*(cut for cut in cuts if cut < len(weave)), len(weave)} - {0}):
        stretch = weave.take(end, columns)
        names = [column.name for column in columns]
        for index, position in enumerate(stretch.positions.to_pylist()):
            values = {name: array[index].as_py() for name, array in zip(names, stretch.arrays, strict=True)}
            ((name, text),) = [(name, text) for name, text in values.items() if text is not None]
            found.append((position, name, text))
    assert found == sorted(wanted, key=lambda row: (row[0], row[1], int(row[2].split(".")[1])))


def test_tells_where_the_sheet_changes() -> None:
    """Each stretch of rows of one sheet is told once, with its first row and the position there."""
    weave = Weave([sheet("a", [0, 1, 4]), sheet("b", [2, 3])], 5)
    assert list(weave.sheets()) == [(0, 0), (2, 1), (4, 0)]
    assert [weave.position(row) for row in (0, 2, 4)] == [0, 2, 4]


def test_a_single_sheet_is_not_copied() -> None:
    """Records of one schema, the usual case, go through as they are."""
    only = sheet("a", [0, 1, 2])
    weave = Weave([only], 3)
    assert list(weave.sheets()) == [(0, 0)]
    (array,) = weave.take(3, only.columns).arrays
    assert array.buffers()[2].address == only.arrays[0].buffers()[2].address
