"""The view on a terminal: each connector, and how its topic-partitions stand; in the end one summary.

While it stands, log records are printed above it, so that they do not tear it. It fits a terminal of any size: failed
connectors come first, and what does not fit is left out from the bottom up and summed up: first topic-partitions, then
the tables, then connectors.
"""

import logging
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TextIO

from rich.console import Console, Group, RenderableType
from rich.file_proxy import FileProxy
from rich.live import Live
from rich.table import Table
from rich.text import Text

from parquet_sink.config.report import counted, quoted
from parquet_sink.model.events import (
    ConnectorFailed,
    ConnectorRunning,
    ConnectorWaiting,
    Event,
    FileAccepted,
    RecordsDelivered,
    RecordsSetAside,
    TopicsMissing,
)
from parquet_sink.model.receipts import Receipt
from parquet_sink.worker.loop.connector import Connector
from parquet_sink.worker.loop.status import Status, status_after
from parquet_sink.worker.loop.totals import FileTotals, PartitionView, describe_totals, format_age

STARTING: Final = "Spark is starting, which takes about 10 s."
PAUSED: Final = "paused"
NO_FILE: Final = "no file sent"
"""In the end, of a connector for which nothing was due; 'no file yet' would promise one."""
LONGEST_TOPIC: Final = 20
LEAST_LABEL: Final = 17
MARGIN: Final = 3
"""Lines that stay free: a blank one at each end, room for what others may write, and the cursor's."""
STYLES: Final = {"starting": "yellow", "running": "green", "done": "dim", "failed": "bold red"}
OTHER_STYLE: Final = "yellow"


def describe_missing(event: TopicsMissing) -> str:
    """What is not there, in a line; empty when all is."""
    if event.unmatched:
        return f"No topic matches {quoted(event.unmatched)}."
    return f"Not there: {', '.join(event.topics)}." if event.topics else ""


class LiveView:
    """A `worker.loop.events.Listener` that draws after each look. `clock` gives epoch seconds."""

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.time) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._clock = clock
        self._totals: dict[str, FileTotals] = {}
        self._status: dict[str, Status | None] = {}
        self._problems: dict[str, str] = {}
        self._missing: dict[str, str] = {}
        self._live: Live | None = None
        self._rerouted: list[tuple[logging.StreamHandler[TextIO], TextIO]] = []
        self._console.print(Text(STARTING, style="dim"))

    def on_event(self, event: Event) -> None:
        if isinstance(event, FileAccepted):
            self._totals_of(event.connector).add(event.receipt)
            return
        if isinstance(event, RecordsDelivered):
            self._totals_of(event.connector).add_records(event)
            return
        if isinstance(event, RecordsSetAside):
            self._totals_of(event.connector).set_aside += event.count
            return
        if isinstance(event, TopicsMissing):
            self._missing[event.connector] = describe_missing(event)
            return
        name, before = event.connector, self._status.get(event.connector)
        self._status[name] = after = status_after(event, before)
        if isinstance(event, ConnectorWaiting):
            self._problems[name] = event.reason
        elif isinstance(event, ConnectorFailed):
            self._problems[name] = event.failure.message
        elif isinstance(event, ConnectorRunning) or after is not before:
            self._problems.pop(name, None)

    def refresh(self, connectors: Sequence[Connector]) -> None:
        size = self._console.size
        drawn = render([self._view(connector) for connector in connectors], size.width, size.height)
        if self._live is None:
            self._reroute_logs()
            self._live = Live(drawn, console=self._console, auto_refresh=False, transient=True)
            self._live.start(refresh=True)
        else:
            self._live.update(drawn, refresh=True)

    def close(self, connectors: Sequence[Connector]) -> None:
        try:
            if self._live is not None:
                self._live.stop()
        finally:
            self._live = None
            for handler, stream in self._rerouted:
                handler.setStream(stream)
            self._rerouted.clear()
        for connector in connectors:
            self._console.print(self._summary(connector, self._partitions(connector)), soft_wrap=True)

    def _reroute_logs(self) -> None:
        """Handlers that write to the terminal write through the console from now on."""
        for handler in logging.getLogger().handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream in {sys.stderr, sys.stdout}:
                self._rerouted.append((handler, handler.stream))
                handler.setStream(FileProxy(self._console, handler.stream))

    def _totals_of(self, name: str) -> FileTotals:
        return self._totals.setdefault(name, FileTotals(self._clock()))

    def _partitions(self, connector: Connector) -> list[PartitionView]:
        state = connector.state
        if state is None:
            return []
        accepted = {(one.topic, one.partition): one.next_offset for one in state.accepted()}
        return self._totals_of(connector.settings.name).partitions(state.progress(), accepted, self._clock())

    def _view(self, connector: Connector) -> "ConnectorView":
        name = connector.settings.name
        return ConnectorView(
            name=name,
            status=PAUSED if connector.paused else str(self._status.get(name) or Status.STARTING),
            accepted=describe_totals(self._totals_of(name), of_files=connector.settings.of_files),
            failure=self._problems.get(name) or self._missing.get(name) or None,
            partitions=self._partitions(connector),
        )

    def _summary(self, connector: Connector, partitions: Sequence[PartitionView]) -> Text:
        totals = self._totals_of(connector.settings.name)
        lag = f"; lag {sum(one.lag for one in partitions):,}" if partitions else ""
        of_files = connector.settings.of_files
        accepted = describe_totals(totals, of_files=of_files)
        if of_files and not (totals.files or totals.set_aside):
            accepted = NO_FILE
        text = Text.assemble(
            f"connector {connector.settings.name}: ",
            with_style(str(connector.status)),
            f"; {accepted}{lag}; {self._clock() - totals.since_s:.0f} s",
        )
        if connector.failure is not None:
            text.append(f"\n  {connector.failure.message}")
        return text


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
