"""Lines of `parquet-sink status` for a person."""

from dataclasses import replace

import pytest

from parquet_sink.addons.commands.status_text import connector_lines
from parquet_sink.worker.herder.values import (
    ConnectorProgress,
    ConnectorStatus,
    Flushing,
    LastUpload,
    LiveWarning,
    State,
    WarningKind,
)
from tests.messages import assert_line_says

STATUS = ConnectorStatus("one", State.RUNNING, "w:1", ())


def test_what_it_was_warned_of_is_told() -> None:
    """Of its configuration how often, with the command that shows them; what goes on now is always there."""
    live = (
        LiveWarning(WarningKind.NO_TOPIC_MATCHES, 'no topic matches "x.*"'),
        LiveWarning(WarningKind.FLUSH_INTERVAL_EXCEEDED, "the flush interval is exceeded"),
    )
    warned = ("Warning [a]. It is unknown.", "Warning [topics.regex]. It has no effect.")
    name = replace(STATUS, name="a b")
    progress = ConnectorProgress(name, 0, 0, 0, 0, None, None, (), warnings=warned, live_warnings=live)
    *lines, count = list(connector_lines(progress, 1.0, partitions=False))
    assert lines[-2:] == [f"  Warning: {warning.message}" for warning in live]
    assert_line_says(count, "2 warnings", "configuration", "parquet-sink status 'a b'")
    named = list(connector_lines(progress, 1.0, partitions=False, named=True))
    assert named == [*lines, *(f"  {warning}" for warning in warned)]


def test_what_is_being_flushed_is_told() -> None:
    """A micro-batch is done as a whole: what it has taken, and for how long."""
    progress = ConnectorProgress(STATUS, 0, 0, 0, 0, None, None, (), flushing=Flushing(300, 900, 100.0))
    lines = list(connector_lines(progress, 112.0, partitions=False))
    assert_line_says("\n".join(lines), "  flush  900 records", "300 topic-partitions", "12.0 s")


@pytest.mark.parametrize(
    ("records", "files", "sent", "last"),
    [
        (0, 1, ("sent", "1 file", "9 rows", "2.0 kB"), ("offsets 0 to 8", "9 rows", "2.0 kB")),
        (9, 0, ("sent", "9 records"), ("offsets 0 to 8", "9 records")),
    ],
)
def test_what_was_sent_is_told_in_files_or_in_records(
    records: int, files: int, sent: tuple[str, ...], last: tuple[str, ...]
) -> None:
    """Of a sink that takes records there are no files, and no bytes."""
    size = 2_000 * files
    upload = LastUpload("orders", 0, 0, 8, 9, size, 100.0)
    progress = ConnectorProgress(STATUS, files, 9 * files, size, 0, upload, None, (), records)
    lines = "\n".join(connector_lines(progress, 103.0, partitions=False))
    assert_line_says(lines, *sent)
    assert_line_says(lines, *last)
    assert ("file" in lines, "kB" in lines) == (not records, not records)
