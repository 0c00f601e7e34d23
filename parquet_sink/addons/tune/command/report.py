"""What `parquet-sink tune` says: the report as a value, in words and as JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Final

from parquet_sink.addons.tune.evidence import Evidence
from parquet_sink.addons.tune.model import Load, Machine, PartitionLoad, Simulated, Thresholds
from parquet_sink.addons.tune.quantities import count_text, duration_text, rate_text, size_text
from parquet_sink.config.key import ems
from parquet_sink.config.report import printable

PEAKS: Final = 200
"""Parts of the time in which the busiest is looked for."""
MOST_TOPICS: Final = 10
TYPICAL: Final = 10_000
"""Records of a file for which the Parquet bytes of one are shown."""
SIZE: Final = ems("commit.size.bytes")
RECORDS: Final = ems("commit.records")
INTERVAL: Final = ems("commit.interval.ms")
MOST_SHOWN: Final = 12
"""Settings of the front that are printed; JSON has all."""
_HEADINGS: Final = (
    *("", "size", "records", "interval", "fresh p50", "p95", "p99", "max", "files/h", "files/day", "file size"),
    *("CPU", "closed by"),
)


@dataclass(frozen=True)
class Report:
    """objectives: in words, the most important first, and whether the chosen settings keep each.

    present: as the connector runs now, None without a file. why: of the choice; limits: what limits it; sentences.
    tried: how many settings were simulated. as_json: whether the connector file is JSON.
    """

    evidence: Evidence
    machine: Machine
    objectives: Sequence[tuple[str, bool]]
    front: Sequence[Simulated]
    chosen: Simulated
    present: Simulated | None
    why: Sequence[str]
    limits: Sequence[str]
    tried: int
    as_json: bool = False


def numbers(thresholds: Thresholds) -> dict[str, int]:
    """The three keys."""
    return {
        SIZE: thresholds.commit_size_bytes,
        RECORDS: thresholds.commit_records,
        INTERVAL: thresholds.commit_interval_ms,
    }


def lines(report: Report) -> Iterator[str]:
    """For people."""
    yield from load_lines(report.evidence, report.machine)
    yield ""
    yield from _table(_rows(report))
    yield f"{report.tried:,} settings were simulated; freshness is from arrival until the target has the file"
    yield ""
    for objective, kept in report.objectives:
        yield f"objective: {objective}: {'kept' if kept else 'NOT kept'}"
    yield from (f"why: {printable(one)}" for one in report.why)
    yield from (f"limit: {printable(one)}" for one in report.limits)
    yield ""
    yield from block(report)


def block(report: Report) -> Iterator[str]:
    """The keys to paste, in the connector file's own form."""
    chosen = report.chosen
    found = numbers(chosen.thresholds)
    if report.present is not None and report.present.thresholds == chosen.thresholds:
        yield "As you run now is what is recommended."
    if report.as_json:
        yield from (f'    "{key}": {number},' for key, number in found.items())
        return
    yield f"# {_in_short(chosen)} (simulated by parquet-sink tune)"
    yield from (f"{key}={number}" for key, number in found.items())


def _in_short(one: Simulated) -> str:
    if one.freshness is None or one.files is None:
        return "no file within the time that was simulated"
    return (
        f"freshness {duration_text(one.freshness.p50_s)} (p50), {duration_text(one.freshness.p99_s)} (p99); "
        f"{count_text(one.files_per_hour)} files an hour of {size_text(one.files.p50_bytes)}"
    )


def _rows(report: Report) -> Iterator[tuple[str, Simulated]]:
    if report.present is not None:
        yield "as you run now", report.present
    yield "recommended", report.chosen
    known = [report.chosen.thresholds, *([] if report.present is None else [report.present.thresholds])]
    others = [one for one in report.front if one.thresholds not in known]
    for one in _thinned(others, MOST_SHOWN):
        yield "front", one


def _thinned(front: Sequence[Simulated], most: int) -> Sequence[Simulated]:
    """Evenly spread over the front, its ends among them."""
    if len(front) <= most:
        return front
    return [front[round(number * (len(front) - 1) / (most - 1))] for number in range(most)]


def _table(rows: Iterator[tuple[str, Simulated]]) -> Iterator[str]:
    cells = [list(_HEADINGS), *(_cells(name, one) for name, one in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        first, *middle, last = zip(row, widths, strict=True)
        columns = [first[0].ljust(first[1]), *(text.rjust(width) for text, width in middle), last[0]]
        yield "  ".join(columns).rstrip()


def _cells(name: str, one: Simulated) -> list[str]:
    at, fresh = one.thresholds, one.freshness
    ages = ["-"] * 4 if fresh is None else [duration_text(s) for s in (fresh.p50_s, fresh.p95_s, fresh.p99_s)]
    ages += [] if fresh is None else [duration_text(fresh.max_s)]
    if not one.keeps_up:
        ages = ["behind"] * 4
    return [
        name,
        size_text(at.commit_size_bytes),
        f"{at.commit_records:,}",
        duration_text(at.commit_interval_ms / 1000),
        *ages,
        count_text(one.files_per_hour),
        count_text(one.files_per_day),
        "-" if one.files is None else size_text(one.files.p50_bytes),
        f"{one.cpu_share:.1%}" if one.cpu_share < 0.1 else f"{one.cpu_share:.0%}",
        reasons_text(one.reasons),
    ]


def reasons_text(reasons: Mapping[str, float]) -> str:
    """Why files were closed, the most frequent first: `interval 98 %, size 2 %`."""
    ordered = sorted(reasons.items(), key=lambda item: -item[1])
    return ", ".join(f"{reason} {share * 100:.0f} %" for reason, share in ordered if share >= 0.005)


def to_json(report: Report) -> str:
    """One object; times are seconds and sizes bytes, as the names say."""
    load, evidence = report.evidence.load, report.evidence
    found: dict[str, Any] = {
        "load": {
            "described": load.described,
            "records_per_second": load.records_per_second,
            "span_s": load.span_ms / 1000,
            "notes": list(evidence.notes),
            "partitions": [
                {
                    "topic": one.topic,
                    "partition": one.partition,
                    "records_per_second": one.arrivals.per_second,
                    "record_bytes": one.sizes.record_bytes if evidence.weighed else None,
                    "file_bytes": [list(point) for point in one.sizes.points],
                }
                for one in load.partitions
            ],
        },
        "durations": asdict(evidence.durations),
        "machine": asdict(report.machine),
        "wishes": [{"wish": objective, "kept": kept} for objective, kept in report.objectives],
        "present": None if report.present is None else simulated_fields(report.present),
        "recommended": simulated_fields(report.chosen),
        "front": [simulated_fields(one) for one in report.front],
        "tried": report.tried,
        "why": list(report.why),
        "limits": list(report.limits),
    }
    return json.dumps(found, ensure_ascii=False, allow_nan=False)


def simulated_fields(one: Simulated) -> dict[str, Any]:
    """One setting, by its keys, and what it gives."""
    fields = asdict(one)
    del fields["thresholds"]
    return {"keys": numbers(one.thresholds), "files_per_day": one.files_per_day, **fields}


def load_lines(evidence: Evidence, machine: Machine) -> Iterator[str]:
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
    yield from (f"  {printable(text)}" for text in evidence.notes)
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
