"""Membership of a worker in the cluster's consumer group: its member id, whether it leads, and its lease.

Every worker has one consumer in the group `group.id`, subscribed to the config topic, which has one partition: who is
assigned that leads. Its records are read elsewhere (`distributed/log.py`); here they are paused.

**The lease** says until when the coordinator cannot have removed this member. A commit of an offset keeps a classic
member's session alive at the coordinator (Kafka's `OffsetMetadataManager.validateOffsetCommit`), so one that was sent
at T and confirmed proves that the member is in the group until T + session.timeout.ms, whatever happens to this
process. Four fifths of it are counted on: clocks run at different rates. Whoever takes over from a member that was
removed therefore need not wait. A heartbeat proves the same, but librdkafka does not tell when it sent one.

While a rebalance goes on, commits wait behind the JoinGroup request on the same connection, and fail then, because the
generation is a new one; the next one is made at once. A member that left, or joins, ends that wait within
heartbeat.interval.ms. A lost one that is still in the group when another joins makes it last until its session
is over, which is why a worker that comes back at once waits a little (`_let_go`), and why commits are made that often.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from parquet_sink.distributed.assignment import FORM, MemberInfo
from parquet_sink.errors import KafkaFailed, KafkaRefused, SetupError, SinkError
from parquet_sink.kafka.client import errors as client_errors
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.client.renewal import TimeLimited
from parquet_sink.kafka.client.rights import to_commit, to_read, to_see_group
from parquet_sink.kafka.cluster.requests import AdminRequests
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.process.lease import clock_ns
from parquet_sink.process.threads import in_thread

log = logging.getLogger(__name__)

POLL_S: Final = 0.1
RETRY_MS: Final = 300
CLOSE_S: Final = 3.0
"""How long leaving the group may take. Who does not get through is removed when its session is over."""
LEASE: Final = 0.8
CONFIRMED_EACH: Final = 0.1
"""Of the session: the length of a lease, and how often it is renewed."""
_MILLISECOND: Final = 1_000_000
WriteLease = Callable[[str, int], None]


@dataclass(frozen=True)
class GroupTiming:
    """session.timeout.ms, heartbeat.interval.ms and rebalance.timeout.ms, as in Kafka Connect."""

    session_ms: int
    heartbeat_ms: int
    rebalance_ms: int

    @property
    def lease_ms(self) -> int:
        """How long a confirmation is counted on."""
        return int(self.session_ms * LEASE)

    @property
    def interval_ms(self) -> int:
        """How often it is asked for, and a heartbeat sent."""
        return min(self.heartbeat_ms, int(self.session_ms * CONFIRMED_EACH))

    @property
    def patience_ms(self) -> int:
        """How long a rebalance may last, and what waits for its end."""
        return max(self.rebalance_ms, 2 * self.session_ms)

    @property
    def silence_ms(self) -> int:
        """How long a client may get no confirmation before it is made again."""
        return self.patience_ms + self.session_ms


@dataclass(frozen=True)
class Member:
    """What a worker is in the group now. member_id: empty before it has joined; another one after its session was lost.

    leads: it is assigned the config topic. lease_until_ns: see `Lease`.
    """

    member_id: str
    leads: bool
    lease_until_ns: int


class Lease:
    """Until when the coordinator keeps this member, by confirmations. Times are nanoseconds of CLOCK_BOOTTIME.

    write: is given a member id and until when its lease lasts, whenever that changes; 0 ends it.
    """

    def __init__(self, timing: GroupTiming, write: WriteLease) -> None:
        self._length_ns = timing.lease_ms * _MILLISECOND
        self._interval_ns = timing.interval_ms * _MILLISECOND
        self._write, self._member_id = write, ""
        self._asked: tuple[int, str] | None = None
        self._next_ns = self._looked_ns = 0
        self.until_ns = 0

    def belongs_to(self, member_id: str) -> None:
        """It is another member's with another id: it ends at once, and waits for no answer to the former's question."""
        if member_id != self._member_id:
            self.end()
            self._member_id, self._next_ns = member_id, 0

    @property
    def is_asked(self) -> bool:
        """Whether an answer is to come."""
        return self._asked is not None

    def is_due(self, now_ns: int) -> bool:
        """Whether to ask for a confirmation: one at a time."""
        return bool(self._member_id) and self._asked is None and now_ns >= self._next_ns

    def ask_soon(self) -> None:
        """What was asked is of an earlier generation of the group."""
        self._next_ns = 0

    def looked(self, now_ns: int) -> None:
        """To be called before `is_due`. Who stood still for half a lease asks for nothing for a moment.

        librdkafka looks first then whether the session is over, and begins anew. A commit on that occasion would renew
        the session of the member that it was: all would wait for that one's end. Who is merely slow must go on asking.
        """
        before_ns, self._looked_ns = self._looked_ns, now_ns
        if now_ns - before_ns > self._length_ns // 2:
            self._next_ns = max(self._next_ns, now_ns + RETRY_MS * _MILLISECOND)

    def asked(self, now_ns: int) -> None:
        """now_ns: read before the question was sent."""
        self._asked = now_ns, self._member_id
        self._next_ns = now_ns + self._interval_ns

    def answered(self, now_ns: int, *, confirmed: bool) -> None:
        if self._asked is None:
            return
        (asked_ns, member_id), self._asked = self._asked, None
        if member_id != self._member_id:
            return
        if confirmed:
            self.until_ns = asked_ns + self._length_ns
            self._write(member_id, self.until_ns)
        else:
            self._next_ns = now_ns + RETRY_MS * _MILLISECOND

    def end(self) -> None:
        self.until_ns = 0
        if self._member_id:
            self._write(self._member_id, 0)


class GroupMembers(AdminRequests):
    """Asks the coordinator who is in the group."""

    def __init__(self, kafka: KafkaSettings, client_log: ClientLog | None = None) -> None:
        super().__init__(kafka, client_log, prefix="")
        self._said: set[str] = set()

    def listed(self) -> list[MemberInfo]:
        """All workers, also two stays of one; nobody where the group is empty. Raises KafkaFailed."""
        try:
            found = self._members(self._kafka.group)
        except KafkaException as error:
            raise self._failed(error.args[0], f"Group {self._kafka.group}") from None
        workers = {one.member_id: _named(one.client_id, one.member_id) for one in found}
        self._warn([f"{one.client_id} on {one.host}" for one in found if workers[one.member_id] is None])
        return [one for one in workers.values() if one is not None]

    def _warn(self, strangers: Sequence[str]) -> None:
        for stranger in set(strangers) - self._said:
            self._said.add(stranger)
            log.warning(
                "[group.id] %s: %s is in this group and is not a worker of it; while it is, there may be no leader. "
                "Give it another group",
                self._kafka.group,
                stranger,
            )


def _client_id(worker_id: str, url: str) -> str:
    """What the members of a group are told of each other: brokers show it with each."""
    return f"parquet-sink|{FORM}|{worker_id}|{url}"


def _named(client_id: str, member_id: str) -> MemberInfo | None:
    """The worker, also where a newer version says more; None for what is not a worker."""
    program, *parts = client_id.split("|")
    if program != "parquet-sink" or len(parts) < 3:
        return None
    form, worker_id, url = parts[:3]
    return MemberInfo(worker_id, member_id, url, 0, int(form) if form.isdecimal() else 1)


class Membership:
    """Keeps a worker in the group, in a thread of its own, until it leaves or fails.

    kafka: `group` is group.id. lease: see `Lease`. position: the offset that the worker has read the config topic to,
    which is what it commits. holds_back: whether to join later, where these are in the group. on_change: called when
    `now` gives another member id or leadership. Raises InvalidConfiguration.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        *,
        config_topic: str,
        worker_id: str,
        url: str,
        timing: GroupTiming,
        lease: WriteLease,
        position: Callable[[], int],
        holds_back: Callable[[Sequence[MemberInfo]], bool] = lambda members: False,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._holds_back, self._on_change = holds_back, on_change
        self._kafka, self._topic, self._worker_id, self._url = kafka, config_topic, worker_id, url
        self._timing, self._position = timing, position
        self._client_log = ClientLog(kafka.whose)
        self._group = GroupMembers(kafka)
        self._write_lease, self._lease = lease, Lease(timing, lease)
        self._member_id, self._leads, self._removed = "", False, False
        self.found_others: bool | None = None
        """Whether other workers were in the group before this one joined; None: the coordinator was not asked yet."""
        self._failed: SinkError | None = None
        self._said: set[int] = set()
        self._leaving = threading.Event()
        self._consumer = self._made()
        self._thread = threading.Thread(target=self._run, name="membership", daemon=True)
        self._thread.start()

    def now(self) -> Member:
        """Raises SetupError, KafkaFailed or StorageFailed when it is no longer a member and will not be one."""
        if self._failed is not None:
            raise self._failed
        return Member(self._member_id, self._leads, self._lease.until_ns)

    def members(self) -> list[MemberInfo]:
        """Who is in the group; nobody unless this worker is: such a list says nothing. Raises KafkaFailed."""
        found, member_id = self._group.listed(), self._member_id
        return found if any(one.member_id == member_id for one in found) else []

    def leave(self) -> None:
        """The lease ends, then the group is told; whoever is to take over must have been let to before."""
        self._leaving.set()
        self._thread.join(timeout=CLOSE_S + POLL_S * 2)

    @property
    def _ended(self) -> bool:
        return self._failed is not None or self._leaving.is_set()

    def _made(self) -> Consumer:
        timing = self._timing
        options = {
            **client_options.group_options(self._kafka),
            "client.id": _client_id(self._worker_id, self._url),
            "session.timeout.ms": timing.session_ms,
            # What it is answered says that the group's members have changed.
            "heartbeat.interval.ms": timing.interval_ms,
            # A member that does not rejoin in this time is removed although its session goes on: the lease is shorter.
            "max.poll.interval.ms": timing.patience_ms,
            # A commit may wait for all to rejoin; given up on sooner, it would take the connection with it.
            "socket.timeout.ms": timing.patience_ms,
            "partition.assignment.strategy": "cooperative-sticky",
            "on_commit": lambda error, offsets: self._answered(made, error, offsets),
        }
        made: Consumer = client_options.build(Consumer, options, self._client_log, client_options.OWN_KEYS)
        return made

    def _run(self) -> None:
        try:
            self._let_go()
            self._subscribe()
            while not self._ended:
                event = self._consumer.poll(POLL_S)
                if event is not None and (error := event.error()) is not None:
                    self._trouble(error)
                self._look()
                if self._removed:
                    self._renew()
                self._confirm()
        except SinkError as error:
            self._failed = error
        except Exception:
            log.exception("Group %s: this worker is not a member any more", self._kafka.group)
            self._failed = KafkaFailed(f"Group {self._kafka.group}: this worker is not a member any more: see the log.")
        finally:
            self._lease.end()
            self._member_id, self._leads = "", False
            with suppress(TimeoutError):
                TimeLimited(CLOSE_S).run(self._quit)

    def _quit(self) -> None:
        """Leave the group, and close the client.

        A client that is closed leaves only with an assignment (librdkafka 2.16: "consumer is terminating, skipping
        rejoin"), and only the leader has one. One that gives its subscription up leaves in any case, and `close` waits
        for the answer.
        """
        self._consumer.unsubscribe()
        self._consumer.close()

    def _let_go(self) -> None:
        """Where an earlier stay of this worker is still listed, it was lost just now.

        A rebalance cannot end before its session does. One that begins later is over before the others' leases are.
        """
        wait_ms = self._timing.session_ms - self._timing.lease_ms + self._timing.interval_ms
        deadline_s = time.monotonic() + wait_ms / 1000
        with suppress(KafkaFailed):
            while not self._leaving.is_set():
                found = self._group.listed()
                self.found_others = any(one.worker_id != self._worker_id for one in found)
                earlier = any(one.worker_id == self._worker_id for one in found)
                if not (earlier and time.monotonic() < deadline_s) and not self._holds_back(found):
                    return
                self._leaving.wait(RETRY_MS / 1000)

    def _subscribe(self) -> None:
        self._consumer.subscribe(
            [self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )
        self._renew_at_ns = clock_ns() + self._timing.silence_ms * _MILLISECOND

    def _assigned(self, consumer: Consumer, added: list[TopicPartition]) -> None:
        """After each rebalance; there is nothing in it where the assignment stays as it is."""
        closing = consumer is not self._consumer
        mine = [] if closing else [TopicPartition(one.topic, one.partition, 0) for one in added]
        consumer.incremental_assign(mine)
        if mine:
            consumer.pause(mine)
        if not closing:
            self._lease.ask_soon()
            self._look(leads=self._leads or bool(mine))

    def _revoked(self, consumer: Consumer, removed: list[TopicPartition]) -> None:
        consumer.incremental_unassign(removed)
        if consumer is self._consumer:
            self._look(leads=self._leads and not removed)

    def _look(self, leads: bool | None = None) -> None:
        """Nothing more is seen once it ends: a client that is closed is called back, too."""
        if self._ended:
            return
        member_id, leads = self._consumer.memberid() or "", self._leads if leads is None else leads
        self._lease.belongs_to(member_id)
        if (member_id, leads) != (self._member_id, self._leads):
            lost = self._member_id not in {"", member_id}
            self._removed = self._removed or (lost and self._lease.is_asked)
            self._member_id, self._leads = member_id, leads
            self._on_change()
            log.info("Group %s: member %s%s", self._kafka.group, member_id or "none", ", which leads" if leads else "")

    def _confirm(self) -> None:
        now_ns = clock_ns()
        self._lease.looked(now_ns)
        if now_ns >= self._renew_at_ns:
            self._renew()
        elif self._lease.is_due(now_ns):
            self._lease.asked(now_ns)
            offset = TopicPartition(self._topic, 0, self._position(), self._worker_id)
            try:
                self._consumer.commit(offsets=[offset], asynchronous=True)
            except KafkaException as error:
                self._answered(self._consumer, error.args[0], [])

    def _answered(self, consumer: Consumer, error: KafkaError | None, offsets: list[TopicPartition]) -> None:
        """A client that is closed hears of what it asked for, too: by then the lease has ended."""
        if consumer is not self._consumer or self._ended:
            return
        error = error or next((one.error for one in offsets if one.error is not None), None)
        now_ns = clock_ns()
        self._lease.answered(now_ns, confirmed=error is None)
        if error is None:
            self._renew_at_ns = now_ns + self._timing.silence_ms * _MILLISECOND
            self._said.clear()
            self._client_log.clear()
        elif error.code() == KafkaError.UNKNOWN_MEMBER_ID:
            self._lease.end()
        elif error.code() not in client_errors.MEMBERS_ONLY:
            self._trouble(error)

    def _trouble(self, error: KafkaError) -> None:
        """Raises what waiting does not cure; the rest is logged, once until it is over."""
        if (cause := _REFUSALS.get(error.code())) is not None:
            raise SetupError(cause.format(group=self._kafka.group, session=self._timing.session_ms))
        group = self._kafka.group
        needs = (to_see_group(group), to_commit(group), to_read(self._topic))
        failure = client_errors.failure(error, f"Group {group}", cause=self._client_log.cause(), needs=needs)
        if isinstance(failure, KafkaRefused):
            raise failure
        if error.code() not in self._said:
            self._said.add(error.code())
            log.warning("%s", failure)

    def _renew(self) -> None:
        """A client that gets no confirmation for so long may have forgotten its brokers (`kafka/client/renewal.py`).

        Where one was removed from the group while an answer was to come, that answer, that its member is unknown, makes
        librdkafka begin anew with the join that it is in the middle of. The coordinator then waits for who began to
        join and is nobody, until a session is over, and others' leases are over by then.
        """
        self._lease.end()
        given_up, self._consumer, self._lease = self._consumer, self._made(), Lease(self._timing, self._write_lease)
        in_thread(given_up.close)  # its end may take long
        self._look(leads=False)
        self._removed = False
        self._subscribe()


_REFUSALS: Final[Mapping[int, str]] = {
    KafkaError.INCONSISTENT_GROUP_PROTOCOL: (
        "[group.id] {group}: this group has members of another kind: workers of Kafka Connect, or consumers. Stop "
        "them and wait until their session is over, or give this cluster a group.id of its own."
    ),
    KafkaError.INVALID_SESSION_TIMEOUT: (
        "[session.timeout.ms] {session}: the brokers do not allow it. Give a value between their "
        "group.min.session.timeout.ms (6000 by default) and group.max.session.timeout.ms."
    ),
}
