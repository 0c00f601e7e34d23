"""A load that an operator states: a rate, its bursts, the size of records, how topic-partitions share it. Pure."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from parquet_sink.tune.curves import arrivals_of
from parquet_sink.tune.model import Arrivals, Load, PartitionLoad, Sizes
from parquet_sink.tune.quantities import Bursts, count_text, duration_text, rate_text, size_text

PARQUET_SHARE: Final = 0.25
"""Parquet bytes for each byte of a record, where nobody says: the demo's orders, JSON of 152 bytes, have 0.23."""
FILE_BYTES: Final = 3_000.0
"""What a file has beside its rows: a footer of 15 columns."""
LEAST_SPAN_MS: Final = 60_000.0
MOST_RECORDS: Final = 20_000
"""Of one curve, so long as it is not shorter than a minute."""
SEED: Final = 7


@dataclass(frozen=True)
class Stated:
    """rate: records a second of all topic-partitions. parquet_bytes: of a record, None for a share of `record_bytes`.

    skew: the topic-partition that gets the n-th most has 1/n^skew of what the largest has; 0: all the same.
    """

    rate: float
    record_bytes: int
    partitions: int
    bursts: Bursts | None = None
    parquet_bytes: float | None = None
    skew: float = 0.0
    topic: str = "stated"

    @property
    def described(self) -> str:
        """In words."""
        words = [f"{rate_text(self.rate)} of {size_text(self.record_bytes)}, {self.partitions} topic-partitions"]
        if self.bursts is not None:
            one = self.bursts
            words.append(
                f"bursts of {count_text(one.records)} records within {duration_text(one.lasting_s)} each "
                f"{duration_text(one.every_s)}"
            )
        if self.skew:
            words.append(f"skew {self.skew:g}")
        return ", ".join(words)


def load_of(stated: Stated) -> Load:
    """The load: records of the steady rate come independently of each other (a Poisson process, always the same one).

    Topic-partitions are out of step with each other, but for bursts, which come to all of them at once.
    """
    shares = np.arange(1, stated.partitions + 1, dtype=float) ** -stated.skew
    shares /= shares.sum()
    per_record = stated.record_bytes * PARQUET_SHARE if stated.parquet_bytes is None else stated.parquet_bytes
    sizes = Sizes.proportional(per_record, overhead=FILE_BYTES, record_bytes=stated.record_bytes)
    rng = np.random.default_rng(SEED)
    partitions = tuple(
        PartitionLoad(stated.topic, number, _arrivals(stated, float(share), rng), sizes)
        for number, share in enumerate(shares)
    )
    return Load(partitions, stated.described)


def _arrivals(stated: Stated, share: float, rng: np.random.Generator) -> Arrivals:
    """One topic-partition's curve, over a whole number of bursts and enough records for their chance to show."""
    rate = stated.rate * share
    span_ms = max(LEAST_SPAN_MS, min(3_600_000.0, MOST_RECORDS / rate * 1000), 20 / rate * 1000)
    if stated.bursts is not None:
        every_ms = stated.bursts.every_s * 1000
        span_ms = max(round(span_ms / every_ms), 1) * every_ms
    count = max(round(rate * span_ms / 1000), 1)
    span_ms = span_ms if stated.bursts is not None else count / rate * 1000
    times = np.sort(rng.uniform(0.0, span_ms, min(count, 50 * MOST_RECORDS)))
    return arrivals_of(np.sort(np.concatenate([times, _bursts(stated, share, span_ms)])), span_ms)


def _bursts(stated: Stated, share: float, span_ms: float) -> np.ndarray:
    """When the records of bursts come, evenly within each."""
    if stated.bursts is None:
        return np.empty(0)
    every_ms, lasting_ms = stated.bursts.every_s * 1000, stated.bursts.lasting_s * 1000
    begins = np.arange(0.0, span_ms - every_ms / 2, every_ms)
    within = np.linspace(0.0, lasting_ms, round(stated.bursts.records * share), endpoint=False)
    return (begins[:, None] + within[None, :]).ravel()
