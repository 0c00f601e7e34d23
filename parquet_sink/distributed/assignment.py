"""Which worker runs which connector: the assignment, how the leader makes it, and who may run what by it.

Sticky: a connector stays where it is while its worker lives, unless moving it makes the load more even. Load is the
sum of weights (`tasks.max`). A connector that moves from a living worker is first released by it: the assignment names
that worker as the placement's source, the worker stops the connector and writes a `Release`, and only then does the
next owner begin. A worker that the group coordinator removed has no lease any more (`distributed/membership.py`), so
nobody waits for it. Workers are known by worker id, and each stay in the group by its member id: what was
said to or by another member id counts for nothing.

Times are epoch milliseconds, of the leader's clock; they are shown and, but for the rebalance delay, decide nothing.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

FORM: Final = 1
"""The version of our own records' form: the highest that this program reads, and writes where all in the group do."""
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


def placements_of(assignment: Assignment | None, worker_id: str, member_id: str) -> dict[str, Placement]:
    """What an assignment gives this member; nothing where it knows the worker as another one."""
    if assignment is None or not _names(assignment, worker_id, member_id):
        return {}
    return {name: one for name, one in assignment.placements.items() if one.worker == worker_id}


def owned(
    assignment: Assignment | None, worker_id: str, member_id: str, releases: Mapping[str, Release]
) -> frozenset[str]:
    """Connectors that this member may run now."""
    placed = placements_of(assignment, worker_id, member_id)
    return frozenset(name for name in placed if assignment and free(assignment, name, releases.get(name)))


def asked_to_release(
    assignment: Assignment | None, worker_id: str, member_id: str, releases: Mapping[str, Release]
) -> dict[str, Release]:
    """What this member is to write, of each connector as soon as it runs nothing of it any more."""
    if assignment is None or not _names(assignment, worker_id, member_id):
        return {}
    asked = (name for name, one in assignment.placements.items() if one.source == worker_id)
    return {
        name: Release(worker_id, member_id, assignment.epoch)
        for name in asked
        if not free(assignment, name, releases.get(name))
    }


def _names(assignment: Assignment, worker_id: str, member_id: str) -> bool:
    member = assignment.members.get(worker_id)
    return member is not None and member.member_id == member_id


