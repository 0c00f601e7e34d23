"""One connector's life: prepare, start, look after, stop.

A query that fails for a reason waiting may cure (a lost worker, a broker that stays away in the middle of a range) is
started again from the group's offsets, a bounded number of times without progress; every other reason ends the
connector. So does whatever else goes wrong with it: the others of the process go on.
"""

import logging
import shutil
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from threading import Thread
from typing import Final

from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from parquet_sink.errors import ConnectorError
from parquet_sink.files.cleanup import prepare, remove_leftovers
from parquet_sink.files.lock import ConnectorLock
from parquet_sink.model.failure import Failure, Restart
from parquet_sink.pipeline.settings import SinkSettings
from parquet_sink.runtime import group
from parquet_sink.runtime.restarts import PAUSE_S, Patience, Restarts
from parquet_sink.spark import handoff
from parquet_sink.spark.causes import failure_of
from parquet_sink.spark.query import start_query
from parquet_sink.state.sqlite.store import SqliteStore
from parquet_sink.state.store import DRAINED, SLOTS, STARTED, STOP, WARM_UP

log = logging.getLogger(__name__)

END_S: Final = 15.0
"""How long Spark may take to end a query that is to end, before it is left to the end of Java."""
BUSY_MS: Final = 1_800_000
BUSY_PAUSE_S: Final = 30.0
"""A machine that is too busy to start a process is waited for half an hour, with pauses of half a minute at most."""


