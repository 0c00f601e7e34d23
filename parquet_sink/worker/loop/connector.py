"""One connector's life: prepare, start, supervise, stop. What differs between kinds of connectors is its `Flow`.

Nothing here waits: what may take long is done in the background, and followed up at a later poll.

A query that fails for a reason waiting may cure (a lost worker, no answer from a broker in the middle of a range) is
started again from the group's offsets, a bounded number of times without progress; every other reason ends the
connector. So does whatever else goes wrong with it: the others of the process go on.
"""

import logging
import math
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from parquet_sink.errors import ConnectorError
from parquet_sink.model.events import (
    ConnectorFailed,
    ConnectorRestarting,
    ConnectorStarting,
    ConnectorStopped,
    ConnectorStopping,
    Event,
)
from parquet_sink.model.receipts import Failure
from parquet_sink.process.threads import in_thread
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.spark.causes import failure_of, message_of
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import BEGUN, COMING, FLUSH, LOOKED_MS, PAUSE, REPORTED_MS, SLOTS, STARTED, STOP, WARM_UP
from parquet_sink.worker.loop.flow import flow_of
from parquet_sink.worker.loop.request_queue import Background, at_once
from parquet_sink.worker.loop.restarts import PAUSE_S, ClockSteps, RestartPolicy
from parquet_sink.worker.loop.run_files import RunFiles
from parquet_sink.worker.loop.run_flushes import RunFlushes
from parquet_sink.worker.loop.status import Status

log = logging.getLogger(__name__)

T = TypeVar("T")
END_S: Final = 15.0
"""How long Spark may take to end a query that is to end, before it is left to the end of Java."""


