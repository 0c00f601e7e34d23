"""The leader of a group of workers: it alone writes the config topic, and says which worker has which connector.

It is the worker that Kafka's group coordinator gave the config topic's one topic-partition. A former leader that does
not know yet that it leads no more is fenced by the broker: both write with the same transactional id.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from parquet_sink.distributed import records
from parquet_sink.distributed.assignment import Assignment, MemberInfo, assign
from parquet_sink.distributed.log import ConfigWriter, Deposed, NotAnswered, TopicReader
from parquet_sink.distributed.membership import Membership
from parquet_sink.distributed.signing import is_due, new_key
from parquet_sink.distributed.state import CURE, ConfigState, StatusState
from parquet_sink.errors import BrokerAway, KafkaFailed, SinkError
from parquet_sink.process.lease import clock_ns
from parquet_sink.worker.herder.errors import NotLeader, OffsetsBusy, TimedOut
from parquet_sink.worker_config.distributed import DistributedSettings

LOOK_S: Final = 0.25
"""How often members and what they reported are looked at, where nothing wakes the leader."""
REST_S: Final = 5.0
"""How long a lost worker that is back is given nothing that runs elsewhere: it ends what it had first."""
_NOT_READ: Final = "the topics of the workers were not read to their ends within {:g} s (worker.sync.timeout.ms)."
TASKS: Final = "tasks.max"
log = logging.getLogger(__name__)
T = TypeVar("T")
Change = Mapping[bytes, bytes | None]
"""Records of the config topic; None removes one."""


class Leader:
    """Of one worker; it does nothing while another one leads. make_writer: of the config topic.

    `step` is called by one thread, `write` by any.
    """

    def __init__(
        self,
        worker_id: str,
        membership: Membership,
        config: TopicReader[ConfigState],
        status: TopicReader[StatusState],
        make_writer: Callable[[], ConfigWriter],
        settings: DistributedSettings,
    ) -> None:
        self._worker_id, self._membership, self._settings = worker_id, membership, settings
        self._config, self._status, self._make_writer = config, status, make_writer
        self._sync_s = settings.sync_ms / 1_000
        self._lock = threading.RLock()
        self._writer: ConfigWriter | None = None
        self._news = threading.Event()
        self._altered: set[str] = set()
        self._lost = LostWorkers()
        self._away = ""

    @property
    def leads(self) -> bool:
        return self._writer is not None

    def wait(self, for_s: float) -> None:
        """Until there is news, or for so long."""
        self._news.wait(for_s)
        self._news.clear()

    def wake(self) -> None:
        """Something was written, reported, or happened in the group."""
        self._news.set()

    def step(self) -> None:
        """Takes over, or stands down; then gives connectors to workers.

        A worker that was frozen may still take itself for the leader: without a lease it does nothing.

        Raises SetupError, KafkaFailed when this worker is not a member any more, nor will be.
        """
        member = self._membership.now()
        if not member.leads or member.lease_until_ns <= clock_ns():
            self._stand_down()
            return
        try:
            with self._lock:
                if self._writer is None:
                    self._take_over()
            # Not before: a former leader may have assigned to one who joined since, and who would be taken for lost.
            members = self._membership.members()
            with self._lock:
                if self._writer is not None:
                    self._assign(members)
            self._away = ""
        except Deposed:
            log.info("another worker leads the group now")
            self._stand_down()
        except SinkError as error:
            if str(error) != self._away:
                log.warning("the leader of the workers waits: %s", error)
            self._away = str(error)
            self._stand_down()

    def _take_over(self) -> None:
        """Nothing is judged before all that earlier leaders wrote was read."""
        writer = self._make_writer()
        try:
            writer.open()
            self._read_to_ends()
        except BaseException:
            writer.close()
            raise
        self._writer = writer
        log.info("this worker leads the group")

    def _read_to_ends(self) -> None:
        if not self._config.read_to_end(self._sync_s) or not self._status.read_to_end(self._sync_s):
            raise BrokerAway(_NOT_READ.format(self._sync_s))

    def _stand_down(self) -> None:
        with self._lock:
            writer, self._writer = self._writer, None
            self._altered.clear()
        if writer is not None:
            writer.close()

    def _assign(self, members: Sequence[MemberInfo]) -> None:
        if not members:
            return  # this worker is not in its group yet, or not any more
        state, now_ms = self._config.state, time.time_ns() // 1_000_000
        if state.cluster != self._settings.group_id:
            self._commit({records.CLUSTER_KEY: records.cluster_value(self._settings.group_id)})
        if is_due(state.session_key, self._settings, now_ms):
            self._commit({records.SESSION_KEY: records.session_value(new_key(self._settings, now_ms))})
        if (newer := state.unreadable.get(records.ASSIGNMENT_KEY.decode())) is not None:
            raise KafkaFailed(f"the assignment in the config topic cannot be read: {newer}. {CURE}.")
        found = assign(
            state.assignment,
            self._worker_id,
            members,
            {name: _weight(config) for name, config in state.connectors.items()},
            now_ms=now_ms,
            leaving=frozenset(self._status.state.leaving.values()),
            resting=self._lost.resting(state.assignment, members, self._status.state.leaving, time.monotonic()),
            releases=self._status.state.releases,
            delay_ms=self._settings.delay_ms,
        )
        if found is not None:
            self._commit({records.ASSIGNMENT_KEY: records.assignment_value(found)})
            _log_moves(state.assignment, found)

    def write(self, decide: Callable[[ConfigState], tuple[Change, T]]) -> T:
        """Writes what `decide` makes of how the topic stands at its end, whole or not at all; what it gives beside.

        Raises NotLeader, TimedOut; what `decide` raises.
        """
        with self._lock:
            if self._writer is None:
                raise NotLeader(self.url_of_leader())
            change, answer = decide(self._config.state)
            if change:
                self._try_commit(change)
                self.wake()
            return answer

    def _try_commit(self, change: Change) -> None:
        try:
            self._commit(change)
        except SinkError as error:
            self._stand_down()
            if isinstance(error, Deposed | NotAnswered) and not error.may_be_written:
                raise NotLeader(None) from None
            raise TimedOut(f"Request timed out. It may have been stored: {error}") from None

    def _commit(self, change: Change) -> None:
        assert self._writer is not None
        self._writer.write(change)
        if not self._config.read_to_end(self._sync_s):
            raise BrokerAway(_NOT_READ.format(self._sync_s))

    def url_of_leader(self) -> str | None:
        """Of another worker's REST API; None while no other leads."""
        assignment = self._config.state.assignment
        if assignment is None or assignment.leader == self._worker_id or self._membership.now().leads:
            return None
        leader = assignment.members.get(assignment.leader)
        return None if leader is None else leader.url

    def require(self) -> None:
        """Raises NotLeader."""
        if self._writer is None:
            raise NotLeader(self.url_of_leader())

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

    def close(self) -> None:
        """It leads no more."""
        self._stand_down()


class LostWorkers:
    """Of one leader: which workers were lost, and until when they rest once they are back."""

    def __init__(self) -> None:
        self._until_s: dict[str, float | None] = {}

    def resting(
        self, before: Assignment | None, members: Sequence[MemberInfo], leaving: Mapping[str, str], now_s: float
    ) -> frozenset[str]:
        """Ids of those that are back and rest. before: who was there. leaving: by worker id, who was asked to stop."""
        there = {(one.worker_id, one.member_id) for one in members}
        for one in () if before is None else before.members.values():
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


def _log_moves(before: Assignment | None, now: Assignment) -> None:
    former = {} if before is None else before.placements
    moved = [
        f"{name} to {one.worker or 'no worker'} ({one.reason})"
        for name, one in now.placements.items()
        if name not in former or former[name].worker != one.worker
    ]
    members = ", ".join(sorted(now.members))
    log.info("assignment %d of workers %s: %s", now.epoch, members, "; ".join(moved) or "nothing moves")
