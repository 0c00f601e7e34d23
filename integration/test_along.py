"""Topic-partitions that trickle and go along with each other (ADR 25), while much else goes on beside them."""

import time
from itertools import pairwise

from integration.conftest import TopicFactory
from integration.harness import Sink, ends
from integration.letters import letters
from integration.numbered import numbered, numbers
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.model.events import RangePlanned

WIDE = 6
TOGETHER_S = 0.3
"""Within this time begin ranges of one micro-batch, and less than a tick."""
BAD = b"{"


def test_what_goes_along_arrives_beside_all_else(
    sink: Sink, broker: Broker, topic: TopicFactory, target: TargetProcess
) -> None:
    """Dead letters, a target that is down, and a deleted topic: each record is at the target or a letter, and once."""
    name, gone, dead = topic(WIDE), topic(), topic(prefix="dead")
    errors = {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": dead,
        "errors.deadletterqueue.topic.replication.factor": "1",
    }
    retries = {"error_policy": "RETRY", "max_retries": 1_000}
    run = sink.start(f"{name},{gone}", errors, commit_interval_ms=3_000, **retries)
    run.until(lambda: run.looked)
    for number in range(48):
        broker.produce(name, [*numbered(1, number), *([(None, BAD)] if number % 8 == 5 else [])], number % WIDE)
        if number == 12:
            target.client.order_faults({"status": 503, "next": 4, "match": name})
        if number == 18:
            broker.produce(gone, numbered(1))
            broker.delete_topic(gone)
        run.look()
        time.sleep(0.2)
    there = ends(broker, name, WIDE)
    run.until(lambda: sink.offsets(name, WIDE) == there).stop()
    assert sorted(n for n in numbers(sink.rows()) if n) == list(range(1, 48))
    assert [letter.value() for letter in letters(broker, dead)] == [BAD] * 6
    planned = [one for one in run.events if isinstance(one, RangePlanned)]
    assert any(receipt.attempts > 1 for receipt in run.accepted)
    assert {one.reason for one in planned} == {"interval"}
    times = sorted(one.at_s for one in planned)
    micro_batches = 1 + sum(after - before > TOGETHER_S for before, after in pairwise(times))
    assert micro_batches < len(planned)
