"""A group of workers without Kafka and Spark: real leaders, own connectors and herders over topics in memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Generic, TypeVar, cast

from parquet_sink.distributed.assignment import FORM, MemberInfo
from parquet_sink.distributed.group import Group as KnownGroup
from parquet_sink.distributed.herder import DistributedHerder
from parquet_sink.distributed.leader import Leader
from parquet_sink.distributed.log import Deposed
from parquet_sink.distributed.membership import Member
from parquet_sink.distributed.owned import OwnedConnectors
from parquet_sink.distributed.records import Entry, Records
from parquet_sink.distributed.state import ConfigState, StatusState, TopicState
from parquet_sink.process.lease import clock_ns
from parquet_sink.worker_config.distributed import DistributedSettings
from tests.worker.loop.worker_doubles import Loop

S = TypeVar("S", bound=TopicState)
SETTINGS = DistributedSettings(
    group_id="workers", config_topic="configs", status_topic="status", state_topic="state", offset_topic="offsets"
)
FOREVER_NS = 1 << 62


def folded(state: S, *written: Records, offset: int = 0) -> S:
    """With these records after those that it has. offset: of the first."""
    pairs = [pair for one in written for pair in one.items()]
    return state.fold([Entry(key, value, number) for number, (key, value) in enumerate(pairs, offset)])


class Topic:
    """Records in their order, and who may write them: the last that began to."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.writer: object = None

    def append(self, records: Records) -> None:
        for key, value in records.items():
            self.entries.append(Entry(key, value, len(self.entries)))


class Reader(Generic[S]):
    """As far as it read: to the end where it is asked to, else when the test has it read."""

    def __init__(self, topic: Topic, empty: S) -> None:
        self._topic, self.state, self._next = topic, empty, 0

    def read_to_end(self, timeout_s: float = 0.0) -> bool:
        return self.read(len(self._topic.entries))

    def read(self, count: int) -> bool:
        new = self._topic.entries[self._next : self._next + count]
        self.state, self._next = self.state.fold(new), self._next + len(new)
        return True


class Writer:
    """The leader's."""

    def __init__(self, topic: Topic) -> None:
        self._topic, self.is_open = topic, False

    def open(self) -> None:
        self._topic.writer, self.is_open = self, True

    def write(self, records: Records) -> None:
        if self._topic.writer is not self:
            self.is_open = False
            raise Deposed("another one writes", may_be_written=False)
        self._topic.append(records)

    def close(self) -> None:
        self.is_open = False


class Reports:
    """Of one worker to the status topic; a frozen one's come when it wakes up."""

    def __init__(self, topic: Topic) -> None:
        self._topic = topic

    def send(self, records: Records) -> None:
        self._topic.append(records)

    def flush(self, timeout_s: float = 0.0) -> bool:
        return True


class Coordinator:
    """Who is in the group, and who leads: the member that has been there longest. form: of records, of who joins."""

    def __init__(self) -> None:
        self.form = FORM
        self.members: dict[str, MemberInfo] = {}
        self._joined = 0

    def join(self, worker_id: str) -> str:
        self._joined += 1
        member_id = f"member-{self._joined}"
        self.members[worker_id] = MemberInfo(worker_id, member_id, f"http://{worker_id}", 0, self.form)
        return member_id

    def leads(self, member_id: str) -> bool:
        return next((one.member_id for one in self.members.values()), "") == member_id


