"""From when records arrived to the curve that a simulation takes, in bounded memory. Pure."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from parquet_sink.addons.tune.model import Arrivals

MOST_MARKS: Final = 4_000
"""Of one topic-partition: enough that neither bursts nor pauses are lost."""

Times = np.ndarray
"""Of floats, milliseconds since a sample's begin, in the order of offsets."""


def arrivals_of(at_ms: Times, span_ms: float, most: int = MOST_MARKS) -> Arrivals:
    """The curve of records that arrived then. A record comes no earlier than the one before it in its log.

    Of many records some that are evenly spread are marks, and so are those around the longest pauses.
    """
    times = np.minimum(np.maximum.accumulate(np.clip(at_ms, 0.0, None)), span_ms) if len(at_ms) else at_ms
    chosen = _chosen(times, max(most // 6, 2))
    marks = np.repeat(times[chosen], 2)
    counts = np.stack([chosen, chosen + 1], axis=1).ravel()
    return Arrivals(
        (0.0, *marks.tolist(), span_ms),
        (0.0, *counts.astype(float).tolist(), float(len(times))),
        span_ms,
    )


def _chosen(times: Times, parts: int) -> np.ndarray:
    """Which records are marks: about `parts` evenly spread ones, and both sides of as many pauses."""
    count = len(times)
    if count <= 3 * parts:
        return np.arange(count)
    spread = np.linspace(0, count - 1, parts).astype(np.int64)
    pauses = np.diff(times)
    before = np.argpartition(pauses, -parts)[-parts:]
    return np.unique(np.concatenate([spread, before, before + 1]))


def between_marks(at_ms: Sequence[float], counts: Sequence[float], span_ms: float) -> Arrivals:
    """The curve through these marks, which rise, but for what exceeds the span or falls."""
    times = np.clip(np.maximum.accumulate(np.asarray([0.0, *at_ms])), 0.0, span_ms)
    records = np.maximum.accumulate(np.asarray([0.0, *counts]))
    return Arrivals((*times.tolist(), span_ms), (*records.tolist(), float(records[-1])), span_ms)
