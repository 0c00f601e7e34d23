"""The way of one record in words, and as JSON."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from parquet_sink.config.report import printable
from parquet_sink.model.rejected import Rejected
from parquet_sink.task.trial import NOT_DECODED, Seen, Shown, Trial


def lines(found: Trial, table: str) -> Iterator[str]:
    """After each step what it changed, then the rows, or why there are none."""
    before: Seen | None = None
    for one in found.seen:
        yield printable(one.step)
        yield from _changes(before, one)
        before = one
    yield from _end(found, table)


def to_json(found: Trial, table: str) -> str:
    """All of it as one object."""
    rejected = found.rejected
    steps: list[dict[str, Any]] = [asdict(one) for one in found.seen]
    for step in steps:
        step["headers"] = step["headers"] and [{"name": name, **(shown or _NULL)} for name, shown in step["headers"]]
    whole = {
        "steps": steps,
        "table": table,
        "columns": found.columns,
        "rows": found.rows,
        "rejected": None if rejected is None else _why(found, rejected),
        "dropped_by": found.dropped_by,
        "unmatched": found.unmatched,
    }
    return json.dumps(whole, ensure_ascii=False, indent=2)


def _why(found: Trial, rejected: Rejected) -> dict[str, str]:
    return {"stage": rejected.stage, "by": found.rejected_by, "reason": rejected.reason}


_NULL = {"value": None, "type": ""}


def _changes(before: Seen | None, now: Seen) -> Iterator[str]:
    changed = False
    for name in ("topic", "key", "headers", "value"):
        if before is None or getattr(before, name) != getattr(now, name):
            changed = True
            yield from _part(name, getattr(now, name))
    if not changed:
        yield "  unchanged"


def _part(name: str, part: Any) -> Iterator[str]:
    if name == "topic":
        yield f"  topic    {part}"
    elif name == "headers" and not part:
        yield "  headers  " + ("not readable: a name is not UTF-8" if part is None else "none")
    elif name == "headers":
        for number, (header, shown) in enumerate(part):
            yield f"  {'' if number else 'headers':<8} {printable(header)}: {_value(shown)}{_type_behind(shown)}"
    else:
        yield f"  {name:<8} {_value(part)}{_type_behind(part)}"


def _value(shown: Shown | None) -> str:
    return "null" if shown is None else _line(shown.value)


def _type_behind(shown: Shown | None) -> str:
    if shown is None or not shown.type:
        return ""
    return f"  ({shown.type})" if shown.type == NOT_DECODED or "," not in shown.type else f"\n           {shown.type}"


def _line(value: object) -> str:
    """On one line, without what a terminal would not print."""
    return printable(json.dumps(value, ensure_ascii=False))


def _end(found: Trial, table: str) -> Iterator[str]:
    if found.rejected is not None:
        by = f" by {found.rejected_by}" if found.rejected_by else ""
        yield printable(f"no row: rejected{by} ({found.rejected.stage}): {found.rejected.reason}")
    elif found.dropped_by is not None:
        yield f"no row: dropped by {printable(found.dropped_by)}; its offset is committed"
    elif not found.rows:
        why = "a null value" if found.seen[-1].value is None else "it gives none"
        yield f"no row: {why}; its offset is committed"
    else:
        yield f"{len(found.rows)} {'row' if len(found.rows) == 1 else 'rows'} of table {printable(table)}"
        yield from (f"  {_line(row)}" for row in found.rows)
        yield f"  columns: {printable(', '.join(found.columns))}"
        for path in found.unmatched:
            yield f"  nothing is obfuscated at {printable(path)}: the record has no such field"
