"""The memory of a discarding target."""

import pytest

from parquet_sink.addons.devkit.target import discard
from parquet_sink.addons.devkit.target.contract import RepeatedName, UploadParameters
from parquet_sink.addons.devkit.target.discard import DiscardLog, rows_from_name

NAME = "topic-a_partition-0_firstOffset-0_lastOffset-9_bytes-5_rows-10.parquet"
ORDERS = UploadParameters("p", "orders")


def test_rows_come_from_the_name() -> None:
    """Another name tells nothing."""
    assert (rows_from_name(NAME), rows_from_name("orders.parquet")) == (10, None)


def test_files_are_remembered_and_summed() -> None:
    """Name, bytes, rows and times stay; a repeated name is counted by itself."""
    log = DiscardLog()
    first = log.accept(NAME, ORDERS, 5, (1_000, 1_020))
    log.accept("x.parquet", UploadParameters("p", "other"), 7, (2_000, 2_010))
    again = log.accept(NAME, ORDERS, 5, (3_000, 3_010))
    assert (first.repeated, again.repeated, again.file.id) == (False, True, first.file.id)
    totals = log.totals()
    assert (totals.files, totals.rows, totals.bytes, totals.repeated, totals.repeated_rows) == (2, 10, 12, 1, 10)
    assert [file.repeated for file in log.files(10, 0, "orders")] == [1]
    assert log.file(first.file.id) == log.files(10, 0)[0]
    assert [file.name for file in log.files(1, 1)] == ["x.parquet"]
    log.clear()
    assert (log.totals().files, log.files(10, 0)) == (0, [])


def test_memory_is_bounded_and_sums_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest entries go; what they added stays."""
    monkeypatch.setattr(discard, "MAX_REMEMBERED", 2)
    log = DiscardLog()
    for number in range(4):
        log.accept(f"{number}", ORDERS, 1, (0, 0))
    assert [file.name for file in log.files(10, 0)] == ["2", "3"]
    assert log.totals().files == 4


def test_a_refusing_log_takes_a_name_once() -> None:
    """For a table; another table may have a file of that name."""
    log = DiscardLog("refuse")
    log.accept(NAME, ORDERS, 5, (0, 0))
    with pytest.raises(RepeatedName):
        log.accept(NAME, ORDERS, 5, (0, 0))
    log.accept(NAME, UploadParameters("p", "other"), 5, (0, 0))
    assert (log.totals().files, log.totals().repeated) == (2, 0)
