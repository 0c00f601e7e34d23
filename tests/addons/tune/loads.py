"""Loads for tests of the simulation."""

import random

from parquet_sink.addons.tune.model import Arrivals, Load, PartitionLoad, Sizes

SIZES = Sizes(((0, 2_000), (100, 8_000), (10_000, 400_000)), record_bytes=150)


def steady(partitions: int, per_second: float, sizes: Sizes = SIZES) -> Load:
    """Each topic-partition gets so many records a second, evenly."""
    return Load(
        tuple(PartitionLoad("orders", number, Arrivals.steady(per_second), sizes) for number in range(partitions))
    )


def any_arrivals(chance: random.Random, span_ms: float = 30_000) -> Arrivals:
    """Steady, in bursts, or single records; none within the first tenth of a second."""
    kind = chance.choice(["steady", "bursts", "rare"])
    if kind == "rare":
        return Arrivals.of_times([chance.uniform(100, span_ms) for _ in range(chance.randrange(1, 8))], span_ms)
    begin = chance.uniform(100, span_ms / 2)
    rate = chance.choice([0.5, 20, 300])
    if kind == "steady":
        return Arrivals((0, begin, span_ms), (0, 0, rate * (span_ms - begin) / 1000), span_ms)
    return Arrivals((0, begin, begin, begin + 500, span_ms), (0, 0, 50 * rate, 60 * rate, 60 * rate), span_ms)


def any_load(chance: random.Random) -> Load:
    """Of up to five topic-partitions of two topics; some with a backlog."""
    found = []
    for number in range(chance.randrange(1, 6)):
        backlog = chance.choice([0, 0, 700, 20_000])
        found.append(
            PartitionLoad(
                chance.choice(["orders", "items"]),
                number,
                any_arrivals(chance),
                SIZES,
                backlog,
                4_321.0 * bool(backlog),
            )
        )
    return Load(tuple(found))
