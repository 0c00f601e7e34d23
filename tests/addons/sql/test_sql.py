"""What a query makes of records: values, columns, offsets, and what becomes of those that it cannot take."""

import sys
from datetime import UTC, datetime

import duckdb
import pyarrow as pa
import pytest

from parquet_sink.addons.sql import computing, engine
from parquet_sink.addons.sql.transform import Sql
from parquet_sink.config.provider import Resolved
from parquet_sink.config.report import Report
from parquet_sink.config.values import read
from parquet_sink.convert.decoders import decoder_for
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.model.records import RecordParts
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.run import Run
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.transform.chain import Step, TransformChain
from parquet_sink.transform.classes import find_transform
from parquet_sink.transform.protocol import WrongSettings
from parquet_sink.transform.records import DecodedRecords
from tests.addons.sql.asked import FLAT, JSON, START, Asked, batch, sql
from tests.messages import assert_says, saying

ORDERS = [
    {"order_id": 1, "amount": 100, "status": "paid"},
    {"order_id": 2, "amount": 2.5, "status": "test"},
    {"order_id": 3, "amount": None, "status": "paid"},
    {"order_id": 4, "status": "open"},
]


def test_the_example() -> None:
    """Fields keep their types, expressions are worked out, what WHERE leaves out is gone; null is not a value."""
    asked = Asked("SELECT order_id, amount * 1.5 AS gross FROM records WHERE status <> 'test'", ORDERS)
    assert asked.rows == [(0, {"order_id": 1, "gross": 150.0}), (4, {"order_id": 3}), (6, {"order_id": 4})]
    assert asked.columns == [("order_id", "int64"), ("gross", "double")]
    assert asked.rejected == {}


def test_numbers_with_a_point_are_doubles_without_a_schema() -> None:
    """A whole number and a fraction come to the same column, so that no file ends between them."""
    asked = Asked("SELECT a * 1.5 AS x, a / 2 AS y, a * 2 AS z FROM records", [{"a": 1}, {"a": 2.0}, {"a": 3}])
    assert asked.plain == [{"x": 1.5, "y": 0.5, "z": 2}, {"x": 3.0, "y": 1.0, "z": 4.0}, {"x": 4.5, "y": 1.5, "z": 6}]
    assert asked.columns == [("x", "double"), ("y", "double"), ("z", "double")]


def test_a_text_is_no_number() -> None:
    """A record whose field has another type is rejected by itself, with what does not fit."""
    asked = Asked("SELECT order_id, amount * 2 AS twice FROM records", [*ORDERS[:2], {"order_id": 9, "amount": "x"}])
    assert asked.plain == [{"order_id": 1, "twice": 200}, {"order_id": 2, "twice": 5.0}]
    assert list(asked.rejected) == [4]
    assert_says(asked.rejected[4], "does not fit", "No function matches")


def test_a_cast_that_fails() -> None:
    """Only the records at fault are rejected, with the column, and nothing of what they hold."""
    values = [{"id": n, "a": "secret-text" if n % 40 == 3 else str(n)} for n in range(500)]
    asked = Asked("SELECT id, a::INTEGER + 1 AS a FROM records WHERE id <> 43", values)
    bad = [n for n in range(500) if n % 40 == 3 and n != 43]
    assert list(asked.rejected) == [2 * n for n in bad]
    (reason,) = set(asked.rejected.values())
    assert_says(reason, "column a", "cannot be computed", "(CAST(a AS INTEGER) + 1)")
    assert "secret-text" not in reason
    assert asked.plain == [{"id": n, "a": n + 1} for n in range(500) if n not in bad and n != 43]


