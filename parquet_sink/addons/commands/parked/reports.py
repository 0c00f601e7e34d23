"""Parked records in words or as JSON, line by line."""

import json
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, Final, Protocol

from parquet_sink.config.report import counted, printable
from parquet_sink.parked.listing import Parked, group_fields
from parquet_sink.parked.scan import Group
from parquet_sink.parked.settings import MAX_BYTES

MOST_REASONS: Final = 10
"""Reasons of one topic and stage that are printed one by one: each record may have its own."""
MOST_PARTITIONS: Final = 8


def listing(connector: str, found: Parked, *, as_json: bool) -> Iterator[str]:
    """What is parked, by topic, stage and reason."""
    warn_of_skipped(connector, found.skipped)
    if as_json:
        for one in found.groups:
            yield json.dumps({"connector": connector, **group_fields(one)}, ensure_ascii=False)
        return
    yield _heading(connector, found)
    for (topic, stage), of in groupby(_by_stage(found.groups), key=lambda one: (one.topic, one.stage)):
        yield from _stage_lines(topic, stage, list(of))


def _by_stage(groups: Sequence[Group]) -> list[Group]:
    return sorted(groups, key=lambda one: (one.topic, one.stage, -one.records, one.reason))


def _heading(connector: str, found: Parked) -> str:
    if not found.files:
        return f"connector {connector}: nothing is parked in {found.folder}"
    chosen = sum(one.records for one in found.groups)
    which = f"{chosen:,} of {found.records:,}" if chosen != found.records else f"{chosen:,}"
    return (
        f"connector {connector}: {which} record{'' if which == '1' else 's'} parked in {found.folder} "
        f"({counted(found.files, 'file')}, {found.size_bytes:,} of {found.max_bytes:,} bytes that {MAX_BYTES} allows)"
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


class Records(Protocol):
    """Records one by one, as JSON has them, to be iterated once; then how many are left, and what was skipped."""

    left: int
    skipped: tuple[tuple[str, str], ...]

    def __iter__(self) -> Iterator[dict[str, Any]]: ...


def records(connector: str, found: Records, *, as_json: bool) -> Iterator[str]:
    """Each record. Raises what reading them raises."""
    for fields in found:
        yield json.dumps(fields, ensure_ascii=False) if as_json else _record_line(fields)
    warn_of_skipped(connector, found.skipped)
    if found.left:
        print(f"and {found.left:,} more; --limit 0 shows all", file=sys.stderr)


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


def warn_of_skipped(connector: str, skipped: Sequence[tuple[str, str]]) -> None:
    """Names on standard error what is torn, or none of ours."""
    for path, why in skipped:
        text = printable(f"connector {connector}: {path} is skipped and kept: {why}")
        print(f"parquet-sink: {text}", file=sys.stderr)
