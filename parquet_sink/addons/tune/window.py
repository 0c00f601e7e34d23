"""Which time of the topics is looked at, and what each topic-partition has within it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from parquet_sink.errors import NothingSampled
from parquet_sink.kafka.cluster.cluster import KafkaCluster
from parquet_sink.model.partitions import PartitionKey

LEAST_MS: Final = 1_000
EXACT: Final = 0.01
"""Ages that need not be exact are found to one part in a hundred, and a second."""
OLDEST_MS: Final = 40 * 365 * 86_400_000


@dataclass(frozen=True)
class Window:
    """Offsets [start, end) of each topic-partition that came from begin_ms until end_ms, epoch milliseconds.

    shortened: whether the topics have nothing from before, so that the time that was asked for is not covered.
    """

    begin_ms: int
    end_ms: int
    spans: Mapping[PartitionKey, tuple[int, int]]
    shortened: bool = False

    @property
    def span_ms(self) -> float:
        return float(self.end_ms - self.begin_ms)

    @property
    def offsets(self) -> int:
        return sum(end - start for start, end in self.spans.values())


def choose(
    cluster: KafkaCluster, keys: Sequence[PartitionKey], within_s: float | None, most: int, now_ms: int
) -> Window:
    """The last `within_s` seconds up to now; None: the time of about the last `most` records, up to the newest one.

    Raises NothingSampled for topics without a record, KafkaFailed.
    """
    begins, ends = cluster.beginning_offsets(keys), cluster.end_offsets(keys)
    held = {key: (begins[key], end) for key, end in ends.items() if key in begins}
    if all(start >= end for start, end in held.values()):
        topics = sorted({topic for topic, _ in keys})
        names = ", ".join(topics[:3]) + (f" and {len(topics) - 3} more" if len(topics) > 3 else "")
        raise NothingSampled(
            f"Kafka holds no record of {names}. Send some, or state the load: --rate 500/s --record-bytes 300 "
            "--partitions 12."
        )
    if within_s is not None:
        since = now_ms - int(within_s * 1000)
        oldest = _oldest(cluster, held, now_ms)
        began = max(since, oldest) if oldest > since + LEAST_MS else since
        return Window(began, now_ms, _since(cluster, held, since), shortened=began > since)
    newest = _newest(cluster, held, now_ms)
    age = _age_with(cluster, held, most, newest)
    spans = _since(cluster, held, newest - age)
    return Window(newest - age, newest + 1, spans)


def _since(
    cluster: KafkaCluster, held: Mapping[PartitionKey, tuple[int, int]], since_ms: int
) -> dict[PartitionKey, tuple[int, int]]:
    """What of each came since then."""
    found = cluster.offsets_since(list(held), since_ms)
    spans = {}
    for key, (start, end) in held.items():
        offset = found.get(key)
        spans[key] = (end if offset is None else min(max(start, offset), end), end)
    return spans


def _count(cluster: KafkaCluster, held: Mapping[PartitionKey, tuple[int, int]], since_ms: int) -> int:
    return sum(end - start for start, end in _since(cluster, held, since_ms).values())


def _newest(cluster: KafkaCluster, held: Mapping[PartitionKey, tuple[int, int]], now_ms: int) -> int:
    """When the newest record came, to the second, but no later than now."""
    return now_ms - _least(lambda age: _count(cluster, held, now_ms - age) > 0, exact=0.0)


def _oldest(cluster: KafkaCluster, held: Mapping[PartitionKey, tuple[int, int]], now_ms: int) -> int:
    """When the oldest record that is held came, to the second."""
    whole = _count(cluster, held, 0)
    return now_ms - _least(lambda age: _count(cluster, held, now_ms - age) >= whole)


def _age_with(cluster: KafkaCluster, held: Mapping[PartitionKey, tuple[int, int]], most: int, newest_ms: int) -> int:
    """How far before the newest record about `most` records go back; as far as there are any, when there are fewer."""
    wanted = min(most, _count(cluster, held, 0))
    return _least(lambda age: _count(cluster, held, newest_ms - age) >= wanted)


def _least(holds: Callable[[int], bool], exact: float = EXACT) -> int:
    """The least age, milliseconds, for which something holds that holds for all greater ones: by doubling, halving."""
    high = LEAST_MS
    while high < OLDEST_MS and not holds(high):
        high *= 4
    low = high // 4 if high > LEAST_MS else 0
    while high - low > max(LEAST_MS, exact * high):
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
