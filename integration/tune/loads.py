"""The five loads: when which topic-partition gets a record, and the thresholds that they run with."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from parquet_sink.addons.tune.model import Thresholds

SETTLE_S = 12.0
"""Until what counts begins."""

Moment = tuple[float, int]
"""Seconds since the beginning, and the topic-partition that gets a record."""


@dataclass(frozen=True)
class MeasuredLoad:
    """moments: of all records, for so many seconds. backlog: of each topic-partition, there at once at SETTLE_S."""

    name: str
    partitions: int
    thresholds: Thresholds
    moments: Callable[[float], Iterator[Moment]]
    backlog: int = 0


def steady(seconds: float) -> Iterator[Moment]:
    """100 records a second, evenly, on four topic-partitions."""
    for number in range(int(seconds * 100)):
        yield number / 100, number % 4


def bursty(seconds: float) -> Iterator[Moment]:
    """Every 12.7 s 160 records within a second on each of three topic-partitions, and nothing between."""
    at = 1.0
    while at < seconds - 1:
        for number in range(480):
            yield at + number / 480, number % 3
        at += 12.7


def skewed(seconds: float) -> Iterator[Moment]:
    """Six topic-partitions; each gets a third of what the one before it gets, at random times."""
    chance = random.Random(5)
    for partition in range(6):
        at, rate = 0.0, 60 / 3**partition
        while (at := at + chance.expovariate(rate)) < seconds:
            yield at, partition


def idle(seconds: float) -> Iterator[Moment]:
    """Five topic-partitions with a record every 15 s each, at random times."""
    chance = random.Random(7)
    for partition in range(5):
        at = 0.0
        while (at := at + chance.expovariate(1 / 15)) < seconds:
            yield at, partition


def trickle(seconds: float) -> Iterator[Moment]:
    """Ten records a second on two topic-partitions, once the backlog is there."""
    for number in range(int(max(seconds - SETTLE_S - 8, 0) * 10)):
        yield SETTLE_S + 8 + number / 10, number % 2


TOGETHER = (
    MeasuredLoad("steady", 4, Thresholds(10_000_000, 100_000, 8_000), steady),
    MeasuredLoad("bursty", 3, Thresholds(10_000_000, 100, 6_000), bursty),
    MeasuredLoad("skewed", 6, Thresholds(10_000_000, 250, 10_000), skewed),
    MeasuredLoad("idle", 5, Thresholds(10_000_000, 100_000, 7_000), idle),
)
BACKLOG = MeasuredLoad("backlog", 2, Thresholds(100_000_000, 50_000, 5_000), trickle, backlog=1_000_000)
GROUPS = (TOGETHER, (BACKLOG,))
"""Loads of a group run at once, each in a connector of its own. The backlog has the machine for itself: it takes all of
it, and what is measured is how fast."""
