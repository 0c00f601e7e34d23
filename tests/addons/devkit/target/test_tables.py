"""Files into DuckDB tables: the upsert's meaning, checked against a plain model."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.addons.devkit.target.tables import Tables, UpsertFailed
from tests.messages import saying
from tests.thorough import examples

Row = tuple[int | None, int | None, int]


@pytest.fixture
def tables() -> Iterator[Tables]:
    """An empty database in memory."""
    made = Tables(Path(":memory:"))
    yield made
    made.close()


@pytest.fixture
def put(tables: Tables, tmp_path: Path) -> Any:
    """Puts columns into table `t` as one file, by key `k` and order `o` unless told otherwise."""
    sequence = iter(range(1, 1_000))

    def apply(
        columns: dict[str, Any], target: str = "t", keys: Sequence[str] = ("k",), order: str | None = "o"
    ) -> None:
        number = next(sequence)
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table(columns), path)
        tables.apply(target, {number: path}, keys, order, tables.columns_of_file(path))

    return apply


def rows_of(tables: Tables, target: str = "t", order: str | None = "k") -> list[dict[str, Any]]:
    """All rows of a small table."""
    return tables.rows(target, 1_000, 0, order, descending=False)


def winner(rows: Sequence[Row]) -> dict[int | None, tuple[int | None, int]]:
    """The model: null is the smallest order value; an equal or larger one replaces."""
    held: dict[int | None, tuple[int | None, int]] = {}
    for key, order, value in rows:
        old = held.get(key)
        if old is None or old[0] is None or (order is not None and order >= old[0]):
            held[key] = (order, value)
    return held


ROWS = st.tuples(st.none() | st.integers(0, 3), st.none() | st.integers(0, 3), st.integers(0, 99))


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.lists(st.lists(ROWS, min_size=1, max_size=8), min_size=1, max_size=3), min_size=1, max_size=4))
def test_upserts_equal_the_model(batches: list[list[list[Row]]]) -> None:
    """However rows are spread over files and files over statements, the largest order value wins, ties to the later."""
    tables = Tables(Path(":memory:"))
    sequence = 0
    with TemporaryDirectory() as folder:
        for batch in batches:
            paths = {}
            for rows in batch:
                sequence += 1
                paths[sequence] = Path(folder) / f"{sequence}.parquet"
                pq.write_table(_table(rows), paths[sequence])
            tables.apply("t", paths, ["k"], "o", tables.columns_of_file(paths[sequence]))
    stored = {row["k"]: (row["o"], row["v"]) for row in rows_of(tables)}
    assert len(stored) == tables.count("t")
    assert stored == winner([row for batch in batches for rows in batch for row in rows])
    assert tables.applied() == set(range(1, sequence + 1))
    tables.close()


def _table(rows: list[Row]) -> pa.Table:
    kinds = {"k": pa.int64(), "o": pa.int64(), "v": pa.int64()}
    return pa.table({name: pa.array([row[i] for row in rows], kind) for i, (name, kind) in enumerate(kinds.items())})


def test_without_order_the_later_row_wins(tables: Tables, put: Any) -> None:
    """In a file and across files, when nobody named an order column."""
    put({"k": [1, 1], "v": ["a", "b"]}, order=None)
    assert rows_of(tables) == [{"k": 1, "v": "b"}]
    put({"k": [1], "v": ["c"]}, order=None)
    assert rows_of(tables) == [{"k": 1, "v": "c"}]


def test_without_keys_rows_are_appended_in_order(tables: Tables, put: Any) -> None:
    """Every row of every file stays."""
    put({"k": [1, 1]}, keys=(), order=None)
    put({"k": [1]}, keys=(), order=None)
    assert rows_of(tables, order=None) == [{"k": 1}] * 3


def test_columns_come_and_stay_away(tables: Tables, put: Any) -> None:
    """A new column is null in old rows; an absent one becomes null in the replaced row."""
    put({"k": [1, 2], "o": [1, 1], "a": ["x", "y"]})
    put({"k": [2], "o": [2], "b": [7.5]})
    assert rows_of(tables) == [{"k": 1, "o": 1, "a": "x", "b": None}, {"k": 2, "o": 2, "a": None, "b": 7.5}]


def test_integers_widen_with_rows_kept(tables: Tables, put: Any) -> None:
    """An int32 column takes int64 later, key and order columns too."""
    put({"k": pa.array([1], pa.int32()), "o": pa.array([1], pa.int32())})
    put({"k": [1, 2**40], "o": [2**40, 1]})
    assert rows_of(tables) == [{"k": 1, "o": 2**40}, {"k": 2**40, "o": 1}]


def test_an_incompatible_file_changes_nothing(tables: Tables, put: Any) -> None:
    """The whole file is refused with its reason, its good columns and its note included."""
    put({"k": [1], "o": [1], "a": ["x"]})
    with pytest.raises(UpsertFailed, match=saying("column a", "VARCHAR in the table", "BIGINT in the file")):
        put({"k": [2], "o": [1], "a": [5], "new": [1]})
    assert tables.columns("t") == {"k": "BIGINT", "o": "BIGINT", "a": "VARCHAR"}
    assert (tables.count("t"), tables.applied()) == (1, {1})


def test_an_order_column_that_the_file_lacks_never_outranks(tables: Tables, put: Any) -> None:
    """Its absent value counts as null, the smallest."""
    put({"k": [1, 2], "o": [5, None], "v": [1, 1]})
    put({"k": [1, 2, 3], "v": [9, 9, 9]})
    assert [(row["k"], row["o"], row["v"]) for row in rows_of(tables)] == [(1, 5, 1), (2, None, 9), (3, None, 9)]


def test_several_keys_and_nothing_but_keys(tables: Tables, put: Any) -> None:
    """A row may consist of its key."""
    put({"a": [1, 1, 1], "b": ["x", "x", "y"]}, keys=("a", "b"), order=None)
    put({"a": [1], "b": ["y"]}, keys=("a", "b"), order=None)
    assert tables.count("t") == 2


@pytest.mark.parametrize(
    "name", ['a+b "c"; DROP', "bestellungen-ü/ä", "select", "duckdb_tables", "incoming", "x.y'z", "💶"]
)
def test_any_name_is_a_table_and_a_column(tables: Tables, put: Any, tmp_path: Path, name: str) -> None:
    """Names are quoted in every statement: create, upsert, alter, read, export."""
    put({"k": [1], name: ["x"]}, target=name, keys=("k", name), order=None)
    put({"k": [1], name: ["x"], name + "2": [1]}, target=name, keys=("k", name), order=name + "2")
    assert tables.names() == [name]
    assert rows_of(tables, name, order=name) == [{"k": 1, name: "x", name + "2": 1}]
    tables.export(name, tmp_path / "out'put.parquet")
    assert pq.read_table(tmp_path / "out'put.parquet").num_rows == 1


def test_letter_case_of_a_target_does_not_make_another_table(tables: Tables, put: Any) -> None:
    """As in DuckDB and most warehouses, `Orders` and `ORDERS` are one table; `Ä` and `ä` are two."""
    for target in ("Orders", "ORDERS", "ä", "Ä"):
        put({"k": [len(target)], "o": [1]}, target=target)
    assert tables.names() == ["Orders", "Ä", "ä"]
    assert tables.count("oRDERS") == 1


def test_columns_named_like_reader_options_are_data(tables: Tables, put: Any) -> None:
    """`filename` and `file_row_number` of the file are not mixed up with DuckDB's own."""
    put({"filename": ["f"], "file_row_number": [9], "ordinal": [1]}, keys=("filename",), order="file_row_number")
    assert rows_of(tables, order=None) == [{"filename": "f", "file_row_number": 9, "ordinal": 1}]


