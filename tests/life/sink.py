"""One machine with the sink on it: the program is started, dies, and is started again, over the same folder."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parquet_sink.config.secret import Secret
from parquet_sink.files.naming import connector_folder
from parquet_sink.files.settings import FileSettings
from parquet_sink.history.settings import HistorySettings
from parquet_sink.kafka.settings import FlushSettings, KafkaSettings
from parquet_sink.model.receipts import Failure
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.settings.connector import ErrorSettings, RestartSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.targets.settings import RetrySettings
from parquet_sink.worker.loop.connector import Connector
from parquet_sink.worker.loop.request_queue import at_once
from parquet_sink.worker.loop.status import Status
from tests.life.effects import Crash
from tests.life.promises import MOST_RESTARTS
from tests.life.query import Query
from tests.life.world import World

TICK_S = 0.5
STOP_TICKS = 100


@dataclass(frozen=True)
class Wishes:
    """What the connector file says, as far as examples differ."""

    topics: tuple[str, ...] = ("orders",)
    commit_records: int = 5
    commit_bytes: int = 1_000_000
    interval_ms: int = 2_000
    error_policy: Any = "THROW"
    tolerates: bool = False
    max_retries: int = 3
    retry_interval_ms: int = 10_000
    lost_offsets: Any = "STOP"
    tasks_max: int | None = None
    offset_reset: Any = "earliest"

    def settings(self, tmp_dir: Path) -> SinkSettings:
        """The same as settings, with everything that takes time for nothing switched off."""
        return SinkSettings(
            "sink",
            KafkaSettings(
                *(self.topics, None, "connect-sink", {}),
                lost_offsets=self.lost_offsets,
                tasks_max=self.tasks_max,
                offset_reset=self.offset_reset,
            ),
            FlushSettings(self.commit_bytes, self.commit_records, self.interval_ms),
            ShapeSettings(),
            FileSettings(str(tmp_dir)),
            PushSettings("http://target/", Secret("AppKey k"), "t"),
            retry=RetrySettings(self.error_policy, self.max_retries, self.retry_interval_ms, 3_600_000),
            errors=ErrorSettings(
                invalid_records=self.tolerates or self.error_policy == "CONTINUE",
                refused_files=self.error_policy == "CONTINUE",
            ),
            history=HistorySettings(enabled=False),
            restart=RestartSettings(most=MOST_RESTARTS),
        )


class Sink:
    """failures: why connectors ended, by their starts."""

    def __init__(self, world: World, name: str, wishes: Wishes) -> None:
        self.world, self.wishes = world, wishes
        self._folder = world.folder / name
        self._connector: Connector | None = None
        self._query: Query | None = None
        self._draining = False
        self.is_current = True
        self.failures: list[Failure] = []

    @property
    def up(self) -> bool:
        """Whether the program runs."""
        return self._connector is not None

    @property
    def state_file(self) -> Path:
        return self.own_folder / ".state.db"

    @property
    def own_folder(self) -> Path:
        """The connector's folder below `tmp.dir`."""
        return Path(connector_folder(str(self._folder / "tmp"), "sink"))

    def start(self, *, draining: bool = False) -> None:
        """The program is started."""
        self._draining = draining
        self.world.starts += 1
        self.world.promises.begins_late = self.wishes.offset_reset == "latest"
        self.world.promises.drain_begins()
        settings = self.wishes.settings(self._folder / "tmp")
        run_folder = self.world.folder / f"run{self.world.starts}"
        self._connector = _Connector(self, settings, run_folder, until_caught_up=draining, background=at_once)
        self._guarded(lambda: self._connector and self._connector.start(None, slots=2))  # type: ignore[arg-type]

    def query(self, folder: Path) -> Query:
        """A query of the connector."""
        world, current = self.world, lambda: self.is_current
        begins = lambda: world.promises.tick_begins(current=current())  # noqa: E731 - a callback
        self._query = Query(folder, world.effects, begins, draining=self._draining)
        return self._query

    def tick(self, seconds: float = TICK_S) -> None:
        """The program looks after its connector, and Spark after its query."""
        self.world.clock.seconds += seconds
        self._guarded(self._tick)
        self.world.turns.forget()

    def _tick(self) -> None:
        assert self._connector is not None
        self._connector.poll(None)  # type: ignore[arg-type]
        if self._query is not None and self._query.isActive:
            self._query.tick()
        self._connector.poll(None)  # type: ignore[arg-type]

    def look(self) -> None:
        """The program looks after its connector while a micro-batch runs."""
        if self._connector is not None:
            self._connector.poll(None)  # type: ignore[arg-type]

    def stop(self) -> None:
        """A stop in order, as by SIGTERM."""
        self._draining = False
        if self._connector is not None:
            self._guarded(self._connector.request_stop)
        for _ in range(STOP_TICKS):
            if self._connector is None:
                return
            self.tick()
        raise AssertionError(f"it does not stop within {STOP_TICKS * TICK_S} s")

    def _guarded(self, act: Any) -> None:
        """What the program does; when it dies of it, or ends, it is gone."""
        if self._connector is None:
            return
        try:
            act()
        except Crash:
            self._die()
            return
        except Exception as error:  # noqa: BLE001 - as `worker.loop.managed_connector` does
            self._connector.fail_unexpectedly(error)
        if self._connector.ended:
            if self._connector.status is Status.FAILED:
                assert self._connector.failure is not None
                self.failures.append(self._connector.failure)
                self.world.promises.stopped(self._connector.failure)
            elif self._draining:
                self.world.promises.caught_up()
            self._close()

    def _die(self) -> None:
        """The system lets go of what the dead process held."""
        self.world.effects.let_go()
        self.world.turns.forget()
        self._close()

    def _close(self) -> None:
        connector, self._connector = self._connector, None
        with self.world.effects.open():
            if self._query is not None:
                self._query.stop()
                self._query = None
            if connector is not None:
                connector.close()

    def kill(self) -> None:
        """The program dies while it does nothing."""
        self._die()

    def close(self) -> None:
        """The end of the example."""
        self._close()


class _Connector(Connector):
    """Whose query runs on no Spark."""

    def __init__(self, sink: Sink, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._sink = sink

    def _start_query(self, spark: Any) -> Any:
        return self._sink.query(self.folder)
