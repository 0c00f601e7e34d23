"""The Pareto front between freshness and files, and the settings that are recommended of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from parquet_sink.addons.tune.model import Load, Simulated
from parquet_sink.addons.tune.objectives import Aim, Objective, freshness_s, percentile_of
from parquet_sink.addons.tune.reasons import limits_of, why_chosen

NEARLY: Final = math.log(1.02)
"""Settings that miss an objective by so little more than the best are as good; so are neighbours on the front."""


@dataclass(frozen=True)
class Choice:
    """The recommended settings, and the front, from the freshest on. kept: of each objective, whether they keep it.

    why: the settings were chosen; limits: what stands in the way of better ones; sentences.
    """

    chosen: Simulated
    front: tuple[Simulated, ...]
    kept: tuple[bool, ...]
    why: tuple[str, ...]
    limits: tuple[str, ...]


def front(found: Sequence[Simulated], of: str = "p99") -> tuple[Simulated, ...]:
    """Those than which no other is fresher with as few files; of equal ones the lowest thresholds that are kept to.

    of: which freshness counts. Settings under which records pile up are none of them.
    """
    ordered = sorted(
        (one for one in found if freshness_s(one, of) < math.inf),
        key=lambda one: (freshness_s(one, of), one.files_per_hour, one.cpu_share),
    )
    kept: list[Simulated] = []
    for one in ordered:
        if not kept or one.files_per_hour < kept[-1].files_per_hour * math.exp(-NEARLY):
            kept.append(one)
    return tuple(kept)


def choose(found: Sequence[Simulated], objectives: Sequence[Objective], load: Load) -> Choice:
    """The setting that keeps the objectives, the first before the second is looked at. Raises ValueError without any.

    Of those that keep them all it is the one with the fewest files where freshness was asked for, the freshest where
    not, and the one in the middle of the front where nothing was. Of those with as few files it is that of the longest
    interval within the freshness that was asked for: records that came in one moment make as few files with any.
    """
    if not found:
        raise ValueError("there is nothing to choose from")
    of = percentile_of(objectives)
    line = front(found, of)
    left = [one for one in found if one.keeps_up] or list(found)
    for objective in objectives:
        least = min(objective.miss(one) for one in left)
        left = [one for one in left if objective.miss(one) <= least + (NEARLY if least else 0.0)]
    chosen = _knee(line) if line and not objectives else _best(left, objectives, of)
    kept = tuple(objective.miss(chosen) == 0 and chosen.keeps_up for objective in objectives)
    why = why_chosen(chosen, objectives, kept, of)
    return Choice(chosen, line, kept, why, limits_of(chosen, found, objectives, kept, load))


def _best(left: Sequence[Simulated], objectives: Sequence[Objective], of: str) -> Simulated:
    asked_s = next((objective.value for objective in objectives if objective.aim is Aim.FRESHNESS), None)
    if asked_s is not None:
        most = min(one.files_per_hour for one in left) * math.exp(NEARLY)
        few = [one for one in left if one.files_per_hour <= most]
        return min(few, key=lambda one: (*_beyond(one, asked_s), _rounded(one.files_per_hour), one.cpu_share))
    return min(left, key=lambda one: (_rounded(freshness_s(one, of)), _rounded(one.files_per_hour), one.cpu_share))


def _beyond(one: Simulated, asked_s: float) -> tuple[bool, int]:
    """The order of commit intervals: the longest up to what was asked for, the shorter, then what is above, rising."""
    interval_ms = one.thresholds.commit_interval_ms
    above = interval_ms > asked_s * 1000
    return above, interval_ms if above else -interval_ms


def _rounded(value: float) -> float:
    """To steps of NEARLY, so that what hardly differs does not decide."""
    return round(math.log(value) / NEARLY) if 0 < value < math.inf else value


def _knee(line: Sequence[Simulated]) -> Simulated:
    """Where neither a little freshness nor a few files are bought dearly: nearest to the best of both, by factors."""
    fresh = [math.log(freshness_s(one)) for one in line]
    files = [math.log(max(one.files_per_hour, 1e-9)) for one in line]

    def far(place: int) -> float:
        return math.hypot(_share(fresh[place], fresh), _share(files[place], files))

    return line[min(range(len(line)), key=far)]


def _share(value: float, values: Sequence[float]) -> float:
    low, high = min(values), max(values)
    return (value - low) / (high - low) if high > low else 0.0