def test_a_condition_that_fails() -> None:
    """It is told as WHERE, and a record that WHERE leaves out is asked for nothing else."""
    query = "SELECT 10 // b AS x FROM records WHERE a::INTEGER > 0"
    values = [{"a": "1", "b": 2}, {"a": "x", "b": 1}, {"a": "0", "b": 0}, {"a": "3", "b": 0}, {"a": None, "b": 0}]
    asked = Asked(query, values)
    assert asked.rows == [(0, {"x": 5})]
    assert list(asked.rejected) == [2, 6]
    assert_says(asked.rejected[2], "WHERE", "cannot be computed", "(CAST(a AS INTEGER) > 0)")
    assert_says(asked.rejected[6], "column x", "cannot be computed", "(10 // b)")


def test_unnest() -> None:
    """One record becomes several rows, in order, together, with its own offset; an empty list gives none."""
    values = [
        {"id": 1, "items": [{"sku": "a", "qty": 1}, {"sku": "b"}]},
        {"id": 2, "items": []},
        {"id": 3},
        {"id": 4, "items": [{"qty": 7}]},
    ]
    shape = ShapeSettings(primary_keys=("id",))
    asked = Asked("SELECT id, unnest(items).sku AS sku, unnest(items).qty AS qty FROM records", values, shape=shape)
    assert [(offset, row["id"], row.get("sku"), row.get("qty"), row["kafkaOffset"]) for offset, row in asked.rows] == [
        (0, 1, "a", 1, 0),
        (0, 1, "b", None, 0),
        (6, 4, None, 7, 6),
    ]
    assert asked.records == 2


@pytest.mark.parametrize("chosen", ["unnest(l) AS x", "unnest(l).q AS x", "unnest(l[:1]) AS x"])
def test_unnest_of_an_object(chosen: str) -> None:
    """A record that has an object where its neighbours have a list is rejected alone, however many fields it has."""
    values = [{"l": [{"q": 1}]}, {"l": {"q": 1}}, {"l": {"q": 1, "r": 2}}, {"l": [{"q": 2}]}]
    asked = Asked(f"SELECT {chosen} FROM records", values)
    assert [offset for offset, _ in asked.rows] == [0, 6]
    assert list(asked.rejected) == [2, 4]


def test_timestamps_that_no_record_has() -> None:
    """Infinity and 24:00, which DuckDB has and rows have not, reject their record, with all its rows."""
    values = [{"id": 1, "t": ["2024-02-29"]}, {"id": 2, "t": ["2024-02-29", "-infinity"]}, {"id": 3, "t": ["infinity"]}]
    for kind in ("DATE", "TIMESTAMP", "TIMESTAMPTZ"):
        asked = Asked(f"SELECT id, unnest(t)::{kind} AS t FROM records", values)
        assert [row["id"] for row in asked.plain] == [1]
        assert list(asked.rejected) == [2, 4]
    asked = Asked("SELECT t::TIME AS t FROM records", [{"t": "23:59:59.999"}, {"t": "24:00:00"}, {"t": None}])
    assert list(asked.rejected) == [2]
    assert_says(asked.rejected[2], "column t", "infinity or 24:00")


def test_unnest_of_one_record_fails_alone() -> None:
    """A record whose list has a value that cannot be cast is rejected, all its rows with it."""
    values = [{"id": n, "l": ["1", "x" if n == 57 else "2"]} for n in range(100)]
    asked = Asked("SELECT id, unnest(l)::INTEGER AS n FROM records", values)
    assert list(asked.rejected) == [114]
    assert len(asked.rows) == 198
    assert "x" not in asked.rejected[114].split()


def test_what_follows_sees_rows() -> None:
    """A second query takes the rows of the first one by one; a record that fails there is rejected as a whole."""
    values = [{"id": 1, "l": [1, 2]}, {"id": 2, "l": [3, 0]}, {"id": 3, "l": [5]}]
    queries = ("SELECT id, unnest(l) AS n FROM records", "SELECT id, 60 // n AS n FROM records WHERE n <> 1")
    asked = Asked(queries, values)
    assert asked.rows == [(0, {"id": 1, "n": 30}), (4, {"id": 3, "n": 12})]
    assert list(asked.rejected) == [2]


