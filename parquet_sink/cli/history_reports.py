"""Uploads of the history, and figures of each hour, in words or as JSON, line by line."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Final

from parquet_sink.config.report import printable
from parquet_sink.history.locating import Location, Place
from parquet_sink.history.records import Origin, UploadOutcome, UploadRecord
from parquet_sink.history.sqlite.store import SqliteHistory
from parquet_sink.history.store import HistoryQuery, HourSummary, Percentiles
from parquet_sink.model.ranges import Attempt

_HEADS: Final = (
    *("hour (UTC)", "files", "rows", "MB", "fresh p50", "p95", "p99", "max", "upload p50", "p95", "p99", "max"),
    *("attempts", "why files ended", "not accepted"),
)
_TEXTS: Final = frozenset({0, 13, 14})
"""Columns that are no numbers."""


def listing(
    connector: str, history: SqliteHistory, query: HistoryQuery, *, as_json: bool, attempts: bool
) -> Iterator[str]:
    """Each upload in order of time. attempts: each with its attempts. Raises HistoryUnusable."""
    if as_json:
        for one in history.files(query):
            yield json.dumps({"connector": connector, **one.to_dict()}, ensure_ascii=False)
        return
    yield _heading(connector, history)
    shown = 0
    for one in history.files(query):
        shown += 1
        yield f"  {file_line(one)}"
        if attempts:
            yield from (f"    {attempt_line(made)}" for made in one.tried)
    if query.newest is not None and shown == query.newest:
        yield f"  these are the latest {shown:,} that are meant; --limit 0 shows all"
    elif not shown and history.extent().files:
        yield "  none of them is meant"


def _heading(connector: str, history: SqliteHistory) -> str:
    extent = history.extent()
    if extent.first_ms is None or extent.last_ms is None:
        return f"connector {connector}: no upload in {history.path}"
    return (
        f"connector {connector}: {counted(extent.files, 'upload')} from {instant(extent.first_ms)} to "
        f"{instant(extent.last_ms)} UTC in {history.path} ({extent.size_bytes:,} bytes)"
    )


def file_line(one: UploadRecord) -> str:
    """One upload in one line."""
    fresh = f", oldest record {one.freshness_ms / 1000:.1f} s before" if one.freshness_ms is not None else ""
    parts = (
        f"{instant(one.at_ms)} {one.outcome} {one.file_name}: {one.topic} {one.partition}, offsets {one.first_offset} "
        f"to {one.last_offset}, {counted(one.rows, 'row')}, {one.size_bytes:,} bytes, by {one.reason}{fresh}, "
        f"upload {one.upload_s:.2f} s, {counted(one.attempts, 'attempt')}{_status(one)}, table {one.table}"
    )
    answer = f", id {one.answer_id}" if one.answer_id else ""
    repeat = f", repeat {one.repeat}" if one.repeat else ""
    origin = "" if one.origin is Origin.RUN else f", by {one.origin}"
    digest = f", sha256 {one.digest[:12]}" if one.digest else ""
    archive = "" if one.archive is None else ", archived" if one.archive.cause is None else ", not archived"
    why = one.cause or (one.archive and one.archive.cause)
    return printable(f"{parts}{answer}{digest}{repeat}{origin}{archive}{f': {why}' if why else ''}")


def attempt_line(one: Attempt) -> str:
    """One attempt in one line."""
    status = "no answer" if one.status is None else f"status {one.status}"
    cause = f": {one.cause}" if one.cause else ""
    return printable(f"{instant(one.at_ms)} {one.verdict} after {one.seconds:.2f} s, {status}{cause}")


def _status(one: UploadRecord) -> str:
    return "" if one.status is None else f" (status {one.status})"


def location_line(connector: str, found: Location, *, as_json: bool) -> str:
    """Where an offset is, in one line."""
    if as_json:
        return json.dumps({"connector": connector, **found.to_dict()}, ensure_ascii=False)
    about = f"connector {connector}: topic {found.topic}, topic-partition {found.partition}, offset {found.offset}"
    return printable(f"{about}: {_where(found)}")


def _where(found: Location) -> str:
    if found.file is not None:
        return _within(found, found.file)
    low, high = found.bounds or (0, 0)
    return {
        Place.NO_ROW: "delivered, and no file has it: it is no record (a transaction's marker, compacted away), or one "
        "without a row (a tombstone, dropped, set aside)",
        Place.UNDER_WAY: f"not delivered yet: its range is under way, and done with up to offset {found.done_until}",
        Place.LATER: f"not delivered yet: the history ends with offset {high}",
        Place.EARLIER: f"not in the history, which begins with offset {low}",
        Place.GAP: f"not in the history, which has offsets {low} to {high}, but not this one: the group's offsets were "
        "set, records were lost, or the history was off",
        Place.NOTHING: "not in the history, which has nothing of this topic-partition",
        Place.FILE: "",
    }[found.place]


def _within(found: Location, file: UploadRecord) -> str:
    what = {
        UploadOutcome.ACCEPTED: "accepted",
        UploadOutcome.WAITING: "not accepted yet, last tried",
        UploadOutcome.PASSED_OVER: "refused and set aside",
    }.get(file.outcome, f"not accepted ({file.outcome})")
    former = " of an earlier topic of that name" if found.former else ""
    sent = f", sent {found.sent} times" if found.sent > 1 else ""
    answer = f", id {file.answer_id}" if file.answer_id else ""
    cause = f": {file.cause}" if file.cause else ""
    return (
        f"{what} {instant(file.at_ms)} UTC in file {file.file_name}{former} (offsets {file.first_offset} to "
        f"{file.last_offset}, {counted(file.rows, 'row')}, table {file.table} at {file.target}{answer}, "
        f"{counted(file.attempts, 'attempt')}{_status(file)}{sent}){cause}"
    )


def counted(number: int, word: str) -> str:
    """`1 file`, `2,000 files`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def instant(at_ms: int) -> str:
    """Date and time in UTC, to the millisecond."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}.{at_ms % 1000:03d}"


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
    spread = (*_spread(one.freshness_ms, 1000), *_spread(one.upload_s, 1))
    return (*counts, *spread, f"{one.attempts:,}", _counts(one.reasons), _counts(one.others))


def _spread(values: Percentiles | None, per_second: int) -> tuple[str, ...]:
    if values is None:
        return ("-",) * 4
    return tuple(f"{one / per_second:.2f}" for one in (values.p50, values.p95, values.p99, values.most))


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items(), key=lambda one: -one[1])) or "-"


def _hour(hour_ms: int) -> datetime:
    return datetime.fromtimestamp(hour_ms / 1000, UTC)
