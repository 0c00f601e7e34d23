"""Files of the last hour: by events, by the history of the time before, and forgotten after it."""

from parquet_sink.addons.page.hour import SLOT_S, SLOTS, LastHour
from parquet_sink.model.events import ConnectorStarting, FileAccepted, FileFailed
from parquet_sink.model.receipts import Receipt
from tests.addons.page.scene import uploads
from tests.factories import Clock

NOW_S = 1_800_000_100.0


def receipt(at_s: float, reason: str = "records", fresh_s: float = 2.0) -> Receipt:
    """A file that was accepted then."""
    oldest_ms = int((at_s - fresh_s) * 1000)
    return Receipt("orders", "t", 0, "f", 0, 9, 10, 10, 10, 999, reason, accepted_at=at_s, oldest_ms=oldest_ms)


def test_files_are_counted_by_reason_and_time() -> None:
    """Each is in its five minutes; what was not accepted is apart, and what is over an hour old is gone."""
    clock = Clock(NOW_S)
    hours = LastHour(clock)
    for at_s, reason in ((NOW_S - 1, "records"), (NOW_S - 400, "stop"), (NOW_S - 400, "interval")):
        hours.on_event(FileAccepted("orders", at_s, "t", 0, receipt(at_s, reason)))
    hours.on_event(FileFailed("orders", NOW_S, "t", 0, receipt(NOW_S)))
    found = hours.of("orders")
    assert (found["files"], found["failed"], found["p50"], found["p99"]) == (3, 1, 2.0, 2.0)
    assert {"records": 1, "failed": 1} in found["slots"]
    assert {"other": 1, "interval": 1} in found["slots"]
    assert len(found["slots"]) == SLOTS
    clock.seconds += SLOT_S * (SLOTS + 1)
    assert hours.of("orders")["files"] == 0
    assert hours.of("orders")["p50"] is None
    assert hours.of("nobody")["files"] == 0


def test_the_time_before_the_worker_is_from_the_history() -> None:
    """Each connector is looked up once, and what events have told already is not counted twice."""
    hours = LastHour(Clock(NOW_S))
    assert hours.to_seed(["orders", "clicks"]) == ["orders", "clicks"]
    assert hours.to_seed(["orders"]) == []
    begun = int(NOW_S * 1000)
    records = uploads(begun - 1_800_000, begun + 600_000)
    hours.seed("orders", records)
    found = hours.of("orders")
    assert found["files"] + found["failed"] == sum(one.at_ms < begun for one in records)


def test_a_deleted_connector_is_forgotten() -> None:
    """Also as one that had been started; the others stay, and one made again under the name begins with nothing."""
    hours = LastHour(Clock(NOW_S))
    for name in ("orders", "clicks"):
        hours.on_event(ConnectorStarting(name, NOW_S))
        hours.on_event(FileAccepted(name, NOW_S, "t", 0, receipt(NOW_S)))
    hours.to_seed(["orders", "clicks"])
    hours.keep(["clicks", "another"])
    assert (hours.of("orders")["files"], hours.started("orders")) == (0, None)
    assert (hours.of("clicks")["files"], hours.started("clicks")) == (1, NOW_S)
    assert hours.to_seed(["orders", "clicks"]) == ["orders"]
