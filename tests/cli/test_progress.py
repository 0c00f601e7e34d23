"""Progress of long work, as log lines: when some seconds have passed, and only where they are asked for."""

import logging

import pytest

from parquet_sink.cli.progress import LOG_S, ShownProgress
from tests.factories import Clock
from tests.messages import assert_says


def test_progress_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Five seconds after the line before, not earlier, with the share that is done."""
    clock = Clock()
    with (
        caplog.at_level(logging.INFO),
        ShownProgress("connector orders: archive", 300, logs=True, monotonic=clock) as shown,
    ):
        shown.advance(100, "of 3.0 MB read")
        assert caplog.messages == []
        clock.sleep(LOG_S)
        shown.advance(100, "of 3.0 MB read")
        shown.advance(50, "of 3.0 MB read")
    (line,) = caplog.messages
    assert_says(line, "connector orders: archive", "67 %", "of 3.0 MB read")


def test_nothing_is_said_unasked(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    """Where standard error is not a terminal: neither a log line nor a bar."""
    clock = Clock()
    with caplog.at_level(logging.INFO), ShownProgress("orders", 0, logs=False, monotonic=clock) as shown:
        clock.sleep(LOG_S)
        shown.advance(100, "read")
    assert (caplog.messages, capsys.readouterr().err) == ([], "")
