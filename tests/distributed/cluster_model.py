"""A cluster of workers in simulated time: the pure functions of `distributed/` between a coordinator, logs and faults.

Real here: who may run what (`assignment.py`), who rests (`leader.py`), and the lease (`membership.py`). Simulated: the
coordinator's sessions and rebalances, the config and status topics, transactional ids, the network, and workers that
are frozen, killed, cut off, asked to stop, and have clocks of their own. One schedule follows from its seed. `without`
names protections that are off.

Promised, and raised as `Violation` where it does not hold: once a later owner of a connector has begun an upload no
earlier one begins any (one that is in flight may still end); what is committed never goes back; and when all is well
again each connector runs on the worker that the assignment names, and there alone, and the load is even.

In a calm world one worker alone is frozen, now and then, and all else is well: then the others keep their leases, and
no connector that runs moves to the one that woke up before that one has ended it.
"""

import heapq
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from parquet_sink.distributed.assignment import (
    EMPTY,
    Assignment,
    MemberInfo,
    Release,
    asked_to_release,
    assign,
    owned,
)
from parquet_sink.distributed.leader import LostWorkers
from parquet_sink.distributed.membership import GroupTiming, Lease

TIMING = GroupTiming(session_ms=10_000, heartbeat_ms=3_000, rebalance_ms=60_000)
TROUBLE_MS, WELL_MS, LOOK_MS = 60_000.0, 35_000.0, 8_000.0
NOT_HEARD_MS = 3_000.0
"""After which a request without an answer has failed."""


FENCED = -1
CONFIRMED, REBALANCE, REMOVED = "confirmed", "rebalance", "removed"
TROUBLES = (
    *("frozen", "frozen", "frozen", "cut off", "cut off", "killed", "stopped", "replaced", "elected", "coordinator"),
)


class Violation(AssertionError):
    """A promise does not hold."""


@dataclass
class Run:
    """A connector in a worker, from its start to its end. number: grows with each start anywhere."""

    number: int
    member_id: str
    fence: int = -1
    position: int = 0
    committed: int = 0
    uploads: bool = False
    commits: bool = False
    ends: bool = False
    stops: bool = False


