"""How long records took from Kafka to the target."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True)
class Freshness:
    """Percentiles over `records` records, in seconds."""

    records: int
    p50_s: float
    p90_s: float
    p99_s: float
    max_s: float


def percentile(ordered: Sequence[float], share: float) -> float:
    """Nearest rank: the smallest value that at least `share` (0 to 1) of them do not exceed. `ordered` rises."""
    if not ordered:
        raise ValueError("no values, no percentile")
    return ordered[max(ceil(share * len(ordered)), 1) - 1]


def freshness(waits_ms: Sequence[int]) -> Freshness | None:
    """The percentiles of waits in milliseconds; None when there are none."""
    if not waits_ms:
        return None
    ordered = sorted(wait / 1000 for wait in waits_ms)
    at = [percentile(ordered, share) for share in (0.5, 0.9, 0.99, 1.0)]
    return Freshness(len(ordered), *at)
