"""Proof that the oracle is not blind: whatever is wrong with what arrived is found."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import requests

from integration.oracle.judge import Stop, judge
from integration.oracle.oracle import Oracle, Sample
from integration.oracle.raw import RawOracle
from integration.oracle.records import (
    BAD_EVERY,
    DROP,
    TOMBSTONE_EVERY,
    key_of,
    large_value_of,
    spoilt,
    value_of,
)
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.files.naming import file_name
from tests.messages import saying

RECORDS = 20
Floor = Mapping[int, int] | None


def row(offset: int, value: bytes | None = None, **changed: Any) -> dict[str, Any]:
    """The row of record `offset`, at the same offset of topic-partition 0, with some columns changed."""
    value = value or value_of(offset)
    meta = {"kafkaPartition": 0, "kafkaOffset": offset, "kafkaTimestamp": 1, "kafkaPartitionOffset": f"0_{offset}"}
    meta |= {"__celonis_order": offset, "__deleted": value is None}
    if value is None:
        return {"key": key_of(offset).decode(), **meta, **changed}
    fields = orjson.loads(value)
    place = fields.pop("place")
    return {"note": None, **fields, "place_street": place["street"], **meta, **changed}


@pytest.fixture
def oracle() -> Oracle:
    """An oracle that knows some records of topic-partition 0."""
    known = Oracle()
    for offset in range(RECORDS):
        known.produced(0, offset, key_of(offset), value_of(offset))
    return known


def judged(oracle: Oracle, name: str, rows: Sequence[Mapping[str, Any]], at_ms: int, floor: Floor = None) -> None:
    """Gives it the rows of an accepted file."""
    oracle.file(name, oracle.read(table_of(rows)), at_ms, floor)


def test_true_rows_are_recognised(oracle: Oracle) -> None:
    """Rows as the sink should write them give no finding."""
    judged(oracle, "a", [row(offset) for offset in range(RECORDS)], 10)
    oracle.missing()
    oracle.commits([Sample(10, {0: RECORDS})])
    oracle.table(table_of([row(offset) for offset in range(RECORDS)]))
    assert oracle.findings.clean


def test_a_record_without_a_row_must_be_a_dead_letter(oracle: Oracle) -> None:
    """Once or more, as it was, before it is committed past; and no other record may be one."""
    value = spoilt(BAD_EVERY - 1, value_of(BAD_EVERY - 1))
    assert value is not None
    oracle.produced(0, RECORDS, b"key", value)
    judged(oracle, "a", [row(offset) for offset in range(RECORDS)], 10)
    oracle.missing()
    assert oracle.findings.missing == 1
    oracle.dead_letter((0, RECORDS), b"key", value, 20)
    oracle.dead_letter((0, RECORDS), b"key", value, 30)
    oracle.commits([Sample(10, {0: RECORDS}), Sample(20, {0: RECORDS + 1})])
    found = oracle.findings
    assert (found.early_commits, found.dead_letters, found.dead_letters_again) == (0, 1, 1)
    oracle.commits([Sample(15, {0: RECORDS + 1})])
    oracle.dead_letter((0, RECORDS), b"key", value[:-1], 30)
    oracle.dead_letter((0, 3), key_of(3), value_of(3), 30)
    assert (found.early_commits, found.altered, found.invented) == (1, 1, 1)


def test_a_record_that_is_dropped_has_no_row(oracle: Oracle) -> None:
    """Nor is it a dead letter; it may be committed past, and a tombstone that is dropped deletes nothing."""
    oracle.produced(0, RECORDS, key_of(3), None, dropped=True)
    judged(oracle, "a", [row(offset) for offset in range(RECORDS)], 10)
    oracle.missing()
    oracle.commits([Sample(10, {0: RECORDS + 1})])
    oracle.table(table_of([row(offset) for offset in range(RECORDS)]))
    assert (oracle.findings.clean, oracle.records) == (True, RECORDS + 1)
    judged(oracle, "b", [row(RECORDS, None)], 20)
    oracle.dead_letter((0, RECORDS), key_of(3), None, 30)
    assert oracle.findings.invented == 2


def test_a_record_in_a_second_file_is_found(oracle: Oracle) -> None:
    """What is sent again must be the same file: a record in two files of different names is a finding."""
    judged(oracle, "a", [row(3)], 10)
    judged(oracle, "b", [row(3)], 11)
    assert (oracle.findings.renamed, oracle.findings.repeated, oracle.findings.altered) == (1, 1, 0)


def test_a_record_twice_in_a_file_is_found(oracle: Oracle) -> None:
    """It came again, and out of order."""
    judged(oracle, "a", [row(3), row(3), row(4)], 10)
    assert (oracle.findings.repeated, oracle.findings.renamed, oracle.findings.disordered) == (1, 1, 1)


def test_rows_of_two_topic_partitions_are_told_apart() -> None:
    """Each is judged by its own records, and a file of both is out of order."""
    oracle, other = Oracle(), {"kafkaPartition": 1, "kafkaPartitionOffset": "1_3"}
    oracle.produced(0, 3, key_of(3), value_of(3))
    judged(oracle, "a", [row(3), row(3, **other)], 10)
    assert (oracle.findings.invented, oracle.findings.altered, oracle.findings.disordered) == (1, 0, 1)
    oracle.produced(1, 3, key_of(3), value_of(3))
    judged(oracle, "b", [row(3, **other)], 10)
    oracle.missing()
    assert oracle.findings.wrong == {"invented": 1, "disordered": 1}


def test_a_row_without_a_place_is_invented(oracle: Oracle) -> None:
    """It can be no record's."""
    judged(oracle, "a", [row(3), row(4, kafkaOffset=None)], 10)
    assert (oracle.findings.invented, oracle.findings.altered) == (1, 0)