class Coordinator:
    """Who is in the group, by its own clock."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._rate = world.random.uniform(0.9, 1.1)
        self._until: dict[str, float] = {}
        self._workers: dict[str, str] = {}
        self._awaited: set[str] = set()
        self.leader = ""

    def join(self, worker_id: str) -> str:
        """In a calm world a rebalance begins: until all that are there have joined again, or are removed.

        Elsewhere nobody is kept waiting: so no promise rests on it.
        """
        if self._world.calm:
            self._awaited.update(self.members())
        member_id = f"{worker_id}/{len(self._workers)}"
        self._workers[member_id] = worker_id
        self._renew(member_id)
        return member_id

    def confirm(self, member_id: str) -> str:
        """Renews the session, also in a rebalance; then the answer waits for its end, and is that it failed."""
        members = self.members()
        if member_id not in members:
            return REMOVED
        self._renew(member_id)
        self._awaited.discard(member_id)
        self._awaited.intersection_update(members)
        return REBALANCE if self._awaited else CONFIRMED

    def leave(self, member_id: str) -> None:
        self._until.pop(member_id, None)

    def move(self) -> None:
        """Another broker has loaded the group: sessions begin again, and after a rebalance another may lead."""
        for member_id in self.members():
            self._renew(member_id)
        self.elect()

    def elect(self) -> None:
        if members := self.members():
            self.leader = self._world.random.choice(members)

    def members(self) -> list[str]:
        self._until = {one: end for one, end in self._until.items() if end > self._world.now_ms}
        if self.leader not in self._until and self._until:
            self.leader = self._world.random.choice(list(self._until))
        return list(self._until)

    def listed(self) -> list[MemberInfo]:
        found = [MemberInfo(self._workers[one], one, "", 0) for one in self.members()]
        if self._world.without == "the earlier stay counts":
            return list({one.worker_id: one for one in found}.values())
        return found

    def _renew(self, member_id: str) -> None:
        self._until[member_id] = self._world.now_ms + TIMING.session_ms / self._rate


@dataclass
class View:
    """What was read of the config and status topics."""

    config_at: int = 0
    status_at: int = 0
    assignment: Assignment = EMPTY
    weights: Mapping[str, int] = field(default_factory=dict)
    releases: dict[str, Release] = field(default_factory=dict)
    leaving: dict[str, str] = field(default_factory=dict)

    def read(self, world: "World", config: int, status: int) -> None:
        """Takes up to so many records of each topic."""
        for record in world.config[self.config_at : self.config_at + config]:
            self.config_at += 1
            if isinstance(record, Assignment):
                self.assignment = record
            else:
                self.weights = record
        for name, release in world.status[self.status_at : self.status_at + status]:
            self.status_at += 1
            if release is None:
                self.leaving[name.split("/")[0]] = name
            else:
                self.releases[name] = (
                    replace(release, epoch=10**9) if world.without == "epochs of releases" else release
                )


def _all_released(assignment: Assignment) -> dict[str, Release]:
    sources = {name: assignment.members.get(one.source) for name, one in assignment.placements.items()}
    return {name: Release(one.worker_id, one.member_id, 10**9) for name, one in sources.items() if one is not None}


class World:
    """Simulated time, what is shared, and faults."""

    def __init__(self, seed: int, without: str = "", troubles: Sequence[str] = TROUBLES, *, calm: bool = False) -> None:
        self.random, self.without, self.now_ms = random.Random(seed), without, 0.0
        self._troubles, self.calm = troubles, calm
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self.runs = 0
        self.well = calm
        self.away_until_ms = 0.0
        self.config: list[Any] = []
        self.status: list[tuple[str, Release | None]] = []
        self.writer = 0
        self.fences: dict[str, int] = {}
        self.committed: dict[str, int] = {}
        self.began: dict[str, int] = {}
        self.coordinator = Coordinator(self)
        self.workers = [Worker(self, name) for name in "abc"]

    def at(self, delay_ms: float, call: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.now_ms + delay_ms, self._count, call))

    def run(self) -> None:
        """One schedule: a time of trouble, then one without, at whose end everything is to be as it should."""
        for worker in self.workers:
            self.at(self.random.uniform(0, 3_000), worker.start)
        self.at(8_000, self._freeze_one if self.calm else self._trouble)
        self._until(TROUBLE_MS)
        self.well, self.away_until_ms = True, 0.0
        for worker in self.workers:
            worker.heal()
        self._until(TROUBLE_MS + WELL_MS)
        before = dict(self.committed)
        self._until(TROUBLE_MS + WELL_MS + LOOK_MS)
        self._settled(before)

    def _until(self, end_ms: float) -> None:
        while self._events and self._events[0][0] <= end_ms:
            self.now_ms, _, call = heapq.heappop(self._events)
            call()
        self.now_ms = end_ms

    def _trouble(self) -> None:
        if self.well:
            return
        worker = self.random.choice(self.workers)
        match self.random.choice(self._troubles):
            case "frozen":
                worker.freeze(self.random.choice([500.0, 5_000.0, 12_000.0, 25_000.0]))
            case "cut off":
                worker.cut_off(self.random.choice([2_000.0, 9_000.0, 20_000.0]))
            case "killed":
                worker.kill()
            case "stopped":
                worker.stop_in_order()
            case "replaced":
                self._replace(worker)
            case "elected":
                self.coordinator.elect()
            case "coordinator":
                self.away_until_ms = self.now_ms + self.random.uniform(500, 9_000)
                self.at(self.away_until_ms - self.now_ms, self.coordinator.move)
        self.at(self.random.choice([500, 6_000, 16_000]) * self.random.uniform(0.5, 1), self._trouble)

    def _freeze_one(self) -> None:
        """Around the length of a session, and the next time when all have heard of it."""
        if self.now_ms < TROUBLE_MS:
            length_ms = self.random.uniform(7_000, 13_000)
            self.workers[0].freeze(length_ms)
            self.at(length_ms + self.random.uniform(8_000, 12_000), self._freeze_one)

    def _replace(self, worker: "Worker") -> None:
        """Its machine is cut off, and somebody starts a worker with the same id on another."""
        worker.cut_off(20_000)
        self.at(20_000, worker.end)
        other = Worker(self, worker.id)
        self.workers[self.workers.index(worker)] = other
        self.at(self.random.uniform(0, 5_000), other.start)

    def delay_ms(self) -> float:
        """How long a message takes."""
        if self.well or self.random.random() < 0.92:
            return self.random.uniform(1, 100)
        return self.random.choice([500.0, 3_000.0, 12_000.0]) * self.random.random()

    def append(self, writer: int, record: Any) -> bool:
        """A transaction of the config topic's writer; False where a newer one has fenced it."""
        if writer != self.writer and self.without != "one writer":
            return False
        self.config.append(record)
        if self.calm and isinstance(record, Assignment):
            self._moves_well(record)
        return True

    def _moves_well(self, assignment: Assignment) -> None:
        runs = {(worker.id, name) for worker in self.workers for name in worker.runs}
        for name, one in assignment.placements.items():
            if one.epoch == assignment.epoch and one.source and (one.worker, name) in runs:
                raise Violation(f"{self.now_ms:.0f}: {name} moves to {one.worker}, which has yet to end it")

    def commit(self, name: str, fence: int, position: int) -> bool:
        """A transaction of a connector's commits; False where it was fenced."""
        if fence != self.fences[name] and self.without != "fence":
            return False
        if position < self.committed.get(name, 0):
            raise Violation(
                f"{self.now_ms:.0f}: {name} was committed to {self.committed[name]}, and then to {position}"
            )
        self.committed[name] = position
        return True

    def renew_fence(self, name: str, fence: int) -> int:
        """The owner's producer begins anew; FENCED where another did since."""
        if fence != self.fences[name] and self.without != "fence":
            return FENCED
        self.fences[name] += 1
        return self.fences[name]

    def upload_begins(self, name: str, run: Run) -> None:
        if run.number < self.began.get(name, 0):
            raise Violation(f"{self.now_ms:.0f}: run {run.number} of {name} uploads after {self.began[name]} has begun")
        self.began[name] = run.number

    def _settled(self, before: Mapping[str, int]) -> None:
        view = View()
        view.read(self, len(self.config), len(self.status))
        assignment = view.assignment
        running = sorted((name, worker.id) for worker in self.workers for name in worker.runs)
        named = sorted((name, one.worker) for name, one in assignment.placements.items())
        if running != named or {name for name, _ in named} != set(view.weights):
            raise Violation(f"in the end {running} run, {named} are placed, {sorted(view.weights)} are there")
        members = self.coordinator.listed()
        if assign(assignment, assignment.leader, members, view.weights, now_ms=0, releases=view.releases) is not None:
            raise Violation(f"in the end {named} is not what would be assigned: {view.weights}")
        if still := [name for name in view.weights if self.committed.get(name, 0) <= before.get(name, -1)]:
            raise Violation(f"in the end {still} deliver nothing")


