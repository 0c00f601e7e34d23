"""Figures under Kafka Connect's names."""

from dataclasses import replace

import pytest

from parquet_sink import __version__
from parquet_sink.model.events import OffsetCommitted, RangeFlushed, RangePostponed, RecordsSetAside
from parquet_sink.model.ranges import AttemptCount
from parquet_sink.worker.herder.values import PartitionProgress, State
from parquet_sink.worker.metrics.connect_names import WINDOW_S, Recent
from tests.worker.metrics.figures import ACCEPTED, RECEIPT, WORKER_ID, Page, World, connector

WORKER, CONNECTOR = "kafka_connect_connect_worker_metrics_", "kafka_connect_connector_metrics"
TASK = "kafka_connect_connector_task_metrics_"
ABOUT = ("orders", 5.0, "t", 0)


def sink(page: Page, name: str) -> float | None:
    """A figure of the connector `orders`."""
    return page.get(f"kafka_connect_sink_task_metrics_{name}", connector="orders", task="0")


def error(page: Page, name: str) -> float | None:
    """A figure of what went wrong with it."""
    return page.get(f"kafka_connect_task_error_metrics_{name}", connector="orders", task="0")


def test_connectors_and_tasks_are_counted_by_state() -> None:
    """As the worker's own figures have it; a stopped connector has no tasks."""
    page = World(connector("a", State.FAILED, tasks=3), connector("b"), connector("c", State.STOPPED)).page()
    assert (page.get(f"{WORKER}connector_count"), page.get(f"{WORKER}task_count")) == (3, 5)
    assert page.all(f"{WORKER}connector_total_task_count", "connector") == {"a": 3, "b": 2, "c": 0}
    assert page.all(f"{WORKER}connector_failed_task_count", "connector") == {"a": 3, "b": 0, "c": 0}
    assert page.all(f"{WORKER}connector_running_task_count", "connector") == {"a": 0, "b": 2, "c": 0}


def test_a_connector_says_what_it_is() -> None:
    """Status, type and version, a series for each, as the JMX exporter makes of attributes that are texts."""
    page = World(connector("orders", State.PAUSED)).page()
    assert page.get(CONNECTOR, connector="orders", status="paused") == 1
    assert page.get(CONNECTOR, connector="orders", connector_type="sink") == 1
    assert page.get(CONNECTOR, connector="orders", connector_version=__version__) == 1
    assert page.get("kafka_connect_app", client_id=WORKER_ID, version=__version__) == 1
    assert page.get(f"{TASK}pause_ratio", connector="orders", task="1") == 1
    assert page.get(f"{TASK}running_ratio", connector="orders", task="1") == 0


@pytest.mark.parametrize("state", [State.STOPPED, State.FAILED])
def test_a_lag_that_nobody_knows_is_absent(state: State) -> None:
    """A connector without topic-partitions that are looked at has no lag, and not 0."""
    page = World(connector("orders", state)).page()
    assert not [name for name, _ in page.samples if name.endswith("sink_record_lag_max")]


def test_throughput_is_a_total_and_a_rate_of_the_last_minute() -> None:
    """Records read and sent, offsets committed, and how long uploads took."""
    partitions = [PartitionProgress("t", number, 10 * number, None, 0.0, away=False) for number in (1, 2)]
    world = World(connector("orders", State.RUNNING, *partitions))
    slow = replace(RECEIPT, seconds={"upload": 2.1})
    for event in (ACCEPTED, replace(ACCEPTED, receipt=slow), OffsetCommitted(*ABOUT, 10)):
        world.metrics.on_event(event)
    world.metrics.on_event(RangeFlushed(*ABOUT, 0, 60, 2, 20, 60, 1_000, read=60))
    page = world.page()
    assert (sink(page, "partition_count"), sink(page, "sink_record_lag_max")) == (2, 20)
    assert (sink(page, "sink_record_send_total"), sink(page, "sink_record_send_rate")) == (20, 20 / WINDOW_S)
    assert (sink(page, "sink_record_read_total"), sink(page, "sink_record_read_rate")) == (60, 60 / WINDOW_S)
    assert (sink(page, "offset_commit_completion_total"), sink(page, "offset_commit_completion_rate")) == (1, 1 / 60)
    assert sink(page, "put_batch_avg_time_ms") == pytest.approx(1_400)
    assert sink(page, "put_batch_max_time_ms") == pytest.approx(2_100)
    world.clock.sleep(WINDOW_S)
    page = world.page()
    assert (sink(page, "sink_record_send_total"), sink(page, "sink_record_send_rate")) == (20, 0)
    assert (sink(page, "put_batch_avg_time_ms"), sink(page, "put_batch_max_time_ms")) == (0, 0)


def test_errors_count_records_and_retries() -> None:
    """Records set aside, dead letters among them, what was tried again, and when it was last."""
    world = World(connector("orders"))
    assert error(world.page(), "last_error_timestamp") == 0
    twice = replace(RECEIPT, attempts=2, answers=(AttemptCount("unknown", 503, 1), AttemptCount("accepted", 200, 1)))
    letters = RecordsSetAside(*ABOUT, 3, 0, 9, {"VALUE_CONVERTER": 3}, "no", "in d", dead_letters=True)
    for event in (
        replace(ACCEPTED, receipt=twice),
        RangePostponed(*ABOUT, 0, 100, 0, 3, 1.0, 8.0, answers=(AttemptCount("unknown", 503, 3),)),
        letters,
        replace(letters, count=4, dead_letters=False, at_s=6.5),
    ):
        world.metrics.on_event(event)
    page = world.page()
    assert {error(page, f"total_{name}") for name in ("record_failures", "record_errors", "records_skipped")} == {7}
    assert error(page, "deadletterqueue_produce_requests") == 3
    assert error(page, "total_retries") == 4
    assert error(page, "last_error_timestamp") == 6_500


def test_recent_amounts_are_of_one_minute() -> None:
    """What is older does not count, seconds share a bucket, and a clock that is set back loses nothing."""
    recent = Recent()
    for second, amount in ((0.2, 6.0), (0.9, 12.0), (30.0, 42.0), (29.0, 60.0)):
        recent.add(second, amount)
    assert (recent.rate(30), recent.mean(30), recent.maximum(30)) == (120 / WINDOW_S, 30.0, 60.0)
    assert (recent.rate(60), recent.mean(60), recent.maximum(60)) == (102 / WINDOW_S, 51.0, 60.0)
    assert (recent.rate(99), recent.mean(99), recent.maximum(99)) == (0.0, 0.0, 0.0)
    for second in range(1_000):
        recent.add(float(second), 1.0)
    assert len(recent._buckets) == WINDOW_S
