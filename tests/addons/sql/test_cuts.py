"""What a query makes of a record is its own: how records are cut into batches, and what is among them, never counts."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.convert.decoders import decoder_for
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.rows.settings import ShapeSettings
from tests.addons.sql.asked import FLAT, Asked
from tests.thorough import examples

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
    "SELECT id FROM records WHERE a > 1 AND s::INTEGER > 5",
    "SELECT id, s FROM records WHERE s = 'paid' OR (a < 3 AND s::INTEGER > 5) OR s::DATE > '2000-01-01'",
    "SELECT id, '2024-02-29'::DATE AS d, coalesce(a, a) AS x, coalesce(b, b) AS y FROM records",
    "SELECT *, list_transform(p, lambda e: e.r::DATE) AS days FROM records",
    "SELECT id, unnest(p) AS p FROM records WHERE a IS NULL OR a <> 2",
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
@settings(max_examples=examples(4), deadline=None)
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
    """Hundreds of records that are read as columns give what each of them gives alone."""
    values: list[object] = []
    for n in range(400):
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
    cut = Asked(query, values, cuts=[1, 70, 150 + seed, 300], keys=keys)
    alone = Asked(query, values, cuts=list(range(1, 50)), keys=keys)
    assert (cut.rows, cut.rejected, cut.columns) == (whole.rows, whole.rejected, whole.columns)
    assert (alone.rows, alone.rejected, alone.columns) == (whole.rows, whole.rejected, whole.columns)


BAD_ONE = [{"id": n, "kind": "number" if n % 3 else "text", "s": str(n) if n % 3 else "abc"} for n in range(60)]
BAD_ONE[31]["s"] = "bad"


@pytest.mark.parametrize(
    ("condition", "chosen"),
    [
        ("kind = 'number' AND s::INTEGER > 5", [n for n in range(6, 60) if n % 3 and n != 31]),
        ("kind = 'text' OR s::INTEGER > 5", [n for n in range(60) if n != 31 and (n % 3 == 0 or n > 5)]),
        ("id < 0 OR (kind = 'number' AND s::INTEGER % 2 = 0)", [n for n in range(60) if n % 3 and n % 2 == 0]),
    ],
)
def test_conditions_in_turn(condition: str, chosen: list[int]) -> None:
    """A part of WHERE is not asked of a record for which those before it decide, also where a neighbour fails."""
    for cuts in ([], [7, 31, 32], list(range(1, 60))):
        asked = Asked(f"SELECT id FROM records WHERE {condition}", BAD_ONE, cuts=cuts)
        assert [row["id"] for row in asked.plain] == chosen
        assert list(asked.rejected) == [62]


@pytest.mark.parametrize(
    ("chosen", "rows"),
    [
        ("* REPLACE (upper(name) AS name)", [{"id": 0, "NAME": "A"}, {"id": 1, "name": "B"}]),
        ("* RENAME (name AS n)", [{"id": 0, "n": "a"}, {"id": 1, "n": "b"}]),
        ("* EXCLUDE (name)", [{"id": 0}, {"id": 1}]),
    ],
)
def test_names_of_a_star(chosen: str, rows: list[dict[str, object]]) -> None:
    """A field is found by its own record's names, whatever case a neighbour has for it."""
    values = [{"id": n % 2, "name": "b"} if n % 2 else {"id": n % 2, "NAME": "a"} for n in range(300)]
    whole = Asked(f"SELECT {chosen} FROM records", values)
    assert whole.plain == rows * 150
    assert Asked(f"SELECT {chosen} FROM records", values[:9], cuts=range(1, 9)).plain == (rows * 5)[:9]


@pytest.mark.parametrize(
    "columns", ["unnest(list_filter(l, lambda e: e > 4)) AS x, s::INTEGER AS n", "s::INTEGER AS n, unnest(l[6:]) AS x"]
)
def test_columns_of_no_row(columns: str) -> None:
    """A column is not worked out for a record whose list is empty, also where a neighbour fails in it."""
    values = [{"id": n, "s": "x" if n % 4 == 0 else str(n), "l": list(range(n % 9))} for n in range(50)]
    asked = [Asked(f"SELECT id, {columns} FROM records", values, cuts=cuts) for cuts in ([], [9], range(1, 50))]
    assert asked[0].rejected
    for other in asked[1:]:
        assert (other.rows, other.rejected) == (asked[0].rows, asked[0].rejected)
    assert set(asked[0].rejected) == {2 * n for n in range(0, 50, 4) if n % 9 > 5}


