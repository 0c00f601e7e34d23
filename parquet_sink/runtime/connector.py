"""One connector's life: prepare, start, look after, stop.

A query that fails for a reason waiting may cure (a lost worker, a broker that stays away in the middle of a range) is
started again from the group's offsets, a bounded number of times; every other reason ends the connector.
"""

import logging
import shutil
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from parquet_sink import handoff
from parquet_sink.config.settings import ConnectorSettings
from parquet_sink.errors import ConnectorError
from parquet_sink.files.cleanup import prepare, remove_leftovers
from parquet_sink.files.lock import ConnectorLock
from parquet_sink.kafka import source
from parquet_sink.kafka.offsets import GroupOffsets, Plan
from parquet_sink.runtime.causes import DEFECT, failure_of
from parquet_sink.sink import NAME as SINK
from parquet_sink.state import Failure, State

log = logging.getLogger(__name__)

RESTARTS: Final = 5
"""Times a query is started again within RESTART_WINDOW_S before its connector fails."""
RESTART_WINDOW_S: Final = 600.0
RESTART_PAUSE_S: Final = 2.0
STOP_S: Final = 300.0
"""How long a graceful stop waits for the flush in progress: one upload with all its retries fits in."""
REGISTRY_AWAY: Final = "RegistryAway"
CURABLE: Final = frozenset({"BrokerAway", "KafkaFailed", REGISTRY_AWAY, DEFECT})
"""Failures that a new start of the query may cure."""


