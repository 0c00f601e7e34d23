"""Words and JSON of these commands on standard output."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from parquet_sink.config.report import counted, printable
from parquet_sink.errors import SinkError

MOST_OF_NAME: Final = 48
"""Characters of a name in a table or a heading."""


def print_json(content: object) -> None:
    """One document, legible."""
    print(json.dumps(content, indent=2, ensure_ascii=False))


def print_lines(lines: Iterable[str]) -> None:
    """Lines in which nothing is raw that a terminal would not print."""
    for line in lines:
        print(printable(line))


def cut(name: str) -> str:
    """A name as far as a line has room for it; JSON has it whole."""
    return name if len(name) <= MOST_OF_NAME else f"{name[: MOST_OF_NAME - 1]}…"


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of texts as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def status_text(status: Mapping[str, Any] | None) -> str:
    """What a connector does now, to be put behind what was done; empty when nobody asked."""
    if status is None:
        return ""
    return f"; now {status['connector']['state']}, {counted(len(status['tasks']), 'task')}"


def print_trouble(name: str, error: SinkError) -> None:
    """What went wrong with one connector of several, on standard error."""
    print(f"parquet-sink: connector {printable(name)}: {error}", file=sys.stderr)
