"""Words and JSON of these commands on standard output."""

import json
import sys
from collections.abc import Iterable, Sequence

from parquet_sink.config.report import printable
from parquet_sink.errors import SinkError


def print_json(content: object) -> None:
    """One document, legible."""
    print(json.dumps(content, indent=2, ensure_ascii=False))


def print_lines(lines: Iterable[str]) -> None:
    """Lines in which nothing is raw that a terminal would not print."""
    for line in lines:
        print(printable(line))


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of texts as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def print_trouble(name: str, error: SinkError) -> None:
    """What went wrong with one connector of several, on standard error."""
    print(f"parquet-sink: connector {printable(name)}: {error}", file=sys.stderr)
