"""The view on a terminal: each connector, and how its topic-partitions stand; in the end one summary.

While it stands, log records are printed above it, so that they do not tear it.
"""

import logging
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final, TextIO

from rich.console import Console, RenderableType
from rich.file_proxy import FileProxy
from rich.live import Live
from rich.text import Text

from parquet_sink.config.report import quoted
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
from parquet_sink.worker.loop.connector import Connector
from parquet_sink.worker.loop.layout import ConnectorView, render, with_style
from parquet_sink.worker.loop.status import Status, status_after
from parquet_sink.worker.loop.totals import FileTotals, PartitionView, describe_totals

STARTING: Final = "Spark is starting, which takes about 10 s."
PAUSED: Final = "paused"
NO_FILE: Final = "no file sent"
"""In the end, of a connector for which nothing was due; 'no file yet' would promise one."""


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
        """Keeps what the next drawing shows of it."""
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
        """Draws how things stand now."""
        drawn = self._draw(connectors)
        if self._live is None:
            self._reroute_logs()
            self._live = Live(drawn, console=self._console, auto_refresh=False, transient=True)
            self._live.start(refresh=True)
        else:
            self._live.update(drawn, refresh=True)

    def close(self, connectors: Sequence[Connector]) -> None:
        """Removes the view, and prints a summary of each connector."""
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
        """How the connector's topic-partitions stand now."""
        state = connector.state
        if state is None:
            return []
        accepted = {(one.topic, one.partition): one.next_offset for one in state.accepted()}
        return self._totals_of(connector.settings.name).partitions(state.progress(), accepted, self._clock())

    def _draw(self, connectors: Sequence[Connector]) -> RenderableType:
        """All of them, within the terminal as it is now. The blank lines at both ends are room for others' words."""
        views = [self._view(connector) for connector in connectors]
        size = self._console.size
        return render(views, size.width, size.height)

    def _view(self, connector: Connector) -> ConnectorView:
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
        told = describe_totals(totals, of_files=of_files)
        if of_files and not (totals.files or totals.set_aside):
            told = NO_FILE
        text = Text.assemble(
            f"connector {connector.settings.name}: ",
            with_style(str(connector.status)),
            f"; {told}{lag}; {self._clock() - totals.since_s:.0f} s",
        )
        if connector.failure is not None:
            text.append(f"\n  {connector.failure.message}")
        return text
