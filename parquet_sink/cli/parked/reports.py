"""Parked records in words or as JSON, line by line."""

import base64
import json
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final

import numpy as np
import pyarrow as pa

from parquet_sink.config.report import counted, printable
from parquet_sink.files.storage import storage_trouble
from parquet_sink.parked.files import PARKING, ParkedFile
from parquet_sink.parked.scan import Group, Scan, Selection, scan, summarise, with_years_of_python
from parquet_sink.parked.settings import MAX_BYTES
from parquet_sink.settings.sink import SinkSettings

MOST_REASONS: Final = 10
"""Reasons of one topic and stage that are printed one by one: each record may have its own."""
MOST_PARTITIONS: Final = 8


def listing(settings: SinkSettings, selection: Selection, *, as_json: bool) -> Iterator[str]:
    """What is parked, by topic, stage and reason. Raises StorageFailed."""
    found = _scan(settings)
    with storage_trouble(settings.parked_folder, "read parked records", PARKING):
        groups = summarise([file for file in found.files if selection.may_have(file)], selection)
    if as_json:
        yield from (json.dumps(_group_fields(settings.name, one), ensure_ascii=False) for one in groups)
        return
    yield _heading(settings, found, sum(one.records for one in groups))
    for (topic, stage), of in groupby(_by_stage(groups), key=lambda one: (one.topic, one.stage)):
        yield from _stage_lines(topic, stage, list(of))


def _by_stage(groups: Sequence[Group]) -> list[Group]:
    return sorted(groups, key=lambda one: (one.topic, one.stage, -one.records, one.reason))


def _heading(settings: SinkSettings, found: Scan, chosen: int) -> str:
    if not found.files:
        return f"connector {settings.name}: nothing is parked in {settings.parked_folder}"
    which = f"{chosen:,} of {found.rows:,}" if chosen != found.rows else f"{chosen:,}"
    return (
        f"connector {settings.name}: {which} record{'' if which == '1' else 's'} parked in {settings.parked_folder} "
        f"({counted(len(found.files), 'file')}, {found.size_bytes:,} of "
        f"{settings.parked.max_bytes:,} bytes that {MAX_BYTES} allows)"
    )


def _stage_lines(topic: str, stage: str, groups: Sequence[Group]) -> Iterator[str]:
    """The topic's records of one stage, and the most frequent reasons."""
    whole = Group(topic, stage, "")
    for one in groups:
        whole.join(one)
    yield (
        f"  topic {topic}, {stage}: {counted(whole.records, 'record')}, "
        f"{whole.payload_bytes:,} bytes; {_offsets(whole)}"
    )
    yield f"    records of {_span(whole.timestamps)}; parked {_span(whole.parked_at)}"
    for one in groups[:MOST_REASONS]:
        yield f"    {one.records:>9,}  {printable(one.reason)}"
    if len(groups) > MOST_REASONS:
        rest = groups[MOST_REASONS:]
        yield f"    {sum(one.records for one in rest):>9,}  for {len(rest):,} other reasons"


def _offsets(group: Group) -> str:
    parts = [
        f"{first} to {last} of topic-partition {partition}"
        for partition, (first, last) in sorted(group.offsets.items())
    ]
    more = [f"and {len(parts) - MOST_PARTITIONS} more topic-partitions"] if len(parts) > MOST_PARTITIONS else []
    return "offsets " + ", ".join([*parts[:MOST_PARTITIONS], *more])


def _span(span: tuple[datetime, datetime] | None) -> str:
    if span is None:
        return "unknown time"
    first, last = (f"{one:%Y-%m-%d %H:%M:%S}" for one in span)
    return f"{first} UTC" if first == last else f"{first} to {last} UTC"


def _group_fields(connector: str, one: Group) -> dict[str, Any]:
    offsets = {str(partition): list(span) for partition, span in sorted(one.offsets.items())}
    return {
        "connector": connector,
        "topic": one.topic,
        "stage": one.stage,
        "reason": one.reason,
        "records": one.records,
        "payload_bytes": one.payload_bytes,
        "offsets": offsets,
        "timestamps": _times(one.timestamps),
        "parked_at": _times(one.parked_at),
    }


