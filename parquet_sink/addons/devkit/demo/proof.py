"""The proof: what was sent against what arrived, one check for each promise."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from parquet_sink.addons.devkit.demo.expected import Comparison


@dataclass(frozen=True)
class PartitionOffsets:
    """One topic-partition: its end offset, and the group's committed one (both the next offset)."""

    partition: int
    end: int
    committed: int

    @property
    def lag(self) -> int:
        return max(self.end - self.committed, 0)


@dataclass(frozen=True)
class Check:
    """One promise: whether it holds, and the figures that show it. `details` stand on lines of their own."""

    name: str
    ok: bool
    figures: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Delivery:
    """Records against rows in accepted files, by topic-partition and offset."""

    sent: int
    arrived: int
    missing: int
    invented: int
    repeated: int


@dataclass(frozen=True)
class Evidence:
    """All that was found. keys, deleted: of those that were sent, the ones whose last record has a value, or none.

    upsert_states: files by state. sink_status: None while the sink is left running.
    """

    requested: int
    acknowledged: int
    keys: int
    deleted: int
    delivery: Delivery
    upsert_states: Mapping[str, int]
    offsets: tuple[PartitionOffsets, ...]
    comparison: Comparison
    sink_status: int | None


def deliver(ends: Mapping[int, int], arrived: Iterable[tuple[int, int]]) -> Delivery:
    """Compare identities. ends: records by partition. arrived: (partition, offset) of each row."""
    sent = {(p, offset) for p, end in ends.items() for offset in range(end)}
    rows = Counter(arrived)
    return Delivery(
        sent=len(sent),
        arrived=rows.total(),
        missing=len(sent - rows.keys()),
        invented=len(rows.keys() - sent),
        repeated=rows.total() - len(rows),
    )


def prove(found: Evidence) -> list[Check]:
    """Every check, in the order of a record's way."""
    checks = [_produced(found), _delivered(found.delivery), _upserted(found.upsert_states), _lag(found.offsets)]
    checks.append(_table(found.comparison, found.keys, found.deleted))
    if found.sink_status is not None:
        figures = f"exit status {found.sink_status}"
        checks.append(Check("the sink stops cleanly on SIGTERM", found.sink_status == 0, figures))
    return checks


def _produced(found: Evidence) -> Check:
    figures = f"{found.acknowledged:,} records, {found.keys + found.deleted:,} keys, {found.deleted:,} of them deleted"
    if found.acknowledged != found.requested:
        figures += f"; {found.requested:,} were to be sent"
    ok = found.acknowledged == found.requested == sum(one.end for one in found.offsets)
    return Check("Kafka has every record that was sent", ok, figures)


def _delivered(found: Delivery) -> Check:
    figures = (
        f"{found.arrived:,} rows; {found.missing:,} missing, {found.invented:,} invented, {found.repeated:,} repeated"
    )
    ok = found.missing == 0 and found.invented == 0 and found.sent > 0
    return Check("every record is in an accepted file", ok, figures)


def _upserted(states: Mapping[str, int]) -> Check:
    files, upserted = sum(states.values()), states.get("upserted", 0)
    return Check("the target upserted every file", 0 < files == upserted, f"{upserted:,} of {files:,} files")


def _lag(offsets: Sequence[PartitionOffsets]) -> Check:
    lag = sum(one.lag for one in offsets)
    details = tuple(
        f"topic-partition {s.partition}: end {s.end:,}, committed {s.committed:,}, lag {s.lag:,}" for s in offsets
    )
    ok = bool(offsets) and all(s.committed == s.end for s in offsets)
    return Check("the consumer group has nothing left to do", ok, f"lag {lag:,}", details)


def _table(found: Comparison, keys: int, deleted: int) -> Check:
    gone = f"{deleted:,} deleted keys have none, {found.differences:,} differences"
    figures = f"{found.rows:,} rows x {found.columns} columns compared, {gone}"
    ok = found.differences == 0 and found.rows == keys > 0
    return Check("the table equals the last state of each key, deletions included", ok, figures, found.examples)


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
