"""What a query may take for one record, and for a batch of them."""

import time

import pytest

from parquet_sink.addons.sql import computing, engine
from tests.addons.sql.asked import Asked
from tests.messages import assert_says

TEXT = "a" * 30_000
BEYOND = [
    ("levenshtein(a, a)", {"a": TEXT}, "levenshtein: the product of both lengths is at most 250,000"),
    ("damerau_levenshtein(a, a)", {"a": TEXT}, "damerau_levenshtein: the product of both lengths"),
    ("length(replace(a, 'a', a))", {"a": TEXT}, "replace: the product of the lengths of text and replacement"),
    ("length(regexp_replace(a, 'a', a, 'g'))", {"a": TEXT}, "regexp_replace: the product of the lengths"),
    (
        "len(list_transform(l, lambda x: l))",
        {"l": [1] * 10_001},
        "list_transform: the list has at most 10,000 elements",
    ),
    ("list_reduce(l, lambda x, y: x + y)", {"l": [1] * 10_001}, "list_reduce: the list has at most 10,000 elements"),
    (
        "len(json_merge_patch(a::JSON, a::JSON))",
        {"a": '{"a": "' + "a" * 110_000 + '"}'},
        "json_merge_patch: the product of both lengths",
    ),
]
WITHIN = [
    ("levenshtein(a, b)", {"a": "kitten", "b": "sitting"}, 3),
    ("damerau_levenshtein(a, b)", {"a": "ab", "b": "ba"}, 1),
    ("levenshtein(a, b)", {"a": "x" * 100, "b": "y" * 2_500}, 2_500),
    ("levenshtein(a, b)", {"a": None, "b": "x"}, None),
    ("replace(replace(a, 'b', c), 'd', c)", {"a": "abd", "c": "x"}, "axx"),
    ("length(replace(a, 'a', 'bb'))", {"a": "a" * 300_000}, 600_000),
    ("len(list_transform(l, lambda x: x + 1))", {"l": [1] * 20_000}, 20_000),
    ("list_sum(list_transform(l, lambda x: x + n))", {"l": [1, 2], "n": 10}, 23),
]


@pytest.mark.parametrize(("expression", "record", "rule"), BEYOND)
def test_a_record_beyond_the_bound_of_a_function_is_rejected(expression: str, record: object, rule: str) -> None:
    """Its neighbours have their rows, and the reason says what the bound is."""
    asked = Asked(f"SELECT 1 AS one, {expression} AS x FROM records", [{"other": 1}, record, {"other": 2}])
    assert list(asked.rejected) == [2]
    assert_says(asked.rejected[2], "column x of the query cannot be computed", rule)


@pytest.mark.parametrize(("expression", "record", "value"), WITHIN)
def test_what_is_within_the_bounds_is_computed(expression: str, record: object, value: object) -> None:
    """Bounded functions give what they give without a bound, also of null, within each other and in lambdas."""
    asked = Asked(f"SELECT 1 AS one, {expression} AS x FROM records", [record])
    assert (asked.rejected, [row.get("x") for row in asked.plain]) == ({}, [value])


def test_a_condition_has_bounds_too() -> None:
    """A function in WHERE is bounded as one in SELECT."""
    asked = Asked("SELECT 1 AS x FROM records WHERE a IS NOT NULL AND levenshtein(a, a) = 0", [{"a": TEXT}, {"a": "b"}])
    assert list(asked.rejected) == [0]
    assert_says(asked.rejected[0], "WHERE of the query cannot be computed", "levenshtein: ")


def test_a_query_that_takes_long_is_interrupted_and_asked_of_fewer_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that is too much at once is computed in parts; a record that takes too long alone is rejected."""
    for module in (engine, computing):
        monkeypatch.setattr(module, "LONGEST_S", 0.3)
    query = "SELECT list_sum(list_transform(l, lambda x: levenshtein(a, a))) AS x FROM records"
    record = {"a": "ab" * 200, "l": [1] * 2_000}
    began = time.monotonic()
    asked = Asked(query, [{"a": "b", "l": [1]}, record, {"a": "b", "l": [1]}])
    assert time.monotonic() - began < 60
    assert [row["x"] for row in asked.plain] == [0, 0]
    assert list(asked.rejected) == [2]
    assert_says(asked.rejected[2], "the query", "0.3 s")