class Membership:
    """What a worker knows of it: as it was when it heard of the coordinator last."""

    def __init__(self, coordinator: Coordinator, worker_id: str) -> None:
        self._coordinator, self._worker_id = coordinator, worker_id
        self._known = Member("", leads=False, lease_until_ns=0)

    def hear(self) -> None:
        """It joins where it is not a member any more, and then begins anew with the next hearing."""
        found = self._coordinator.members.get(self._worker_id)
        if found is None or found.member_id != self._known.member_id:
            member_id = self._coordinator.join(self._worker_id) if found is None else found.member_id
            self._known = replace(self._known, member_id=member_id)
        leads = self._coordinator.leads(self._known.member_id)
        self._known = replace(self._known, leads=leads, lease_until_ns=FOREVER_NS)

    def lapse(self) -> None:
        """Its lease is over, which comes before the coordinator removes it."""
        self._known = replace(self._known, lease_until_ns=0)

    @property
    def has_lease(self) -> bool:
        return self._known.lease_until_ns > clock_ns()

    def now(self) -> Member:
        return self._known

    def members(self) -> list[MemberInfo]:
        there = self._coordinator.members.values()
        return list(there) if any(one.member_id == self._known.member_id for one in there) else []


class Worker:
    """One of the group. frozen: nothing of it goes on."""

    def __init__(self, worker_id: str, loop: Loop, coordinator: Coordinator, configs: Topic, statuses: Topic) -> None:
        self.worker_id, self.loop, self.frozen = worker_id, loop, False
        loop.registry.worker_id = worker_id
        self.membership = Membership(coordinator, worker_id)
        self.config = Reader(configs, ConfigState())
        self.status = Reader(statuses, StatusState())
        parts: Any = (self.membership, self.config, self.status, Reports(statuses))
        known = KnownGroup(worker_id, *parts)
        self.leader = Leader(known, cast(Any, Writer(configs)), SETTINGS)
        self.owned = OwnedConnectors(known, loop.registry, loop.requests, loop.queue, loop.load)
        self.herder = DistributedHerder(
            known,
            loop.requests,
            self.owned,
            self.leader,
            loop.load,
            lambda name, config, before, keys: dict(config),
            SETTINGS.group_id,
            lambda urls: (),
        )

    def step(self) -> None:
        """What its threads do in a moment."""
        self.membership.hear()
        self.config.read_to_end()
        self.status.read_to_end()
        self.leader.step()
        self.owned.step()
        self.loop.round()

    @property
    def sends(self) -> set[str]:
        """Connectors that may send files now: what an earlier member began has no lease any more."""
        if not self.membership.has_lease:
            return set()
        member_id = self.membership.now().member_id
        active = {one.name for one in self.loop.registry.all() if one.run is not None and one.run.active}
        return {name for name in active if self.owned.member_of(name) == member_id}


class Group:
    """Workers over the same topics. make_loop: of one worker."""

    def __init__(self, make_loop: Callable[[], Loop]) -> None:
        self._make_loop = make_loop
        self.coordinator, self.configs, self.statuses = Coordinator(), Topic(), Topic()
        self.workers: dict[str, Worker] = {}

    def add(self, worker_id: str) -> Worker:
        """Starts a worker, or one again that was killed."""
        made = Worker(worker_id, self._make_loop(), self.coordinator, self.configs, self.statuses)
        self.workers[worker_id] = made
        return made

    def remove(self, worker_id: str) -> None:
        """The coordinator's session with a worker is over; its lease was over before."""
        self.workers[worker_id].membership.lapse()
        self.coordinator.members.pop(worker_id, None)

    def kill(self, worker_id: str) -> None:
        self.remove(worker_id)
        del self.workers[worker_id]

    @property
    def awake(self) -> list[Worker]:
        return [one for one in self.workers.values() if not one.frozen]

    def step(self, times: int = 1) -> None:
        for _ in range(times):
            for one in self.awake:
                one.step()

    def settle(self) -> None:
        """Until nothing changes by itself any more."""
        self.step(30)

    @property
    def leader(self) -> Worker:
        return next(one for one in self.awake if one.leader.leads)

    def running(self) -> dict[str, list[str]]:
        """Which workers may send files of each connector."""
        found: dict[str, list[str]] = {}
        for one in self.workers.values():
            for name in one.sends:
                found.setdefault(name, []).append(one.worker_id)
        return found


@contextmanager
def frozen(worker: Worker) -> Iterator[None]:
    """Within, nothing of it goes on."""
    worker.frozen = True
    try:
        yield
    finally:
        worker.frozen = False
