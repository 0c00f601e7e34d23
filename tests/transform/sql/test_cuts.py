"""What a query makes of a record is its own: how records are cut into batches, and what is among them, never counts."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.shape.settings import ShapeSettings
from tests.transform.sql.asked import FLAT, Asked

QUERIES = (
    "SELECT id, a * 1.19 AS gross FROM records WHERE s <> 'test'",
    "SELECT * FROM records WHERE a > 1 OR a IS NULL",
    "SELECT *, a + 1 AS more FROM records",
    "SELECT id, coalesce(a, b) AS c, a::VARCHAR AS t, a // 2 AS h FROM records",
    "SELECT id, CASE WHEN a > 2 THEN 'big' WHEN a IS NULL THEN s END AS size, o.x AS x, o.y.z FROM records",
    "SELECT id, unnest(l) AS one, s FROM records",
    "SELECT id, unnest(p).q AS q, p[1] AS first FROM records",
    "SELECT id, TRY_CAST(s AS DATE) AS d, a FROM records",
    "SELECT * EXCLUDE (l, p), a::DECIMAL(9, 2) AS d FROM records",
    "SELECT id, a::INTEGER AS n, s::DATE AS d FROM records",
    "SELECT * REPLACE (a * 2 AS a) FROM records WHERE id % 3 <> 1",
    "SELECT id, list_transform(p, lambda e: e.q) AS qs, len(l) AS n, o FROM records",
    "SELECT _offset, _timestamp, _key, id FROM records WHERE _partition = 3",
)
NUMBERS = st.sampled_from([0, 1, 2, 5, 10, -3, 2.5, 4.0, 0.1, 2**60, 1e300])
TEXTS = st.sampled_from(["test", "paid", "", "2024-02-29", "17", "x"])
ODD = st.sampled_from([None, True, "n/a", [1], {"x": 1}, {}])


def fields(regular: st.SearchStrategy[Any], odd: st.SearchStrategy[Any] = ODD) -> st.SearchStrategy[Any]:
    """Mostly as it should be."""
    return st.one_of(regular, regular, regular, regular, odd)


RECORDS = st.fixed_dictionaries(
    {"id": st.integers(0, 99)},
    optional={
        "a": fields(NUMBERS),
        "b": fields(NUMBERS),
        "s": fields(TEXTS),
        "o": fields(
            st.fixed_dictionaries({}, optional={"x": NUMBERS, "y": st.fixed_dictionaries({}, optional={"z": TEXTS})})
        ),
        "l": fields(st.lists(st.one_of(NUMBERS, st.none()), max_size=3)),
        "p": fields(st.lists(st.fixed_dictionaries({}, optional={"q": NUMBERS, "r": TEXTS}), max_size=3)),
    },
)
VALUES = st.lists(st.one_of(*[RECORDS] * 9, st.none()), min_size=1, max_size=16)


NESTED = ShapeSettings(embed_metadata=False, flatten=False)


@pytest.mark.parametrize(
    ("query", "shape"), [*((one, FLAT) for one in QUERIES), *((one, NESTED) for one in QUERIES[8:])]
)
@settings(max_examples=4, deadline=None)
@given(values=VALUES, data=st.data())
def test_cuts(query: str, shape: ShapeSettings, values: list[object], data: st.DataObject) -> None:
    """Rows, the types of their columns and what is rejected are the same for any cut, one record a batch included."""
    ends = data.draw(st.lists(st.integers(0, len(values)), max_size=4).map(sorted))
    keys = [None if value is None else b"k" for value in values]
    whole = Asked(query, values, shape=shape, keys=keys)
    for cuts in (ends, list(range(1, len(values)))):
        cut = Asked(query, values, cuts=cuts, shape=shape, keys=keys)
        assert cut.rows == whole.rows
        assert cut.rejected == whole.rejected
        assert cut.columns == whole.columns
        if shape.flatten:
            assert cut.types == whole.types


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("seed", range(1))
def test_many(query: str, seed: int) -> None:
    """Thousands of records that are read as columns give what each of them gives alone."""
    values: list[object] = []
    for n in range(800):
        record = {
            "id": n,
            "a": n / 4 if (n + seed) % 3 else n,
            "s": "test" if n % 7 == 0 else f"s{n}",
            "l": [n, n / 2],
            "o": {"x": n, "y": {"z": "z"}},
            "p": [{"q": n}, {"r": "r"}],
        }
        if n % 11 == seed:
            del record["a"]
        if n % 13 == seed:
            record["s"] = None
        if n % 101 == seed:
            record["a"] = "odd"
        values.append(None if n % 50 == 49 else json.dumps(record).encode())
    keys = [b"k"] * len(values)
    whole = Asked(query, values, keys=keys)
    cut = Asked(query, values, cuts=[1, 70, 300 + seed, 600], keys=keys)
    alone = Asked(query, values, cuts=list(range(1, 90)), keys=keys)
    assert (cut.rows, cut.rejected, cut.columns) == (whole.rows, whole.rejected, whole.columns)
    assert (alone.rows, alone.rejected, alone.columns) == (whole.rows, whole.rejected, whole.columns)
