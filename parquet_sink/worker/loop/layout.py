"""How connectors are drawn for a terminal of any size: lines that fit.

Failed connectors come first. What does not fit is left out from the bottom up and summed up: first topic-partitions,
then the tables, then connectors.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from parquet_sink.config.report import counted
from parquet_sink.model.receipts import Receipt
from parquet_sink.worker.loop.totals import PartitionView

LONGEST_TOPIC: Final = 20
LEAST_LABEL: Final = 17
MARGIN: Final = 3
"""Lines that stay free: a blank one at each end, room for what others may write, and the cursor's."""
STYLES: Final = {"starting": "yellow", "running": "green", "done": "dim", "failed": "bold red"}
OTHER_STYLE: Final = "yellow"


@dataclass(frozen=True)
class ConnectorView:
    """One connector as it is drawn. status, accepted: in words. failure: the message, if it failed."""

    name: str
    status: str
    accepted: str
    failure: str | None
    partitions: Sequence[PartitionView]

    def lines(self, width: int) -> int:
        """Lines without the table: the heading, and the message wrapped."""
        return 1 + (0 if self.failure is None else -(-(len(self.failure) + 2) // max(width, 1)))


def render(connectors: Sequence[ConnectorView], width: int, height: int) -> RenderableType:
    """All connectors on `height` lines of `width` characters; on less than there is room for, the first ones."""
    room = max(height - MARGIN, 1)
    ordered = sorted(connectors, key=lambda one: one.failure is None)
    shown = ordered[: blocks_that_fit([one.lines(width) for one in ordered], room)]
    left = len(ordered) - len(shown)
    most = rows_per_table(
        room - sum(one.lines(width) for one in shown) - bool(left), sum(bool(s.partitions) for s in shown)
    )
    parts: list[RenderableType] = [Text()]
    for one in shown:
        parts += _connector(one, 0 if left else most)
    if left:
        parts.append(Text(f"and {counted(left, 'more connector')}", style="dim", no_wrap=True))
    return Group(*parts, Text())


def blocks_that_fit(lines: Sequence[int], room: int) -> int:
    """How many of the first blocks of so many lines fit in `room`, a line for the rest included; at least one."""
    if sum(lines) <= room:
        return len(lines)
    taken = count = 0
    while count < len(lines) and taken + lines[count] <= room - 1:
        taken += lines[count]
        count += 1
    return max(count, min(len(lines), 1))


def rows_per_table(room: int, tables: int) -> int:
    """Lines for the topic-partitions of each of so many tables, below a line of titles; 0: no room for tables."""
    return max(room // max(tables, 1) - 1, 0)


def _connector(one: ConnectorView, most: int) -> Iterable[RenderableType]:
    rate = sum(partition.rate for partition in one.partitions)
    yield Text.assemble(
        (one.name, "bold"),
        "  ",
        with_style(one.status),
        (f"  {rate:,.0f} records/s; {one.accepted}", "dim"),
        no_wrap=True,
        overflow="ellipsis",
    )
    if one.failure is not None:
        yield Text(f"  {one.failure}", style="red")
    if one.partitions and most:
        yield table(one.partitions, most)


def with_style(status: str) -> tuple[str, str]:
    """A status with its colour."""
    return status, STYLES.get(status, OTHER_STYLE)


def table(partitions: Sequence[PartitionView], most: int) -> Table:
    """One line for each topic-partition; of more than `most` those furthest behind, and the others summed up."""
    found = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    shown, rest = split(partitions, most)
    labels = [label(one) for one in shown]
    found.add_column("  topic-partition", no_wrap=True, min_width=max([LEAST_LABEL, *map(len, labels)]))
    for name, width in (("lag", 7), ("oldest", 7), ("records/s", 9)):
        found.add_column(name, justify="right", no_wrap=True, min_width=width)
    found.add_column("rotated by", no_wrap=True, min_width=12)
    found.add_column("last file: offsets", no_wrap=True, overflow="ellipsis")
    for one in shown:
        found.add_row(*_cells(one))
    if rest:
        lag, rate = sum(one.lag for one in rest), sum(one.rate for one in rest)
        more = f"  and {len(rest):,} more" if shown else f"  all {len(rest):,}"
        found.add_row(more, f"{lag:,}", "", f"{rate:,.0f}", "", "", style="dim")
    return found


def _cells(one: PartitionView) -> Iterable[str]:
    yield label(one)
    yield f"{one.lag:,}"
    yield "away" if one.away else format_age(one.oldest_s)
    yield f"{one.rate:,.0f}"
    yield one.last.reason if one.last is not None else "-"
    yield offsets_of(one.last)


def split(partitions: Sequence[PartitionView], most: int) -> tuple[list[PartitionView], list[PartitionView]]:
    """Those to show, in their order, and the rest; with a rest, one of `most` lines is for its sum."""
    if len(partitions) <= most:
        return list(partitions), []
    first = set(sorted(range(len(partitions)), key=lambda i: -partitions[i].lag)[: max(most - 1, 0)])
    shown = [one for i, one in enumerate(partitions) if i in first]
    return shown, [one for i, one in enumerate(partitions) if i not in first]


def offsets_of(receipt: Receipt | None) -> str:
    """The first and the last offset of a file, which distinguish it within its topic-partition."""
    return "-" if receipt is None else f"{receipt.first_offset}-{receipt.last_offset}"


def label(one: PartitionView) -> str:
    """Topic and topic-partition, indented; of a long topic name the end."""
    topic = one.topic if len(one.topic) <= LONGEST_TOPIC else "…" + one.topic[1 - LONGEST_TOPIC :]
    return f"  {topic} {one.partition}"


def format_age(seconds: float | None) -> str:
    """An age in words short enough for a column."""
    if seconds is None:
        return "-"
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6_000 else f"{seconds / 3_600:.0f} h"
