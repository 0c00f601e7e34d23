"""Figures from samples, and how they are shown. Pure."""

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Accepted:
    """One file as the target saw it. Offsets are those of its first and last row; `at` is epoch seconds."""

    partition: int
    first_offset: int
    last_offset: int
    rows: int
    size_bytes: int
    at: float


@dataclass(frozen=True)
class Pass:
    """One measured pass.

    began: epoch seconds when the records could be seen. cpu_seconds, peak_bytes: of the sink's whole process tree.
    """

    records: int
    began: float
    files: tuple[Accepted, ...]
    cpu_seconds: float
    peak_bytes: int

    @property
    def seconds(self) -> float:
        """From the moment the records can be seen to the acceptance of the last file."""
        return max(file.at for file in self.files) - self.began

    @property
    def records_per_second(self) -> float:
        return self.records / self.seconds

    @property
    def cpu_us_per_record(self) -> float:
        return 1e6 * self.cpu_seconds / self.records

    @property
    def sustained_per_second(self) -> float | None:
        """Rate after each topic-partition's first file was accepted; None when every file is a first one."""
        firsts: dict[int, float] = {}
        for file in sorted(self.files, key=lambda f: f.at):
            firsts.setdefault(file.partition, file.at)
        since, until = max(firsts.values()), max(file.at for file in self.files)
        rows = sum(file.rows for file in self.files if file.at > since)
        return rows / (until - since) if rows and until > since else None


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0 to 1) of all values do not exceed. Raises ValueError when empty."""
    if not values:
        raise ValueError("no values, no percentile")
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]


def ages(produced: Mapping[tuple[int, int], float], files: Sequence[Accepted], since: float) -> list[float]:
    """Seconds from each record's timestamp to the acceptance of the file that holds it.

    produced: epoch seconds by (topic-partition, offset); records older than `since` are left out. Raises ValueError
    when a record is in no file.
    """
    found: list[float] = []
    for (partition, offset), at in produced.items():
        if at < since:
            continue
        times = [f.at for f in files if f.partition == partition and f.first_offset <= offset <= f.last_offset]
        if not times:
            raise ValueError(f"topic-partition {partition}, offset {offset} is in no accepted file")
        found.append(min(times) - at)
    return found


def deciles(samples: Sequence[tuple[float, int]], reached: Sequence[tuple[float, int]], total: int) -> list[int]:
    """The largest sample in each tenth of the work; 0 where no sample fell into it.

    samples: (time, bytes). reached: (time, records delivered so far), in order of time; work is taken to go on evenly
    between two of them. total: records in all.
    """
    peaks = [0] * 10
    for at, size in samples:
        tenth = min(int(10 * _progress(reached, at) / total), 9)
        peaks[tenth] = max(peaks[tenth], size)
    return peaks


def _progress(reached: Sequence[tuple[float, int]], at: float) -> float:
    before, after = reached[0], reached[-1]
    for point in reached:
        if point[0] > at:
            after = point
            break
        before = point
    if after[0] <= before[0]:
        return before[1]
    return before[1] + (after[1] - before[1]) * min(max((at - before[0]) / (after[0] - before[0]), 0.0), 1.0)


def of_passes(passes: Sequence[Pass], first_file_s: float, peak_bytes: int) -> dict[str, Any]:
    """What the last line says of one topic: medians over its passes. peak_bytes: since the start of the process."""
    sustained = [p.sustained_per_second for p in passes if p.sustained_per_second is not None]
    return {
        "records_per_second": round(statistics.median(p.records_per_second for p in passes)),
        "sustained_records_per_second": round(statistics.median(sustained)) if sustained else None,
        "cpu_us_per_record": round(statistics.median(p.cpu_us_per_record for p in passes), 2),
        "peak_rss_mb": megabytes(peak_bytes),
        "first_file_s": round(first_file_s, 1),
        "files": len(passes[-1].files),
    }


def megabytes(size_bytes: float) -> int:
    """Millions of bytes, rounded."""
    return round(size_bytes / 1e6)


def last_line(figures: Mapping[str, Any]) -> str:
    """All figures as one line of JSON. Raises ValueError for what JSON has no word for."""
    return json.dumps(figures, allow_nan=False, separators=(", ", ": "))


def spread(values: Sequence[float], digits: int = 0) -> str:
    """Median, and least to most where there are several."""
    middle = f"{statistics.median(values):,.{digits}f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need be: the first flush left, all others flush right."""
    lines = [list(heads), *map(list, rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(heads))]
    return "\n".join("  " + _line(line, widths) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = cells[0].ljust(widths[0])
    return "  ".join([first, *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))]).rstrip()
