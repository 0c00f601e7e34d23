"""Figures of uploads, hour by hour, as a table or as JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Final

from parquet_sink.history.store import HourSummary, Percentiles

_HEADS: Final = (
    *("hour (UTC)", "files", "rows", "MB", "fresh p50", "p95", "p99", "max", "upload p50", "p95", "p99", "max"),
    *("attempts", "why files ended", "not accepted"),
)
_TEXTS: Final = frozenset({0, 13, 14})
"""Columns that are no numbers."""


def summary_lines(connector: str, hours: Sequence[HourSummary], *, as_json: bool) -> Iterator[str]:
    """A line for each hour; in words with a heading, seconds for ages and uploads."""
    if as_json:
        for one in hours:
            begun = {"connector": connector, "hour": _hour(one.hour_ms).isoformat()}
            yield json.dumps({**begun, **asdict(one)}, ensure_ascii=False)
        return
    if not hours:
        yield f"connector {connector}: no upload that is meant"
        return
    files, rows = sum(one.files for one in hours), sum(one.rows for one in hours)
    size, repeated = sum(one.size_bytes for one in hours), sum(one.repeated for one in hours)
    again = f", {repeated:,} of them repeated" if repeated else ""
    yield (
        f"connector {connector}: {files:,} file{'' if files == 1 else 's'} accepted{again}, {rows:,} rows, {size:,} "
        f"bytes in {len(hours):,} hour{'' if len(hours) == 1 else 's'} (seconds: age of a file's oldest record, upload)"
    )
    yield from _table([_HEADS, *map(_cells, hours)])


def _table(cells: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = (
            text.ljust(width) if index in _TEXTS else text.rjust(width)
            for index, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield ("  " + "  ".join(padded)).rstrip()


def _cells(one: HourSummary) -> tuple[str, ...]:
    counts = (f"{_hour(one.hour_ms):%Y-%m-%d %H:00}", f"{one.files:,}", f"{one.rows:,}", f"{one.size_bytes / 1e6:,.1f}")
    spread = (*_seconds(one.freshness_ms, 1000), *_seconds(one.upload_s, 1))
    return (*counts, *spread, f"{one.attempts:,}", _words(one.reasons), _words(one.others))


def _seconds(values: Percentiles | None, per_second: int) -> tuple[str, ...]:
    if values is None:
        return ("-",) * 4
    return tuple(f"{one / per_second:.2f}" for one in (values.p50, values.p95, values.p99, values.most))


def _words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items(), key=lambda one: -one[1])) or "-"


def _hour(hour_ms: int) -> datetime:
    return datetime.fromtimestamp(hour_ms / 1000, UTC)
