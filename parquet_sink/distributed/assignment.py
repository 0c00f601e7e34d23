"""Which worker runs which connector: the assignment, how the leader makes it, and who may run what by it.

Sticky: a connector stays where it is while its worker lives, unless moving it makes the load more even. Load is the
sum of weights (`tasks.max`). A connector that moves from a living worker is first released by it: the assignment names
that worker as the placement's source, the worker stops the connector and writes a `Release`, and only then does the
next owner begin. A worker that the group coordinator removed has no lease any more (`distributed/membership.py`), so
nobody waits for it. Workers are known by worker id, and each stay in the group by its member id: what was
said to or by another member id counts for nothing.

Times are epoch milliseconds, of the leader's clock; they are shown and, but for the rebalance delay, decide nothing.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

FORM: Final = 1
"""The version of our own records' form: the highest that this program reads, and writes where all in the group do."""
AT_ONCE: Final = 1
"""How many connectors move to a worker from another living one at a time; the rest run on where they are."""
SOON_S: Final = 3.0
"""As long as it takes to begin elsewhere: what is due before is sent first. What is late so long is not waited for."""
NOBODY: Final = ""
"""Stands for no worker: a placement without source may begin at once, one without worker is only to be released."""


@dataclass(frozen=True)
class MemberInfo:
    """A worker in the group. url: of its REST API. since_ms: since when it is assigned to under this member id.

    form: the highest FORM that it reads; known of those that are listed by the coordinator.
    """

    worker_id: str
    member_id: str
    url: str
    since_ms: int
    form: int = field(default=FORM, compare=False)


@dataclass(frozen=True)
class Placement:
    """Where a connector runs: on worker, as soon as source has released it.

    worker: NOBODY once the connector was deleted, until its last owner has released it. source: NOBODY, or the worker
    that must release it first, under the member id that the assignment's members say. epoch: of the assignment that
    moved it: a release counts from there on. since_ms: when it was moved.
    """

    worker: str
    source: str
    reason: str
    epoch: int
    since_ms: int


@dataclass(frozen=True)
class Assignment:
    """What the leader wrote last. epoch: 1 and up, by one for each. members: by worker id; placements: by connector.

    form: in which it is written, as all in the group can read it; they write theirs so, too.
    """

    epoch: int
    leader: str
    at_ms: int
    members: Mapping[str, MemberInfo]
    placements: Mapping[str, Placement]
    form: int = FORM


EMPTY: Final = Assignment(0, NOBODY, 0, {}, {})
"""Before there is one."""


@dataclass(frozen=True)
class Release:
    """A member runs nothing of a connector any more, as the assignment of this epoch or a later one asks."""

    worker_id: str
    member_id: str
    epoch: int


def free(assignment: Assignment, name: str, release: Release | None) -> bool:
    """Whether nobody else can still be running this connector. release: the last one of it, by anybody."""
    placement = assignment.placements[name]
    source = assignment.members.get(placement.source)
    if source is None:
        return True
    return (
        release is not None
        and (release.worker_id, release.member_id) == (source.worker_id, source.member_id)
        and release.epoch >= placement.epoch
    )


def placements_of(assignment: Assignment, worker_id: str, member_id: str) -> dict[str, Placement]:
    """What an assignment gives this member; nothing where it knows the worker as another one."""
    if not _names(assignment, worker_id, member_id):
        return {}
    return {name: one for name, one in assignment.placements.items() if one.worker == worker_id}


def owned(assignment: Assignment, worker_id: str, member_id: str, releases: Mapping[str, Release]) -> frozenset[str]:
    """Connectors that this member may run now."""
    placed = placements_of(assignment, worker_id, member_id)
    return frozenset(name for name in placed if free(assignment, name, releases.get(name)))


def asked_to_release(
    assignment: Assignment, worker_id: str, member_id: str, releases: Mapping[str, Release]
) -> dict[str, Release]:
    """What this member is to write, of each connector as soon as it runs nothing of it any more."""
    if not _names(assignment, worker_id, member_id):
        return {}
    asked = (name for name, one in assignment.placements.items() if one.source == worker_id)
    return {
        name: Release(worker_id, member_id, assignment.epoch)
        for name in asked
        if not free(assignment, name, releases.get(name))
    }