def _times(span: tuple[datetime, datetime] | None) -> list[str] | None:
    return None if span is None else [one.isoformat() for one in span]


def records(settings: SinkSettings, selection: Selection, limit: int, *, as_json: bool, content: bool) -> Iterator[str]:
    """Each record, by topic, topic-partition and file. limit: 0 for all. Raises StorageFailed."""
    found = _scan(settings)
    shown = left = 0
    for file in found.files:
        if not selection.may_have(file):
            continue
        rows = _chosen(file, selection)
        now = len(rows) if not limit else min(len(rows), limit - shown)
        if now:
            for row in with_years_of_python(_read(file, rows[:now])).to_pylist():
                fields = _record_fields(row, content=content)
                yield json.dumps(fields, ensure_ascii=False) if as_json else _record_line(fields)
        shown, left = shown + now, left + len(rows) - now
    if left:
        print(f"and {left:,} more; --limit 0 shows all", file=sys.stderr)


def _chosen(file: ParkedFile, selection: Selection) -> np.ndarray:
    with storage_trouble(file.path, "read parked records", PARKING):
        return selection.rows(file.read(["offset", "stage"]))


def _read(file: ParkedFile, rows: np.ndarray) -> pa.Table:
    with storage_trouble(file.path, "read parked records", PARKING):
        return file.read().take(pa.array(rows, pa.int64()))


def _record_fields(row: dict[str, Any], *, content: bool) -> dict[str, Any]:
    headers = row["headers"]
    fields = {name: row[name] for name in ("connector", "topic", "partition", "offset")}
    fields["timestamp"] = None if row["timestamp"] is None else row["timestamp"].astimezone(UTC).isoformat()
    fields |= {"stage": row["stage"], "reason": row["reason"]}
    fields["parked_at"] = row["parked_at"].astimezone(UTC).isoformat()
    for name in ("key", "value"):
        fields[f"{name}_bytes"] = None if row[name] is None else len(row[name])
    fields["headers"] = None if headers is None else len(headers)
    if content:
        fields |= {**_text("key", row["key"]), **_text("value", row["value"])}
        named = [{"name": one["key"], **_text("value", one["value"])} for one in headers or ()]
        fields["header_values"] = None if headers is None else named
    return fields


def _text(name: str, data: bytes | None) -> dict[str, str | None]:
    """Bytes as text, or in base64 where they are none."""
    try:
        return {name: None if data is None else data.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data or b"").decode()}


def _record_line(fields: dict[str, Any]) -> str:
    sizes = ", ".join(_size(name, fields[f"{name}_bytes"]) for name in ("key", "value"))
    headers = "headers unreadable" if fields["headers"] is None else f"headers {fields['headers']}"
    line = (
        f"{fields['topic']} {fields['partition']} at {fields['offset']} ({fields['timestamp'] or 'no time'}): "
        f"{fields['stage']}: {fields['reason']} ({sizes}, {headers}, parked {fields['parked_at']})"
    )
    shown = [f"\n  {name}: {fields[name]}" for name in fields if name in _CONTENT and fields[name] is not None]
    return printable(line) + "".join(f"\n  {printable(one.strip())}" for one in shown)


_CONTENT: Final = ("key", "key_base64", "value", "value_base64", "header_values")


def _size(name: str, size: int | None) -> str:
    return f"no {name}" if size is None else f"{name} {size:,} bytes"


def _scan(settings: SinkSettings) -> Scan:
    """Tells on standard error what is skipped there."""
    with storage_trouble(settings.parked_folder, "list parked records", PARKING):
        found = scan(settings.parked_folder)
    warn_of_skipped(settings.name, found)
    return found


def warn_of_skipped(connector: str, found: Scan) -> None:
    """Names on standard error what is torn, or none of ours."""
    for path, why in found.skipped:
        text = printable(f"connector {connector}: {path} is skipped and kept: {why}")
        print(f"parquet-sink: {text}", file=sys.stderr)
