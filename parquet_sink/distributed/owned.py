"""What a worker of a group does with connectors: it runs those that the assignment gives it, and reports on them.

A connector begins once the worker that had it has released it, or is no longer a member (then its lease is over), and
ends as soon as the assignment says so. What this worker was given as an earlier member of the group is no longer its.
"""

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from parquet_sink.connectors.loading import Loaded
from parquet_sink.distributed import records
from parquet_sink.distributed.assignment import Assignment, Placement, asked_to_release, placements_of, to_end
from parquet_sink.distributed.caretaker import Caretaker
from parquet_sink.distributed.group import Group, begun
from parquet_sink.distributed.records import ConnectorReport, Records
from parquet_sink.distributed.state import ConfigState
from parquet_sink.worker.herder.errors import HerderError
from parquet_sink.worker.herder.store import StoredConnector
from parquet_sink.worker.herder.values import ConnectorStatus, TargetState, TaskStatus
from parquet_sink.worker.loop.connector_registry import ConnectorRegistry, Outdated
from parquet_sink.worker.loop.herder import LocalHerder
from parquet_sink.worker.loop.request_queue import RequestQueue
from parquet_sink.worker.loop.status import Status

ASK_S: Final = 90.0
AGAIN_S: Final = 5.0
"""After which a record is sent again that is not in its topic."""
TURN_S: Final = 30.0
"""How long the others that move wait for one that does not begin where it is now: its brokers may not answer there."""
log = logging.getLogger(__name__)


@dataclass
class _Owned:
    """One connector that this worker runs, or lets end. restarted: offset of the last request that was followed."""

    member_id: str
    restarted: int
    leaves: bool = False
    topics: set[str] = field(default_factory=set)


