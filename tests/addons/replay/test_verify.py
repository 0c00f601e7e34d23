"""What is made of two states of a table: unchanged, or what differs, by key, and why."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parquet_sink.addons.replay.differences import Kind, NotUnderstood, Received, TableState, state_of
from parquet_sink.addons.replay.verify import compare
from tests.messages import assert_says

Row = Mapping[str, Any]
WATCHED = {"order": "o", "partition": "kafkaPartition", "offset": "kafkaOffset", "timestamp": "kafkaTimestamp"}
COLUMNS = {"id": "BIGINT", "o": "BIGINT", "kafkaPartition": "INTEGER", "kafkaOffset": "BIGINT", "x": "VARCHAR"}
SCHEMA = pa.schema(
    [
        *(("key_0", pa.int64()), ("also_0", pa.int64()), ("also_1", pa.int32()), ("also_2", pa.int64())),
        *(("also_3", pa.int64()), ("deleted", pa.bool_()), ("digest", pa.uint64())),
    ]
)


def row(key: int | None, offset: int, order: int | None = None, *, partition: int = 0, **more: Any) -> Row:
    """One row of an orders-like table; `x` is its other cell."""
    return {"key": key, "offset": offset, "order": offset if order is None else order, "partition": partition, **more}


def state(
    rows: Sequence[Row], *, keyed: bool = True, received: int = 0, order: str | None = "o", parts: int = 3
) -> Any:
    """A table with these rows, as the target would give it in so many parts."""
    lists: list[list[Row]] = [[] for _ in range(parts)]
    for one in rows:
        lists[hash(one["key"] if keyed else repr(one)) % parts].append(one)
    watched = WATCHED if order else {role: name for role, name in WATCHED.items() if role != "order"}
    deleted = sum(bool(one.get("deleted")) for one in rows)
    return TableState(
        *("T", COLUMNS, len(rows) - deleted, deleted, ("id",) if keyed else (), order, watched),
        Received(1, received),
        str(sorted(map(digest, rows))),
        "test",
        tuple(part(some, keyed=keyed, ordered=order is not None) for some in lists),
    )


def digest(one: Row) -> int:
    """Stands for all cells."""
    return hash(repr(sorted(one.items(), key=str))) % 2**63


def part(rows: Sequence[Row], *, keyed: bool, ordered: bool) -> bytes:
    """Some rows as Parquet."""
    columns: dict[str, list[Any]] = {
        "key_0": [one["key"] for one in rows],
        "also_0": [one["order"] for one in rows],
        "also_1": [one["partition"] for one in rows],
        "also_2": [one["offset"] for one in rows],
        "also_3": [one.get("timestamp", 0) for one in rows],
        "deleted": [bool(one.get("deleted")) for one in rows],
        "digest": [digest(one) for one in rows],
    }
    table = pa.table(columns, schema=SCHEMA)
    if not keyed:
        table = table.drop_columns("key_0")
    if not ordered:
        table = table.drop_columns("also_0").rename_columns({f"also_{n}": f"also_{n - 1}" for n in (1, 2, 3)})
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


LINE_THAT_THE_DEMO_READS = "table T: unchanged: 20 rows, 40 repeated rows absorbed"
BEFORE = [row(key, 100 + key) for key in range(20)]


def changed(*rows: Row) -> list[Row]:
    """BEFORE, with these rows in place of those of their keys."""
    instead = {one["key"]: one for one in rows}
    return [instead.pop(one["key"], one) for one in BEFORE] + list(instead.values())


def test_a_table_that_took_all_and_stayed_the_same_is_unchanged() -> None:
    """The one result that is a proof: rows now, and how many repeated rows came."""
    found = compare(state(BEFORE, received=20), state(BEFORE[::-1], received=60), sent=40)
    assert found.unchanged
    assert found.line == LINE_THAT_THE_DEMO_READS
    assert found.as_json()["absorbed_rows"] == 40


@pytest.mark.parametrize(
    ("now", "kind", "words"),
    [
        (row(3, 50), Kind.BACK, ("id 3", "from offset 103", "topic-partition 0, o 103", "to offset 50")),
        (row(3, 500), Kind.NEWER, ("id 3", "from offset 103", "offset 500")),
        (row(3, 103, x="other"), Kind.CHANGED, ("id 3", "other cells")),
        (row(77, 5), Kind.CAME, ("id 77", "not there", "now offset 5")),
        (row(3, 50, deleted=True), Kind.BACK, ("id 3", "to offset 50", "topic-partition 0, o 50", "deleted")),
    ],
)
def test_each_difference_is_told_by_key(now: Row, kind: Kind, words: tuple[str, ...]) -> None:
    """What became of the row, from where to where; all others are not mentioned."""
    found = compare(state(BEFORE), state(changed(now), received=20), sent=20)
    assert found.counts == {kind: 1}
    (example,) = found.examples
    assert_says(example, *words)
    assert found.why
    assert not found.unchanged
    assert_says(found.line, "table T", "CHANGED")


def test_a_row_that_is_gone_is_told() -> None:
    """Also where a whole part of the table is empty now."""
    found = compare(state(BEFORE[:1], parts=1), state([], parts=1))
    assert found.counts == {Kind.GONE: 1}
    (example,) = found.examples
    assert_says(example, "id 0", "offset 100", "topic-partition 0", "now gone")


@pytest.mark.parametrize(
    ("order_before", "order_now", "words"),
    [
        (7, 7, ("order column o", "equal", "1 keys", "connect.ems.order.field.name")),
        (7, 9, ("order column o", "larger", "1 keys", "connect.ems.order.field.name")),
        (7, 5, ("order column o", "smaller", "1 keys", "the target")),
    ],
)
def test_why_an_older_row_won(order_before: int, order_now: int, words: tuple[str, ...]) -> None:
    """The order column is equal, misleading, or not heeded by the target."""
    before = [row(1, 100, order_before), row(2, 100)]
    found = compare(state(before), state([row(1, 10, order_now), row(2, 100)]))
    assert found.counts == {Kind.BACK: 1}
    (why,) = found.why
    assert_says(why, *words)


def test_without_an_order_column_the_last_one_wins() -> None:
    """Offsets still show that the row is an older one."""
    found = compare(state(BEFORE, order=None), state(changed(row(3, 50)), order=None))
    assert found.counts == {Kind.BACK: 1}
    (why,) = found.why
    assert_says(why, "no order column", "came last")


def test_between_topic_partitions_times_tell() -> None:
    """Offsets of two topic-partitions say nothing about each other."""
    before = [row(1, 10, 0, partition=0, timestamp=2_000)]
    older = [row(1, 900, 0, partition=1, timestamp=1_000)]
    assert compare(state(before), state(older)).counts == {Kind.BACK: 1}
    assert compare(state(older), state(before)).counts == {Kind.NEWER: 1}


@pytest.mark.parametrize("copies", [2, 5])
def test_without_a_primary_key_rows_stand_there_more_often(copies: int) -> None:
    """They have no keys to be told by, but offsets."""
    twice = BEFORE + [BEFORE[4]] * (copies - 1)
    found = compare(state(BEFORE, keyed=False), state(twice, keyed=False), sent=0)
    assert found.counts == {Kind.COPIED: 1}
    (example,) = found.examples
    assert_says(example, "without a key", f"{copies - 1} more", "offset 104", "topic-partition 0")
    assert "no primary key" in found.why[0]
    back = compare(state(twice, keyed=False), state(BEFORE[:4], keyed=False))
    assert back.counts == {Kind.GONE: 16}


def test_null_keys_are_keys() -> None:
    """A row whose key is null is found again."""
    found = compare(state([row(None, 9)]), state([row(None, 5)]))
    assert found.counts == {Kind.BACK: 1}


def test_an_unchanged_table_that_took_too_little_proves_nothing() -> None:
    """A target that lost rows, or could not put files into the table, did not absorb them."""
    few = compare(state(BEFORE, received=20), state(BEFORE, received=30), sent=40)
    assert not few.unchanged
    (why,) = few.why
    assert_says(why, "40 rows were sent", "counts 10")
    assert "NOT PROVEN" in few.line
    after = state(BEFORE, received=60)
    failed = compare(state(BEFORE, received=20), replace(after, received=Received(3, 60, failed_files=2)), sent=40)
    assert not failed.unchanged
    assert_says(failed.why[0], "2 files", "could not be put")
    emptied = compare(state(BEFORE, received=20), state(BEFORE, received=0), sent=0)
    assert "emptied meanwhile" in emptied.why[0]


def test_tables_that_are_not_there() -> None:
    """A new target is filled, which is no proof; nor is a table that vanished, or that never was."""
    none = TableState("T")
    assert compare(none, state(BEFORE, received=20), sent=20).counts == {Kind.CAME: 20}
    assert compare(state(BEFORE), none).counts == {Kind.GONE: 20}
    assert not compare(none, none, sent=0).unchanged


def test_columns_that_change_are_told() -> None:
    """Of another type: rows are not compared. New ones: the others are, and still it is not the same table."""
    before, after = state(BEFORE), state(BEFORE, received=1)
    wider = replace(after, columns={**COLUMNS, "x": "BIGINT"})
    assert_says(compare(before, wider).why[0], "column x", "was VARCHAR", "is BIGINT")
    added = compare(before, replace(after, columns={**COLUMNS, "y": "BIGINT"}))
    assert_says(added.why[0], "columns", "not compared", "y")
    upgraded = compare(before, replace(after, method="newer"))
    assert_says(upgraded.why[0], "made by test", "now by newer")


def test_many_differences_are_counted_and_some_shown() -> None:
    """Each difference stands in a table for programs."""
    before = [row(key, 1_000 + key) for key in range(10_000)]
    after = [row(key, key) for key in range(10_000)]
    found = compare(state(before), state(after))
    assert found.counts == {Kind.BACK: 10_000}
    assert len(found.examples) == 6
    assert_says(found.examples[-1], "9,995 more", "back in time")
    assert found.rows_by_key is not None
    assert sorted(found.rows_by_key["key_0"].to_pylist()) == list(range(10_000))


def test_a_description_without_its_parts_is_not_understood() -> None:
    """An answer of something that is no such target."""
    with pytest.raises(NotUnderstood, match="received"):
        state_of({"name": "T", "columns": []})
