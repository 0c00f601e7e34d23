"""Uploads of the history in words or as JSON, line by line."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

from parquet_sink.config.report import printable
from parquet_sink.history.locating import Location, Place
from parquet_sink.history.records import Origin, UploadOutcome, UploadRecord
from parquet_sink.history.sqlite.store import SqliteHistory
from parquet_sink.history.store import HistoryQuery
from parquet_sink.model.ranges import Attempt


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
