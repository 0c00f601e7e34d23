"""The view on a terminal: each connector, and how its topic-partitions stand; in the end one summary.

While it stands, log records are printed above it, so that they do not tear it.
"""

import logging
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TextIO

from rich.console import Console, Group, RenderableType
from rich.file_proxy import FileProxy
from rich.live import Live
from rich.table import Table
from rich.text import Text

from parquet_sink.runtime.connector import Connector, Status
from parquet_sink.runtime.tally import Standing, Tally
from parquet_sink.upload.receipts import Receipt

LONGEST_TOPIC: Final = 20
STYLES: Final = {
    Status.STARTING: "yellow",
    Status.RUNNING: "green",
    Status.STOPPING: "yellow",
    Status.DONE: "dim",
    Status.FAILED: "bold red",
}


class LiveView:
    """An `Observer` that draws at each look. `clock` gives epoch seconds."""

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.time) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._clock = clock
        self._tallies: dict[str, Tally] = {}
        self._seen: dict[str, int] = {}
        self._live: Live | None = None
        self._rerouted: list[tuple[logging.StreamHandler[TextIO], TextIO]] = []
        self._console.print(Text("Spark is starting; this takes some seconds.", style="dim"))

    def look(self, connectors: Sequence[Connector]) -> None:
        """Draw how things stand now."""
        views = [(connector, self._standings(connector)) for connector in connectors]
        drawn = self._draw(views)
        if self._live is None:
            self._reroute_logs()
            self._live = Live(drawn, console=self._console, auto_refresh=False, transient=True)
            self._live.start(refresh=True)
        else:
            self._live.update(drawn, refresh=True)

    def close(self, connectors: Sequence[Connector]) -> None:
        """Take the view away, and say what was done."""
        if self._live is not None:
            self._live.stop()
            self._live = None
        for handler, stream in self._rerouted:
            handler.setStream(stream)
        self._rerouted.clear()
        for connector in connectors:
            self._console.print(self._summary(connector, self._standings(connector)), soft_wrap=True)

    def _reroute_logs(self) -> None:
        """Handlers that write to the terminal write through the console from now on."""
        for handler in logging.getLogger().handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream in {sys.stderr, sys.stdout}:
                self._rerouted.append((handler, handler.stream))
                handler.setStream(FileProxy(self._console, handler.stream))

    def _tally(self, connector: Connector) -> Tally:
        return self._tallies.setdefault(connector.settings.name, Tally(self._clock()))

    def _standings(self, connector: Connector) -> list[Standing]:
        """Takes in new receipts, and tells how the connector's topic-partitions stand."""
        tally, name = self._tally(connector), connector.settings.name
        if connector.state is None:
            return []
        for number, receipt in connector.state.receipts_after(self._seen.get(name, 0)):
            self._seen[name] = number
            tally.add(receipt)
        return tally.standings(
            connector.state.watches(),
            {(a.topic, a.partition): a.next_offset for a in connector.state.accepted()},
            self._clock(),
        )

    def _draw(self, views: Sequence[tuple[Connector, list[Standing]]]) -> RenderableType:
        """All connectors, failed ones first. The blank lines at both ends are room for what others may write."""
        most = rows_each(self._console.size.height, len(views))
        parts: list[RenderableType] = [Text()]
        for connector, standings in sorted(views, key=lambda view: view[0].status is not Status.FAILED):
            parts.append(self._heading(connector, standings))
            if connector.failure is not None:
                parts.append(Text(f"  {connector.failure.message}", style="red"))
            if standings:
                parts.append(table(standings, most))
        return Group(*parts, Text())

    def _heading(self, connector: Connector, standings: Sequence[Standing]) -> Text:
        rate = sum(standing.rate for standing in standings)
        return Text.assemble(
            (connector.settings.name, "bold"),
            "  ",
            (connector.status.value, STYLES[connector.status]),
            (f"  {rate:,.0f} records/s; {sums(self._tally(connector))}", "dim"),
            no_wrap=True,
            overflow="ellipsis",
        )

    def _summary(self, connector: Connector, standings: Sequence[Standing]) -> Text:
        tally = self._tally(connector)
        lag = f"; lag {sum(standing.lag for standing in standings):,}" if standings else ""
        text = Text.assemble(
            f"connector {connector.settings.name}: ",
            (connector.status.value, STYLES[connector.status]),
            f"; {sums(tally)}{lag}; {self._clock() - tally.since_s:.0f} s",
        )
        if connector.failure is not None:
            text.append(f"\n  {connector.failure.message}")
        return text