class Status(StrEnum):
    """What a connector does now."""

    STARTING = "starting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class Connector:
    """Owns the lock, the run folder and the streaming query of one connector."""

    def __init__(self, settings: ConnectorSettings, folder: Path, *, until_caught_up: bool = False) -> None:
        self.settings, self.folder = settings, folder
        self.status = Status.STARTING
        self.failure: Failure | None = None
        self.state: State | None = None
        self._until_caught_up = until_caught_up
        self._lock = ConnectorLock(settings.files.tmp_dir, settings.name)
        self._query: StreamingQuery | None = None
        self._given: handoff.Handoff | None = None
        self._restarts: list[float] = []
        self._registry_away: list[float] = []
        self._again_at: float | None = None

    def start(self, spark: SparkSession, *, slots: int = 1, warm_up: bool = False) -> None:
        """Prepares the folders and starts the query. A failure is noted, not raised.

        slots: Spark tasks that can run at once. warm_up: begin with a micro-batch that loads and compiles everything.
        """
        try:
            prepare(self.settings.files.tmp_dir)
            self._lock.acquire()
            remove_leftovers(self.settings.files.tmp_dir, self.settings.name)
            self._given = handoff.write(self.settings, self.folder)
            self.state = State.for_new_run(self._given.state_path)
            self.state.say("slots", slots)
            if warm_up:
                self.state.say("warm", True)
        except ConnectorError as error:
            self._fail(Failure(type(error).__name__, str(error)))
            return
        self._launch(spark)

    def _launch(self, spark: SparkSession) -> None:
        checkpoint = self.folder / "checkpoint"
        shutil.rmtree(checkpoint, ignore_errors=True)
        options = {handoff.RUN_FOLDER: str(self.folder)}
        stream = spark.readStream.format(source.NAME).options(**options).load().writeStream.format(SINK)
        stream = stream.options(**options, checkpointLocation=str(checkpoint)).queryName(self.settings.name)
        trigger = {"availableNow": True} if self._until_caught_up else {"processingTime": self._tick()}
        self._query = stream.trigger(**trigger).start()
        self.status = Status.RUNNING

    def _tick(self) -> str:
        """A quarter of the commit interval, between 0.25 and 1 s: a range is due within a second of its age."""
        return f"{min(max(self.settings.flush.commit_interval_ms // 4, 250), 1_000)} milliseconds"

    def look(self, spark: SparkSession) -> None:
        """Notices that the query ended; starts it again where that may help."""
        if self.status is not Status.RUNNING or self._query is None:
            return
        if self._again_at is not None:
            if time.monotonic() >= self._again_at:
                self._again_at = None
                self._launch(spark)
            return
        if not self._query.isActive:
            self._ended(self._query)

    def _ended(self, query: StreamingQuery) -> None:
        assert self.state is not None
        failure = self._reason(query)
        self._commit_accepted()
        if failure is None:
            self.status = Status.DONE
            return
        may_help = self._curable(failure) and not self.state.stopping()
        pause_s = self._pause_before_restart(failure) if may_help else None
        if pause_s is None:
            self._fail(failure)
            return
        log.warning("connector %s: %s Starting again from the group's offsets.", self.settings.name, failure.message)
        self.state.forgive()
        self._again_at = time.monotonic() + pause_s

    def _reason(self, query: StreamingQuery) -> Failure | None:
        """Why a query ended, in our words where there are any; None when nothing failed."""
        assert self.state is not None
        error = query.exception()
        if error is None:
            return None
        log.debug("connector %s: %s", self.settings.name, error)
        return self.state.failure() or failure_of(error, self.settings.files.tmp_dir)

    def _curable(self, failure: Failure) -> bool:
        """Kafka's trouble is waited for at the start as long as configured; another start would not know better."""
        assert self.state is not None
        return failure.kind in CURABLE and (failure.kind == DEFECT or bool(self.state.watches()))

    def _pause_before_restart(self, failure: Failure) -> float | None:
        """Seconds; None: no more. The registry has a patience of its own, and does not use up the restarts."""
        now = time.monotonic()
        if failure.kind == REGISTRY_AWAY and self._bears_with_the_registry(now):
            return min(RESTART_PAUSE_S * len(self._registry_away), self.settings.registry_pause_ms / 1000)
        self._restarts = [at for at in self._restarts if now - at < RESTART_WINDOW_S] + [now]
        return RESTART_PAUSE_S * len(self._restarts) if len(self._restarts) <= RESTARTS else None

    def _bears_with_the_registry(self, now: float) -> bool:
        """Whether `errors.retry.timeout` is not over; it begins anew when the registry was there for a while."""
        if self._registry_away and now - self._registry_away[-1] >= RESTART_WINDOW_S:
            self._registry_away.clear()
        self._registry_away.append(now)
        patience_ms = self.settings.registry_patience_ms
        return patience_ms < 0 or 1000 * (now - self._registry_away[0]) < patience_ms

    def _commit_accepted(self) -> None:
        """What the target accepted in the micro-batch that failed is committed; nothing else is."""
        assert self.state is not None
        assert self._given is not None
        accepted = self.state.accepted()
        if not accepted:
            return
        group = GroupOffsets(self.settings.kafka, self._given.instance)
        try:
            group.advance(
                {(one.topic, one.partition): one.next_offset for one in accepted},
                {
                    (one.topic, one.partition): Plan(one.start, one.end, one.reason)
                    for one in accepted
                    if one.next_offset < one.end
                },
            )
        except ConnectorError as error:
            log.warning("connector %s: %s The files after it are sent again.", self.settings.name, error)
        finally:
            group.close()

    def ask_to_stop(self) -> None:
        """Admits nothing more; the flush in progress goes on."""
        if self.state is not None:
            self.state.stop()

    def finish(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Waits until the flush in progress is done and its offsets are committed, then ends the query."""
        deadline = clock() + STOP_S
        while self._query is not None and self._query.isActive and not self._drained() and clock() < deadline:
            time.sleep(0.1)
        if self._query is not None and self._query.isActive:
            self._query.stop()
        if self.status is Status.RUNNING:
            self._settle()

    def _settle(self) -> None:
        """After the query ended on our request: done, unless it failed on the way."""
        assert self._query is not None
        failure = self._reason(self._query)
        self._commit_accepted()
        if failure is None:
            self.status = Status.DONE
        else:
            self._fail(failure)

    def has_begun(self) -> bool:
        """Whether it knows where its topic-partitions start: its processes are there, and the broker answered."""
        return self.state is not None and bool(self.state.said("begun"))

    def _drained(self) -> bool:
        return self.state is not None and bool(self.state.said("drained"))

    def _fail(self, failure: Failure) -> None:
        self.status, self.failure = Status.FAILED, failure
        log.error("connector %s failed: %s", self.settings.name, failure.message)

    def close(self) -> None:
        """Lets go of the lock and removes the run folder."""
        if self.state is not None:
            self.state.close()
        self._lock.release()
        shutil.rmtree(self.folder, ignore_errors=True)
