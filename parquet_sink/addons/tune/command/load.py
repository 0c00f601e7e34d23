"""What is known of a load, in words."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from parquet_sink.addons.tune.evidence import Evidence
from parquet_sink.addons.tune.model import Load, Machine, PartitionLoad
from parquet_sink.addons.tune.quantities import count_text, duration_text, rate_text, size_text
from parquet_sink.config.report import printable

PEAKS: Final = 200
"""Parts of the time in which the busiest is looked for."""
MOST_TOPICS: Final = 10
TYPICAL: Final = 10_000
"""Records of a file of which the Parquet bytes of one are told."""


def lines(evidence: Evidence, machine: Machine) -> Iterator[str]:
    """What comes, how it is shared, what a record weighs, and on what machine."""
    load = evidence.load
    yield f"load: {printable(load.described)}"
    yield f"  {_total(load)}"
    topics: dict[str, list[PartitionLoad]] = {}
    for one in load.partitions:
        topics.setdefault(one.topic, []).append(one)
    for name, partitions in list(topics.items())[:MOST_TOPICS]:
        yield f"  topic {printable(name)}: {_topic(partitions, weighed=evidence.weighed)}"
    if len(topics) > MOST_TOPICS:
        yield f"  and {len(topics) - MOST_TOPICS} more topics"
    yield from (f"  {printable(text)}" for text in evidence.told)
    yield f"  {_costs(evidence)}"
    yield f"  {_machine(machine)}"


def _total(load: Load) -> str:
    rate = load.records_per_second
    text = f"{rate_text(rate)} in {_plural(len(load.partitions), 'topic-partition')}"
    busiest, part_s = busiest_part(load)
    if rate and busiest > 2 * rate:
        text += f"; the busiest {duration_text(part_s)} have {count_text(busiest / rate)} times as many"
    return text


def busiest_part(load: Load) -> tuple[float, float]:
    """Records a second in the busiest of some equal parts of the time, and how long such a part is, seconds."""
    span, part = load.span_ms, load.span_ms / PEAKS
    counts = [sum(one.arrivals.count(span * at / PEAKS) for one in load.partitions) for at in range(PEAKS + 1)]
    most = max((after - before for before, after in pairwise(counts)), default=0)
    return (most / part * 1000, part / 1000) if part else (0.0, 0.0)


def _topic(partitions: list[PartitionLoad], *, weighed: bool) -> str:
    rates = sorted(one.arrivals.per_second for one in partitions)
    sizes = partitions[0].sizes
    weight = (sizes.file_bytes(TYPICAL) - sizes.overhead) / TYPICAL
    shared = rate_text(rates[-1]) if len(rates) == 1 else f"{_or_none(rates[0])} to {_or_none(rates[-1])} each"
    in_kafka = f"{size_text(sizes.record_bytes)}, and " if weighed else ""
    return (
        f"{_plural(len(rates), 'topic-partition')}, {shared}; a record has {in_kafka}{size_text(weight)} in a Parquet "
        f"file of {TYPICAL:,}"
    )


def _or_none(rate: float) -> str:
    return rate_text(rate) if rate else "none"


def _costs(evidence: Evidence) -> str:
    at = evidence.durations
    record = f"{at.cpu_record_us:.3g} µs of CPU a record ({'assumed' if evidence.cost_us is None else 'measured'})"
    speed = f"{at.upload_bytes_per_s / 1e6:.3g} MB a second"
    batch = f"a micro-batch {duration_text((at.plan_ms + at.finish_ms) / 1000)} ({evidence.batches or 'assumed'})"
    uploads = f"uploads {duration_text(at.upload_ms / 1000)} and {speed} ({evidence.uploads or 'assumed'})"
    return f"{record}; {batch}; {uploads}"


def _machine(machine: Machine) -> str:
    others = machine.connectors - 1
    shared = f", shared with {_plural(others, 'connector')} more" if others else ""
    return f"{_plural(machine.cores, 'core')}, {_plural(machine.slots, 'slot')}{shared}"


def _plural(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
