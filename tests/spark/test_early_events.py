"""Files that a running task got accepted: told while it runs, and once."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event as Flag
from threading import Lock

import pytest

from parquet_sink.model.events import Event, FileAccepted
from parquet_sink.model.ranges import LearnedSchema, PlannedRange
from parquet_sink.model.receipts import Failure, Receipt
from parquet_sink.process.logs import VARIABLE
from parquet_sink.spark.early_events import EarlyEvents, early_events
from parquet_sink.spark.handoff import Handoff
from parquet_sink.spark.sink import Outcomes, PushWriter
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.task.outcome import RangeOutcome
from tests.factories import run_of, settings

LONG_S = 60.0


def receipt(number: int, failure: Failure | None = None) -> Receipt:
    """Of a file of ten records."""
    made = Receipt("orders", "orders", 0, f"f{number}", number, number + 9, number + 10, 10, 10, 99, "records")
    return replace(made, digest=f"{number:064x}", accepted_at=float(number), failure=failure)


class Log:
    """Takes events. error: raised in place of that."""

    def __init__(self, error: Exception | None = None) -> None:
        self.calls: list[Sequence[Event]] = []
        self.called, self._error, self._lock = Flag(), error, Lock()

    def append(self, events: Sequence[Event]) -> None:
        with self._lock:
            self.calls.append(events)
            self.called.set()
        if self._error is not None:
            raise self._error

    @property
    def names(self) -> list[str]:
        return [one.receipt.file_name for call in self.calls for one in call if isinstance(one, FileAccepted)]


def test_a_file_is_told_of_while_the_task_runs() -> None:
    """Those of a moment together; one that was refused is told of with its range."""
    log = Log()
    with EarlyEvents(log.append, every_s=0.05) as early:
        for number in (1, 2):
            early.on_receipt(receipt(number))
        early.on_receipt(receipt(3, Failure("UploadRefused", "no", 400)))
        assert log.called.wait(LONG_S)
        assert (log.names, len(log.calls)) == (["f1", "f2"], 1)
        log.called.clear()
        early.on_receipt(receipt(4))
        assert log.called.wait(LONG_S)
    assert log.names == ["f1", "f2", "f4"]


def test_a_task_that_ends_at_once_tells_all_itself() -> None:
    """Nothing is appended twice for nothing, not even by a timer that has run out just then."""
    log = Log()
    with EarlyEvents(log.append, every_s=LONG_S) as early:
        early.on_receipt(receipt(1))
    early.on_receipt(receipt(2))
    early._tell()
    assert log.calls == []


def test_an_event_log_that_is_out_of_reach_harms_no_task() -> None:
    """It is tried once; the end of the task tells of all files."""
    log = Log(OSError("gone"))
    with EarlyEvents(log.append, every_s=LONG_S) as early:
        for number in (1, 2):
            early.on_receipt(receipt(number))
            early._tell()
    assert log.names == ["f1"]


@pytest.fixture
def given(tmp_path: Path) -> Iterator[Handoff]:
    """A run of a connector, whose program has the state file open."""
    with run_of(settings(tmp_path), tmp_path / "run") as run:
        yield run


@pytest.fixture
def told(given: Handoff) -> Iterator[Callable[[], Sequence[Event]]]:
    """What the program reads."""
    with closing(SqliteStore(given.state_path, given.state_ids)) as state:
        yield lambda: state.events_after(0).events


def test_the_end_of_the_task_tells_of_no_file_again(
    given: Handoff, told: Callable[[], Sequence[Event]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does a task that took its place: it sent the same file once more, later."""
    monkeypatch.setenv(VARIABLE, "1")
    with early_events(given) as early:
        early.on_receipt(receipt(1))
        early._tell()
        first = told()
        assert [one.receipt for one in first if isinstance(one, FileAccepted)] == [receipt(1)]
    again = (replace(receipt(1), accepted_at=99.0, attempts=3), receipt(2))
    done = RangeOutcome(PlannedRange("orders", 0, 1, 12, "records"), 12, again, None, LearnedSchema())
    PushWriter(given).commit([Outcomes((done,))], 0)
    files = [one.receipt for one in told() if isinstance(one, FileAccepted)]
    assert files == [receipt(1), receipt(2)]


def test_another_machine_leaves_the_store_alone(
    given: Handoff, told: Callable[[], Sequence[Event]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its path may lead to the program's by a shared folder, which SQLite's memory does not cross."""
    monkeypatch.delenv(VARIABLE, raising=False)
    with early_events(given) as early:
        early.on_receipt(receipt(1))
        early._tell()
    assert told() == ()