def test_columns_that_differ_in_case_only_fail_by_name(put: Any) -> None:
    """DuckDB would rename one silently; we tell."""
    with pytest.raises(UpsertFailed, match="columns a and A"):
        put({"k": [1], "a": [1], "A": [2]})


def test_untyped_columns_are_left_out(tables: Tables, put: Any) -> None:
    """A column that is null in type as well says nothing about the table."""
    put({"k": [1], "o": [1], "n": pa.nulls(1)})
    assert tables.columns("t") == {"k": "BIGINT", "o": "BIGINT"}


def test_folders_with_pattern_characters_are_read_literally(tables: Tables, tmp_path: Path) -> None:
    """A path is not a pattern, and `x=1` in it is not a column."""
    path = tmp_path / "a[1]*?x=1'" / "f.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"k": [1]}), path)
    tables.apply("t", {1: path}, [], None, tables.columns_of_file(path))
    assert tables.columns("t") == {"k": "BIGINT"}


def test_a_missing_or_broken_file_is_a_failed_upsert(tables: Tables, tmp_path: Path) -> None:
    """Nothing but UpsertFailed comes out."""
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 no PAR1")
    for path in (tmp_path / "gone.parquet", broken):
        with pytest.raises(UpsertFailed):
            tables.columns_of_file(path)
        with pytest.raises(UpsertFailed):
            tables.apply("t", {1: path}, [], None, {"k": "BIGINT"})
    assert tables.names() == []


