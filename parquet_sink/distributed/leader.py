"""The leader of a group of workers: it alone writes the config topic, and says which worker has which connector.

It is the worker that Kafka's group coordinator gave the config topic's one topic-partition. A former leader that does
not know yet that it leads no more is fenced by the broker: both write with the same transactional id.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from parquet_sink.distributed import records
from parquet_sink.distributed.assignment import Assignment, MemberInfo, assign
from parquet_sink.distributed.group import Group
from parquet_sink.distributed.log import ConfigWriter, Deposed, NotConfirmed, TopicReader
from parquet_sink.distributed.records import Records
from parquet_sink.distributed.signing import is_due, new_key
from parquet_sink.distributed.state import CURE, ConfigState
from parquet_sink.errors import BrokerAway, KafkaFailed, SinkError
from parquet_sink.process.lease import clock_ns
from parquet_sink.worker.herder.errors import NotLeader, OffsetsBusy, TimedOut
from parquet_sink.worker_config.distributed import DistributedSettings

LOOK_S: Final = 0.25
"""How often members and what they reported are looked at, where nothing wakes the leader."""
REST_S: Final = 5.0
"""How long a lost worker that is back is given nothing that runs elsewhere: it ends what it had first."""
TASKS: Final = "tasks.max"
log = logging.getLogger(__name__)


class Leader:
    """Of one worker; it does nothing while another one leads. writer: of the config topic, open while this one leads.

    `step` is called by one thread, `write` by any.
    """

    def __init__(self, group: Group, writer: ConfigWriter, settings: DistributedSettings) -> None:
        self._group, self._writer, self._settings = group, writer, settings
        self._sync_s = settings.sync_ms / 1_000
        self._lock = threading.RLock()
        self._altered: set[str] = set()
        self._removed_releases: dict[str, int] = {}
        self._lost = LostWorkers()
        self._away = ""

    @property
    def leads(self) -> bool:
        return self._writer.is_open

    def step(self) -> None:
        """Takes over, or stands down; then gives connectors to workers.

        A worker that was frozen may still take itself for the leader: without a lease it does nothing.

        Raises SetupError, KafkaFailed when this worker is not a member any more, nor will be.
        """
        member = self._group.membership.now()
        if not member.leads or member.lease_until_ns <= clock_ns():
            self.stand_down()
            return
        try:
            with self._lock:
                if not self.leads:
                    self._take_over()
            # Not before: a former leader may have assigned to one who joined since, and who would be taken for lost.
            members = self._group.membership.members()
            with self._lock:
                if self.leads:
                    self._assign(members)
            self._away = ""
        except Deposed:
            log.info("another worker leads the group now")
            self.stand_down()
        except SinkError as error:
            if str(error) != self._away:
                log.warning("the leader of the workers waits: %s", error)
            self._away = str(error)
            self.stand_down()

    def _take_over(self) -> None:
        """Nothing is judged before all that earlier leaders wrote was read."""
        try:
            self._writer.open()
            self._read_to_end(self._group.config, self._group.status)
        except BaseException:
            self._writer.close()
            raise
        log.info("this worker leads the group")

    def _read_to_end(self, *topics: TopicReader[Any]) -> None:
        if not all(one.read_to_end(self._sync_s) for one in topics):
            raise BrokerAway(
                f"the topics of the workers were not read to their ends within {self._sync_s:g} s "
                "(worker.sync.timeout.ms)."
            )

    def stand_down(self) -> None:
        """It leads no more, until the next step."""
        with self._lock:
            self._writer.close()
            self._altered.clear()

    def _assign(self, members: Sequence[MemberInfo]) -> None:
        if not members:
            return  # this worker is not in its group yet, or not any more
        state, reported = self._group.config.state, self._group.status.state
        now_ms = time.time_ns() // 1_000_000
        if state.cluster != self._settings.group_id:
            self._commit(records.CLUSTER.record("", self._settings.group_id))
        if is_due(state.session_key, self._settings, now_ms):
            self._commit(records.SESSION_KEY.record("", new_key(self._settings, now_ms)))
        if (newer := state.unreadable.get(records.ASSIGNMENT.prefix)) is not None:
            raise KafkaFailed(f"the assignment in the config topic cannot be read: {newer}. {CURE}.")
        found = assign(
            state.assignment,
            self._group.worker_id,
            members,
            {name: _weight(config) for name, config in state.connectors.items()},
            now_ms=now_ms,
            leaving=frozenset(reported.leaving.values()),
            resting=self._lost.resting(state.assignment, members, reported.leaving, time.monotonic()),
            releases=reported.releases,
            delay_ms=self._settings.delay_ms,
        )
        if found is not None:
            self._commit(records.ASSIGNMENT.record("", found, found.form))
            _log_moves(state.assignment, found)
        self._remove_releases()

    def _remove_releases(self) -> None:
        """Remove the releases of deleted connectors once nobody waits for them; each release once."""
        config, reported = self._group.config.state, self._group.status.state
        for name in reported.releases.keys() - config.assignment.placements.keys() - config.connectors.keys():
            offset = reported.offset_of(records.RELEASE, name)
            if self._removed_releases.get(name) != offset:
                self._removed_releases[name] = offset
                self._group.reports.send(records.RELEASE.record(name, None))

    def write(self, decide: Callable[[ConfigState], Records]) -> None:
        """Writes what `decide` makes of how the topic stands at its end, whole or not at all.

        Raises NotLeader, TimedOut; what `decide` raises.
        """
        with self._lock:
            self.require()
            change = decide(self._group.config.state)
            try:
                if change:
                    self._commit(change)
            except SinkError as error:
                self.stand_down()
                if isinstance(error, NotConfirmed) and not error.may_be_written:
                    raise NotLeader(None) from None
                raise TimedOut(f"Request timed out. It may have been stored: {error}") from None

    def _commit(self, change: Records) -> None:
        self._writer.write(change)
        self._read_to_end(self._group.config)

    def require(self) -> None:
        """Raises NotLeader, with the REST API of another worker where another one leads."""
        if not self.leads:
            assignment = self._group.assignment
            leader = assignment.members.get(assignment.leader)
            here = assignment.leader == self._group.worker_id or self._group.membership.now().leads
            raise NotLeader(None if here or leader is None else leader.url)

    @contextmanager
    def altering(self, name: str) -> Iterator[None]:
        """Within, nobody starts this connector, nor alters its offsets. Raises NotLeader, OffsetsBusy."""
        with self._lock:
            self.require()
            self.refuse_altered(name)
            self._altered.add(name)
        try:
            yield
        finally:
            with self._lock:
                self._altered.discard(name)

    def refuse_altered(self, name: str) -> None:
        """Raises OffsetsBusy while its offsets are being changed."""
        if name in self._altered:
            raise OffsetsBusy(f"The offsets of connector {name} are being changed by another request; wait for it.")


class LostWorkers:
    """Of one leader: which workers were lost, and until when they rest once they are back."""

    def __init__(self) -> None:
        self._until_s: dict[str, float | None] = {}

    def resting(
        self, before: Assignment, members: Sequence[MemberInfo], leaving: Mapping[str, str], now_s: float
    ) -> frozenset[str]:
        """Ids of those that are back and rest. before: who was there. leaving: by worker id, who was asked to stop."""
        there = {(one.worker_id, one.member_id) for one in members}
        for one in before.members.values():
            if (one.worker_id, one.member_id) not in there and leaving.get(one.worker_id) != one.member_id:
                self._until_s[one.worker_id] = None
        back = {one.worker_id for one in members}
        for worker, until_s in [*self._until_s.items()]:
            if until_s is None and worker in back:
                self._until_s[worker] = now_s + REST_S
            elif until_s is not None and until_s <= now_s:
                del self._until_s[worker]
        return frozenset(worker for worker, until_s in self._until_s.items() if until_s is not None)


def _weight(config: Mapping[str, str]) -> int:
    """How much a connector weighs: its tasks; 1 where that cannot be read."""
    text = config.get(TASKS, "").strip()
    return max(int(text), 1) if text.isascii() and text.isdigit() and len(text) < 6 else 1


def _log_moves(before: Assignment, now: Assignment) -> None:
    moved = [
        f"{name} to {one.worker or 'no worker'} ({one.reason})"
        for name, one in now.placements.items()
        if name not in before.placements or before.placements[name].worker != one.worker
    ]
    members = ", ".join(sorted(now.members))
    log.info("assignment %d of workers %s: %s", now.epoch, members, "; ".join(moved) or "nothing moves")