def test_nothing_is_left() -> None:
    """When all is left out there is no row, no column, and no failure; tombstones pass as they are."""
    asked = Asked("SELECT * FROM records WHERE false", [*ORDERS, None])
    assert (asked.rows, asked.rejected, asked.columns) == ([], {}, [])
    found = sql("SELECT * FROM records WHERE a = 1").apply(_decoded([{"a": 1}, None, {"a": 2}, None]))
    assert found.positions.to_pylist() == [0, 1, 3]


def _decoded(values: list[object]) -> DecodedRecords:
    return TransformChain([]).apply(batch(values), decoder_for(ConverterSettings()))


def test_star() -> None:
    """All fields in their order, lists and objects as they are, some left out, replaced or renamed."""
    values = [{"a": 1, "b": {"c": [1, "x", None]}, "D": 2, "e": []}, {"D": 5, "a": 3}]
    asked = Asked("SELECT * EXCLUDE (e) REPLACE (a * 10 AS a) RENAME (d AS dd), D + 1 AS more FROM records", values)
    assert asked.plain == [{"a": 10, "b_c": '[1,"x",null]', "dd": 2, "more": 3}, {"dd": 5, "a": 30, "more": 6}]
    both = [{"NAME": "a", "name": "b"}, {"NAME": "a", "Name": "b"}]
    asked = Asked("SELECT * REPLACE ('c' AS name) FROM records", both)
    assert asked.plain == [{"NAME": "a", "name": "c"}]
    assert list(asked.rejected) == [2]
    assert_says(asked.rejected[2], "field name", "NAME and Name", "double quotes")
    more = Asked("SELECT *, 1 AS one FROM records", both)
    assert more.rejected == {}
    fewer = Asked("SELECT 1 AS one, * EXCLUDE (name) FROM records", both)
    assert fewer.plain == [{"one": 1}, {"one": 1}]
    twice = Asked("SELECT *, a + 1 AS a FROM records", [{"a": 1}, {"b": 2}])
    assert list(twice.rejected) == [0]
    assert_says(twice.rejected[0], "two columns a", "EXCLUDE", "rename it by AS")


def test_names_of_fields() -> None:
    """Exactly as written, or else the only field that differs in case; two that do must be told apart by quotes."""
    asked = Asked("SELECT ID, Id + 0 AS x FROM records", [{"id": 1}, {"Id": 2, "id": 3}, {"iD": 4, "id": 5}, {"ID": 6}])
    assert asked.rows == [(0, {"ID": 1, "x": 1}), (6, {"ID": 6, "x": 6})]
    assert set(asked.rejected) == {2, 4}
    quoted = Asked('SELECT "a b"."c.d" AS x, "a b"."c.d" || \'!\' AS y FROM records', [{"a b": {"c.d": "z"}}])
    assert quoted.plain == [{"x": "z", "y": "z!"}]


def test_a_path_through_something_else() -> None:
    """An object that is absent gives null; a text where the query wants an object is not a record for it."""
    query = "SELECT customer.name, upper(customer.name) AS upper FROM records"
    asked = Asked(query, [{"customer": {"name": "bob"}}, {"x": 1}, {"customer": None}, {"customer": "bob"}])
    assert asked.rows[0] == (0, {"name": "bob", "upper": "BOB"})
    assert_says(asked.rejected[6], "field customer", "text, not an object", "customer.name")


