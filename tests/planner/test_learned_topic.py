"""Rows of the state store as records of a topic; what is in the topic, `integration.test_learned_topic` has."""

from contextlib import closing
from pathlib import Path

import pytest

from parquet_sink.model.ranges import LearnedSchema, PlannedRange, ValueSizes
from parquet_sink.planner.learned_topic import record_key, record_value, rows_in
from parquet_sink.state.sqlite import LearnedRows, SqliteStore

NAMES = ("name", "name/planned", "name/planned/orders", "a b", "\u00e9")


@pytest.fixture
def rows(tmp_path: Path) -> LearnedRows:
    """Of a store that knows a schema, a range and sizes."""
    with closing(SqliteStore(tmp_path / "known.db")) as store:
        store.learn("orders", LearnedSchema(b"\x00schema\xff", 1.1, None))
        store.record_planned([PlannedRange("orders", 3, 7, 9, "records")], "recipe")
        store.learn("orders", LearnedSchema(None, None, 2.2))
        store.learn_sizes({"orders": ValueSizes(1e-300, 7.7)})
        return store.learned_rows()


def records(rows: LearnedRows, connector: str = "name") -> dict[bytes, bytes]:
    """As they are in the topic."""
    return {
        record_key(connector, table, key): record_value(row)
        for table, of_table in rows.items()
        for key, row in of_table.items()
    }


def test_rows_come_back_as_they_were(rows: LearnedRows) -> None:
    """Bytes and fractions, too; keys say what they are of."""
    found = records(rows)
    assert [*found] == [b"name/knowledge/1", b"name/knowledge/2", b"name/planned/orders/3", b"name/sizes/orders"]
    assert rows_in("name", found) == rows


@pytest.mark.parametrize("name", NAMES)
def test_connectors_do_not_see_each_others_rows(rows: LearnedRows, name: str) -> None:
    """Though names may have slashes, and one be the beginning of another."""
    of_others = [records(rows, one) for one in NAMES if one != name]
    every = {key: value for found in of_others for key, value in found.items()}
    assert not any(rows_in(name, every).values())
    assert rows_in(name, every | records(rows, name)) == rows


@pytest.mark.parametrize("value", [b"", b"[]", b"\xff", b"{}", b'{"version":2}', b'{"version":1,"topic":"other"}'])
def test_what_is_no_row_is_passed_over(value: bytes) -> None:
    """Nor is what a later version wrote, whatever it is."""
    found = rows_in("name", {b"name/sizes/orders": value, b"name/else/orders": b"x"})
    assert found == {"knowledge": {}, "planned": {}, "sizes": {}, "delivered": {}}


def test_an_empty_store_takes_all(rows: LearnedRows, tmp_path: Path) -> None:
    """Ranges come with what was known when they were planned, and the next knowledge is a new one."""
    with closing(SqliteStore(tmp_path / "empty.db")) as store:
        store.take_learned(rows)
        assert store.learned_rows() == rows
        assert store.learned() == {"orders": LearnedSchema(b"\x00schema\xff", 1.1, 2.2)}
        assert store.planned("recipe")["orders", 3].known == LearnedSchema(b"\x00schema\xff", 1.1, None)
        store.learn("orders", LearnedSchema(b"later"))
        assert max(store.learned_rows()["knowledge"]) == (3,)


def test_a_store_that_went_on_from_there_keeps_what_came_since(rows: LearnedRows, tmp_path: Path) -> None:
    """But ranges are those that were planned last, by whomever."""
    with closing(SqliteStore(tmp_path / "ahead.db")) as store:
        store.take_learned(rows)
        store.learn_sizes({"items": ValueSizes(1.0, 2.0)})
        store.record_planned([PlannedRange("orders", 3, 9, 12, "records")], "recipe")
        store.learn("orders", LearnedSchema(b"since"))
        store.take_learned(rows)
        assert store.learned()["orders"].schema == b"since"
        assert store.sizes()["items"] == ValueSizes(1.0, 2.0)
        assert (store.planned("recipe")["orders", 3].start, store.planned("recipe")["orders", 3].end) == (7, 9)


def test_a_store_that_another_is_ahead_of_forgets_its_own(rows: LearnedRows, tmp_path: Path) -> None:
    """What it learned by itself meanwhile is not what the others' files came out by."""
    with closing(SqliteStore(tmp_path / "aside.db")) as store:
        store.take_learned({**rows, "knowledge": {(1,): rows["knowledge"][1,]}})
        store.learn("orders", LearnedSchema(b"aside"))
        store.learn_sizes({"items": ValueSizes(1.0, 2.0)})
        store.take_learned(rows)
        assert store.learned_rows() == rows


def test_a_topic_that_has_nothing_takes_nothing_away(tmp_path: Path) -> None:
    """As at the first start in a cluster of a connector that ran alone before."""
    with closing(SqliteStore(tmp_path / "alone.db")) as store:
        store.learn("orders", LearnedSchema(b"alone"))
        store.record_planned([PlannedRange("orders", 0, 7, 9, "records")], "recipe")
        before = store.learned_rows()
        store.take_learned(rows_in("name", {}))
        assert store.learned_rows() == before
