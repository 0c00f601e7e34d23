"""Files that end by the clock, on a real broker and real Spark."""

import time

import pytest

from integration.conftest import TopicFactory
from integration.harness import Sink
from integration.numbered import numbered
from parquet_sink.addons.devkit.broker import Broker

MINUTE_S = 60


@pytest.mark.slow
def test_a_trickle_over_a_full_minute_ends_files_there(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """One file with what came before the minute, though nothing else makes it due; what came since waits."""
    name = topic()
    run = sink.start(name, {"timezone": "Asia/Kolkata"}, commit_interval_ms="1d", rotate_schedule_interval_ms="1m")
    run.until(lambda: run.looked)
    if time.time() % MINUTE_S > MINUTE_S - 10:
        time.sleep(15)
    broker.produce(name, numbered(20))
    minute = time.time() // MINUTE_S
    while time.time() // MINUTE_S == minute:
        run.look()
        assert run.receipts == []
        time.sleep(0.2)
    time.sleep(3)
    broker.produce(name, numbered(1))
    run.until(lambda: sink.offsets(name) == [20])
    run.stop()
    assert [(one.first_offset, one.last_offset, one.reason) for one in run.receipts] == [(0, 19, "schedule")]