def to_end(
    assignment: Assignment, worker_id: str, member_id: str, next_flush_s: Mapping[str, float], begun: Collection[str]
) -> set[str]:
    """Of connectors that run on this worker and are not its any more: those that it ends now.

    Those that others are to have end one after the other (AT_ONCE), who flushed last first, none that is about to flush
    (SOON_S): so they rest hardly longer than they do anyway. next_flush_s: of each that runs. begun: those whose next
    owner said that it has begun with them, or that are awaited no longer.
    """
    known = _names(assignment, worker_id, member_id)
    moving = {
        name: one.worker
        for name, one in assignment.placements.items()
        if known and one.source == worker_id and one.worker != NOBODY and name not in begun
    }
    ending = next_flush_s.keys() - moving.keys()
    awaited = Counter(worker for name, worker in moving.items() if name not in next_flush_s)
    for name in sorted(next_flush_s.keys() & moving.keys(), key=lambda name: (-next_flush_s[name], name)):
        if awaited[moving[name]] < AT_ONCE and abs(next_flush_s[name]) > SOON_S:
            awaited[moving[name]] += 1
            ending.add(name)
    return ending


def _names(assignment: Assignment, worker_id: str, member_id: str) -> bool:
    member = assignment.members.get(worker_id)
    return member is not None and member.member_id == member_id


def assign(
    before: Assignment,
    leader: str,
    members: Sequence[MemberInfo],
    weights: Mapping[str, int],
    *,
    now_ms: int,
    leaving: Collection[str] = (),
    resting: Collection[str] = (),
    releases: Mapping[str, Release] | None = None,
    delay_ms: int = 0,
) -> Assignment | None:
    """The next assignment; None where the last one stands.

    members: all that are in the group; none at all says nothing of it. weights: each connector that is to run, with
    its load. leaving: member ids of workers that were asked to stop: they are given nothing, and what they have moves.
    resting: ids of workers that came back just now: nothing moves to them that may stay where it is.
    releases: the last one of each connector. delay_ms: how long connectors of a lost worker wait for it to come back.
    """
    plan = _Plan(before, _living(before, members, now_ms), frozenset(leaving), releases or {}, now_ms)
    if not plan.staying:
        return None
    plan.keep(weights, delay_ms)
    plan.place(weights)
    plan.balance(weights, resting)
    placements = plan.placements()
    if before.leader == leader and _same(before, plan.living, placements):
        return None
    form = min(FORM, *(one.form for one in members))
    return Assignment(plan.epoch, leader, now_ms, plan.living, placements, form)


def _living(before: Assignment, members: Iterable[MemberInfo], now_ms: int) -> dict[str, MemberInfo]:
    """One member for each worker id: of two, the one that is assigned to already, because it may still be at work."""
    found: dict[str, MemberInfo] = {}
    for member in sorted(members, key=lambda one: (one.worker_id, one.member_id)):
        earlier = before.members.get(member.worker_id)
        if earlier is not None and earlier.member_id == member.member_id:
            found[member.worker_id] = earlier
        else:
            found.setdefault(member.worker_id, replace(member, since_ms=now_ms))
    return found


def _same(before: Assignment, living: Mapping[str, MemberInfo], placements: Mapping[str, Placement]) -> bool:
    """Whether nothing changed. Who waits for a release sees it, so that there was one is no change."""
    return (
        before.members == living
        and before.placements.keys() == placements.keys()
        and all(one.epoch <= before.epoch for one in placements.values())
    )