class OwnedConnectors:
    """One thread calls `step`, again and again, and in the end `release_ended`. load: as the registry does it."""

    def __init__(
        self,
        group: Group,
        registry: ConnectorRegistry,
        local: LocalHerder,
        queue: RequestQueue,
        load: Callable[[Mapping[str, str], str], Loaded],
    ) -> None:
        self.group, self._registry, self._local, self._queue, self._load = group, registry, local, queue, load
        self._owned: dict[str, _Owned] = {}
        self._ended_s: dict[str, float] = {}
        self._sent: dict[bytes, tuple[bytes | None, float]] = {}
        self.caretaker = Caretaker(load)
        self.earlier: str | None = None
        """The member as which an earlier life of this worker was in the group, which is known to have ended."""

    @property
    def has_any(self) -> bool:
        """Whether it runs one, or lets one end."""
        return bool(self._owned)

    def has(self, name: str) -> bool:
        """Whether this worker runs it, so that it knows more of it than the topics say."""
        one = self._owned.get(name)
        return one is not None and not one.leaves

    def member_of(self, name: str) -> str | None:
        """The member of the group as which this worker was given the connector; None where it does not run it."""
        one = self._owned.get(name)
        return None if one is None else one.member_id

    def step(self) -> None:
        """Brings what runs nearer to the assignment; reports what changed. Raises HerderError while the loop ends."""
        config = self.group.config.state
        member_id, assignment = self.group.member_id, config.assignment
        self._end_earlier(assignment)
        mine = placements_of(assignment, self.group.worker_id, member_id)
        self._end_others(mine, member_id, config)
        self._forget_ended()
        self._release(member_id, assignment)
        self._announce_folders(mine, config)
        for name in sorted(mine.keys() & config.connectors.keys()):
            stored = StoredConnector(config.connectors[name], config.target_of(name))
            if name not in self._owned:
                if self.group.is_free(name, assignment):
                    self._begin(name, stored, member_id, config)
            elif not self._owned[name].leaves:
                self._follow(name, stored, config)
        self._report(mine, assignment.epoch)

    def _begin(self, name: str, stored: StoredConnector, member_id: str, config: ConfigState) -> None:
        self.caretaker.make_way(name)
        self._owned[name] = _Owned(member_id, config.offset_of(records.RESTART, name))
        self._ended_s.pop(name, None)
        log.info("connector %s: this worker has it now", name)
        said = self.group.status.state.connectors.get(name)
        elsewhere = said is not None and said.worker_id != self.group.worker_id
        self._queue.ask(partial(self._registry.adopt, name, stored, taken_over=elsewhere), ASK_S)

    def _end_earlier(self, assignment: Assignment) -> None:
        """Says for the earlier life what it cannot: it stops, and nothing of it runs. Its session is not waited for."""
        member_id, known = self.earlier, assignment.members.get(self.group.worker_id)
        if member_id is None or known is None or known.member_id != member_id:
            self.earlier = None
            return
        if self.group.status.state.leaving.get(self.group.worker_id) != member_id and self._say_leaving(member_id):
            log.info("this worker was killed as member %s, and has ended: others may have its connectors", member_id)
        self._release(member_id, assignment)

    def _end_others(self, mine: Mapping[str, Placement], member_id: str, config: ConfigState) -> None:
        runs = {name: one for name, one in self._owned.items() if not one.leaves}
        kept = {name for name, one in runs.items() if one.member_id == member_id} & config.connectors.keys()
        assignment, now_s, leaving = config.assignment, time.monotonic(), self.group.leaving
        asked = asked_to_release(assignment, self.group.worker_id, member_id, self.group.status.state.releases)
        nowhere = {name for name in asked if assignment.placements[name].worker in leaving}
        may_wait = kept - mine.keys() - nowhere  # for one that stops the leader soon names another
        self._ended_s = {name: at_s for name, at_s in self._ended_s.items() if name in assignment.placements}
        late = {name for name, at_s in self._ended_s.items() if now_s - at_s >= TURN_S}
        flushes = self._queue.ask(partial(self._registry.next_flushes, may_wait), ASK_S) if may_wait else {}
        over = begun(assignment, self.group.status.state) | late
        ending = to_end(assignment, self.group.worker_id, member_id, flushes, over) | (runs.keys() - kept)
        for name, one in self._owned.items():
            if name in ending:
                one.leaves = True
                log.info("connector %s: this worker ends it", name)
            if one.leaves and name in self._registry.connectors:
                with suppress(HerderError):  # it is asked for again
                    self._queue.ask(partial(self._registry.delete, name), ASK_S)

    def _forget_ended(self) -> None:
        """What was to end and has ended is this worker's no more."""
        if ending := [name for name, one in self._owned.items() if one.leaves]:
            busy = self._queue.ask(lambda: {one.name for one in self._registry.all()}, ASK_S)
            for name in ending:
                if name not in busy:
                    del self._owned[name]
                    self.caretaker.take_over(name)
                    self._ended_s[name] = time.monotonic()

    def _release(self, member_id: str, assignment: Assignment) -> None:
        """Says of what it runs no more that another worker may have it, as the assignment asks, until that is read."""
        asked = asked_to_release(assignment, self.group.worker_id, member_id, self.group.status.state.releases)
        for name, release in asked.items():
            if name not in self._owned and self._send(records.RELEASE.record(name, release, assignment.form)):
                log.info("connector %s: this worker has released it", name)

    def _announce_folders(self, mine: Mapping[str, Placement], config: ConfigState) -> None:
        """Say which connectors have a folder here, before they begin, until that is read."""
        worker_id, here = self.group.worker_id, self.caretaker.has_folder
        said = self.group.status.state.folders.get(worker_id, frozenset())
        names = {name for name in config.connectors if name in mine or here.get(name, name in said)}
        if names != said:
            self._send(records.FOLDERS.record(worker_id, frozenset(names), config.assignment.form))

    def _follow(self, name: str, stored: StoredConnector, config: ConfigState) -> None:
        """What was stored since: another configuration, another target state, a restart."""
        one, managed = self._owned[name], self._registry.connectors.get(name)
        if managed is None:  # it could not be begun in time; the next step tries again
            del self._owned[name]
            return
        try:
            if dict(managed.stored.config) != dict(stored.config):
                loaded = self._load(stored.config, name)
                self._queue.ask(partial(self._registry.configure, managed, loaded), ASK_S)
            if managed.target is not stored.target:
                again = self._load(stored.config, name) if managed.target is TargetState.STOPPED else None
                self._queue.ask(partial(self._registry.set_target, name, stored.target, again), ASK_S)
            asked, asked_at = config.of(records.RESTART).get(name), config.offset_of(records.RESTART, name)
            if asked is not None and asked_at > one.restarted:
                one.restarted = asked_at
                loaded = self._load(stored.config, name)
                restart = partial(self._registry.restart, name, loaded, only_failed=asked.only_failed)
                self._queue.ask(restart, ASK_S)
        except Outdated:  # the next step takes what is stored by then
            return

    def _report(self, mine: Mapping[str, Placement], epoch: int) -> None:
        for name, one in self._owned.items():
            if not one.leaves and name in mine:
                with suppress(HerderError):
                    self._report_status(self._local.status(name), mine[name], epoch)
                    self._report_topics(name, one)

    def _report_status(self, found: ConnectorStatus, placement: Placement, epoch: int) -> None:
        """What the topic does not say yet, again where it was lost on its way."""
        name, state = found.name, self.group.status.state
        said, tasks = state.tasks.get(name, {}), {one.id: one for one in found.tasks}
        if not self._is_said(state.connectors.get(name), found, placement):
            self._send(records.STATUS.record(name, self._report_of(found, epoch)))
        for number in tasks.keys() | said.keys():
            task = tasks.get(number)
            if not self._is_said(said.get(number), task, placement):
                report = None if task is None else self._report_of(task, epoch)
                self._send(records.TASK_STATUS.record(records.task_name(name, number), report))

    def _is_said(
        self, said: ConnectorReport | None, found: ConnectorStatus | TaskStatus | None, placement: Placement
    ) -> bool:
        """Whether it is in the topic already, as the worker's word since it was given the connector."""
        if said is None or found is None:
            return said is None and found is None
        return said.generation >= placement.epoch and said == self._report_of(found, said.generation)

    def _report_of(self, found: ConnectorStatus | TaskStatus, epoch: int) -> ConnectorReport:
        return ConnectorReport(found.state, found.trace, self.group.worker_id, epoch)

    def _report_topics(self, name: str, one: _Owned) -> None:
        """Active topics: those that are new, and after a reset none until records of one come again."""
        seen, stored = set(self._local.topics(name)), set(self.group.status.state.topics.get(name, ()))
        if one.topics and not one.topics & stored and seen:
            one.topics = set()
            self._queue.ask(partial(self._registry.reset_topics, name), ASK_S)
            return
        for topic in sorted(seen - one.topics - stored):
            now_ms = time.time_ns() // 1_000_000
            self.group.reports.send(records.topic_used(topic, name, 0, now_ms))
        one.topics = seen & stored

    def leave(self) -> None:
        """This worker was asked to stop: the leader gives all that it has to others."""
        self._say_leaving(self.group.member_id)
        self.group.reports.flush()

    def _say_leaving(self, member_id: str) -> bool:
        return self._send(records.LEAVING.record(self.group.worker_id, member_id, self.group.assignment.form))

    def _send(self, record: Records) -> bool:
        """Reports it, unless that was done a moment ago and may not have been read yet; whether it was done."""
        ((key, value),), now_s = record.items(), time.monotonic()
        last = self._sent.get(key)
        if last is not None and last[0] == value and now_s - last[1] < AGAIN_S:
            return False
        self._sent[key] = value, now_s
        self.group.reports.send(record)
        return True

    def release_ended(self) -> None:
        """While the worker stops, once its loop begins nothing any more: as connectors end, others may have them."""
        self._owned = {name: one for name, one in self._owned.items() if not self._ended(name)}
        self._release(self.group.member_id, self.group.assignment)

    def _ended(self, name: str) -> bool:
        """Whether nothing of it runs."""
        found = self._registry.connectors.get(name)
        return found is None or found.run is None or found.run.status in {Status.DONE, Status.FAILED}
