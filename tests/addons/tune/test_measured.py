"""Durations from the events of a run."""

from contextlib import closing
from pathlib import Path

import pytest

from parquet_sink.addons.tune.evidence import Evidence, with_measured
from parquet_sink.addons.tune.measured import durations_of
from parquet_sink.addons.tune.model import Durations, Load
from parquet_sink.files import naming
from parquet_sink.model.events import ConnectorRunning, Event, FileAccepted, OffsetCommitted, RangePlanned
from parquet_sink.model.receipts import Receipt
from parquet_sink.state.sqlite import SqliteStore
from tests.factories import settings
from tests.messages import assert_says

GIVEN = Durations(range_ms=50)
TICK_MS = 1_000.0


def batch(at_s: float, begun_s: float, upload_s: float, finish_s: float, first: int = 0) -> list[Event]:
    """Two ranges planned at a time; the first file's task took so long to begin, and the next tick so long to come."""
    taken = at_s + begun_s + upload_s
    planned = [RangePlanned("c", at_s + p / 1000, "orders", p, first, first + 10, "interval") for p in (0, 1)]
    files = [
        FileAccepted(
            "c", taken + p, "orders", p,
            Receipt(
                "c", "orders", p, "f", first, first + 9, first + 10, 10, 10, 900, "interval", 1, {"upload": upload_s},
                accepted_at=taken + p,
            ),
        )
        for p in (0, 1)
    ]  # fmt: skip
    return [*planned, *files, OffsetCommitted("c", taken + 1 + finish_s, "orders", 0, first + 10)]


def test_durations_are_those_of_micro_batches() -> None:
    """How long tasks took to begin, uploads took, and the next tick took to come."""
    events = [
        event
        for number in range(11)
        for event in batch(100.0 * number, 0.4 if number % 2 else 0.6, 0.2, 0.3, first=10 * number)
    ]
    found, batches = durations_of([[ConnectorRunning("c", 0.0), *events]], GIVEN, TICK_MS)
    assert batches == 10, "the first is slow to start"
    assert found.plan_ms + found.range_ms == pytest.approx(500, abs=2)
    assert (found.upload_ms, found.finish_ms) == pytest.approx((200, 300), abs=2)
    assert (min(found.variation), max(found.variation)) == pytest.approx((0.8, 1.2), abs=0.01)
    assert sum(found.variation) / len(found.variation) == pytest.approx(1, abs=0.01)


def test_a_tick_that_waited_for_its_time_says_nothing() -> None:
    """Where the micro-batch was shorter than a tick, the commit says when the tick came, and not what the end took."""
    events = [event for number in range(10) for event in batch(100.0 * number, 0.4, 0.2, 0.3, first=10 * number)]
    found, _ = durations_of([events], GIVEN, 60_000.0)
    assert found.finish_ms == GIVEN.finish_ms


def test_too_few_say_nothing() -> None:
    """Four micro-batches are no measurement; nor is a log without any."""
    events = [event for number in range(4) for event in batch(100.0 * number, 0.4, 0.2, 0.3, first=10 * number)]
    assert durations_of([events], GIVEN, TICK_MS) == (GIVEN, 0)
    assert durations_of([[], []], GIVEN, TICK_MS) == (GIVEN, 0)


def test_files_of_one_range_tell_what_records_take() -> None:
    """Ten records a file and a second from file to file, of which sending is little: a tenth of a second each."""
    events: list[Event] = []
    for number in range(6):
        (at_s, first) = (100.0 * number, 100 * number)
        events.append(RangePlanned("c", at_s, "orders", 0, first, first + 20, "records"))
        for place in (0, 1):
            start, taken = first + 10 * place, at_s + 1 + place
            receipt = Receipt(
                *("c", "orders", 0, "f", start, start + 9, start + 10, 10, 10, 900, "records", 1, {"upload": 0.1}),
                accepted_at=taken,
            )
            events.append(FileAccepted("c", taken, "orders", 0, receipt))
    found, _ = durations_of([events], GIVEN, TICK_MS)
    assert found.record_us == pytest.approx(100_000)


def test_a_run_tells_what_micro_batches_took(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A connector's last run counts beside a declared load; without one, or with a torn one, estimates stay."""
    declared = Evidence(Load((), "declared"), GIVEN)
    connector = settings(tmp_path)
    assert with_measured(declared, connector) == declared
    path = Path(naming.connector_folder(str(tmp_path), connector.name)) / naming.STATE_FILE
    path.parent.mkdir()
    events = [event for number in range(11) for event in batch(100.0 * number, 0.4, 0.2, 0.3, first=10 * number)]
    with closing(SqliteStore(path)) as state:
        state.append_events([ConnectorRunning("c", 0.0), *events])
    found = with_measured(declared, connector)
    assert_says(found.batches, "10 micro-batches", "last run")
    assert found.durations.plan_ms + found.durations.range_ms == pytest.approx(400, abs=2)
    path.write_bytes(b"torn")
    assert with_measured(declared, connector) == declared
    assert_says(caplog.text, "state file", str(path), "cannot be read")
