"""Log lines: one for each file, and for each connector that begins or ends."""

import logging
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from parquet_sink.errors import failure_named
from parquet_sink.model.receipts import Receipt
from parquet_sink.runtime.connector import Status
from parquet_sink.runtime.lines import LogLines, describe
from parquet_sink.state.store import STARTED

RECEIPT = Receipt(
    "orders", "orders", 0, "topic-orders_partition-0.parquet", 0, 9, 10, 10, 10, 1_234, "interval",
    attempts=1, seconds={"write": 0.1, "upload": 0.257}, status=200, accepted_at=1.0,
)  # fmt: skip


class FakeState:
    """Receipts, numbered from 1."""

    def __init__(self) -> None:
        self.receipts: list[Receipt] = []

        self.words: dict[str, object] = {"begun": True}

    def said(self, name: str) -> object:
        return self.words.get(name)

    def receipts_after(self, last: int) -> list[tuple[int, Receipt]]:
        return [(number, receipt) for number, receipt in enumerate(self.receipts, 1) if number > last]


def connector(name: str = "orders", status: Status = Status.RUNNING) -> Any:
    """What an observer sees of a connector."""
    state = FakeState()
    return SimpleNamespace(
        settings=SimpleNamespace(name=name), status=status, state=state, has_begun=lambda: bool(state.get(STARTED))
    )


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> LogLines:
    """Log lines, at the level that operators see."""
    caplog.set_level(logging.INFO)
    return LogLines()


def test_a_file_is_one_line() -> None:
    """Name, rows, bytes, reason and time of an accepted file, in one line."""
    assert describe(RECEIPT) == (
        "connector orders: accepted topic-orders_partition-0.parquet "
        "(10 rows, 1234 bytes, rotated by interval, upload 0.26 s)"
    )
    assert describe(replace(RECEIPT, attempts=3)).endswith("upload 0.26 s, 3 attempts)")


def test_each_file_is_told_once(lines: LogLines, caplog: pytest.LogCaptureFixture) -> None:
    """However often is looked, a file has one line; one that failed has its own error elsewhere."""
    one = connector()
    one.state.receipts = [RECEIPT, replace(RECEIPT, failure=failure_named("UploadRefused", "no"))]
    for _ in range(3):
        lines.look([one])
    one.state.receipts.append(replace(RECEIPT, file_name="second"))
    lines.close([one])
    accepted = [record.message for record in caplog.records if "accepted" in record.message]
    assert len(accepted) == 2
    assert "second" in accepted[1]


def test_each_change_of_a_connector_is_told_once(lines: LogLines, caplog: pytest.LogCaptureFixture) -> None:
    """Begin and end of each connector have a line."""
    one, other = connector("a"), connector("b", Status.STARTING)
    lines.look([one, other])
    lines.look([one, other])
    one.status = Status.DONE
    lines.close([one, other])
    assert [record.message for record in caplog.records] == [
        "connector a: running",
        "connector b: starting; it waits for Java and Spark, which take 10 to 15 s to load",
        "connector a: done",
    ]


def test_a_connector_that_never_started_has_no_files(lines: LogLines) -> None:
    """A connector without a state is looked at all the same."""
    one = connector(status=Status.FAILED)
    one.state = None
    lines.look([one])


def test_a_connector_runs_when_a_broker_answered(lines: LogLines, caplog: pytest.LogCaptureFixture) -> None:
    """While nobody knows where its topic-partitions start, a connector is starting, though its query is there."""
    one = connector()
    one.state.words.clear()
    lines.look([one])
    one.state.words["begun"] = True
    lines.look([one])
    lines.look([one])
    assert [record.message.partition(";")[0] for record in caplog.records] == [
        "connector orders: starting",
        "connector orders: running",
    ]
