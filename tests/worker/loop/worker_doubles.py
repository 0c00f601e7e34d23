"""A worker's loop without Spark: real connectors, whose queries are doubles, and a planner that drains at once."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from parquet_sink.connectors.loading import Loaded
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.ranges import PartitionProgress
from parquet_sink.settings.connector import RestartSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.state.store import BEGUN, DRAINED, PAUSE, STARTED, STOP
from parquet_sink.worker.herder.store import ConfigStore
from parquet_sink.worker.herder.values import State
from parquet_sink.worker.loop.connector import Connector
from parquet_sink.worker.loop.connector_registry import ConnectorRegistry
from parquet_sink.worker.loop.event_aggregator import EventAggregator
from parquet_sink.worker.loop.events import EventDispatcher
from parquet_sink.worker.loop.herder import LocalHerder
from parquet_sink.worker.loop.request_queue import RequestQueue, at_once
from parquet_sink.worker.loop.supervisor import Supervisor
from tests.factories import Clock, settings

SPARK: Any = None
T = TypeVar("T")
AWAY = "Invalid [key]. ${vault:key}: the vault does not answer."
BROKEN = "Invalid [bad]. It is bad; remove it."


class QueueAtOnce(RequestQueue):
    """Of a test, which is the loop itself. before: happens once before the next request."""

    def __init__(self, publish: Callable[[], None]) -> None:
        super().__init__()
        self._publish = publish
        self.before: Callable[[], None] | None = None

    def ask(self, act: Callable[[], T], timeout_s: float) -> T:
        before, self.before = self.before, None
        if before is not None:
            before()
        done = act()
        self._publish()
        return done

    def put(self, act: Callable[[], T]) -> "Future[T]":
        return at_once(act)


class Loop:
    """One round is what the worker does several times a second.

    drains: whether flushes end when a stop is asked for. checks: whether those of a start end. A configuration with
    `bad` is invalid, of one with `odd` is warned; `records` is a setting.
    away: connectors whose config provider is away.
    """

    def __init__(self, folder: Path, clock: Clock, store: ConfigStore | None = None) -> None:
        self.folder, self.clock = folder, clock
        self.made: list[Connector] = []
        self.drains = self.checks = True
        self.broken: set[str] = set()
        self.away: dict[str, RestartSettings] = {}
        self.aggregator = EventAggregator(clock)
        self.registry = ConnectorRegistry(store or ConfigStore(), self.load, self.aggregator, "localhost:8083")
        self.events = EventDispatcher([self.aggregator], clock)
        self.supervisor = Supervisor(self.registry, self._make, background=at_once)
        self.queue = QueueAtOnce(self._publish)
        self.requests = LocalHerder(self.registry, self.queue, KafkaSettings())
        self.registry.begin({})
        self.supervisor.step()
        self._publish()

    def _publish(self) -> None:
        self.requests.publish()

    def load(self, config: Mapping[str, str], name: str) -> Loaded:
        """`name` and `group` as in a file, `tasks` and `records` as settings; `bad` is a problem."""
        named = config.get("name", "").strip()
        if "bad" in config or name in self.broken:
            return Loaded(None, (BROKEN,), (), f"connector {name}", dict(config))
        if name in self.away:
            return Loaded(None, (AWAY,), (), f"connector {name}", dict(config), self.away[name])
        one = settings(self.folder / "tmp", named)
        kafka = replace(
            one.kafka, group=config.get("group", f"connect-{named}"), tasks_max=int(config.get("tasks", "1"))
        )
        flush = replace(one.flush, commit_records=int(config.get("records", "100")))
        odd = ("Warning [odd]. It is unknown.",) if "odd" in config else ()
        return Loaded(replace(one, kafka=kafka, flush=flush), (), odd, f"connector {name}", dict(config))

    def _make(self, of: SinkSettings) -> Connector:
        folder = self.folder / f"run{len(self.made)}"
        made = Connector(of, folder, emit=self.events.emit, background=at_once)
        self.made.append(made)
        return made

    def round(self, times: int = 1) -> None:
        """Time passes meanwhile."""
        for _ in range(times):
            self.supervisor.step()
            found = self.supervisor.next_to_start(self.clock.seconds)
            if found is not None:
                self.supervisor.start(found, SPARK, 4)
            for connector in self.registry.runs:
                self._plan(connector)
                connector.poll(SPARK)
            self.events.poll(self.registry.runs)
            self._publish()
            self.clock.sleep(0.25)

    def _plan(self, connector: Connector) -> None:
        """As the planner does it."""
        state = connector.state
        if state is None:
            return
        if not state.progress():
            state.set(STARTED, True)
        if self.checks and connector.active and not state.get(BEGUN):
            state.set(BEGUN, True)
        if not state.progress() and state.get(STARTED):
            state.record_progress([PartitionProgress("orders", 0, 0, 10, None)])
        if state.get(STOP) and self.drains:
            state.set(DRAINED, True)

    def settle(self) -> None:
        """Until nothing changes by itself any more."""
        self.round(12)

    def state(self, name: str) -> State:
        return self.registry.snapshot().statuses[name].state

    def run(self, name: str) -> Connector:
        """What runs of a connector."""
        found = self.registry.connectors[name].run
        assert found is not None
        return found

    def paused(self, name: str) -> bool:
        """What the planner of a connector reads."""
        state = self.run(name).state
        assert state is not None
        return state.get(PAUSE)

    def close(self) -> None:
        for connector in self.made:
            connector.close()