class _Plan:
    """An assignment in the making: what stays is kept, what has no worker is placed, then the load is made even.

    A placement of this epoch is new; the others stand. One without worker has yet to be placed, unless it is deleted.
    """

    def __init__(
        self,
        before: Assignment,
        living: Mapping[str, MemberInfo],
        leaving: frozenset[str],
        releases: Mapping[str, Release],
        now_ms: int,
    ) -> None:
        self._before, self._leaving, self._releases, self._now_ms = before, leaving, releases, now_ms
        self._planned: dict[str, Placement] = {}
        self.epoch = before.epoch + 1
        self.living = living
        self.staying = [worker for worker, one in living.items() if one.member_id not in leaving]

    def placements(self) -> dict[str, Placement]:
        """Nobody waits for its own release."""
        return {
            name: replace(one, source=NOBODY) if one.source == one.worker else one
            for name, one in sorted(self._planned.items())
        }

    def keep(self, weights: Mapping[str, int], delay_ms: int) -> None:
        for name, before in self._before.placements.items():
            placement = replace(before, source=self._source(name, before))
            kept = self._kept(placement, delay_ms) if name in weights else self._deleted(placement)
            if kept is not None:
                self._planned[name] = kept
        for name in weights.keys() - self._planned.keys():
            self._planned[name] = self._new(NOBODY, NOBODY, "the connector is new")

    def _new(self, worker: str, source: str, reason: str) -> Placement:
        return Placement(worker, source, reason, self.epoch, self._now_ms)

    def _source(self, name: str, placement: Placement) -> str:
        """Who has still to release it: a worker that lives under the same member id, and has not."""
        source = placement.source
        gone = self.living.get(source) != self._before.members.get(source)
        return NOBODY if gone or free(self._before, name, self._releases.get(name)) else source

    def _kept(self, placement: Placement, delay_ms: int) -> Placement:
        """Where a connector stays; without worker, where it cannot."""
        worker, source = placement.worker, placement.source
        if worker == NOBODY:
            return self._new(NOBODY, source, "the connector is new")
        if worker not in self.living:
            return self._lost(placement, delay_ms)
        if source == NOBODY and worker not in self.staying:
            return self._new(NOBODY, worker, f"worker {worker} is stopping")
        if worker not in self._before.members:
            return self._new(worker, source, f"worker {worker} came back")
        return placement

    def _lost(self, placement: Placement, delay_ms: int) -> Placement:
        worker, source = placement.worker, placement.source
        known = self._before.members.get(worker)
        if known is not None and known.member_id in self._leaving:
            return self._new(NOBODY, source, f"worker {worker} stopped")
        if known is not None and delay_ms > 0:
            return self._new(worker, source, f"worker {worker} was lost, and may come back")
        if known is None and self._now_ms - placement.since_ms < delay_ms:
            return placement
        return self._new(NOBODY, source, f"worker {worker} was lost")

    def _deleted(self, placement: Placement) -> Placement | None:
        """A deleted connector keeps its place until nobody runs it: one of the same name may be created meanwhile."""
        if placement.source != NOBODY:
            return placement
        if placement.worker not in self.living:
            return None
        return self._new(NOBODY, placement.worker, "the connector was deleted")

    def place(self, weights: Mapping[str, int]) -> None:
        """The heaviest first, each on the worker that has least to do."""
        homeless = [name for name in weights if self._planned[name].worker == NOBODY]
        for name in sorted(homeless, key=lambda one: (-weights[one], one)):
            self._planned[name] = replace(self._planned[name], worker=self._by_load(weights)[0][1])

    def balance(self, weights: Mapping[str, int], resting: Collection[str]) -> None:
        """Moves one connector after the other to who has least to do, while that lowers the more loaded of the two."""
        while (move := self._best_move(weights, resting)) is not None:
            name, worker, target = move
            joined = target not in self._before.members
            reason = f"worker {target} joined" if joined else f"worker {worker} had more to do"
            found = self._planned[name]
            is_new = found.epoch == self.epoch
            self._planned[name] = replace(found, worker=target) if is_new else self._new(target, worker, reason)

    def _best_move(self, weights: Mapping[str, int], resting: Collection[str]) -> tuple[str, str, str] | None:
        """What still waits for a release does not move on."""
        loads = [(load, worker) for load, worker in self._by_load(weights) if worker not in resting]
        if not loads:
            return None
        least, target = loads[0]
        for load, worker in reversed(loads):
            found = [
                (abs(load - least - 2 * weights[name]), name)
                for name, one in self._planned.items()
                if one.worker == worker
                and (one.source == NOBODY or one.epoch == self.epoch)
                and 0 < weights.get(name, 0) < load - least
            ]
            if found:
                return min(found)[1], worker, target
        return None

    def _by_load(self, weights: Mapping[str, int]) -> list[tuple[int, str]]:
        """Load and id of each worker that stays, the least loaded first."""
        loads = dict.fromkeys(self.staying, 0)
        for name, weight in weights.items():
            worker = self._planned[name].worker
            if worker in loads:
                loads[worker] += weight
        return sorted((load, worker) for worker, load in loads.items())
