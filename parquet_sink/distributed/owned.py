"""What a worker of a group does with connectors: it runs those that the assignment gives it, and reports on them.

A connector begins once the worker that had it has released it, or is no longer a member (then its lease is over), and
ends as soon as the assignment says so. What this worker was given as an earlier member of the group is no longer its.
"""

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from parquet_sink.connectors.loading import Loaded
from parquet_sink.distributed import records
from parquet_sink.distributed.assignment import FORM, Assignment, Placement, asked_to_release, free, placements_of
from parquet_sink.distributed.log import StatusWriter, TopicReader
from parquet_sink.distributed.membership import Membership
from parquet_sink.distributed.records import ConnectorReport
from parquet_sink.distributed.state import ConfigState, StatusState
from parquet_sink.worker.herder.errors import HerderError
from parquet_sink.worker.herder.store import StoredConnector
from parquet_sink.worker.herder.values import ConnectorStatus, TargetState
from parquet_sink.worker.loop.connector_registry import ConnectorRegistry, Outdated
from parquet_sink.worker.loop.herder import LocalHerder
from parquet_sink.worker.loop.request_queue import RequestQueue
from parquet_sink.worker.loop.status import Status

ASK_S: Final = 90.0
AGAIN_S: Final = 5.0
"""After which a record is sent again that is not in its topic."""
log = logging.getLogger(__name__)


@dataclass
class _Owned:
    """One connector that this worker runs, or lets end. restarted: offset of the last request that was followed."""

    member_id: str
    restarted: int
    leaves: bool = False
    topics: set[str] = field(default_factory=set)


class _Sent:
    """What was sent last of each thing, so that it is not sent again before it can have been read."""

    def __init__(self) -> None:
        self._last: dict[object, tuple[object, float]] = {}

    def is_due(self, what: object, value: object) -> bool:
        """Whether to send it now; then it counts as sent."""
        now_s = time.monotonic()
        last, at_s = self._last.get(what, (self, 0.0))
        due = last != value or now_s - at_s >= AGAIN_S
        if due:
            self._last[what] = value, now_s
        return due


def _says(said: ConnectorReport | None, report: ConnectorReport, since: int) -> bool:
    """Whether a report is in the topic already. since: epoch of the assignment that gave the worker the connector."""
    return said is not None and said.generation >= since and said == replace(report, generation=said.generation)


