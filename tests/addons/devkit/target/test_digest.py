"""Digests of a table's rows: the same for the same rows, whatever their order, and another for anything else."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.addons.devkit.target.digest import Digests, UnknownColumn
from parquet_sink.addons.devkit.target.sql import literal
from parquet_sink.addons.devkit.target.tables import Tables
from tests.thorough import examples


@pytest.fixture
def tables() -> Iterator[Tables]:
    """An empty database in memory, where rows can be deleted."""
    made = Tables(Path(":memory:"), "gone")
    yield made
    made.close()


class Puts:
    """Puts columns into a table as one file, without keys unless told otherwise."""

    def __init__(self, tables: Tables, folder: Path) -> None:
        self._tables, self._folder, self._number = tables, folder, 0

    def __call__(self, columns: Any, target: str = "t", keys: Sequence[str] = ()) -> None:
        self._number += 1
        path = self._folder / f"{self._number}.parquet"
        pq.write_table(pa.table(columns), path)
        self._tables.apply(target, {self._number: path}, keys, None, self._tables.columns_of_file(path))


@pytest.fixture
def put(tables: Tables, tmp_path: Path) -> Puts:
    """Puts columns into a table."""
    return Puts(tables, tmp_path)


def whole(tables: Tables, target: str = "t", columns: Sequence[str] = ()) -> Any:
    """The digest of a table."""
    digests = Digests(tables)
    return digests.of_table(digests.asked(target, columns, (), ()))["digest"]


def parts(tables: Tables, tmp_path: Path, of: int, keys: Sequence[str], also: Sequence[str] = ()) -> list[pa.Table]:
    """All parts of table `t`."""
    digests = Digests(tables)
    found = []
    for number in range(of):
        digests.write_part(digests.asked("t", (), keys, also), number, of, tmp_path / "part.parquet")
        found.append(pq.read_table(tmp_path / "part.parquet"))
    return found


CELLS = st.tuples(st.integers(-3, 3), st.none() | st.text("ab'é", max_size=2), st.none() | st.booleans())


def cell(value: object) -> str:
    """As SQL."""
    return "NULL" if value is None else literal(value) if isinstance(value, str) else str(value)


def test_equal_rows_have_equal_digests_and_others_have_not(tables: Tables) -> None:
    """A table is a bag of rows: order does not matter, and how often a row is there does."""

    @settings(max_examples=examples(30), deadline=None)
    @given(rows=st.lists(CELLS, max_size=12), others=st.lists(CELLS, max_size=12))
    def check(rows: list[Any], others: list[Any]) -> None:
        found = []
        for some in (rows, rows[::-1], others):
            tables.fetch("CREATE OR REPLACE TABLE target.t (a BIGINT, b VARCHAR, c BOOLEAN)")
            if some:
                values = ", ".join(f"({', '.join(map(cell, row))})" for row in some)
                tables.fetch(f"INSERT INTO target.t VALUES {values}")
            found.append(whole(tables))
        assert found[0] == found[1]
        assert (found[0] == found[2]) == (Counter(rows) == Counter(others))

    check()


def test_the_order_of_columns_does_not_matter(tables: Tables, put: Puts) -> None:
    """Nor does the letter case of their names; the columns asked for do."""
    put({"a": [1, 2], "B": ["x", "y"], "c": [1.5, None]}, "t")
    put({"c": [None, 1.5], "b": ["y", "x"], "A": [2, 1]}, "u")
    put({"c": [None, 1.6], "b": ["y", "x"], "A": [2, 1]}, "v")
    assert whole(tables, "t") == whole(tables, "u") != whole(tables, "v")
    assert whole(tables, "u", ["a", "B"]) == whole(tables, "v", ["b", "A"])


def test_an_empty_table_has_a_digest(tables: Tables, put: Puts) -> None:
    """And each of its parts is empty."""
    put({"a": pa.array([], pa.int64())})
    digests = Digests(tables)
    assert digests.of_table(digests.asked("t", (), (), ()))["rows"] == 0


def test_parts_are_the_whole(tables: Tables, put: Puts, tmp_path: Path) -> None:
    """Each row is in one part, by its key; digests of the parts sum up to that of the table."""
    put({"k": list(range(1_000)), "o": [7] * 1_000, "x": [str(n) for n in range(1_000)]}, keys=("k",))
    found = parts(tables, tmp_path, 3, ["K"], ["o"])
    assert [table.column_names for table in found] == [["key_0", "also_0", "deleted", "digest"]] * 3
    assert all(200 < len(table) < 500 for table in found)
    rows = pa.concat_tables(found)
    assert sorted(rows["key_0"].to_pylist()) == list(range(1_000))
    total = sum(rows["digest"].to_pylist()) % 2**64
    assert whole(tables).startswith(f"{total:016x}")
    put({"k": [5], "o": [8], "x": ["new"]}, keys=("k",))
    after = parts(tables, tmp_path, 3, ["k"], ["o"])
    assert [len(one) for one in found] == [len(one) for one in after]
    assert sum(sorted(rows_of(one)) != sorted(rows_of(other)) for one, other in zip(found, after, strict=True)) == 1


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """As tuples."""
    return [tuple(row.values()) for row in table.to_pylist()]


def test_deleted_rows_have_digests_too(tables: Tables, put: Puts, tmp_path: Path) -> None:
    """A key that is deleted, and then there again, is a change."""
    put({"k": [1, 2], "gone": [False, True]}, keys=("k",))
    (rows,) = parts(tables, tmp_path, 1, ["k"])
    assert dict(zip(rows["key_0"].to_pylist(), rows["deleted"].to_pylist(), strict=True)) == {1: False, 2: True}
    before = whole(tables)
    put({"k": [2], "gone": [False]}, keys=("k",))
    assert whole(tables) != before


@pytest.mark.parametrize(
    "cells",
    [
        [[1, 2], [1, 3]],
        [{"a": 1}, {"a": 2}],
        [b"a", b"b"],
        ["ä", "å"],
        [0.1, 0.2],
    ],
)
def test_cells_of_any_type_count(tables: Tables, put: Puts, tmp_path: Path, cells: list[Any]) -> None:
    """Nested ones, too, which as keys come out as text."""
    for name, cell in zip(("t", "u"), cells, strict=True):
        put({"k": [1], "x": [cell]}, name)
    assert whole(tables, "t") != whole(tables, "u")
    (rows,) = parts(tables, tmp_path, 1, ["x"])
    assert rows["key_0"].to_pylist() == [str(cells[0]) if isinstance(cells[0], list | dict) else cells[0]]


def test_a_column_that_is_not_there_is_named(tables: Tables, put: Puts) -> None:
    """Whatever it was asked for."""
    put({"a": [1]})
    with pytest.raises(UnknownColumn, match="nothing"):
        Digests(tables).asked("t", (), (), ("nothing",))
