"""One connector of a worker: what it is to be, what it is, and the steps from one to the other."""

import logging
import time
from dataclasses import replace
from typing import Final

from parquet_sink.connectors.kinds import find_kind
from parquet_sink.connectors.loading import Loaded
from parquet_sink.model.receipts import Failure
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.worker.herder.store import StoredConnector
from parquet_sink.worker.herder.values import ConnectorInfo, ConnectorStatus, State, TargetState, TaskStatus
from parquet_sink.worker.loop.connector import Connector
from parquet_sink.worker.loop.status import Status

log = logging.getLogger(__name__)

MOST_TASKS: Final = 1_000
"""Tasks that are listed, however many `tasks.max` allows: a micro-batch never has as many as that."""
_STATES: Final = {
    Status.STARTING: State.UNASSIGNED,
    Status.RUNNING: State.RUNNING,
    Status.STOPPING: State.RUNNING,
    Status.DONE: State.UNASSIGNED,
    Status.FAILED: State.FAILED,
}
_IS_SOURCE: Final = (
    "Connector {} is a source: nothing waits in it, and what it reads goes to Kafka with each micro-batch. Flush sinks."
)
_NOT_BEGUN: Final = "Connector {} has not begun, or is being started again; ask for the flush again in a moment."
NO_FLUSH: Final = {
    State.STOPPED: "Connector {} is stopped, so nothing of it runs; resume it, then ask for the flush again.",
    State.PAUSED: "Connector {} is paused, so it delivers nothing; resume it, then ask for the flush again.",
    State.FAILED: "Connector {} has failed; see its status for the cause and restart it, then ask for the flush again.",
}
_MAY_WAIT: Final = frozenset({State.UNASSIGNED, State.RUNNING, State.RESTARTING})
_READ: Final = "Its configuration is being read."
_NEXT: Final = "It starts next, once no other connector with its name or consumer group is ending."
_FOR_SPARK: Final = "It starts once Spark is up and the connectors before it have begun."
_CHECKS: Final = "Its start is being checked: brokers, topics and offsets."
"""Of a connector that is to run and has not begun."""