def test_raw_rows_are_recognised_and_altered_ones_found() -> None:
    """By key, value and the header that a shaped connector drops records by; tombstones and spoilt values too."""
    records = [(key_of(at), spoilt(at, value_of(at)), at % 7 == 0) for at in range(60)]
    rows = [
        {"partition": 0, "offset": at, "key": key, "value": value, "timestamp_type": "CreateTime"}
        | {"headers": [{"key": DROP, "value": b"1"}] if dropped else [], "timestamp": 1, "topic": "t"}
        for at, (key, value, dropped) in enumerate(records)
    ]
    changes: list[dict[str, Any]] = [{"key": b"k"}, {"key": None}, {"value": b"v"}, {"value": None}]
    changes += [{"headers": [{"key": "drop", "value": b"2"}]}, {"timestamp_type": "LogAppendTime"}, {"more": 1}]
    for change in ({}, *changes):
        oracle = RawOracle()
        for at, (key, value, dropped) in enumerate(records):
            oracle.produced(0, at, key, value, dropped=dropped)
        changed = [*rows[:3], rows[3] | change, *rows[4:]]
        judged(oracle, "a", changed, 10)
        oracle.missing()
        oracle.table(table_of(changed))
        assert oracle.findings.wrong == ({"missing": 1, "altered": 1, "stale_rows": 1} if change else {})


def test_one_name_has_one_content(oracle: Oracle) -> None:
    """A name that comes with another content is found, however often each comes."""
    oracle.names([(named(0, 9), "a"), (named(10, 19), "b"), (named(0, 9), "a")])
    assert oracle.findings.clean
    oracle.names([(named(0, 9), "a"), (named(0, 9), "b"), (named(0, 9), "a")])
    assert oracle.findings.altered_files == 1
    assert not oracle.findings.clean


def test_the_same_range_gives_the_same_files(oracle: Oracle) -> None:
    """Files that share offsets, and are not one, are a range that was cut elsewhere the second time."""
    oracle.names([(named(0, 9), "a"), (named(12, 19), "b"), (named(0, 30, partition=1), "c")])
    assert oracle.findings.clean
    oracle.names([(named(0, 9), "a"), (named(9, 19), "b")])
    assert oracle.findings.recut == 1
    assert not oracle.findings.clean
    with pytest.raises(ValueError, match=saying("f.parquet", "not a name")):
        oracle.names([("f.parquet", "a")])


def named(first: int, last: int, partition: int = 0) -> str:
    """A name as the sink gives it."""
    return file_name("crash", partition, first, last, 1_000, last - first + 1)


@pytest.mark.parametrize("planted", [False, True])
def test_the_same_rows_in_other_data_pages_are_found(target: TargetProcess, planted: bool) -> None:
    """A large file that is sent again after its rows arrived in other pieces: the target's read-outs convict it."""
    oracle, records = Oracle(), range(600)
    for offset in records:
        oracle.produced(0, offset, key_of(offset), large_value_of(offset))
    rows = table_of([row(offset, value=large_value_of(offset)) for offset in records])
    pieces = [rows.slice(start, 90) for start in range(0, len(rows), 90)]
    name, table = named(0, 599), "PLANTED"
    contents = [content(rows), content(pa.concat_tables(pieces) if planted else rows)]
    for data in contents:
        query = {"targetName": table, "primaryKeys": "key", "duplicateRemovalOrderColumn": "__celonis_order"}
        answer = requests.post(
            target.endpoint(),
            params=query,
            headers={"Authorization": "AppKey demo"},
            files={"file": (name, data)},
            timeout=60,
        )
        assert answer.status_code == 200
    found = judge(oracle, target.client, table, [], Stop({}, 10, 1))
    assert len(found) == 1 + planted
    assert (oracle.findings.altered_files, oracle.findings.clean) == (int(planted), not planted)
    assert (oracle.findings.missing, oracle.findings.renamed, oracle.findings.stale_rows) == (0, 0, 0)