def table(standings: Sequence[Standing], most: int) -> Table:
    """One line for each topic-partition; of more than `most` those furthest behind, and the others summed up."""
    found = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    shown, rest = split(standings, most)
    labels = [label(one) for one in shown]
    found.add_column("  topic-partition", no_wrap=True, min_width=max(17, *(len(text) for text in labels)))
    for name, width in (("lag", 7), ("oldest", 7), ("records/s", 9)):
        found.add_column(name, justify="right", no_wrap=True, min_width=width)
    found.add_column("rotated by", no_wrap=True, min_width=12)
    found.add_column("last file: offsets", no_wrap=True, overflow="ellipsis")
    for one in shown:
        found.add_row(*_cells(one))
    if rest:
        lag, rate = sum(one.lag for one in rest), sum(one.rate for one in rest)
        found.add_row(f"  and {len(rest):,} more", f"{lag:,}", "", f"{rate:,.0f}", "", "", style="dim")
    return found


def _cells(one: Standing) -> Iterable[str]:
    yield label(one)
    yield f"{one.lag:,}"
    yield age(one.oldest_s)
    yield f"{one.rate:,.0f}"
    yield one.last.reason if one.last is not None else "-"
    yield short_name(one.last)


def split(standings: Sequence[Standing], most: int) -> tuple[list[Standing], list[Standing]]:
    """Those to show, in their order, and the rest; with a rest, one of `most` lines is for its sum."""
    if len(standings) <= most:
        return list(standings), []
    first = set(sorted(range(len(standings)), key=lambda i: -standings[i].lag)[: max(most - 1, 0)])
    shown = [one for i, one in enumerate(standings) if i in first]
    return shown, [one for i, one in enumerate(standings) if i not in first]


def rows_each(height: int, connectors: int) -> int:
    """Lines for the topic-partitions of one connector, on a terminal of `height` lines; at least 1."""
    return max((height - 3) // max(connectors, 1) - 2, 1)


def short_name(receipt: Receipt | None) -> str:
    """What tells a file's name from those of the same topic-partition: its offsets, the first and the last one."""
    return "-" if receipt is None else f"{receipt.first_offset}-{receipt.last_offset}"


def label(one: Standing) -> str:
    """Topic and topic-partition, indented; of a long topic name the end."""
    topic = one.topic if len(one.topic) <= LONGEST_TOPIC else "…" + one.topic[1 - LONGEST_TOPIC :]
    return f"  {topic} {one.partition}"


def age(seconds: float | None) -> str:
    """An age in words short enough for a column."""
    if seconds is None:
        return "-"
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6_000 else f"{seconds / 3_600:.0f} h"


def sums(tally: Tally) -> str:
    """What was accepted so far."""
    if not tally.files:
        return "no file yet"
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in tally.reasons.most_common())
    plural = "" if tally.files == 1 else "s"
    return f"{tally.files:,} file{plural} ({reasons}), {tally.rows:,} rows, {size(tally.size_bytes)}"


def size(size_bytes: int) -> str:
    """Bytes in a unit that fits, 1,000 by 1,000."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size_bytes >= scale:
            return f"{size_bytes / scale:,.1f} {unit}"
    return f"{size_bytes:,} bytes"
