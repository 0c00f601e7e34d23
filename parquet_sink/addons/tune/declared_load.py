"""The declared load of an operator: a rate, its bursts, sizes of records, shares of topic-partitions. Pure."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from parquet_sink.addons.tune.model import Arrivals, Load, PartitionLoad, Sizes, arrivals_of, between_marks
from parquet_sink.addons.tune.quantities import Bursts, count_text, duration_text, rate_text, size_text

PARQUET_SHARE: Final = 0.25
"""Parquet bytes for each byte of a record, where nobody says. Of JSON orders the benchmark's (152 bytes) have 0.23, the
demo's, which repeat themselves more, 0.13."""
FILE_BYTES: Final = 3_000.0
"""What a file has beside its rows: a footer of 15 columns."""
LEAST_SPAN_MS: Final = 60_000.0
MOST_SPAN_MS: Final = 3_600_000.0
SHOWN_RECORDS: Final = 20_000
LEAST_RECORDS: Final = 20
"""A curve is of so many records at least, and of 20,000 where an hour has them; and of a minute at least."""
MOST_RECORDS: Final = 200_000
"""Beyond, the chance of single records does not show any more."""
SEED: Final = 7


@dataclass(frozen=True)
class DeclaredLoad:
    """rate: records a second of all topic-partitions. parquet_bytes: of a record, None for a share of `record_bytes`.

    skew: the topic-partition that gets the n-th most has 1/n^skew of what the largest has; 0: all the same.
    """

    rate: float
    record_bytes: int
    partitions: int
    bursts: Bursts | None = None
    parquet_bytes: float | None = None
    skew: float = 0.0
    topic: str = "declared"

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


def load_of(declared: DeclaredLoad) -> Load:
    """The load: records of the steady rate come independently of each other (a Poisson process, always the same one).

    Topic-partitions are out of step with each other, but for bursts, which come to all of them at once.
    """
    shares = np.arange(1, declared.partitions + 1, dtype=float) ** -declared.skew
    shares /= shares.sum()
    per_record = declared.record_bytes * PARQUET_SHARE if declared.parquet_bytes is None else declared.parquet_bytes
    sizes = Sizes.proportional(per_record, overhead=FILE_BYTES, record_bytes=declared.record_bytes)
    rng = np.random.default_rng(SEED)
    partitions = tuple(
        PartitionLoad(declared.topic, number, _arrivals(declared, float(share), rng), sizes)
        for number, share in enumerate(shares)
    )
    return Load(partitions, declared.described)


def _arrivals(declared: DeclaredLoad, share: float, rng: np.random.Generator) -> Arrivals:
    """One topic-partition's curve, over a whole number of bursts and enough records for their chance to show."""
    rate = declared.rate * share
    span_ms = max(LEAST_SPAN_MS, min(MOST_SPAN_MS, SHOWN_RECORDS / rate * 1000), LEAST_RECORDS / rate * 1000)
    if declared.bursts is not None:
        every_ms = declared.bursts.every_s * 1000
        span_ms = max(round(span_ms / every_ms), 1) * every_ms
    begins, burst = _bursts(declared, share, span_ms)
    if rate * span_ms / 1000 + burst * len(begins) > MOST_RECORDS:
        return _smooth(rate, begins, burst, declared.bursts, span_ms)
    count = max(round(rate * span_ms / 1000), 1)
    if declared.bursts is None:
        span_ms = count / rate * 1000
    within = np.linspace(
        0.0, 1000 * declared.bursts.lasting_s if declared.bursts else 0.0, round(burst), endpoint=False
    )
    times = np.concatenate([rng.uniform(0.0, span_ms, count), (begins[:, None] + within[None, :]).ravel()])
    return arrivals_of(np.sort(times), span_ms)


def _bursts(declared: DeclaredLoad, share: float, span_ms: float) -> tuple[np.ndarray, float]:
    """When bursts begin, and how many records each has here."""
    if declared.bursts is None:
        return np.empty(0), 0.0
    every_ms = declared.bursts.every_s * 1000
    return np.arange(0.0, span_ms - every_ms / 2, every_ms), declared.bursts.records * share


def _smooth(rate: float, begins: np.ndarray, burst: float, bursts: Bursts | None, span_ms: float) -> Arrivals:
    """The curve of so many records that each by itself does not show."""
    ends = begins + (bursts.lasting_s * 1000 if bursts else 0.0)
    times = np.stack([begins, ends], axis=1).ravel()
    extra = np.stack([np.arange(len(begins)) * burst, np.arange(1, len(begins) + 1) * burst], axis=1).ravel()
    marks, counts = [*times, span_ms], [*(rate * times / 1000 + extra), rate * span_ms / 1000 + burst * len(begins)]
    return between_marks(marks, counts, span_ms)
