"""Files that share offsets give each record once, in order, whatever their cuts."""

from collections.abc import Container

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.addons.reshape.reading import BLOCK_BYTES, BLOCK_RECORDS, blocks, merged
from parquet_sink.errors import StorageFailed
from tests.addons.reshape.raw_files import orders
from tests.messages import saying

offsets = st.lists(st.integers(0, 40), min_size=1, max_size=30, unique=True).map(sorted)
files = st.lists(st.tuples(offsets, st.integers(1, 5), st.booleans()), min_size=1, max_size=4)


def cut(table: pa.Table, rows: int) -> list[pa.Table]:
    """A table in pieces."""
    return [table.slice(at, rows) for at in range(0, table.num_rows, rows)]


def parked(table: pa.Table, known: Container[int] = ()) -> pa.Table:
    """Records as they are after a replay of parked ones: without kinds of timestamps, but at the known offsets."""
    kinds = [
        kind if offset in known else None
        for offset, kind in zip(table["offset"].to_pylist(), table["timestamp_type"].to_pylist(), strict=True)
    ]
    place = table.schema.get_field_index("timestamp_type")
    return table.set_column(place, table.schema.field(place), pa.array(kinds, pa.string()))


@given(files)
def test_each_record_comes_once_in_order(given_files: list[tuple[list[int], int, bool]]) -> None:
    """Whichever of the files have it; parked records that were sent again get their kind from another file."""
    tables = [parked(orders(own), () if again else own) for own, _, again in given_files]
    pieces = zip(tables, given_files, strict=True)
    named = [(f"file-{n}", iter(cut(table, rows))) for n, (table, (_, rows, _)) in enumerate(pieces)]
    found = pa.concat_tables(merged(named))
    known = {offset for own, _, again in given_files if not again for offset in own}
    assert found.equals(parked(orders(sorted({one for own, _, _ in given_files for one in own})), known))


def test_different_records_at_an_offset_are_refused() -> None:
    """A topic that was created again counts from 0 again; nothing tells which of the two is meant."""
    named = [("old", iter([orders([0, 1, 2])])), ("new", iter([orders([2, 3], text=b"other")]))]
    with pytest.raises(
        StorageFailed, match=saying("old", "new", "different records", "from 2 on", "Reshape them separately")
    ):
        list(merged(named))


@given(st.lists(st.integers(1, 7), min_size=1, max_size=9))
def test_blocks_end_at_the_same_records(cuts: list[int]) -> None:
    """However the tables are cut that they are made of."""
    whole = orders(range(sum(cuts)))
    pieces, at = [], 0
    for rows in cuts:
        pieces.append(whole.slice(at, rows))
        at += rows
    (block,) = blocks(pieces)
    assert block.offsets.to_pylist() == [*range(sum(cuts))]
    assert block.keys is not None
    assert block.headers is not None
    assert (block.topic, block.partition, block.timestamp_type_of(0)) == ("orders", 0, "CreateTime")


@pytest.mark.parametrize("rows", [1, 4_999, BLOCK_RECORDS, 50_000])
def test_a_block_is_full_at_its_bounds(rows: int) -> None:
    """Of records; and of bytes, but for a record that is larger by itself."""
    many = orders(range(BLOCK_RECORDS + 5))
    assert [len(one) for one in blocks(cut(many, rows))] == [BLOCK_RECORDS, 5]
    large = orders(range(6), text=b"x" * (BLOCK_BYTES // 2 - 100))
    assert [len(one) for one in blocks(cut(large, rows))] == [2, 2, 2]
    huge = orders(range(2), text=b"x" * BLOCK_BYTES)
    assert [len(one) for one in blocks(cut(huge, rows))] == [1, 1]
