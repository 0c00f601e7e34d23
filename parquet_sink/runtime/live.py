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

from parquet_sink.runtime.connector import Connector
from parquet_sink.runtime.picture import Seen, draw, styled
from parquet_sink.runtime.shown import shown, trouble
from parquet_sink.runtime.tally import Standing, Tally, sums

STARTING: Final = "Spark is starting, which takes 10 to 15 s."
NO_FILE: Final = "no file sent"
"""In the end, of a connector for which nothing was due; 'no file yet' would promise one."""


class LiveView:
    """An `Observer` that draws at each look. `clock` gives epoch seconds."""

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.time) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._clock = clock
        self._tallies: dict[str, Tally] = {}
        self._seen: dict[str, int] = {}
        self._live: Live | None = None
        self._rerouted: list[tuple[logging.StreamHandler[TextIO], TextIO]] = []
        self._console.print(Text(STARTING, style="dim"))

    def look(self, connectors: Sequence[Connector]) -> None:
        """Draw how things stand now."""
        drawn = self._draw(connectors)
        if self._live is None:
            self._reroute_logs()
            self._live = Live(drawn, console=self._console, auto_refresh=False, transient=True)
            self._live.start(refresh=True)
        else:
            self._live.update(drawn, refresh=True)

    def close(self, connectors: Sequence[Connector]) -> None:
        """Take the view away, and say what was done."""
        try:
            if self._live is not None:
                self._live.stop()
        finally:
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
            connector.state.progress(),
            {(a.topic, a.partition): a.next_offset for a in connector.state.accepted()},
            self._clock(),
        )

    def _draw(self, connectors: Sequence[Connector]) -> RenderableType:
        """All of them, within the terminal as it is now. The blank lines at both ends are room for others' words."""
        seen = [self._seen_now(connector) for connector in connectors]
        size = self._console.size
        return draw(seen, size.width, size.height)

    def _seen_now(self, connector: Connector) -> Seen:
        standings = self._standings(connector)
        return Seen(
            name=connector.settings.name,
            status=str(shown(connector)),
            accepted=sums(self._tally(connector)),
            failure=trouble(connector),
            standings=standings,
        )

    def _summary(self, connector: Connector, standings: Sequence[Standing]) -> Text:
        tally = self._tally(connector)
        lag = f"; lag {sum(standing.lag for standing in standings):,}" if standings else ""
        text = Text.assemble(
            f"connector {connector.settings.name}: ",
            styled(str(connector.status)),
            f"; {sums(tally) if tally.files else NO_FILE}{lag}; {self._clock() - tally.since_s:.0f} s",
        )
        if connector.failure is not None:
            text.append(f"\n  {connector.failure.message}")
        return text
