"""What the demo expects of the target's table, and how it compares."""

import pytest

from parquet_sink.addons.devkit.demo.expected import Comparison, Delivered, Row, compare, row_of
from tests.messages import assert_says

ROWS: dict[int, Row] = {
    1: {"order_id": 1, "total": 2.0, "express": False, "coupon": None},
    2: {"order_id": 2, "total": 3.5, "express": True},
}


def table(*changed: Row) -> list[Row]:
    """The table as it should be, with these rows in place of those of the same key."""
    rows = {int(str(row["order_id"])): row for row in [*ROWS.values(), *changed]}
    return list(rows.values())


def test_a_row_is_flat_with_lists_as_json_text_and_metadata() -> None:
    """Nested objects become columns joined by underscores; the columns that are added follow."""
    value = '{"order_id":7,"customer":{"address":{"post-code":"8"}},"items":[{"a":1.5,"b":"é"}],"note":null}'
    assert row_of(Delivered(value.encode(), 3, 42, 1_700_000_000_000)) == {
        "order_id": 7,
        "customer_address_post_code": "8",
        "items": '[{"a":1.5,"b":"é"}]',
        "note": None,
        "kafkaPartition": 3,
        "kafkaOffset": 42,
        "kafkaTimestamp": 1_700_000_000_000,
        "kafkaPartitionOffset": "3_42",
        "__celonis_order": 42,
        "__deleted": False,
    }


def test_an_equal_table_has_no_difference() -> None:
    """A column that a row does not have is null in the table."""
    rows = [{"order_id": 2, "total": 3.5, "express": True, "coupon": None}, ROWS[1]]
    assert compare(ROWS, rows) == Comparison(rows=2, columns=4, differences=0, examples=())


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({**ROWS[1], "total": 2.01}, ("order_id 1", "column total", "2.01 instead of 2.0")),
        ({**ROWS[1], "total": 2}, ("order_id 1", "column total", "2 instead of 2.0")),
        ({**ROWS[1], "express": 0}, ("order_id 1", "column express", "0 instead of False")),
        ({**ROWS[1], "coupon": ""}, ("order_id 1", "column coupon", "'' instead of None")),
        ({**ROWS[1], "extra": "x"}, ("order_id 1", "column extra", "'x' instead of None")),
        ({"order_id": 3, "total": 1.0}, ("order_id 3", "in the table", "never sent")),
    ],
)
def test_any_other_value_type_column_or_row_is_a_difference(row: Row, told: tuple[str, ...]) -> None:
    """Values and their types are compared exactly, and its text names key, column and both values."""
    found = compare(ROWS, table(row))
    assert found.differences == 1
    (example,) = found.examples
    assert_says(example, *told)


def test_a_missing_row_and_a_row_twice_are_differences() -> None:
    """Keys must be there once."""
    (missing,) = compare(ROWS, [ROWS[1]]).examples
    assert_says(missing, "order_id 2", "not in the table")
    (repeated,) = compare(ROWS, [*table(), ROWS[1]]).examples
    assert_says(repeated, "order_id 1", "more than once")


def test_all_differences_are_counted_and_few_are_shown() -> None:
    """A wholly wrong table does not flood the terminal."""
    expected: dict[int, Row] = {number: {"order_id": number} for number in range(100)}
    found = compare(expected, [])
    assert found.differences == 100
    assert len(found.examples) == 3
