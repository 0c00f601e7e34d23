"""What watches a run never ends it."""

import logging
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from parquet_sink.runtime.connector import Connector, Status
from parquet_sink.runtime.guarded import Guarded

REPLACED = "the live view cannot be drawn"
GOES_ON = "log lines go on in its place, and the run with them"


class Broken:
    """A view that fails at its second look, and whenever it is closed."""

    def __init__(self) -> None:
        self.looks = self.closes = 0

    def look(self, connectors: Sequence[Connector]) -> None:
        self.looks += 1
        if self.looks > 1:
            raise TypeError("max expected at least 2 arguments, got 1")

    def close(self, connectors: Sequence[Connector]) -> None:
        self.closes += 1
        raise OSError("no terminal")


class FakeState:
    """A state that may be gone."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def receipts_after(self, last: int) -> list[Any]:
        if self.error is not None:
            raise self.error
        return []


def connector(status: Status = Status.RUNNING) -> Any:
    """What an observer sees of a connector."""
    return SimpleNamespace(
        settings=SimpleNamespace(name="orders"), has_begun=lambda: True, status=status, state=FakeState()
    )


def test_log_lines_take_the_place_of_a_view_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    """The error is told once, the view is closed, what happens afterwards has log lines."""
    caplog.set_level(logging.INFO)
    broken, one = Broken(), connector()
    guarded = Guarded(lambda: broken)
    for _ in range(4):
        guarded.look([one])
    one.status = Status.DONE
    guarded.close([one])
    assert (broken.looks, broken.closes) == (2, 1)
    assert [record.message for record in caplog.records] == [
        f"{REPLACED} (TypeError: max expected at least 2 arguments, got 1); {GOES_ON}",
        "connector orders: done",
    ]


def test_a_view_that_cannot_begin_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    """The terminal may be gone before the view is made."""
    caplog.set_level(logging.INFO)

    def make() -> Broken:
        raise OSError(5, "Input/output error")

    guarded = Guarded(make)
    guarded.look([connector()])
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_a_state_that_cannot_be_read_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Log lines that fail are told once for each cause, and go on when they can."""
    caplog.set_level(logging.INFO)
    one = connector()
    guarded = Guarded()
    one.state.error = OSError("disk I/O error")
    for _ in range(3):
        guarded.look([one])
    one.state.error = None
    guarded.look([one])
    assert [record.message for record in caplog.records] == [
        "log lines: OSError: disk I/O error",
        "connector orders: running",
    ]
