"""What listens to a run never ends it."""

import logging
from collections.abc import Sequence

import pytest

from parquet_sink.model.events import ConnectorRunning, ConnectorStopped, Event
from parquet_sink.worker.loop.connector import Connector
from parquet_sink.worker.loop.isolated import Isolated
from parquet_sink.worker.loop.log_lines import LogLines

REPLACED = "the live view cannot be drawn"
GOES_ON = "log lines go on in its place, and the run with them"


class Broken:
    """A listener that fails from its second call on, and whenever it is closed."""

    def __init__(self) -> None:
        self.calls = self.closes = 0

    def on_event(self, event: Event) -> None:
        self.refresh(())

    def refresh(self, connectors: Sequence[Connector]) -> None:
        self.calls += 1
        if self.calls > 1:
            raise TypeError("max expected at least 2 arguments, got 1")

    def close(self, connectors: Sequence[Connector]) -> None:
        self.closes += 1
        raise OSError("no terminal")


def test_log_lines_take_the_place_of_a_view_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    """The error is told once, the view is closed, and the event at which it failed has its log line, too."""
    caplog.set_level(logging.INFO)
    broken = Broken()
    isolated = Isolated("the live view", lambda: broken, LogLines)
    isolated.refresh([])
    isolated.on_event(ConnectorRunning("orders", 1.0))
    isolated.refresh([])
    isolated.on_event(ConnectorStopped("orders", 2.0))
    isolated.close([])
    assert (broken.calls, broken.closes) == (2, 1)
    assert [record.message for record in caplog.records] == [
        f"{REPLACED} (TypeError: max expected at least 2 arguments, got 1); {GOES_ON}",
        "connector orders: running",
        "connector orders: done",
    ]


def test_a_view_that_cannot_begin_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    """The terminal may be gone before the view is made."""
    caplog.set_level(logging.INFO)

    def make() -> Broken:
        raise OSError(5, "Input/output error")

    isolated = Isolated("the live view", make, LogLines)
    isolated.on_event(ConnectorRunning("orders", 1.0))
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_a_listener_without_a_replacement_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    """Each cause is logged once, and every event comes to it all the same."""
    broken = Broken()
    isolated = Isolated("metrics", lambda: broken)
    for number in range(4):
        isolated.on_event(ConnectorRunning("orders", float(number)))
    isolated.close([])
    assert broken.calls == 4
    assert [record.message for record in caplog.records] == [
        "metrics: TypeError: max expected at least 2 arguments, got 1",
        "metrics: OSError: no terminal",
    ]
