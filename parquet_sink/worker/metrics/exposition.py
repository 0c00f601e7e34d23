"""All figures of a worker, in Prometheus' text format."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING

from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    CollectorRegistry,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from parquet_sink.model.events import Event
from parquet_sink.process.usage import Usage, usage_by_kind
from parquet_sink.worker.herder.errors import HerderError
from parquet_sink.worker.herder.protocol import Herder
from parquet_sink.worker.herder.values import ConnectorProgress
from parquet_sink.worker.metrics import connect_names, gauges
from parquet_sink.worker.metrics.connect_names import ConnectorSums
from parquet_sink.worker.metrics.counters import Counters
from parquet_sink.worker.metrics.gauges import Machine

if TYPE_CHECKING:
    from parquet_sink.worker.loop.connector import Connector


class Metrics:
    """A `worker.loop.events.Listener` that keeps figures; any thread may ask for them.

    herder: says how this worker's connectors stand, and who is in its group. clock: epoch seconds. usage: by kind of
    process. cpu: seconds of CPU time that the asking thread took.
    """

    def __init__(
        self,
        herder: Herder,
        clock: Callable[[], float] = time.time,
        usage: Callable[[], Mapping[str, Usage]] = usage_by_kind,
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call] # a second series for each, which nobody asks for
        self.herder, self._clock = herder, clock
        self._registry = CollectorRegistry()
        self._counters = Counters(self._registry)
        self._sums: dict[str, ConnectorSums] = {}
        self._intervals_s: dict[str, float] = {}
        self._listed: set[str] = set()
        self._gauges = _Gauges()
        for collector in (self._gauges, Machine(usage, clock, cpu)):
            self._registry.register(collector)
        ProcessCollector(registry=self._registry)
        self._counting, self._pages = Lock(), Lock()

    def on_event(self, event: Event) -> None:
        with self._counting:
            self._sums_of(event.connector).add(event)
            self._counters.add(event)

    def refresh(self, connectors: "Sequence[Connector]") -> None:
        """Notes the settings that figures are compared with."""
        for one in connectors:
            if (interval_ms := one.settings.flush_interval_ms) is not None:
                self._intervals_s[one.settings.name] = interval_ms / 1000

    def close(self, connectors: Sequence[object]) -> None:
        """Figures may be asked for to the very end."""

    def exposition(self) -> tuple[bytes, str]:
        with self._pages:
            connectors = self._connectors()
            with self._counting:
                self._keep({one.status.name for one in connectors})
                self._gauges.families = [*self._families(connectors), *self._of_workers()]
            return generate_latest(self._registry), CONTENT_TYPE_PLAIN_0_0_4

    def _connectors(self) -> Sequence[ConnectorProgress]:
        try:
            return self.herder.own_progress()
        except HerderError:  # it ends: what happened may be asked for all the same
            return ()

    def _of_workers(self) -> Iterator[Metric]:
        with suppress(HerderError):
            yield from gauges.of_workers(self.herder.workers(), self.herder.worker_id)

    def _families(self, connectors: Sequence[ConnectorProgress]) -> Iterator[Metric]:
        now_s = self._clock()
        yield from gauges.families(connectors, self._intervals_s)
        yield from connect_names.families(
            [connect_names.One(one, self._sums_of(one.status.name), now_s) for one in connectors]
        )

    def _keep(self, listed: set[str]) -> None:
        """Forgets connectors that were there and are not; one that has events only may be about to be there."""
        for name in self._listed.intersection(self._sums) - listed:
            self._counters.forget(name)
            del self._sums[name]
        for name in (self._listed & self._intervals_s.keys()) - listed:
            del self._intervals_s[name]
        self._listed |= listed

    def _sums_of(self, name: str) -> ConnectorSums:
        if name not in self._sums:
            self._sums[name] = ConnectorSums(self._clock)
            self._counters.begin(name)
        return self._sums[name]


class _Gauges(Collector):
    """Gives the registry what was found when the page was asked for."""

    def __init__(self) -> None:
        self.families: Sequence[Metric] = ()

    def collect(self) -> Iterator[Metric]:
        yield from self.families