def table_of(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The rows with the columns of all."""
    names = dict.fromkeys(name for one in rows for name in one)
    return pa.table({name: [one.get(name) for one in rows] for name in names})


def content(rows: pa.Table) -> bytes:
    """The bytes of a file with these rows in one row group."""
    file = io.BytesIO()
    pq.write_table(rows, file, row_group_size=len(rows))
    return file.getvalue()


@pytest.mark.parametrize(
    "change",
    [
        {"id": 4},
        {"amount": 0.375},
        {"payload": "grosse"},
        {"place_street": None},
        {"note": "x"},
        {"crc": 0},
        {"key": "key-1"},
        {"__celonis_order": 4},
        {"kafkaPartitionOffset": "0_4"},
        {"another": 1},
        {"__deleted": True},
        {"__deleted": None},
    ],
    ids=",".join,
)
def test_an_altered_column_is_found(oracle: Oracle, change: Mapping[str, Any]) -> None:
    """A row with any column unlike the record counts as altered, and the record as missing."""
    judged(oracle, "a", [row(3, **change)], 10)
    oracle.missing()
    assert oracle.findings.altered == 1
    assert oracle.findings.missing == RECORDS


def test_missing_and_invented_rows_are_found(oracle: Oracle) -> None:
    """A record in no file is missing; a row at an offset that was never produced is invented."""
    judged(oracle, "a", [row(offset) for offset in range(1, RECORDS + 1)], 10)
    oracle.missing()
    assert (oracle.findings.missing, oracle.findings.invented, oracle.findings.altered) == (1, 1, 0)


def test_a_tombstone_has_a_row_of_its_key() -> None:
    """A row of anything else is altered, none is missing, and the table must not have the key any more."""
    deleted = TOMBSTONE_EVERY - 1
    for rows, wrong in (
        ([row(deleted)], (0, 0)),
        ([row(deleted, key="key-x")], (1, 1)),
        ([row(deleted, id=1)], (1, 1)),
        ([row(deleted, __deleted=False)], (1, 1)),
        ([row(deleted, value=value_of(1))], (1, 1)),
        ([], (0, 1)),
    ):
        oracle = Oracle()
        oracle.produced(0, deleted, key_of(deleted), None)
        judged(oracle, "a", rows, 10)
        oracle.missing()
        assert (oracle.findings.altered, oracle.findings.missing) == wrong
        oracle.table(table_of([]))
        assert oracle.findings.stale_rows == 0
        oracle.table(table_of([row(deleted, value=value_of(1), key=key_of(deleted).decode())]))
        assert oracle.findings.stale_rows == 1


def test_rows_out_of_order_are_found(oracle: Oracle) -> None:
    """Rows within a file must be in offset order."""
    judged(oracle, "a", [row(2), row(1)], 10)
    assert oracle.findings.disordered == 1


def test_early_and_backward_commits_are_found(oracle: Oracle) -> None:
    """An offset may be committed only after everything below was accepted, and never go back."""
    judged(oracle, "a", [row(offset) for offset in range(5)], 10)
    judged(oracle, "b", [row(offset) for offset in range(5, RECORDS)], 20)
    oracle.commits([Sample(10, {0: 5}), Sample(20, {0: RECORDS})])
    assert oracle.findings.clean
    oracle.commits([Sample(15, {0: 6})])
    assert oracle.findings.early_commits == 1
    oracle.commits([Sample(30, {0: 6}), Sample(31, {0: 5})])
    assert oracle.findings.early_commits == 2


def test_what_comes_again_after_sigterm_is_found(oracle: Oracle) -> None:
    """After a clean stop nothing below the committed offsets may come."""
    judged(oracle, "a", [row(4), row(5)], 10, {0: 5})
    assert oracle.findings.resent == 1


def test_a_stale_table_is_found(oracle: Oracle) -> None:
    """The table must hold the last record of each key, and no other key."""
    rows = [row(offset) for offset in range(RECORDS)]
    oracle.table(table_of([*rows[1:], row(0, key="key-of-nobody")]))
    assert oracle.findings.stale_rows == 2
