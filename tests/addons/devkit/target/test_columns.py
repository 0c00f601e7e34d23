"""Whether a file's columns fit a table."""

import pytest

from parquet_sink.addons.devkit.target.columns import Incompatible, Plan, check_names, plan
from tests.messages import saying


def test_the_first_file_makes_the_table() -> None:
    """Without a table, whatever the file has is right."""
    assert plan(None, {"a": "BIGINT"}, ["a"]) == Plan(create=True)


def test_new_columns_are_added_and_absent_ones_stay() -> None:
    """A file may bring columns and leave others out."""
    assert plan({"a": "BIGINT", "b": "VARCHAR"}, {"a": "BIGINT", "c": "DATE"}, []) == Plan(add={"c": "DATE"})


def test_wider_numbers_widen_the_table_and_narrower_ones_fit() -> None:
    """Integers and floats meet in the wider type when nothing is lost."""
    table = {"a": "INTEGER", "b": "BIGINT", "c": "DOUBLE"}
    assert plan(table, {"a": "BIGINT", "b": "INTEGER", "c": "INTEGER"}, []) == Plan(widen={"a": "BIGINT"})


@pytest.mark.parametrize(
    ("old", "new"), [("BIGINT", "VARCHAR"), ("BIGINT", "DOUBLE"), ("DOUBLE", "BIGINT"), ("DATE", "TIMESTAMP")]
)
def test_anything_else_is_incompatible_and_named(old: str, new: str) -> None:
    """The reason names column and both types."""
    with pytest.raises(Incompatible, match=saying("column x", f"{old} in the table", f"{new} in the file")):
        plan({"x": old}, {"x": new}, [])


def test_letter_case_of_columns_does_not_matter() -> None:
    """As in DuckDB, `Id` goes into `id`; the table's spelling is the one to alter."""
    assert plan({"id": "INTEGER"}, {"ID": "BIGINT"}, ["Id"]) == Plan(widen={"id": "BIGINT"})


def test_a_missing_key_is_named() -> None:
    """Rows without their key cannot be upserted."""
    with pytest.raises(Incompatible, match=saying("primary key b", "not a column")):
        plan(None, {"a": "BIGINT"}, ["a", "b"])


def test_a_file_without_typed_columns_has_nothing_to_give() -> None:
    """A table needs at least one column."""
    with pytest.raises(Incompatible, match="no column"):
        plan(None, {}, [])


@pytest.mark.parametrize("names", [["a", "A"], ["Ä", "Ä"], ["x", "x"], [""], ["a\0"]])
def test_names_that_a_table_cannot_hold(names: list[str]) -> None:
    """Names equal but for letter case, and empty ones, are told instead of mixed up."""
    with pytest.raises(Incompatible):
        check_names(names)


def test_names_that_duckdb_tells_apart_are_kept_apart() -> None:
    """Only A to Z are equal to a to z."""
    check_names(["ä", "Ä", "ß", "SS", "s"])