def test_nulls_take_no_type_of_a_neighbour() -> None:
    """Where records get a schema a null of no type stays so: the next record's type is as good as any other's."""
    values = [{"x": None, "y": 1}, {"x": "s", "y": "t"}, {"x": True, "y": 2}]
    query = "SELECT DATE '2024-02-29' AS d, coalesce(x, x) AS x, coalesce(y, y) AS y FROM records"
    whole, alone = Asked(query, values), Asked(query, values, cuts=[1, 2])
    assert (whole.rows, whole.types, whole.columns) == (alone.rows, alone.types, alone.columns)


KEYED = (
    "SELECT id, _key.a AS x, _key.b AS y FROM records",
    "SELECT id, coalesce(_key.a, _key.a) AS x FROM records",
    "SELECT id, _key.a + 1 AS x, coalesce(_key.b, _key.b) AS y FROM records WHERE id < 90",
    "SELECT *, coalesce(_key.a, _key.b) AS x FROM records WHERE _key.a IS NULL OR _key.a <> 2",
    "SELECT id, _key AS k FROM records",
    "SELECT id, unnest(_key.l) AS x, coalesce(_key.a, _key.a) AS y FROM records",
)
KEYS = st.one_of(
    st.fixed_dictionaries(
        {}, optional={"a": fields(NUMBERS, TEXTS), "b": fields(TEXTS), "l": st.lists(NUMBERS, max_size=2)}
    ),
    st.sampled_from([None, 5, "x", {}, [1]]),
)
ENVELOPE = {
    "type": "struct",
    "fields": [{"field": "id", "type": "int32"}, {"field": "s", "type": "string", "optional": True}],
}


@pytest.mark.parametrize("query", KEYED)
@pytest.mark.parametrize("typed", [True, False])
@settings(max_examples=examples(4), deadline=None)
@given(data=st.data(), count=st.integers(2, 6))
def test_cuts_with_keys_of_their_own_types(query: str, typed: bool, data: st.DataObject, count: int) -> None:
    """A key without a schema gives each record the types of its own fields, beside a value with a schema, too."""
    drawn = data.draw(st.lists(KEYS, min_size=count, max_size=count))
    keys = [None if one is None else json.dumps(one).encode() for one in drawn]
    plain = [{"id": n, "s": data.draw(st.sampled_from([None, "t"]))} for n in range(count)]
    values: list[object] = [{"schema": ENVELOPE, "payload": one} for one in plain] if typed else [*plain]

    def asked(cuts: Sequence[int]) -> Asked:
        decoder = decoder_for(ConverterSettings("json_envelope" if typed else "json"))
        return Asked(query, values, cuts=cuts, keys=keys, key=ConverterSettings("json"), decoder=decoder)

    whole = asked(())
    cut = asked(range(1, count))
    assert cut.rejected == whole.rejected
    assert cut.rows == whole.rows
    assert cut.columns == whole.columns
    assert cut.types == whole.types


def test_a_null_of_a_key_takes_no_type_of_a_neighbours_key() -> None:
    """Beside a value with a schema a key without the field gives a null without a type, whoever else is there."""
    keys = [b'{"a": true}', b"{}", b'{"a": 2, "b": "x"}', b'{"b": "y"}']
    values: list[object] = [{"schema": ENVELOPE, "payload": {"id": n, "s": None}} for n in range(4)]
    query = "SELECT id, coalesce(_key.a, _key.a) AS x, coalesce(_key.b, _key.b) AS y FROM records"
    decoders = [decoder_for(ConverterSettings("json_envelope")) for _ in range(2)]
    whole, alone = (
        Asked(query, values, cuts=cuts, keys=keys, key=ConverterSettings("json"), decoder=decoder)
        for cuts, decoder in zip(((), (1, 2, 3)), decoders, strict=True)
    )
    assert not whole.rejected
    assert (whole.rows, whole.types, whole.columns) == (alone.rows, alone.types, alone.columns)