class Status(StrEnum):
    """What a connector does now."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    DONE = "done"
    FAILED = "failed"


class Connector:
    """Owns the lock, the run folder and the streaming query of one connector."""

    def __init__(self, settings: SinkSettings, folder: Path, *, until_caught_up: bool = False) -> None:
        self.settings, self.folder = settings, folder
        self.status = Status.STARTING
        self.failure: Failure | None = None
        self.state: SqliteStore | None = None
        self._until_caught_up = until_caught_up
        self._lock = ConnectorLock(settings.files.tmp_dir, settings.name)
        self._query: StreamingQuery | None = None
        self._given: handoff.Handoff | None = None
        self._slots = 1
        self._restarts = Restarts()
        self._patience, self._busy = Patience(), Patience()
        self._again_at: float | None = None
        self._stop_by = 0.0
        self._ending: Thread | None = None

    @property
    def active(self) -> bool:
        """Whether there is something to look after."""
        return self.status in {Status.RUNNING, Status.STOPPING}

    def prepare(self) -> None:
        """Takes the lock and makes the folders ready: what needs no Spark. A failure is noted, not raised."""
        try:
            prepare(self.settings.files.tmp_dir)
            self._lock.acquire()
            remove_leftovers(self.settings.files.tmp_dir, self.settings.name)
            self._given = handoff.write(self.settings, self.folder)
            self.state = SqliteStore.for_new_run(self._given.state_path)
        except ConnectorError as error:
            self._fail(error.failure())

    def start(self, spark: SparkSession, *, slots: int = 1, warm_up: bool = False) -> None:
        """Starts the query; prepares what is not prepared yet. What goes wrong is noted, not raised.

        slots: Spark tasks that it may run at once. warm_up: begin with a micro-batch that loads everything.
        """
        if self._given is None:
            self.prepare()
        if self.status is not Status.STARTING or self.state is None:
            return
        self._slots = slots
        self.state.set(SLOTS, slots)
        if warm_up:
            self.state.set(WARM_UP, True)
        self.status = Status.RUNNING
        self._launch(spark)

    def _launch(self, spark: SparkSession) -> None:
        """Starts the query with a new checkpoint. An exception on the way is as a query that failed."""
        self._query = None
        try:
            self._make_lost_folders()
            self._query = self._started(spark)
        except (ConnectionError, Py4JNetworkError):  # Java is gone, and with it all connectors
            raise
        except Exception as error:  # whatever it is, the other connectors go on
            log.debug("connector %s", self.settings.name, exc_info=True)
            self._ended(failure_of(error, self.settings.files.tmp_dir))

    def _started(self, spark: SparkSession) -> StreamingQuery:
        return start_query(spark, self.settings, self.folder, until_caught_up=self._until_caught_up)

    def _lost(self) -> list[Path]:
        """Of the files that the connector's processes share, those that somebody removed."""
        assert self._given is not None
        return [path for path in (*self._given.files, self._given.state_path) if not path.exists()]

    def _make_lost_folders(self) -> None:
        """Makes anew what somebody removed, from what this process holds. Raises StorageFailed, OSError."""
        assert self._given is not None
        assert self.state is not None
        if not self._lost():
            return
        self._given = handoff.write(self.settings, self.folder, self._given.instance)
        if not self._given.state_path.exists():
            self._lock.release()  # it may be of a file that is gone as well
            self._lock.acquire()
            self.state.close()
            self.state = SqliteStore.for_new_run(self._given.state_path)
            self.state.set(SLOTS, self._slots)
            self.state.set(STARTED, True)

    def look(self, spark: SparkSession) -> None:
        """Notices that the query ended; starts it again where that may help; goes on with a stop."""
        if self.status is Status.STOPPING:
            self._look_at_stop()
        elif self.status is Status.RUNNING and self._again_at is not None:
            if time.monotonic() >= self._again_at:
                self._again_at = None
                self._launch(spark)
        elif self.status is Status.RUNNING and self._query is not None:
            self._look_at_query(self._query)

    def _look_at_query(self, query: StreamingQuery) -> None:
        if not query.isActive:
            self._ended(self._reason(query))
        elif lost := self._lost():
            log.warning(
                "connector %s: %s was removed while it was in use. It is made anew, and the query is started again "
                "from the group's offsets.",
                *(self.settings.name, lost[0]),
            )
            query.stop()
            self._start_again(PAUSE_S)

    def _ended(self, failure: Failure | None) -> None:
        """The query ended by itself, or did not start."""
        self._commit_accepted()
        if failure is None:
            self.status = Status.DONE
            return
        pause_s = self._pause_before_restart(failure) if self._curable(failure) else None
        if pause_s is None:
            self._fail(failure)
            return
        log.warning("connector %s: %s Starting again from the group's offsets.", self.settings.name, failure.message)
        self._start_again(pause_s)

    def _start_again(self, pause_s: float) -> None:
        assert self.state is not None
        self.state.clear_for_restart()
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
        reaction = failure.reaction
        return reaction.restart is not Restart.NEVER and (reaction.at_start or bool(self.state.progress()))

    def _pause_before_restart(self, failure: Failure) -> float | None:
        """Seconds; None: no more. The registry, and a busy machine, do not use up the restarts: they are waited for."""
        assert self.state is not None
        assert self._given is not None
        now, restart = time.monotonic(), failure.reaction.restart
        if restart is Restart.REGISTRY and self._patience.lasts(now, self.settings.registry_patience_ms):
            return min(self._patience.pause_s, self.settings.registry_pause_ms / 1000)
        if restart is Restart.MACHINE:
            return min(self._busy.pause_s, BUSY_PAUSE_S) if self._busy.lasts(now, BUSY_MS) else None
        return self._restarts.pause_s(now, failure.message, group.standing(self._given, self.state))

    def ask_to_stop(self, asked_at: float | None = None) -> None:
        """Admits nothing more; the flush in progress goes on, for `stop_timeout_ms` from `asked_at` (monotonic)."""
        if self.status is Status.STARTING:
            self.status = Status.DONE
        if self.status is not Status.RUNNING or self.state is None:
            return
        self.status = Status.STOPPING
        self._stop_by = (time.monotonic() if asked_at is None else asked_at) + self.settings.stop_timeout_ms / 1000
        self.state.set(STOP, True)

    def _look_at_stop(self) -> None:
        """Ends the query once nothing is in flight, or in the end; then settles, without waiting for Spark for ever."""
        if self._ending is None:
            if self._in_flight():
                if time.monotonic() < self._stop_by:
                    return
                log.warning(
                    "connector %s: the flush in progress is given up, %g s after the stop was asked for "
                    "(connect.ems.stop.timeout.ms); its files are sent again at the next start, under the same names",
                    *(self.settings.name, self.settings.stop_timeout_ms / 1000),
                )
            self._ending = Thread(target=self._end_query, name=f"stop-{self.settings.name}", daemon=True)
            self._ending.start()
            self._stop_by = time.monotonic() + END_S
        elif not self._ending.is_alive() or time.monotonic() >= self._stop_by:
            self._settle()

    def _in_flight(self) -> bool:
        """Whether a flush may be in progress: not before the source looked for the first time, nor once it says so."""
        assert self.state is not None
        running = self._again_at is None and self._query is not None and self._query.isActive
        return running and bool(self.state.progress()) and not self.state.get(DRAINED)

    def _end_query(self) -> None:
        """Whatever goes wrong here: what is not committed is sent again."""
        for step in (self._stop_query, self._commit_accepted):
            try:
                step()
            except Exception as error:  # noqa: BLE001 - see above
                log.warning("connector %s: it did not stop in order: %s", self.settings.name, error)

    def _stop_query(self) -> None:
        if self._query is not None and self._query.isActive:
            self._query.stop()

    def _commit_accepted(self) -> None:
        if self._given is not None and self.state is not None:
            group.commit_accepted(self._given, self.state)

    def _settle(self) -> None:
        """After the query ended on our request: done, unless somebody's hand is needed. What waits is told."""
        assert self.state is not None
        failure = None if self._query is None or self._again_at is not None else self._reason(self._query)
        if failure is not None and not failure.reaction.passes:
            self._fail(failure)
            return
        self.status = Status.DONE
        if failure is not None:
            log.warning("connector %s: the last flush did not end well: %s", self.settings.name, failure.message)
        if behind := group.waiting(self.state):
            log.warning("%s", group.told(self.settings, behind))

    def finish(self, spark: SparkSession, sleep: Callable[[float], None] = time.sleep) -> None:
        """Waits until a stop that was asked for is over."""
        while self.active:
            self.look(spark)
            sleep(0.1)

    def crash(self, error: BaseException) -> None:
        """Something unforeseen went wrong with this connector here, in the program: it fails, the others go on."""
        log.debug("connector %s", self.settings.name, exc_info=error)
        self._fail(failure_of(error, self.settings.files.tmp_dir))
        Thread(target=self._end_query, name=f"stop-{self.settings.name}", daemon=True).start()

    def has_begun(self) -> bool:
        """Whether it knows where its topic-partitions start: its processes are there, and the broker answered."""
        return self.state is not None and bool(self.state.get(STARTED))

    def _fail(self, failure: Failure) -> None:
        self.status, self.failure = Status.FAILED, failure
        log.error("connector %s failed: %s", self.settings.name, failure.message)

    def close(self) -> None:
        """Lets go of the lock and removes the run folder."""
        if self.state is not None:
            self.state.close()
        self._lock.release()
        shutil.rmtree(self.folder, ignore_errors=True)