def test_sorted_pages_are_right_after_replacing_many_rows(tables: Tables, put: Any) -> None:
    """Row groups with deleted rows are not passed over when reading the first rows in order."""
    numbers = pa.array(range(300_000), pa.int64())
    for _ in range(3):
        put({"k": numbers, "o": numbers})
    top = tables.rows("t", 50, 0, "k", descending=True)
    assert [row["k"] for row in top] == list(range(299_999, 299_949, -1))


def test_clear_forgets_tables_and_notes(tables: Tables, put: Any) -> None:
    """After it, nothing was ever applied."""
    put({"k": [1], "o": [1]})
    tables.clear()
    assert (tables.names(), tables.applied()) == ([], set())


def test_tables_survive_closing(tmp_path: Path) -> None:
    """What was applied is on disk, with its note."""
    pq.write_table(pa.table({"k": [1]}), tmp_path / "f.parquet")
    first = Tables(tmp_path / "t.duckdb")
    first.apply("t", {7: tmp_path / "f.parquet"}, [], None, {"k": "BIGINT"})
    first.close()
    again = Tables(tmp_path / "t.duckdb")
    assert (again.count("t"), again.applied()) == (1, {7})
    again.close()


MARKED = st.tuples(st.integers(0, 3), st.integers(0, 5), st.booleans())


@settings(max_examples=examples(12), deadline=None)
@given(st.lists(st.lists(MARKED, min_size=1, max_size=6), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_deleted_rows_stay_deleted_in_any_order(files: list[list[tuple[int, int, bool]]], random: Any) -> None:
    """Whatever order files come in, and however often: the newest row of a key decides whether it is there."""
    newest: dict[int, tuple[int, int, bool]] = {}
    rows = [(key, 10 * order + number, gone) for number, file in enumerate(files) for key, order, gone in file]
    unique = {(key, order): gone for key, order, gone in rows}
    for (key, order), gone in unique.items():
        newest[key] = max(newest.get(key, (-1, 0, False)), (order, key, gone))
    wanted = {key: order for key, (order, _, gone) in newest.items() if not gone}
    tables = Tables(Path(":memory:"), "__Deleted")
    with TemporaryDirectory() as folder:
        parts = [list(unique.items())[at :: len(files)] for at in range(len(files))]
        sent = [part for part in [*parts, *parts] if part]
        random.shuffle(sent)
        for number, part in enumerate(sent):
            path = Path(folder) / f"{number}.parquet"
            columns = {"k": [key for (key, _), _ in part], "o": [order for (_, order), _ in part]}
            pq.write_table(pa.table({**columns, "__deleted": [gone for _, gone in part]}), path)
            tables.apply("t", {number: path}, ("k",), "o", tables.columns_of_file(path))
    assert {row["k"]: row["o"] for row in rows_of(tables)} == wanted
    assert (tables.count("t"), tables.deleted("t")) == (len(wanted), len(newest) - len(wanted))
    tables.close()


def test_without_the_option_nothing_is_deleted(put: Any, tables: Tables) -> None:
    """The column is one like any other; so is one of another type with the option."""
    put({"k": [1], "o": [1], "__deleted": [True]})
    assert (tables.count("t"), tables.deleted("t")) == (1, 0)


def test_an_export_has_no_deleted_rows(tmp_path: Path) -> None:
    """Nor has a table that got the column later any row less; a column that is not boolean deletes nothing."""
    tables = Tables(Path(":memory:"), "gone")
    files = [{"k": [1, 2]}, {"k": [2, 3], "gone": [True, False]}]
    for number, columns in enumerate(files):
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet")
        path = tmp_path / f"{number}.parquet"
        tables.apply("t", {number: path}, ("k",), None, tables.columns_of_file(path))
    tables.export("t", tmp_path / "out.parquet")
    assert sorted(pq.read_table(tmp_path / "out.parquet")["k"].to_pylist()) == [1, 3]
    pq.write_table(pa.table({"k": [1], "gone": ["true"]}), tmp_path / "text.parquet")
    path = tmp_path / "text.parquet"
    tables.apply("u", {9: path}, ("k",), None, tables.columns_of_file(path))
    assert (tables.count("u"), tables.deleted("u")) == (1, 0)
    tables.close()