def assign(
    before: Assignment | None,
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
    if before is not None and before.leader == leader and _same(before, plan.living, placements):
        return None
    form = min(FORM, *(one.form for one in members))
    return Assignment(plan.epoch, leader, now_ms, plan.living, placements, form)


def _living(before: Assignment | None, members: Iterable[MemberInfo], now_ms: int) -> dict[str, MemberInfo]:
    """One member for each worker id: of two, the one that is assigned to already, because it may still be at work."""
    known = {} if before is None else before.members
    found: dict[str, MemberInfo] = {}
    for member in sorted(members, key=lambda one: (one.worker_id, one.member_id)):
        earlier = known.get(member.worker_id)
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


@dataclass
class _Spot:
    """Where a connector is to be. source: who may still be running it. was: its placement, where that may stand."""

    worker: str
    source: str
    reason: str = ""
    was: Placement | None = None
    movable: bool = True


class _Plan:
    """An assignment in the making: what stays is kept, what has no worker is placed, then the load is made even."""

    def __init__(
        self,
        before: Assignment | None,
        living: Mapping[str, MemberInfo],
        leaving: frozenset[str],
        releases: Mapping[str, Release],
        now_ms: int,
    ) -> None:
        self._before = before or Assignment(0, NOBODY, now_ms, {}, {})
        self._leaving, self._releases, self._now_ms = leaving, releases, now_ms
        self._spots: dict[str, _Spot] = {}
        self.epoch = self._before.epoch + 1
        self.living = living
        self.staying = [worker for worker, one in living.items() if one.member_id not in leaving]

    def placements(self) -> dict[str, Placement]:
        return {name: self._placement(spot) for name, spot in sorted(self._spots.items())}

    def _placement(self, spot: _Spot) -> Placement:
        source = NOBODY if spot.source == spot.worker else spot.source
        if spot.was is not None:
            return replace(spot.was, source=source)
        return Placement(spot.worker, source, spot.reason, self.epoch, self._now_ms)

    def keep(self, weights: Mapping[str, int], delay_ms: int) -> None:
        for name, placement in self._before.placements.items():
            spot = self._kept(name, placement, delay_ms) if name in weights else self._deleted(name, placement)
            if spot is not None:
                self._spots[name] = spot
        for name in weights.keys() - self._spots.keys():
            self._spots[name] = _Spot(NOBODY, NOBODY, "the connector is new")

    def _kept(self, name: str, placement: Placement, delay_ms: int) -> _Spot:
        """Where a connector stays; without worker, where it cannot."""
        worker, source = placement.worker, self._source(name, placement)
        if worker == NOBODY:
            return _Spot(NOBODY, source, "the connector is new")
        if worker not in self.living:
            return self._lost(placement, source, delay_ms)
        if source == NOBODY and worker not in self.staying:
            return _Spot(NOBODY, worker, f"worker {worker} is stopping")
        if worker not in self._before.members:
            return _Spot(worker, source, f"worker {worker} came back")
        return _Spot(worker, source, was=placement, movable=source == NOBODY)

    def _lost(self, placement: Placement, source: str, delay_ms: int) -> _Spot:
        worker = placement.worker
        known = self._before.members.get(worker)
        if known is not None and known.member_id in self._leaving:
            return _Spot(NOBODY, source, f"worker {worker} stopped")
        if known is not None and delay_ms > 0:
            return _Spot(worker, source, f"worker {worker} was lost, and may come back", movable=False)
        if known is None and self._now_ms - placement.since_ms < delay_ms:
            return _Spot(worker, source, was=placement, movable=False)
        return _Spot(NOBODY, source, f"worker {worker} was lost")

    def _deleted(self, name: str, placement: Placement) -> _Spot | None:
        """A deleted connector keeps its place until nobody runs it: one of the same name may be created meanwhile."""
        source = self._source(name, placement)
        if source != NOBODY:
            return _Spot(placement.worker, source, was=placement, movable=False)
        if placement.worker not in self.living:
            return None
        return _Spot(NOBODY, placement.worker, "the connector was deleted")

    def _source(self, name: str, placement: Placement) -> str:
        """Who has still to release it: a worker that lives under the same member id, and has not."""
        source = placement.source
        gone = source not in self.living or self.living[source] != self._before.members.get(source)
        return NOBODY if gone or free(self._before, name, self._releases.get(name)) else source

    def place(self, weights: Mapping[str, int]) -> None:
        """The heaviest first, each on the worker that has least to do."""
        homeless = [name for name in weights if self._spots[name].worker == NOBODY]
        for name in sorted(homeless, key=lambda one: (-weights[one], one)):
            self._spots[name].worker = self._by_load(weights)[0][1]

    def balance(self, weights: Mapping[str, int], resting: Collection[str]) -> None:
        """Moves one connector after the other to who has least to do, while that lowers the more loaded of the two."""
        while (move := self._best_move(weights, resting)) is not None:
            name, worker, target = move
            spot = self._spots[name]
            if spot.was is not None:
                joined = target not in self._before.members
                reason = f"worker {target} joined" if joined else f"worker {worker} had more to do"
                self._spots[name] = _Spot(target, worker, reason)
            else:
                spot.worker = target

    def _best_move(self, weights: Mapping[str, int], resting: Collection[str]) -> tuple[str, str, str] | None:
        loads = [(load, worker) for load, worker in self._by_load(weights) if worker not in resting]
        if not loads:
            return None
        least, target = loads[0]
        for load, worker in reversed(loads):
            found = [
                (abs(load - least - 2 * weights[name]), name)
                for name, spot in self._spots.items()
                if spot.worker == worker and spot.movable and 0 < weights.get(name, 0) < load - least
            ]
            if found:
                return min(found)[1], worker, target
        return None

    def _by_load(self, weights: Mapping[str, int]) -> list[tuple[int, str]]:
        """Load and id of each worker that stays, the least loaded first."""
        loads = dict.fromkeys(self.staying, 0)
        for name, weight in weights.items():
            worker = self._spots[name].worker
            if worker in loads:
                loads[worker] += weight
        return sorted((load, worker) for worker, load in loads.items())