class OwnedConnectors:
    """One thread calls `step`, again and again, and in the end `release_ended`. load: as the registry does it."""

    def __init__(
        self,
        worker_id: str,
        membership: Membership,
        config: TopicReader[ConfigState],
        status: TopicReader[StatusState],
        reports: StatusWriter,
        registry: ConnectorRegistry,
        local: LocalHerder,
        queue: RequestQueue,
        load: Callable[[Mapping[str, str], str], Loaded],
    ) -> None:
        self._worker_id, self._membership, self._config, self._status = worker_id, membership, config, status
        self._reports, self._registry, self._local, self._queue, self._load = reports, registry, local, queue, load
        self._owned: dict[str, _Owned] = {}
        self._sent = _Sent()
        self.earlier: str | None = None
        """The member as which an earlier life of this worker was in the group, which is known to have ended."""

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
        config = self._config.state
        member_id, assignment = self._membership.now().member_id, config.assignment
        self._end_earlier(assignment)
        mine = placements_of(assignment, self._worker_id, member_id)
        self._end_others(mine, member_id, config)
        self._forget_ended()
        self._release(member_id, assignment)
        for name in mine:
            stored = stored_of(config, name)
            if stored is None:
                continue
            if name not in self._owned:
                if assignment is not None and free(assignment, name, self._status.state.releases.get(name)):
                    self._begin(name, stored, member_id, config)
            elif not self._owned[name].leaves:
                self._follow(name, stored, config)
        self._report(mine, 0 if assignment is None else assignment.epoch)

    def _was_elsewhere(self, name: str) -> bool:
        """By the word of the worker that ran it."""
        said = self._status.state.connectors.get(name)
        return said is not None and said.worker_id != self._worker_id

    def _begin(self, name: str, stored: StoredConnector, member_id: str, config: ConfigState) -> None:
        last = config.restarts.get(name)
        self._owned[name] = _Owned(member_id, -1 if last is None else last.offset)
        log.info("connector %s: this worker has it now", name)
        self._queue.ask(partial(self._registry.adopt, name, stored, taken_over=self._was_elsewhere(name)), ASK_S)

    def _end_earlier(self, assignment: Assignment | None) -> None:
        """Says for the earlier life what it cannot: it stops, and nothing of it runs. Its session is not waited for."""
        member_id = self.earlier
        known = None if assignment is None else assignment.members.get(self._worker_id)
        if member_id is None:
            return
        if known is None or known.member_id != member_id:
            self.earlier = None
            return
        if self._status.state.leaving.get(self._worker_id) != member_id and self._sent.is_due("leaving", member_id):
            log.info("this worker was killed as member %s, and has ended: others may have its connectors", member_id)
            self._say_leaving(member_id, assignment)
        self._release(member_id, assignment)

    def _end_others(self, mine: Mapping[str, Placement], member_id: str, config: ConfigState) -> None:
        for name, one in self._owned.items():
            if not one.leaves and not (name in mine and name in config.connectors and one.member_id == member_id):
                one.leaves = True
                log.info("connector %s: this worker ends it", name)
            if one.leaves and name in self._registry.connectors:
                with suppress(HerderError):  # it is asked for again
                    self._queue.ask(partial(self._registry.delete, name), ASK_S)

    def _forget_ended(self) -> None:
        """What was to end and has ended is this worker's no more."""
        ending = [name for name, one in self._owned.items() if one.leaves]
        if ending:
            busy = self._queue.ask(lambda: {one.name for one in self._registry.all()}, ASK_S)
            for name in ending:
                if name not in busy:
                    del self._owned[name]

    def _release(self, member_id: str, assignment: Assignment | None) -> None:
        """Says of what it runs no more that another worker may have it, as the assignment asks, until that is read."""
        asked = asked_to_release(assignment, self._worker_id, member_id, self._status.state.releases)
        for name, release in asked.items():
            if name not in self._owned and self._sent.is_due(name, (release, _form(assignment))):
                self._reports.send(records.release_key(name), records.release_value(release, _form(assignment)))
                log.info("connector %s: this worker has released it", name)

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
            asked = config.restarts.get(name)
            if asked is not None and asked.offset > one.restarted:
                one.restarted = asked.offset
                loaded = self._load(stored.config, name)
                restart = partial(self._registry.restart, name, loaded, only_failed=asked.only_failed)
                self._queue.ask(restart, ASK_S)
        except Outdated:  # the next step takes what is stored by then
            return

    def _report(self, mine: Mapping[str, Placement], epoch: int) -> None:
        for name, one in self._owned.items():
            if not one.leaves:
                with suppress(HerderError):
                    self._report_status(self._local.status(name), mine[name], epoch)
                    self._report_topics(name, one)

    def _report_status(self, found: ConnectorStatus, placement: Placement, epoch: int) -> None:
        """What the topic does not say yet, again where it was lost on its way."""
        name, known = found.name, self._status.state
        tasks = known.tasks.get(name, {})
        wanted: dict[int | None, ConnectorReport] = {
            None: ConnectorReport(found.state, found.trace, self._worker_id, epoch)
        }
        for one in found.tasks:
            wanted[one.id] = ConnectorReport(one.state, one.trace, self._worker_id, epoch)
        for task, report in wanted.items():
            said = known.connectors.get(name) if task is None else tasks.get(task)
            if not _says(said, report, placement.epoch) and self._sent.is_due((name, task), report):
                value = records.status_value(report.state, report.trace, report.worker_id, report.generation)
                self._reports.send(records.status_key(name, task), value)
        for task in tasks.keys() - wanted.keys():
            if self._sent.is_due((name, task), None):
                self._reports.send(records.status_key(name, task), None)

    def _report_topics(self, name: str, one: _Owned) -> None:
        """Active topics: those that are new, and after a reset none until records of one come again."""
        seen, stored = set(self._local.topics(name)), set(self._status.state.topics.get(name, ()))
        if one.topics and not one.topics & stored and seen:
            one.topics = set()
            self._queue.ask(partial(self._registry.reset_topics, name), ASK_S)
            return
        for topic in sorted(seen - one.topics - stored):
            now_ms = time.time_ns() // 1_000_000
            self._reports.send(records.topic_key(topic, name), records.topic_value(topic, name, 0, now_ms))
        one.topics = seen & stored

    def leave(self) -> None:
        """This worker was asked to stop: the leader gives all that it has to others."""
        self._say_leaving(self._membership.now().member_id, self._config.state.assignment)
        self._reports.flush(2.0)

    def _say_leaving(self, member_id: str, assignment: Assignment | None) -> None:
        value = records.leaving_value(member_id, _form(assignment))
        self._reports.send(records.leaving_key(self._worker_id), value)

    def release_ended(self) -> None:
        """While the worker stops, once its loop begins nothing any more: as connectors end, others may have them."""
        for name in [name for name in self._owned if self._ended(name)]:
            del self._owned[name]
        self._release(self._membership.now().member_id, self._config.state.assignment)

    def _ended(self, name: str) -> bool:
        """Whether nothing of it runs."""
        found = self._registry.connectors.get(name)
        return found is None or found.run is None or found.run.status in {Status.DONE, Status.FAILED}


def _form(assignment: Assignment | None) -> int:
    """In which all in the group can read what is written."""
    return FORM if assignment is None else assignment.form


def stored_of(config: ConfigState, name: str) -> StoredConnector | None:
    """A connector as a store has it."""
    found = config.connectors.get(name)
    return None if found is None else StoredConnector(found, config.targets.get(name, TargetState.STARTED))