def test_metadata() -> None:
    """Topic, topic-partition, offset, timestamp and key are columns that a star does not show."""
    query = "SELECT *, _topic, _partition, _offset, _timestamp AS at, _key FROM records WHERE _offset > 0"
    asked = Asked(query, [{"a": 1}, {"a": 2}], keys=[b"k0", b"k1"])
    offset, row = asked.rows[0]
    assert (offset, row["_topic"], row["_partition"], row["_offset"], row["_key"]) == (2, "orders", 3, 2, "k1")
    assert row["at"].timestamp() * 1000 == START + 2
    assert Asked("SELECT * FROM records", [{"a": 1}]).plain == [{"a": 1}]
    clash = Asked("SELECT _offset FROM records", [{"_offset": 5}, {"a": 1}])
    assert clash.plain == [{"_offset": 2}]
    assert_says(clash.rejected[0], "field _offset", "name of a column", "rename the field", "ReplaceField")


def test_keys_are_read_only_when_asked_for() -> None:
    """A query that does not name _key needs values alone; one that does sees what the key converter gives."""
    assert sql("SELECT a FROM records").needs == RecordParts()
    assert sql("SELECT _key.id AS id FROM records").needs == RecordParts(keys=True)
    keys = [b'{"id": 7}', None, b'{"id": "x"}', b'{"other": 1}']
    asked = Asked(
        "SELECT _key.id AS id, a FROM records", [{"a": n} for n in range(4)], keys=keys, key=ConverterSettings()
    )
    assert asked.plain == [{"id": 7, "a": 0}, {"a": 1}, {"id": "x", "a": 2}, {"a": 3}]


def test_a_date_gives_a_schema() -> None:
    """Records without a schema get one where the query makes what JSON has not; NULL then has no type."""
    values = [
        {"id": 1, "day": "2024-02-29", "l": [1]},
        {"id": 2, "day": None, "l": [{"x": 1.5}]},
        {"id": 3, "day": "x"},
    ]
    asked = Asked("SELECT * REPLACE (day::DATE AS day), 1.5::DECIMAL(3, 1) AS d FROM records", values)
    assert [str(row.get("day")) for row in asked.plain] == ["2024-02-29", "None"]
    assert dict(asked.columns)["day"] == "date32[day]"
    assert dict(asked.columns)["d"] == "decimal128(3, 1)"
    assert list(asked.rejected) == [4]


def test_after_a_transform_that_makes_timestamps() -> None:
    """What other transforms leave in a record without a schema has its type for a query, too."""
    texts = {"field": "t", "target.type": "Timestamp"}
    convert, _ = find_transform("TimestampConverter")
    first = Step(convert(read(tuple(convert.keys), Resolved(texts, texts), Report()), "value"))
    for chosen in ("id, t, year(t) AS y", "*, year(t) AS y, DATE '2024-01-01' AS d"):
        chain = TransformChain([first, Step(sql(f"SELECT {chosen} FROM records"))])
        shaper = RowBuilder(FLAT, None, decoder_for(JSON), chain)
        runs = [
            run for run in shaper.shape(batch([{"id": 1, "t": START}, {"id": 2, "t": None}])) if isinstance(run, Run)
        ]
        rows = [row for run in runs for row in run.rows.to_pylist()]
        assert [(row["id"], row["y"], row["t"] and row["t"].timestamp()) for row in rows] == [
            (1, 2023, START / 1000),
            (2, None, None),
        ]


def test_no_number() -> None:
    """A result that is not a finite number cannot be in a record without a schema, which is told."""
    asked = Asked("SELECT a * 1e300 AS x, [a * 1e300] AS l FROM records", [{"a": 1e300}, {"a": 1.0}])
    assert asked.plain == [{"x": 1e300, "l": "[1e+300]"}]
    assert list(asked.rejected) == [0]


def test_types_that_no_record_has() -> None:
    """An interval cannot be a column; the reason says what to do."""
    asked = Asked("SELECT to_days(a::INTEGER) AS d FROM records", [{"a": 1}])
    assert list(asked.rejected) == [0]
    assert_says(asked.rejected[0], "column d", "type INTERVAL", "cast it", "VARCHAR")


