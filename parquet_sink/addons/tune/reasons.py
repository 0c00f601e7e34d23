"""Why settings were chosen, and what limits them, in sentences."""

import math
from collections.abc import Iterator, Sequence

from parquet_sink.addons.tune.grid import LEAST_SIZE
from parquet_sink.addons.tune.model import Load, PartitionLoad, PartitionSimulated, Simulated
from parquet_sink.addons.tune.objectives import Aim, Objective, freshness_s
from parquet_sink.addons.tune.quantities import count_text, duration_text, size_text
from parquet_sink.files.rotation import Reason


def why_chosen(chosen: Simulated, objectives: Sequence[Objective], kept: Sequence[bool], of: str) -> tuple[str, ...]:
    """Which objectives decided, and what did among settings that are alike in them."""
    fresh, files = duration_text(freshness_s(chosen, of)), count_text(chosen.files_per_hour)
    gives = f"{of} freshness {fresh} with {files} files an hour"
    if not objectives:
        return (f"Nothing was asked for: this is the middle between fresh and few ({gives}).",)
    missed = next((number for number, well in enumerate(kept) if not well), None)
    if missed is not None:
        earlier = f" that keep {' and '.join(map(described, objectives[:missed]))}" if missed else ""
        also = " as well" if missed else ""
        return (f"No settings{earlier} keep {described(objectives[missed])}{also}; these come nearest ({gives}).",)
    asked = " and ".join(described(objective) for objective in objectives)
    if any(objective.aim is Aim.FRESHNESS for objective in objectives):
        return (f"Of all that keep {asked} they make the fewest files ({gives}).",)
    return (f"Of all that keep {asked} they are the freshest ({gives}).",)


def described(objective: Objective) -> str:
    """An objective in a few words."""
    if objective.aim is Aim.FRESHNESS:
        return f"{objective.of} freshness of {duration_text(objective.value)}"
    if objective.aim is Aim.FILES_PER_HOUR:
        return f"{count_text(objective.value)} files an hour"
    return f"files of about {size_text(objective.value)}"


def limits_of(
    chosen: Simulated, found: Sequence[Simulated], objectives: Sequence[Objective], kept: Sequence[bool], load: Load
) -> tuple[str, ...]:
    """What stands in the way of better ones."""
    return tuple(_limits(chosen, found, objectives, kept, load))


def _limits(
    chosen: Simulated, found: Sequence[Simulated], objectives: Sequence[Objective], kept: Sequence[bool], load: Load
) -> Iterator[str]:
    if not chosen.keeps_up:
        yield (
            f"More arrives ({count_text(load.records_per_second)} records a second) than gets done: records pile up, "
            "whatever the thresholds. Give the sink more cores, or make its records cheaper."
        )
        return
    for number, (objective, well) in enumerate(zip(objectives, kept, strict=True)):
        if not well:
            yield from _missed(objective, objectives[:number], chosen, found, load)
    yield from _smallest(chosen, load)
    yield from _interval_files(chosen)


def _missed(
    objective: Objective, earlier: Sequence[Objective], chosen: Simulated, found: Sequence[Simulated], load: Load
) -> Iterator[str]:
    """How near any settings come that keep the objectives before it, and why not nearer."""
    able = [one for one in found if one.keeps_up] or list(found)
    keeping = [one for one in able if not any(other.miss(one) for other in earlier)]
    able, among = (keeping, "those that keep what matters more") if earlier and keeping else (able, "all settings")
    if objective.aim is Aim.FRESHNESS:
        best = min(able, key=lambda one: freshness_s(one, objective.of))
        yield (
            f"The freshest of {among} (interval {_interval(best)}) gives "
            f"{objective.of} {duration_text(freshness_s(best, objective.of))}, with "
            f"{count_text(best.files_per_hour)} files an hour: a tick, a micro-batch and an upload take their time."
        )
    elif objective.aim is Aim.FILES_PER_HOUR:
        best = min(able, key=lambda one: one.files_per_hour)
        yield (
            f"{len(load.partitions)} topic-partitions each send their own files: the fewest of {among} "
            f"(interval {_interval(best)}) are {count_text(best.files_per_hour)} an hour."
        )
    elif chosen.files is not None and chosen.files.p50_bytes > objective.value:
        least = min(one.sizes.file_bytes(1) for one in load.partitions)
        yield (
            f"Half of the files have {size_text(chosen.files.p50_bytes)} or more: one of a single record has "
            f"{size_text(least)}, and commit.size.bytes cannot be below {size_text(LEAST_SIZE)}."
        )
    elif chosen.files is not None:
        hours = _hours_to_fill(load, objective.value)
        yield (
            f"Half of the files have {size_text(chosen.files.p50_bytes)} or less: the median topic-partition takes "
            f"{duration_text(hours * 3600) if hours < math.inf else 'for ever'} to fill one of "
            f"{size_text(objective.value)}."
        )


def _interval(one: Simulated) -> str:
    return duration_text(one.thresholds.commit_interval_ms / 1000)


def _hours_to_fill(load: Load, size: float) -> float:
    """How long the median topic-partition takes for a file of a size."""
    hours = sorted(_bytes_hours(one, size) for one in load.partitions)
    return hours[len(hours) // 2] if hours else math.inf


def _bytes_hours(one: PartitionLoad, size: float) -> float:
    per_record = (one.sizes.file_bytes(100_000) - one.sizes.overhead) / 100_000
    per_hour = one.arrivals.per_second * 3600 * per_record
    return size / per_hour if per_hour else math.inf


def _smallest(chosen: Simulated, load: Load) -> Iterator[str]:
    """What the topic-partition with the fewest records costs: a file for a handful of records, or their age."""
    some = [one for one in chosen.partitions if one.records_per_hour > 0]
    if not some:
        return
    smallest = min(some, key=lambda one: one.records_per_hour)
    per_file = smallest.records_per_hour / max(smallest.files_per_hour, 1e-9)
    if Reason.INTERVAL not in chosen.reasons or per_file > 1_000:
        return
    many = sum(one.records_per_hour <= 2 * smallest.records_per_hour for one in some)
    others = f", and {many - 1} more like it" if many > 1 else ""
    yield (
        f"The smallest topic-partition ({_name(smallest)}{others}) gets {count_text(smallest.records_per_hour)} "
        f"records an hour: either {_files_each(smallest)}, or more than {duration_text(smallest.p99_s)} p99 freshness."
    )


def _name(one: PartitionSimulated) -> str:
    return f"topic {one.topic}, topic-partition {one.partition}"


def _files_each(one: PartitionSimulated) -> str:
    each = count_text(one.files_per_hour)
    return f"{each} file{'' if each == '1' else 's'} an hour of {size_text(one.mean_bytes)} each"


def _interval_files(chosen: Simulated) -> Iterator[str]:
    """Which threshold it is that ends files."""
    share = chosen.reasons.get(Reason.INTERVAL, 0.0)
    if share > 0.9:
        yield (
            f"{share:.0%} of the files end by their age: commit.interval.ms decides; commit.records and "
            "commit.size.bytes only bound files at peaks and after a backlog."
        )
    elif share < 0.1 and chosen.reasons:
        name = max(chosen.reasons, key=lambda reason: chosen.reasons[reason])
        yield (
            f"{chosen.reasons[name]:.0%} of the files end by {name}: commit.interval.ms hardly matters under this "
            "load, only when less arrives."
        )