class ManagedConnector:
    """stored: as the store has it. loaded: its configuration, validated when it was given, or when it is started.

    run: what runs, or ran and failed; None while there is nothing. A run is of one configuration: another one takes its
    place once it has finished its flush and ended. altered_by: who changes its group's offsets now, so that it must
    not start. read_again_s: when a configuration that could not be read is read again (monotonic). taken_over: another
    worker ran it, and it has not begun here.
    """

    def __init__(self, name: str, stored: StoredConnector, loaded: Loaded) -> None:
        self.name, self.stored, self.loaded = name, stored, loaded
        self.run: Connector | None = None
        self.deleted = False
        self.altered_by: object = None
        self.taken_over = False
        self.read_again_s = 0.0
        self._replaced = self._restarting = False
        self._paused = False

    @property
    def settings(self) -> ConnectorSettings | None:
        """None when the configuration turned out to be wrong, or was not read yet."""
        return self.loaded.settings

    @property
    def unread(self) -> bool:
        """Whether its configuration is to be read, now or again: a config provider was unavailable."""
        return self.settings is None and self.loaded.again is not None and not self.deleted

    def give_up(self) -> None:
        """Its configuration is not read again: what is wrong with it is its failure."""
        self.loaded = replace(self.loaded, again=None)

    @property
    def target(self) -> TargetState:
        return self.stored.target

    @property
    def failed(self) -> bool:
        if self.target is TargetState.STOPPED:
            return False
        broken = self.settings is None and not self.unread
        return broken or (self.run is not None and self.run.status is Status.FAILED)

    @property
    def wants_run(self) -> bool:
        may = not self.deleted and self.altered_by is None and self.target is not TargetState.STOPPED
        return may and self.run is None and self.settings is not None

    @property
    def counts(self) -> bool:
        """Whether it has a share of Spark's slots."""
        running = self.run is not None and self.run.status not in {Status.FAILED, Status.DONE}
        return running or self.wants_run or (self.unread and self.target is not TargetState.STOPPED)

    def begin(self, run: Connector) -> None:
        """This is what runs from now on; it was not started yet."""
        self.run, self._paused = run, self.paused
        run.prepare()

    @property
    def paused(self) -> bool:
        return self.target is TargetState.PAUSED

    @property
    def keeps_from_flushing(self) -> str | None:
        """Why nothing can be flushed now, with the cure; None when it can. What is paused delivers nothing at all."""
        if self.settings is not None and find_kind(self.settings.kind).type == "source":
            return _IS_SOURCE.format(self.name)
        wanted = {TargetState.STOPPED: State.STOPPED, TargetState.PAUSED: State.PAUSED}.get(self.target, self.state)
        state = State.FAILED if self.failed else wanted
        if state in NO_FLUSH:
            return NO_FLUSH[state].format(self.name)
        if self.run is None or self.run.state is None or not self.run.active or self._replaced:
            return _NOT_BEGUN.format(self.name)
        return None

    def change(self, stored: StoredConnector, loaded: Loaded) -> None:
        """Another configuration, which is right. What differs in nothing that matters, and runs, runs on."""
        before, self.stored, self.loaded = self.settings, stored, loaded
        if before != loaded.settings or self.failed:
            self.replace()

    def replace(self) -> None:
        """What runs is ended, and begins again."""
        self._replaced = self.run is not None
        self._restarting = self.target is not TargetState.STOPPED and (self.settings is not None or self.unread)

    def step(self, stop_requested_at_s: float | None = None) -> None:
        """Brings what runs nearer to what it is to be. stop_requested_at_s: all are to end (monotonic seconds)."""
        run = self.run
        if run is None:
            return
        if not self._replaced and run.status is not Status.STARTING and (run.begun or not run.active):
            self._restarting = False
        if stop_requested_at_s is not None:
            run.request_stop(stop_requested_at_s)
        elif self.deleted or self._replaced or self.target is TargetState.STOPPED or self.settings is None:
            self._end(run)
        elif self._paused != self.paused:
            run.pause(self.paused)
            self._paused = self.paused

    def _end(self, run: Connector) -> None:
        """A stop cannot be taken back: whatever is requested meanwhile, another run follows this one."""
        self._replaced = True
        if run.ended:
            self.run, self._replaced = None, False
            run.close()
        else:
            run.request_stop()

    def info(self) -> ConnectorInfo:
        return ConnectorInfo(self.name, dict(self.stored.config), len(self._task_ids()), self.loaded.warnings)

    def status(self, worker_id: str, waits_for: str) -> ConnectorStatus:
        """waits_for: what is known of that from events; what is waited for here goes first."""
        state, trace = self.state, self._trace()
        tasks = tuple(TaskStatus(number, state, worker_id, trace) for number in self._task_ids())
        waits = (self._waits() or waits_for or self._begins()) if state in _MAY_WAIT else ""
        return ConnectorStatus(self.name, state, worker_id, tasks, trace, waits)

    @property
    def state(self) -> State:
        """What it does now: STOPPED once nothing of it runs, and FAILED whatever else is requested."""
        if self.run is None:
            return self._state_of_nothing()
        if self._restarting and self.target is not TargetState.STOPPED:
            return State.RESTARTING
        state = _STATES[self.run.status]
        if state is not State.RUNNING:
            return state
        if not self.run.begun:
            return State.RESTARTING if self.run.started_again else State.UNASSIGNED
        if self._paused and self.paused:
            return State.PAUSED
        return State.RUNNING if self.run.waits_for is None else State.RESTARTING

    def _state_of_nothing(self) -> State:
        if self.target is TargetState.STOPPED:
            return State.STOPPED
        if self.settings is None and not self.unread:
            return State.FAILED
        if self.unread and self.loaded.problems:
            return State.RESTARTING
        return State.RESTARTING if self._restarting else State.UNASSIGNED

    def _task_ids(self) -> range:
        """None of what is stopped, has not begun, or cannot begin."""
        if self.settings is None or self.state in {State.STOPPED, State.UNASSIGNED}:
            return range(0)
        return range(min(self.settings.tasks_max or 1, MOST_TASKS))

    def _trace(self) -> str:
        if self.state is not State.FAILED:
            return ""
        if self.settings is None:
            return "\n".join(self.loaded.problems)
        failure: Failure | None = None if self.run is None else self.run.failure
        return "" if failure is None else f"parquet_sink.errors.{failure.kind}: {failure.message}"

    def _begins(self) -> str:
        """What is being done before it runs; empty when it runs."""
        if self.run is None:
            return _READ if self.unread else _NEXT
        if self.run.status is Status.STARTING:
            return _FOR_SPARK
        return "" if self.run.begun else _CHECKS

    def _waits(self) -> str:
        if self._replaced and self.run is not None:
            return "The flush in progress is finished first."
        if self.unread and self.loaded.problems:
            wait_s = max(self.read_again_s - time.monotonic(), 0.0)
            return f"{' '.join(self.loaded.problems).rstrip('.')}; its configuration is read again in {wait_s:.0f} s."
        waits = None if self.run is None else self.run.waits_for
        return "" if waits is None else f"{waits[0].rstrip('.')}; its query is started again in {waits[1]:.0f} s."