class Worker:
    """A process with membership, a follower, and at times a leader; frozen, all of it stands still."""

    def __init__(self, world: World, worker_id: str) -> None:
        self.id, self._world = worker_id, world
        self._rate, self._began_ns = world.random.uniform(0.9, 1.1), world.random.randrange(10**12)
        self._life = 0
        self._frozen_until_ms = self._cut_until_ms = 0.0
        self.runs: dict[str, Run] = {}
        self._is_up = False
        self._fresh()

    def _fresh(self) -> None:
        self.runs = {}
        self._member_id, self._leads, self._writer, self._busy, self._joins = "", False, 0, False, False
        self._stopping_since_ms: float | None = None
        self._leases: dict[str, int] = {}
        long = self._world.without == "a lease shorter than a session"
        self._lease = Lease(replace(TIMING, session_ms=18_000) if long else TIMING, self._leases.__setitem__)
        self._confirmed_ns = 0
        self._lost = LostWorkers()
        self._view = View()

    # What the process does by itself, each in turns until it ends.

    def start(self) -> None:
        self._life += 1
        self._is_up = True
        self._fresh()
        for step, every_ms in (
            (self._keep_session, 1_200),
            (self._confirm, 700),
            (self._follow, 800),
            (self._upload, 600),
            (self._lead, 700),
        ):
            self._each(step, every_ms)

    def _each(self, step: Callable[[], None], every_ms: float) -> None:
        def turn() -> None:
            step()
            busy = 6 if self._world.random.random() < 0.05 and not self._world.well else 1
            self._mine(every_ms * busy * self._world.random.uniform(0.3, 1.3), turn)

        self._mine(0, turn)

    def _mine(self, delay_ms: float, call: Callable[[], None]) -> None:
        """Later, in this process: not while it is frozen, and not in the next."""
        life = self._life

        def due() -> None:
            if life != self._life or not self._is_up:
                return
            if (left_ms := self._frozen_until_ms - self._world.now_ms) > 0:
                self._world.at(left_ms + self._world.random.random() * 5, due)
            else:
                call()

        self._world.at(delay_ms, due)

    def _ask(self, what: Callable[[], Any], then: Callable[[Any], None], *, coordinator: bool = False) -> None:
        """A request to brokers: it is done, or not, and then its answer comes or, after a while, None."""
        heard: list[bool] = []

        def answered(answer: Any) -> None:
            if not heard:
                heard.append(True)
                then(answer)

        def arrives() -> None:
            if self._reaches_brokers(coordinator):
                answer = what()
                if self._reaches_brokers(coordinator):
                    self._mine(self._world.delay_ms(), lambda: answered(answer))

        if self._reaches_brokers(coordinator):
            self._world.at(self._world.delay_ms(), arrives)
        self._mine(NOT_HEARD_MS, lambda: answered(None))

    def _reaches_brokers(self, coordinator: bool) -> bool:
        world = self._world
        lost = not world.well and world.random.random() < 0.02
        cut = world.now_ms < self._cut_until_ms or (coordinator and world.now_ms < world.away_until_ms)
        return not (lost or cut)

    # Faults.

    def freeze(self, length_ms: float) -> None:
        self._frozen_until_ms = self._world.now_ms + length_ms

    def cut_off(self, length_ms: float) -> None:
        self._cut_until_ms = self._world.now_ms + length_ms

    def kill(self) -> None:
        if self._is_up:
            self._ended()

    def stop_in_order(self) -> None:
        if self._is_up and self._stopping_since_ms is None:
            self._stopping_since_ms = self._world.now_ms

    def heal(self) -> None:
        self._frozen_until_ms = self._cut_until_ms = 0.0

    def end(self) -> None:
        self._is_up, self.runs = False, {}

    def _ended(self) -> None:
        self.end()
        if self in self._world.workers:
            self._world.at(self._world.random.choice([200.0, 3_000.0, 15_000.0]), self.start)

    # Membership.

    def _clock_ns(self) -> int:
        return self._began_ns + int(self._world.now_ms * 1e6 * self._rate)

    def _keep_session(self) -> None:
        """A thread of the client's own: where the session is over by this worker's clock it joins anew."""
        coordinator = self._world.coordinator
        if self._member_id and self._clock_ns() - self._confirmed_ns > TIMING.session_ms * 1_000_000:
            self._become("")
        if not self._member_id and not self._joins:
            self._joins = True
            self._ask(lambda: coordinator.join(self.id), self._joined, coordinator=True)

    def _confirm(self) -> None:
        now_ns, coordinator, member_id = self._clock_ns(), self._world.coordinator, self._member_id
        if self._world.without != "the quiet after a stall":
            self._lease.looked(now_ns)
        if self._world.calm and self is not self._world.workers[0] and 0 < self._lease.until_ns <= now_ns:
            raise Violation(f"{self._world.now_ms:.0f}: the lease of {self.id} is over, which was well all along")
        if self._lease.is_due(now_ns):
            self._lease.asked(now_ns)
            self._ask(
                lambda: (coordinator.confirm(member_id), coordinator.leader),
                lambda answer: self._confirmed(member_id, answer),
                coordinator=True,
            )

    def _joined(self, member_id: str | None) -> None:
        self._joins = False
        if member_id is not None:
            self._confirmed_ns = self._clock_ns()
            self._become(member_id)

    def _become(self, member_id: str) -> None:
        self._member_id, self._leads = member_id, False
        self._lease.belongs_to(member_id)

    def _confirmed(self, member_id: str, answer: "tuple[str, str] | None") -> None:
        said, leader = answer or ("", "")
        self._lease.answered(self._clock_ns(), confirmed=said == CONFIRMED)
        if member_id != self._member_id or answer is None:
            return
        if said == REMOVED:
            self._become("")
        else:
            self._confirmed_ns = self._clock_ns()
            self._leads = leader == member_id

    def _has_lease(self, run: Run) -> bool:
        member_id = self._member_id if self._world.without == "lease for each stay" else run.member_id
        return self._world.without == "lease" or self._clock_ns() < self._leases.get(member_id, 0)

    # The leader.

    def _lead(self) -> None:
        if not self._leads:
            self._writer = 0
        elif not self._busy:
            self._busy = True
            if self._writer:
                self._ask(self._world.coordinator.listed, self._judge, coordinator=True)
            elif self._world.without == "members asked for by the writer":
                self._ask(self._world.coordinator.listed, self._open_with, coordinator=True)
            else:
                self._ask(self._open, self._opened)

    def _open(self) -> int:
        self._world.writer += 1
        return self._world.writer

    def _opened(self, writer: int | None) -> None:
        self._busy, self._writer = False, writer or 0

    def _open_with(self, members: "list[MemberInfo] | None") -> None:
        def opened(writer: int | None) -> None:
            self._writer = writer or 0
            self._judge(members if writer else None)

        long_ms = 0 if self._world.well else self._world.random.choice([0, 8_000])
        self._mine(long_ms, lambda: self._ask(self._open, opened))

    def _judge(self, members: "list[MemberInfo] | None") -> None:
        """At the end of the log, with members that were asked for while this was its writer."""
        view, world = self._view, self._world
        if world.without != "the end of the log":
            view.read(world, len(world.config), len(world.status))
        if members is None or all(one.member_id != self._member_id for one in members):
            self._busy = False
            return
        record: Any = None
        if not view.weights or (not world.well and world.random.random() < 0.2):
            names = [name for name in "wxyz" if world.random.random() < 0.7]
            record = {name: world.random.randint(1, 3) for name in names or "w"}
        else:
            record = assign(
                view.assignment,
                self.id,
                members,
                view.weights,
                now_ms=int(world.now_ms),
                leaving=view.leaving.values(),
                resting=self._resting(members),
                releases=view.releases,
            )
        if record is None:
            self._busy = False
        else:
            writer = self._writer
            self._mine(
                10 if world.well else world.random.choice([10, 3_000]),
                lambda: self._ask(lambda: world.append(writer, record), self._written),
            )

    def _resting(self, members: "list[MemberInfo]") -> frozenset[str]:
        without, view = self._world.without, self._view
        now_s = 0.0 if without == "the end of a rest" else self._clock_ns() / 1e9
        found = self._lost.resting(view.assignment, members, view.leaving, now_s)
        return frozenset() if without == "the rest of who is back" else found

    def _written(self, done: bool | None) -> None:
        """Whether it was written is not known where no answer came: then it begins anew, which decides it."""
        self._busy = False
        if not done:
            self._writer = 0

    # The follower.

    def _follow(self) -> None:
        world, view = self._world, self._view
        some = len(world.config) if world.well or world.random.random() < 0.7 else world.random.randint(0, 2)
        view.read(world, some, some if some < 3 else len(world.status))
        releases = _all_released(view.assignment) if world.without == "release" else view.releases
        mine = owned(view.assignment, self.id, self._member_id, releases) & view.weights.keys()
        for name, run in list(self.runs.items()):
            if name not in mine or run.member_id != self._member_id:
                self._stop(run)
            if run.stops and not run.uploads:
                del self.runs[name]
        for name in sorted(mine - self.runs.keys()):
            self._begin(name)
        asked = asked_to_release(view.assignment, self.id, self._member_id, view.releases)
        for name in asked.keys() - self.runs.keys():
            self._ask(lambda said=(name, asked[name]): world.status.append(said), lambda _: None)  # type: ignore[misc]
        self._leave_when_asked()

    def _stop(self, run: Run) -> None:
        """It takes a while until its processes know."""
        if not run.ends:
            run.ends = True
            self._mine(self._world.random.uniform(0, 2_000), lambda: setattr(run, "stops", True))

    def _begin(self, name: str) -> None:
        world = self._world
        world.runs += 1
        run = self.runs[name] = Run(world.runs, self._member_id)

        def fence() -> tuple[int, int]:
            world.fences[name] = world.fences.get(name, 0) + 1
            return world.fences[name], world.committed.get(name, 0)

        def begun(answer: "tuple[int, int] | None") -> None:
            if answer is None:
                run.stops = True
            else:
                run.fence, run.position = answer
                run.committed = run.position

        self._ask(fence, begun)

    def _leave_when_asked(self) -> None:
        world, since_ms = self._world, self._stopping_since_ms
        if since_ms is None:
            return
        member_id, assignment = self._member_id, self._view.assignment
        if member_id and member_id not in self._view.leaving.values():
            self._ask(lambda: world.status.append((member_id, None)), lambda _: None)
        placed = assignment.placements.values()
        if (not self.runs and all(one.worker != self.id for one in placed)) or world.now_ms - since_ms > 8_000:
            self._lease.end()
            if self._reaches_brokers(coordinator=True):
                world.coordinator.leave(member_id)
            self._ended()

    def _upload(self) -> None:
        """One file after the other; that a commit got no answer keeps nobody from the next."""
        for name, run in self.runs.items():
            if run.fence >= 0 and not run.stops and not run.uploads and self._has_lease(run):
                run.uploads = True
                self._world.upload_begins(name, run)
                self._accepted_later(name, run)

    def _accepted_later(self, name: str, run: Run) -> None:
        def accepted() -> None:
            run.uploads = False
            run.position += 1
            self._mine(self._world.random.uniform(0, 3_000), lambda: self._commit(name, run))

        self._mine(self._world.random.choice([50.0, 400.0, 400.0, 400.0 if self._world.well else 5_000.0]), accepted)

    def _commit(self, name: str, run: Run) -> None:
        """One transaction after the other; after one without answer, which may still come, the producer is renewed."""
        if run.commits or self.runs.get(name) is not run or run.position == run.committed:
            return
        run.commits, position, fence = True, run.position, run.fence

        def committed(done: bool | None) -> None:
            run.stops = run.stops or done is False
            if done is None:
                renew()
            else:
                run.commits, run.committed = False, position
                self._commit(name, run)

        def renew() -> None:
            self._ask(lambda: self._world.renew_fence(name, fence), renewed)

        def renewed(answer: int | None) -> None:
            if answer is None:
                renew()
            else:
                run.commits, run.fence = False, answer
                run.stops = run.stops or answer == FENCED

        self._ask(lambda: self._world.commit(name, fence, position), committed)
