"""The short form of `make crash`, and proof that its oracle is not blind."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from integration.crash.__main__ import campaign
from integration.crash.kills import Kind
from integration.crash.oracle import Oracle, Sample
from integration.crash.records import key_of, value_of
from integration.crash.report import Sizes
from parquet_sink.kafka.broker import Broker
from parquet_sink.target.process import TargetProcess

RECORDS = 20


@pytest.mark.timeout(1_200)  # about a minute where it is quiet; every start of the sink takes longer where it is not
def test_kill_9_loses_alters_and_invents_nothing(broker: Broker, tmp_path: Path) -> None:
    """Whichever process is killed under load, every record arrives as it was produced, and SIGTERM is clean."""
    sizes = Sizes(kills=len(Kind), records=2_000, seed=6)
    with TargetProcess(tmp_path / "target") as target:
        report = campaign(sizes, broker, target, tmp_path)
    assert report.passed, "\n".join([report.summary(), *report.lines()])
    assert {hit.kind for hit in report.hits} == set(Kind)
    assert "parquet-sink: Spark's Java process ended" in (tmp_path / "sink.log").read_text()


def row(offset: int, **changed: Any) -> dict[str, Any]:
    """The row of record `offset`, at the same offset of topic-partition 0, with some columns changed."""
    value = value_of(offset)
    assert value is not None
    fields = orjson.loads(value)
    place = fields.pop("place")
    meta = {"kafkaPartition": 0, "kafkaOffset": offset, "kafkaTimestamp": 1, "kafkaPartitionOffset": f"0_{offset}"}
    return {"note": None, **fields, "place_street": place["street"], **meta, "__celonis_order": offset, **changed}


@pytest.fixture
def oracle() -> Oracle:
    """An oracle that knows some records of topic-partition 0."""
    known = Oracle()
    for offset in range(RECORDS):
        known.produced(0, offset, key_of(offset), value_of(offset))
    return known


def test_true_rows_are_recognised(oracle: Oracle) -> None:
    """Rows as the sink should write them give no finding."""
    oracle.file("a", [row(offset) for offset in range(RECORDS)], 10)
    oracle.missing()
    oracle.commits([Sample(10, {0: RECORDS})])
    oracle.table([row(offset) for offset in range(RECORDS)])
    assert oracle.findings.clean


def test_a_record_in_a_second_file_is_found(oracle: Oracle) -> None:
    """What is sent again must be the same file: a record in two files of different names is a finding."""
    oracle.file("a", [row(3)], 10)
    oracle.file("b", [row(3)], 11)
    assert (oracle.findings.renamed, oracle.findings.repeated, oracle.findings.altered) == (1, 1, 0)


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
    ],
    ids=",".join,
)
def test_an_altered_column_is_found(oracle: Oracle, change: Mapping[str, Any]) -> None:
    """A row with any column unlike the record counts as altered, and the record as missing."""
    oracle.file("a", [row(3, **change)], 10)
    oracle.missing()
    assert oracle.findings.altered == 1
    assert oracle.findings.missing == RECORDS


def test_missing_and_invented_rows_are_found(oracle: Oracle) -> None:
    """A record in no file is missing; a row at an offset that was never produced is invented."""
    oracle.file("a", [row(offset) for offset in range(1, RECORDS + 1)], 10)
    oracle.missing()
    assert (oracle.findings.missing, oracle.findings.invented, oracle.findings.altered) == (1, 1, 0)


def test_a_tombstone_with_a_row_is_invented() -> None:
    """A tombstone has no row; nor is it missing."""
    oracle = Oracle()
    oracle.produced(0, 0, b"key-0", None)
    oracle.missing()
    assert oracle.findings.clean
    oracle.file("a", [row(0)], 10)
    assert oracle.findings.invented == 1


def test_rows_out_of_order_are_found(oracle: Oracle) -> None:
    """Rows within a file must be in offset order."""
    oracle.file("a", [row(2), row(1)], 10)
    assert oracle.findings.disordered == 1


def test_early_and_backward_commits_are_found(oracle: Oracle) -> None:
    """An offset may be committed only after everything below was accepted, and never go back."""
    oracle.file("a", [row(offset) for offset in range(5)], 10)
    oracle.file("b", [row(offset) for offset in range(5, RECORDS)], 20)
    oracle.commits([Sample(10, {0: 5}), Sample(20, {0: RECORDS})])
    assert oracle.findings.clean
    oracle.commits([Sample(15, {0: 6})])
    assert oracle.findings.early_commits == 1
    oracle.commits([Sample(30, {0: 6}), Sample(31, {0: 5})])
    assert oracle.findings.early_commits == 2


def test_what_comes_again_after_sigterm_is_found(oracle: Oracle) -> None:
    """After a clean stop nothing below the committed offsets may come."""
    oracle.file("a", [row(4), row(5)], 10, {0: 5})
    assert oracle.findings.resent == 1


def test_a_stale_table_is_found(oracle: Oracle) -> None:
    """The table must hold the last record of each key, and no other key."""
    rows = [row(offset) for offset in range(RECORDS)]
    oracle.table([*rows[1:], row(0, key="key-of-nobody")])
    assert oracle.findings.stale_rows == 2