def test_too_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that would become more rows than are allowed is rejected; its neighbours are not."""
    monkeypatch.setattr(engine, "MOST_ROWS", 1_000)
    values = [{"id": n, "l": [1] * (2_000 if n == 5 else 30)} for n in range(100)]
    asked = Asked("SELECT id, unnest(l) AS one FROM records", values)
    assert list(asked.rejected) == [10]
    assert len(asked.rows) == 99 * 30
    assert_says(asked.rejected[10], "the query", "more than 1,000,000 rows")


def test_not_for_keys() -> None:
    """A query is over values; for keys it is refused."""
    values = read(Sql.keys, Resolved({"query": "SELECT a FROM records"}, {"query": ""}), Report())
    with pytest.raises(WrongSettings) as found:
        Sql(values, "key")
    assert list(found.value.reasons) == ["type"]


def test_duckdb_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the extra."""
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.setattr(engine, "_engines", {})
    with pytest.raises(WrongSettings, match=saying("DuckDB", "pip install '.[sql]'")):
        sql("SELECT never_seen_before FROM records")


def test_duckdb_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that the reference target is content with is told apart from none."""
    monkeypatch.setattr(duckdb, "__version__", "1.4.2")
    monkeypatch.setattr(engine, "_engines", {})
    with pytest.raises(WrongSettings) as found:
        sql("SELECT never_seen_before FROM records")
    assert list(found.value.reasons) == ["type"]
    assert_says(found.value.reasons["type"], "DuckDB 1.4.2", "2.0 or later", "pip install '.[sql]'")


def test_plans_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of any number of types are taken; what was prepared for old ones is given back."""
    monkeypatch.setattr(engine, "MOST_PREPARED", 3)
    assert computing.Computing(sql("SELECT 1 AS x FROM records")._query, engine.engine()) is not None
    values = [{"id": n, "o": {f"f{n}": n}} for n in range(20)]
    asked = Asked("SELECT id, o::VARCHAR AS o FROM records", values * 2)
    assert len(asked.rows) == 40
    assert len(engine.engine()._prepared) <= 3


def test_duckdb_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake of DuckDB's own, after which its connection is dead, rejects the record that met it and no other."""
    run, work = engine.Prepared.run, engine.engine()
    dead: list[object] = []

    def breaking(self: engine.Prepared, rows: pa.RecordBatch) -> pa.Table:
        if self._connection in dead or 7 in rows.column(1).to_pylist():
            dead.append(self._connection)
            raise engine.QueryFailed("INTERNAL Error: x", binding=False, broken=True)
        return run(self, rows)

    monkeypatch.setattr(engine.Prepared, "run", breaking)
    asked = Asked("SELECT id + 1 AS more FROM records", [{"id": n} for n in range(20)])
    assert list(asked.rejected) == [14]
    assert_says(asked.rejected[14], "the query", "cannot be computed", "internal")
    assert [row["more"] for row in asked.plain] == [n + 1 for n in range(20) if n != 7]
    with work.lock:
        with pytest.raises(duckdb.Error):
            work._do("SET threads = 4")
        failed = engine._failed(duckdb.InternalException("INTERNAL Error: x"))
    assert failed.broken


@pytest.mark.parametrize(
    "moment", ["TIMESTAMP_NS '1969-12-31 23:59:59.999999999'", "TIMESTAMP '1969-12-31 23:59:59.999999'"]
)
def test_timestamps_before_1970_are_cut_as_others(moment: str) -> None:
    """What is finer than a millisecond is cut, never rounded up, in lists, objects and maps, too."""
    nested = f"[{moment}, NULL] AS l, {{'a': {moment}}} AS o, MAP {{'k': {moment}}} AS m"
    asked = Asked(f"SELECT id, {moment} AS t, {nested} FROM records", [{"id": n} for n in range(3)])
    at = datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
    assert not asked.rejected
    assert asked.plain == [{"id": n, "t": at, "l": "[-1,null]", "o_a": at, "m": '{"k":-1}'} for n in range(3)]
