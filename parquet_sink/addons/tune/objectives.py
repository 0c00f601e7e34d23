"""Objectives: what an operator asks of the sink, and how near a setting comes to it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from parquet_sink.addons.tune.model import Simulated

ABOUT: Final = 1.25
"""Files are of about a size when they are this many times as large at most, or as small."""


class Aim(StrEnum):
    """What can be asked for."""

    FRESHNESS = "freshness"
    FILES_PER_HOUR = "files_per_hour"
    FILE_SIZE = "file_size"


@dataclass(frozen=True)
class Objective:
    """value: seconds at most, files per hour at most, or bytes of the median file, about.

    of: which freshness counts: `p50`, `p95`, `p99` or `max`.
    """

    aim: Aim
    value: float
    of: str = "p99"

    def miss(self, found: Simulated) -> float:
        """By how far it is missed, as the logarithm of a factor; 0 where it is kept."""
        if self.aim is Aim.FRESHNESS:
            return _above(freshness_s(found, self.of), self.value)
        if self.aim is Aim.FILES_PER_HOUR:
            return _above(found.files_per_hour, self.value)
        if found.files is None:
            return math.inf
        factor = abs(math.log(max(found.files.p50_bytes, 1) / self.value))
        return max(factor - math.log(ABOUT), 0.0)


def _above(value: float, most: float) -> float:
    return math.log(value / most) if value > most else 0.0


def freshness_s(found: Simulated, of: str = "p99") -> float:
    """Seconds; infinite where nothing was delivered, or where records pile up."""
    if found.freshness is None or not found.keeps_up:
        return math.inf
    return float(getattr(found.freshness, f"{of}_s"))


def percentile_of(objectives: Sequence[Objective]) -> str:
    """Which freshness the objectives are about; p99 where none says."""
    return next((objective.of for objective in objectives if objective.aim is Aim.FRESHNESS), "p99")
