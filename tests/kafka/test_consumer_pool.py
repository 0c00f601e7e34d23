"""Consumers that wait for their next range are taken off their topic-partition, and then polled."""

from dataclasses import dataclass, field
from typing import Any

from parquet_sink.kafka.consumer_pool import IDLE_S, sweep


class Consumer:
    """What is done to it."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def unassign(self) -> None:
        self.calls.append("unassign")

    def poll(self, timeout: float) -> None:
        assert timeout == 0
        self.calls.append("poll")

    def close(self) -> None:
        self.calls.append("close")


@dataclass
class Position:
    """One that waits."""

    offset: int = 5
    idle_since: float = 100.0
    consumer: Any = field(default_factory=Consumer)


def test_one_that_was_used_lately_is_left_alone() -> None:
    """What it fetched ahead serves the next range."""
    one = Position()
    positions = {1: one}
    sweep(positions, 100 + IDLE_S - 1)
    assert positions == {1: one}
    assert (one.consumer.calls, one.offset) == ([], 5)


def test_one_that_waits_for_long_is_unassigned_once_and_polled_each_time() -> None:
    """It is never polled while records could come; where it stands is forgotten, so the next range assigns it anew."""
    one = Position()
    positions = {1: one}
    for seconds in range(3):
        sweep(positions, 100 + IDLE_S + seconds)
    assert one.consumer.calls == ["unassign", "poll", "poll", "poll"]
    assert one.offset == -1
    assert positions == {1: one}


def test_one_that_was_replaced_meanwhile_is_closed() -> None:
    """While it is looked after nobody finds it; a reader that made another keeps that."""
    one, other, positions = Position(), Position(), {}
    positions[1] = one
    one.consumer.poll = lambda timeout: positions.update({1: other})
    sweep(positions, 100 + IDLE_S)
    assert one.consumer.calls == ["unassign", "close"]
    assert positions == {1: other}