class Connector:
    """Owns the files and the streaming query of one connector. emit: takes its events, and raises nothing.

    hand_on: called before it is closed, and before it is told to have stopped: what is new in its event log is read.
    waits: for brokers as long as its settings say also at the start. launch: starts queries, which takes a second or
    more, in a thread that knows the Spark session. background: asks Kafka, and ends queries. started_again: an earlier
    query ended.
    """

    def __init__(
        self,
        settings: ConnectorSettings,
        folder: Path,
        *,
        until_caught_up: bool = False,
        waits: bool = False,
        emit: Callable[[Event], None] = lambda event: None,
        hand_on: Callable[["Connector"], None] = lambda connector: None,
        launch: Background = at_once,
        background: Background = in_thread,
    ) -> None:
        self._launch_in_background, self._background = launch, background
        self.settings, self.folder = settings, folder
        self.status = Status.STARTING
        self.failure: Failure | None = None
        self._until_caught_up, self._emit, self._hand_on = until_caught_up, emit, hand_on
        self._flow = flow_of(settings)
        self._files = RunFiles(settings, folder, self._flow.make_ready)
        self.flushes = RunFlushes(settings.name)
        self._query: StreamingQuery | None = None
        self._launching: Future[StreamingQuery] | None = None
        self._pending: tuple[Future[Any], Callable[[Any], None]] | None = None
        self._slots, self._paused = 1, False
        self._begun = self.started_again = False
        self._started_s = 0.0
        self._clock = ClockSteps(time.time(), time.monotonic())
        self._restarts = RestartPolicy(
            registry_wait_ms=settings.registry_patience_ms,
            registry_pause_ms=settings.registry_pause_ms,
            bounds=settings.restart,
            waits=waits,
        )
        self._restart_at_s: float | None = None
        self._restart_why = ""
        self._given_up = False
        self._stop_asked_s: float | None = None
        self._stop_by_s = 0.0
        self._stopper: Future[None] | None = None

    @property
    def state(self) -> SqliteStore | None:
        """None until it is prepared."""
        return self._files.state

    @property
    def paused(self) -> bool:
        """Whether it runs, and is to admit nothing."""
        return self._paused and self.status is Status.RUNNING

    def news(self) -> Sequence[Event]:
        """What happened beside its query since this was asked last; its event log has all else."""
        return self._flow.news()

    def waiting_files(self) -> int:
        """How many wait for the archive, of a connector that does not wait for it."""
        return self._flow.waiting_files()

    @property
    def active(self) -> bool:
        return self.status in {Status.RUNNING, Status.STOPPING}

    @property
    def ended(self) -> bool:
        """Whether nothing of it runs any more, so that it may be closed."""
        late = time.monotonic() >= self._stop_by_s
        over = self.status in {Status.DONE, Status.FAILED} and (late or not self._in_background())
        return over and self.at_rest

    @property
    def at_rest(self) -> bool:
        """Whether nothing is done beside its query; asked of one that has ended, for which a stop's time is left."""
        timeout_s = self.settings.stop_timeout_ms / 1000
        since_s = time.monotonic() if self._stop_asked_s is None else self._stop_asked_s
        return self._flow.at_rest(max(since_s + timeout_s - time.monotonic(), 0.0))

    def _in_background(self) -> "list[Future[Any]]":
        """What is being done beside the loop: it may use the state."""
        begun = (self._stopper, None if self._pending is None else self._pending[0])
        return [one for one in begun if one is not None and not one.done()]

    @property
    def waits_for(self) -> tuple[str, float] | None:
        """Why its query is started again, and in how many seconds; None when that is not so."""
        if self._restart_at_s is None or self.status is not Status.RUNNING:
            return None
        return self._restart_why, max(self._restart_at_s - time.monotonic(), 0.0)

    @property
    def begun(self) -> bool:
        """Whether the checks of its query's start are done: brokers, topics and group were looked at."""
        if not self._begun and self.state is not None and self.active:
            with suppress(ConnectorError):  # the state file is gone: the next poll finds that, and says what follows
                self._begun = self.state.get(BEGUN)
        return self._begun

    def next_flush_s(self) -> float:
        """As of `Flow`; infinite where none is to come: it is paused, or does not run."""
        if self.state is not None and self.active and not self._paused:
            with suppress(ConnectorError):  # the state file is gone: the next poll finds that, and says what follows
                return self._flow.next_flush_s(self.state, self._started_s)
        return math.inf

    def planner_silent_s(self) -> float | None:
        """Return how long ago its planner looked, or the sink reported; None before it has begun, or while it ends."""
        if self.state is None or not self.steady or not self.begun:
            return None
        with suppress(ConnectorError):  # the state file is gone: the next poll finds that, and says what follows
            looked_ms, reported_ms = self.state.get(LOOKED_MS), self.state.get(REPORTED_MS)
            if looked_ms is not None:
                return max(time.monotonic() - max(looked_ms, reported_ms or 0) / 1_000, 0.0)
        return None

    def has_started(self) -> bool:
        """Whether it knows where its topic-partitions start: its processes are there, and the broker answered."""
        return self.state is not None and self.state.get(STARTED)

    def prepare(self) -> None:
        """Takes the lock and makes the folders ready: what needs no Spark. A failure is noted, not raised."""
        self._emit(ConnectorStarting(self.settings.name, time.time()))
        try:
            self._files.prepare()
        except ConnectorError as error:
            self._fail(error.failure())

    def start(
        self,
        spark: SparkSession,
        *,
        slots: int = 1,
        warm_up: bool = False,
        paused: bool = False,
        coming: Collection[str] = (),
    ) -> None:
        """Starts the query; prepares what is not prepared yet. What goes wrong is noted, not raised.

        slots: Spark tasks that it may run at once. warm_up: begin with a micro-batch that loads everything. paused:
        begin as after `pause`. coming: topics that need not be there yet, because a source beside it makes them.
        """
        if self._files.handoff is None:
            self.prepare()
        if self.status is not Status.STARTING or self.state is None:
            return
        self.share(slots)
        self.pause(paused)
        self.state.set(WARM_UP, warm_up)
        self.state.set(COMING, ",".join(sorted(coming)))
        self.status, self._started_s = Status.RUNNING, time.monotonic()
        self._launch(spark)

    def share(self, slots: int) -> None:
        """Changes how many Spark tasks it may run at once, from its next micro-batch on."""
        self._slots = slots
        if self.state is not None:
            self.state.set(SLOTS, slots)

    def pause(self, paused: bool) -> None:
        """While paused the flush in progress is finished and nothing more is admitted; its processes stay."""
        self._paused = paused
        if self.state is not None:
            self.state.set(PAUSE, paused)

    def _launch(self, spark: SparkSession) -> None:
        """Starts the query with a new checkpoint. An exception on the way is as a query that failed."""
        self._query = None
        self._clock = ClockSteps(time.time(), time.monotonic())
        try:
            self._files.restore({SLOTS: self._slots, PAUSE: self._paused, STARTED: True, FLUSH: self.flushes.text})
            assert self.state is not None
            self.state.set(BEGUN, False)
            self._begun = False
        except Exception as error:  # noqa: BLE001 - whatever it is, the other connectors go on
            self._not_launched(error)
            return
        self._launching = self._launch_in_background(partial(self._launched, spark))
        self._poll_launch()

    def _launched(self, spark: SparkSession) -> StreamingQuery:
        """In the thread that starts queries; one that nobody waits for any more is ended."""
        query = self._start_query(spark)
        if self._given_up:
            query.stop()
        return query

    def _start_query(self, spark: SparkSession) -> StreamingQuery:
        return self._flow.start_query(spark, self.folder, until_caught_up=self._until_caught_up)

    def _poll_launch(self) -> None:
        if self._launching is None or not self._launching.done():
            return
        launched, self._launching = self._launching, None
        try:
            self._query = launched.result()
        except (ConnectionError, Py4JNetworkError):  # Java is gone, and with it all connectors
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the other connectors go on
            self._not_launched(error)

    def _not_launched(self, error: Exception) -> None:
        log.debug("connector %s", self.settings.name, exc_info=error)
        self._on_query_end(failure_of(error, self.settings.tmp_dir))

    @property
    def steady(self) -> bool:
        """Whether its query runs, and nothing else is under way: what `poll` finds then may as well be found later."""
        pending = self._pending is not None or self._launching is not None or self._restart_at_s is not None
        return self.status is Status.RUNNING and self._query is not None and not pending

    def poll(self, spark: SparkSession) -> None:
        """Notices that the query ended; starts it again where that may help; goes on with a stop."""
        if self.status is Status.STOPPING:
            self._poll_stop()
        elif self.status is not Status.RUNNING or self._is_pending():
            return
        elif self._launching is not None:
            self._poll_launch()
        elif self._restart_at_s is not None:
            if time.monotonic() >= self._restart_at_s:
                self._restart_at_s = None
                self._launch(spark)
        elif self._query is not None:
            self._poll_query(self._query)

    def _begin_background(self, act: Callable[[], T], then: Callable[[T], None]) -> None:
        """then: what follows in the loop, with what `act` returned."""
        self._pending = self._background(act), then
        self._is_pending()

    def _is_pending(self) -> bool:
        """Whether something is done in the background; what follows it is done here, once that has ended."""
        if self._pending is not None and self._pending[0].done():
            (future, then), self._pending = self._pending, None
            then(future.result())
        return self._pending is not None

    def _poll_query(self, query: StreamingQuery) -> None:
        if not query.isActive:
            self._on_query_end(self._reason(query))
        elif missing := self._files.missing():
            self._begin_again(query, f"{missing[0]} was removed while it was in use. It is created again, and")
        elif back_s := self._clock.back_s(time.time(), time.monotonic()):
            self._begin_again(query, f"The clock was set back by {back_s:.0f} s, and Spark would wait so much longer;")

    def _begin_again(self, query: StreamingQuery, why: str) -> None:
        """Ends a query that cannot go on as it is. why: the beginning of a sentence."""
        reason = f"{why} the query is started again from {self._flow.origin}."
        log.warning("connector %s: %s", self.settings.name, reason)
        self._begin_background(query.stop, lambda stopped: self._schedule_restart(PAUSE_S, reason))

    def _on_query_end(self, failure: Failure | None) -> None:
        self._begin_background(partial(self._settled, failure), partial(self._on_settled, failure))

    def _settled(self, failure: Failure | None) -> float | None:
        """Settles what was delivered. Seconds until the query is started again; None: it is not."""
        self._settle_flow()
        return None if failure is None else self._pause_before_restart(failure)

    def _on_settled(self, failure: Failure | None, pause_s: float | None) -> None:
        if failure is None:
            self._stopped()
        elif pause_s is None:
            self._fail(failure)
        else:
            log.warning(
                "connector %s: %s Starting again from %s.", self.settings.name, failure.message, self._flow.origin
            )
            self._schedule_restart(pause_s, failure.message)

    def _schedule_restart(self, pause_s: float, why: str) -> None:
        assert self.state is not None
        self.started_again = True
        self._emit(ConnectorRestarting(self.settings.name, time.time(), why, pause_s))
        self.state.clear_for_restart()
        self._restart_at_s, self._restart_why = time.monotonic() + pause_s, why

    def _reason(self, query: StreamingQuery) -> Failure | None:
        """Why a query ended, in our words where there are any; None when nothing failed."""
        assert self.state is not None
        error = query.exception()
        if error is None:
            return None
        log.debug("connector %s: %s", self.settings.name, error)
        return self.state.failure() or failure_of(error, self.settings.tmp_dir)

    def _pause_before_restart(self, failure: Failure) -> float | None:
        state, handoff = self.state, self._files.handoff
        assert state is not None
        assert handoff is not None
        started = self._flow.has_begun(state)
        return self._restarts.pause_s(
            failure, time.monotonic(), lambda: self._flow.positions(handoff.instance, state), started=started
        )

    def request_stop(self, requested_at_s: float | None = None) -> None:
        """Admits nothing more; the flush in progress goes on, for `stop_timeout_ms` from then (monotonic seconds)."""
        if self._stop_asked_s is None:
            self._stop_asked_s = time.monotonic() if requested_at_s is None else requested_at_s
        if self.status is Status.STARTING:
            self._stopped()
        if self.status is not Status.RUNNING or self.state is None:
            return
        self.status = Status.STOPPING
        self._emit(ConnectorStopping(self.settings.name, time.time()))
        self._stop_by_s = self._stop_asked_s + self.settings.stop_timeout_ms / 1000
        self.state.set(STOP, True)

    def _poll_stop(self) -> None:
        """Ends the query once nothing is in flight, or in the end; then settles, without waiting for Spark for ever."""
        if self._stopper is None:
            if self._pending is not None and not self._pending[0].done() and time.monotonic() < self._stop_by_s:
                return
            if self._in_flight():
                if time.monotonic() < self._stop_by_s:
                    return
                log.warning(
                    "connector %s: the flush in progress is given up, %g s after the stop was asked for "
                    "(connect.ems.stop.timeout.ms); %s",
                    self.settings.name,
                    self.settings.stop_timeout_ms / 1000,
                    self._flow.given_up,
                )
            self._stopper = self._background(self._end_query)
            self._stop_by_s = time.monotonic() + END_S
        elif self._stopper.done() or time.monotonic() >= self._stop_by_s:
            self._settle()

    def _in_flight(self) -> bool:
        assert self.state is not None
        running = self._restart_at_s is None and self._query is not None and self._query.isActive
        return running and self._flow.in_flight(self.state)

    def _end_query(self) -> None:
        """Whatever goes wrong here: what is not committed is sent again."""
        for step in (self._stop_query, self._settle_flow):
            try:
                step()
            except Exception as error:
                log.warning("connector %s: it did not stop cleanly: %s", self.settings.name, message_of(error))
                log.debug("connector %s: it did not stop cleanly", self.settings.name, exc_info=True)

    def _stop_query(self) -> None:
        """One that is being started is waited for; what cannot be started needs no stop."""
        if self._launching is not None:
            try:
                self._query = self._launching.result(END_S)
            except Exception as error:  # noqa: BLE001 - see above
                log.debug("connector %s: its query did not start: %s", self.settings.name, error)
        if self._query is not None and self._query.isActive:
            self._query.stop()

    def _settle_flow(self) -> None:
        if self._files.handoff is not None and self.state is not None:
            self._flow.settle(self._files.handoff.instance, self.state)

    def _settle(self) -> None:
        """After the query ended on our request: done, unless the operator must act. What is not delivered is logged."""
        assert self.state is not None
        self._given_up = True
        failure = None if self._query is None or self._restart_at_s is not None else self._reason(self._query)
        if failure is not None and not failure.reaction.passes:
            self._fail(failure)
            return
        self._stopped()
        if failure is not None:
            log.warning("connector %s: the last flush failed: %s", self.settings.name, failure.message)
        if (left := self._flow.left(self.state)) is not None:
            log.warning("connector %s: %s", self.settings.name, left)

    def fail_unexpectedly(self, error: BaseException) -> None:
        """An uncaught error of this connector here, in the program: it fails, the others go on."""
        log.debug("connector %s", self.settings.name, exc_info=error)
        self._fail(failure_of(error, self.settings.tmp_dir))
        self._given_up, self._stop_by_s = True, time.monotonic() + END_S
        self._stopper = self._background(self._end_query)

    def _stopped(self) -> None:
        self._hand_on(self)
        self.status = Status.DONE
        self._emit(ConnectorStopped(self.settings.name, time.time()))

    def _fail(self, failure: Failure) -> None:
        self.status, self.failure = Status.FAILED, failure
        log.error("connector %s failed: %s", self.settings.name, failure.message)
        self._emit(ConnectorFailed(self.settings.name, time.time(), failure))

    def close(self) -> None:
        self._hand_on(self)
        self._given_up = True
        self._flow.close()
        self._files.close(self._in_background())
