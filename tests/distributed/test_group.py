"""Several workers as one: who runs what, what REST answers at any of them, and sequences that nobody thought of."""

import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import pytest

from parquet_sink.distributed import assignment, leader, owned, records
from parquet_sink.distributed import group as known_group
from parquet_sink.distributed.herder import DistributedHerder
from parquet_sink.worker.herder.errors import (
    ConnectorExists,
    HerderError,
    InvalidConnector,
    NotLeader,
    NotOwner,
    NotStopped,
    OffsetsBusy,
    UnknownConnector,
    UnknownTask,
)
from parquet_sink.worker.herder.values import State, TargetState
from tests.distributed.group_doubles import Group, frozen
from tests.worker.loop.conftest import clock, launched, make_loop
from tests.worker.loop.worker_doubles import Loop

__all__ = ["clock", "launched", "make_loop"]  # fixtures
STATES = {
    TargetState.STARTED: State.RUNNING,
    TargetState.PAUSED: State.PAUSED,
    TargetState.STOPPED: State.STOPPED,
}


@pytest.fixture(autouse=True)
def _no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is back has its share at the next step."""
    monkeypatch.setattr(leader, "REST_S", 0.0)


@pytest.fixture
def group(make_loop: Callable[[], Loop]) -> Group:
    """Two workers, a and b, of which a leads."""
    made = Group(make_loop)
    made.add("a")
    made.add("b")
    made.settle()
    return made


def create(group: Group, *names: str) -> None:
    """Connectors, by the leader."""
    for name in names:
        group.leader.herder.create(name, {"name": name})
    group.settle()


def states(group: Group, worker_id: str) -> dict[str, State]:
    """Of all connectors, as a worker answers."""
    herder = group.workers[worker_id].herder
    return {name: herder.status(name).state for name in herder.names()}


def test_connectors_are_shared_out_and_seen_at_each(group: Group) -> None:
    """Each runs at one worker, both workers have as many, and both answer the same."""
    create(group, "one", "two", "three", "four")
    assert Counter(workers[0] for workers in group.running().values()) == {"a": 2, "b": 2}
    assert states(group, "a") == states(group, "b") == dict.fromkeys(("four", "one", "three", "two"), State.RUNNING)
    assert [len(one.connectors) for one in group.workers["b"].herder.workers().workers] == [2, 2]
    assert group.workers["b"].herder.info("one").tasks == 1


def test_a_follower_refers_to_the_leader(group: Group) -> None:
    """Whatever changes something; nothing is done."""
    create(group, "one")
    follower = group.workers["b"].herder
    changes: list[Callable[[], object]] = [
        lambda: follower.create("two", {"name": "two"}),
        lambda: follower.put("one", {"name": "one"}),
        lambda: follower.patch("one", {"records": "7"}),
        lambda: follower.delete("one"),
        lambda: follower.set_target("one", TargetState.PAUSED),
        lambda: follower.restart("one", include_tasks=True, only_failed=False),
        lambda: follower.restart_task("one", 0),
        lambda: follower.reset_topics("one"),
        lambda: follower.reset_offsets("one"),
        lambda: follower.alter_offsets("one", ()),
    ]
    before = len(group.configs.entries)
    for change in changes:
        with pytest.raises(NotLeader) as raised:
            change()
        assert raised.value.url == "http://a"
    assert len(group.configs.entries) == before


def test_the_worker_that_has_a_connector_has_its_settings_and_others_refer_to_it(group: Group) -> None:
    """By its address; before a worker has it, to none."""
    create(group, "one", "two")
    for name, (owner, *_) in group.running().items():
        other = "b" if owner == "a" else "a"
        assert group.workers[owner].herder.settings(name).name == name
        with pytest.raises(NotOwner) as raised:
            group.workers[other].herder.settings(name)
        assert raised.value.url == f"http://{owner}"
    group.leader.herder.create("new", {"name": "new"})
    with pytest.raises(NotOwner) as raised:
        group.leader.herder.settings("new")
    assert raised.value.url is None
    with pytest.raises(UnknownConnector):
        group.leader.herder.settings("none")


def test_what_is_wrong_changes_nothing(group: Group) -> None:
    """Each with its reason."""
    create(group, "one", "two")
    herder, before = group.leader.herder, len(group.configs.entries)
    refused: list[tuple[type[HerderError], Callable[[], object]]] = [
        (ConnectorExists, lambda: herder.create("one", {"name": "one"})),
        (InvalidConnector, lambda: herder.create("three", {"name": "three", "bad": ""})),
        (InvalidConnector, lambda: herder.create("three", {"name": "three", "group": "connect-one"})),
        (InvalidConnector, lambda: herder.put("one", {"name": "another"})),
        (UnknownConnector, lambda: herder.patch("none", {})),
        (UnknownConnector, lambda: herder.delete("none")),
        (UnknownConnector, lambda: herder.set_target("none", TargetState.PAUSED)),
        (UnknownConnector, lambda: herder.restart("none", include_tasks=True, only_failed=False)),
        (UnknownTask, lambda: herder.restart_task("one", 9)),
        (NotStopped, lambda: herder.reset_offsets("one")),
    ]
    for reason, request in refused:
        with pytest.raises(reason):
            request()
    assert len(group.configs.entries) == before


def test_a_connector_s_life(group: Group) -> None:
    """Paused, resumed, changed, stopped, restarted, deleted: its worker follows, and each worker says so."""
    create(group, "one", "two")
    herder = group.leader.herder
    for target, state in (
        (TargetState.PAUSED, State.PAUSED),
        (TargetState.STARTED, State.RUNNING),
        (TargetState.STOPPED, State.STOPPED),
    ):
        herder.set_target("two", target)
        group.settle()
        assert states(group, "a")["two"] is states(group, "b")["two"] is state
    herder.put("two", {"name": "two", "records": "7"})
    herder.set_target("two", TargetState.STARTED)
    group.settle()
    assert states(group, "b") == {"one": State.RUNNING, "two": State.RUNNING}
    made = sum(len(one.loop.made) for one in group.workers.values())
    assert herder.restart("two", include_tasks=True, only_failed=True).state is State.RUNNING
    assert herder.restart("two", include_tasks=True, only_failed=False).state is State.RESTARTING
    group.settle()
    assert sum(len(one.loop.made) for one in group.workers.values()) == made + 1
    herder.delete("two")
    group.settle()
    assert group.workers["b"].herder.names() == ("one",)
    assert set(group.running()) == {"one"}
    with pytest.raises(UnknownConnector):
        group.workers["b"].herder.status("two")


def test_a_deleted_connector_leaves_no_records(group: Group) -> None:
    """Its release goes, too, once its last worker has written it; each release is removed once."""
    create(group, "one", "two")
    group.leader.herder.delete("one")
    group.settle()
    status = group.leader.status.state
    assert [*status.connectors, *status.tasks, *status.releases] == ["two", "two"]
    written = [entry.value for entry in group.statuses.entries if entry.key == records.RELEASE.key("one")]
    assert len(written) == 2
    assert written[-1] is None
    create(group, "one")
    assert len(group.running()["one"]) == 1


def test_a_target_state_goes_before_its_connector(group: Group) -> None:
    """One that is created stopped never runs; one that was deleted stopped begins anew."""
    group.leader.herder.create("one", {"name": "one"}, TargetState.STOPPED)
    group.settle()
    assert states(group, "b") == {"one": State.STOPPED}
    assert not any(one.loop.made for one in group.workers.values())
    group.leader.herder.delete("one")
    create(group, "one")
    assert states(group, "a") == {"one": State.RUNNING}


def test_offsets_are_changed_by_one_at_a_time(group: Group) -> None:
    """While they are, the connector is neither started, changed nor deleted."""
    create(group, "one")
    herder = group.leader.herder
    herder.set_target("one", TargetState.STOPPED)
    group.settle()
    with group.leader.leader.altering("one"):
        for change in (
            lambda: herder.set_target("one", TargetState.STARTED),
            lambda: herder.put("one", {"name": "one", "records": "9"}),
            lambda: herder.delete("one"),
            lambda: herder.reset_offsets("one"),
        ):
            with pytest.raises(OffsetsBusy):
                change()
    herder.set_target("one", TargetState.STARTED)
    group.settle()
    assert states(group, "b") == {"one": State.RUNNING}


def test_a_lost_worker_is_not_said_to_run_anything(group: Group) -> None:
    """From when the coordinator removed it until another one has its connectors, and these go on there."""
    create(group, "one", "two")
    lost = next(name for name, workers in group.running().items() if workers == ["b"])
    group.kill("b")
    group.leader.step()
    assert states(group, "a")[lost] in {State.UNASSIGNED, State.RUNNING}
    group.settle()
    assert group.running() == {"one": ["a"], "two": ["a"]}
    assert states(group, "a") == {"one": State.RUNNING, "two": State.RUNNING}


def test_a_frozen_leader_gives_way(group: Group) -> None:
    """When it wakes up it writes nothing, ends what is another's, and is given a share again."""
    create(group, "one", "two")
    former = group.workers["a"]
    with frozen(former):
        group.remove("a")
        group.settle()
        assert group.running() == {"one": ["b"], "two": ["b"]}
    written = len(group.configs.entries)
    former.leader.step()  # before it has heard that it leads no more
    assert len(group.configs.entries) == written
    with pytest.raises(NotLeader):
        former.herder.set_target("one", TargetState.PAUSED)
    group.settle()
    assert sorted(group.running().values()) == [["a"], ["b"]]


def test_a_stopping_worker_gives_its_connectors_away(group: Group) -> None:
    """As each of them ends, while it is still a member."""
    create(group, "one", "two")
    leaving = group.workers["b"]
    leaving.owned.leave()
    group.settle()
    assert group.running() == {"one": ["a"], "two": ["a"]}


def test_a_stopping_worker_hands_over_one_connector_after_the_other(group: Group) -> None:
    """No two of them rest at the same time, where one other worker takes them."""
    names = ["one", "two", "three", "four", "five", "six"]
    create(group, *names)
    leaving = group.workers["b"]
    assert leaving.owned.has_any
    leaving.owned.leave()
    least = len(names)
    for _ in range(60):
        group.step()
        least = min(least, len(group.running()))
        assert group.workers["a"].owned.group.others_stay is False
    assert group.running() == {name: ["a"] for name in names}
    assert least == len(names) - 1
    assert not leaving.owned.has_any


def test_what_a_worker_that_stops_was_to_have_runs_on(group: Group) -> None:
    """Nothing ends for a worker that joined and was asked to stop before; the leader gives it to one that stays."""
    names = [f"connector-{number}" for number in range(6)]
    create(group, *names)
    joined = group.add("c")
    joined.membership.hear()
    group.leader.leader.step()
    group.leader.config.read_to_end()
    moving = [name for name, one in group.leader.config.state.assignment.placements.items() if one.worker == "c"]
    assert len(moving) == 2
    joined.owned.leave()
    for _ in range(20):
        group.step()
        assert {name: len(workers) for name, workers in group.running().items()} == dict.fromkeys(names, 1)
        assert not joined.sends
    group.kill("c")
    group.settle()
    assert group.running().keys() == set(names)
    assert Counter(worker for (worker,) in group.running().values()) == {"a": 3, "b": 3}


def test_who_is_lost_runs_nothing_on_for_one_that_stops(group: Group) -> None:
    """A worker that reads that others have its connectors ends them, also where one of these was asked to stop."""
    names = [f"connector-{number}" for number in range(6)]
    group.add("c")
    create(group, *names)
    lost, stops = group.workers["b"], group.workers["c"]
    had = {name for name in names if lost.owned.has(name)}
    with frozen(lost):
        group.remove("b")
        group.settle()
        assert any(stops.owned.has(name) for name in had)
        stops.owned.leave()
    lost.config.read_to_end()
    lost.status.read_to_end()
    lost.owned.step()
    assert len(had) == 2
    assert not any(lost.owned.has(name) for name in had)


@pytest.mark.parametrize(("turn_s", "rests"), [(30.0, 2), (0.0, 4)])
def test_one_that_does_not_begin_elsewhere_holds_the_others_up_for_a_time(
    group: Group, monkeypatch: pytest.MonkeyPatch, turn_s: float, rests: int
) -> None:
    """Two workers give two connectors each to one that joins and begins none: of each one rests, then both."""
    monkeypatch.setattr(owned, "TURN_S", turn_s)
    names = [f"connector-{number}" for number in range(12)]
    create(group, *names)
    joined = group.add("c")
    joined.membership.hear()
    joined.frozen = True
    group.step(40)
    assert len(group.running()) == len(names) - rests


def test_what_waits_to_be_handed_over_is_said_to_run(group: Group) -> None:
    """By every worker, as long as the one that stops has it: at most one moves."""
    create(group, "one", "two", "three", "four")
    group.workers["b"].owned.leave()
    for _ in range(40):
        group.step()
        for worker in "ab":
            assert [state for state in states(group, worker).values() if state != State.RUNNING][1:] == []


class Chance:
    """Random acts, and what is to come of them."""

    def __init__(self, seed: int, group: Group) -> None:
        self._random, self._group, self._seed = random.Random(seed), group, seed
        self._expected: dict[str, TargetState] = {}

    def acts(self, count: int) -> None:
        """After each step of any worker no connector may run at two that both may send."""
        for _ in range(count):
            self._random.choice((self._request, self._request, self._come_and_go))()
            awake = self._group.awake
            for worker in self._random.sample(awake, self._random.randint(0, len(awake))):
                worker.step()
                self._check()

    def end(self) -> None:
        """All wake up; each connector is where it is to be, and all workers say the same."""
        for worker in self._group.workers.values():
            worker.frozen = False
        self._group.step(60)
        self._check()
        wanted = {name for name, target in self._expected.items() if target is not TargetState.STOPPED}
        assert set(self._group.running()) == wanted, self._seed
        for worker in self._group.awake:
            assert worker.herder.names() == tuple(sorted(self._expected)), self._seed
            found = {name: worker.herder.status(name).state for name in self._expected}
            assert found == {name: STATES[target] for name, target in self._expected.items()}, self._seed

    def _check(self) -> None:
        twice = {name: workers for name, workers in self._group.running().items() if len(workers) > 1}
        assert not twice, (self._seed, twice)

    def _request(self) -> None:
        herder = self._random.choice(self._group.awake).herder
        with suppress(HerderError):
            self._random.choice((self._create, self._delete, self._aim, self._put, self._restart))(herder)

    def _name(self) -> str:
        return f"connector-{self._random.randrange(6)}"

    def _create(self, herder: DistributedHerder) -> None:
        name, target = self._name(), self._random.choice(list(TargetState))
        herder.create(name, {"name": name, "tasks": str(self._random.randint(1, 4))}, target)
        self._expected[name] = target

    def _delete(self, herder: DistributedHerder) -> None:
        name = self._name()
        herder.delete(name)
        del self._expected[name]

    def _aim(self, herder: DistributedHerder) -> None:
        name, target = self._name(), self._random.choice(list(TargetState))
        herder.set_target(name, target)
        self._expected[name] = target

    def _put(self, herder: DistributedHerder) -> None:
        name = self._name()
        if name in self._expected:
            herder.put(name, {"name": name, "records": str(self._random.randint(1, 9))})

    def _restart(self, herder: DistributedHerder) -> None:
        herder.restart(self._name(), include_tasks=True, only_failed=self._random.random() < 0.5)

    def _come_and_go(self) -> None:
        worker_id = self._random.choice("abc")
        worker = self._group.workers.get(worker_id)
        if worker is None:
            self._group.add(worker_id)
        elif worker.frozen:
            worker.frozen = False
        elif len(self._group.awake) > 1:
            self._random.choice((_kill, _freeze, _freeze_and_remove, _leave))(self._group, worker_id)


def _kill(group: Group, worker_id: str) -> None:
    group.kill(worker_id)


def _freeze(group: Group, worker_id: str) -> None:
    """For less than its session: it wakes up as the member that it was."""
    group.workers[worker_id].frozen = True


def _freeze_and_remove(group: Group, worker_id: str) -> None:
    """For longer."""
    group.workers[worker_id].frozen = True
    group.remove(worker_id)


def _leave(group: Group, worker_id: str) -> None:
    """It is asked to stop, and ends somewhat later."""
    group.workers[worker_id].owned.leave()
    group.step(3)
    group.kill(worker_id)


def _play(seed: int, make_loop: Callable[[], Loop]) -> None:
    group = Group(make_loop)
    group.add("a")
    group.settle()
    chance = Chance(seed, group)
    chance.acts(150)
    chance.end()


@pytest.mark.parametrize("seed", range(16))
def test_anything(make_loop: Callable[[], Loop], seed: int) -> None:
    """No connector runs at two workers that both may send; in the end each runs at one, and all answer the same."""
    _play(seed, make_loop)


def test_waiting_for_a_release_is_needed(make_loop: Callable[[], Loop], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it such acts find two workers at one connector."""
    monkeypatch.setattr(known_group.Group, "is_free", lambda group, name, assignment: True)
    found = 0
    for seed in range(10):
        try:
            _play(seed, make_loop)
        except AssertionError:
            found += 1
    assert found > 0


def test_a_worker_that_joined_again_has_nothing_yet(group: Group) -> None:
    """What it was given as another member is not its own until the leader says so again."""
    create(group, "one", "two")
    lost = group.workers["b"]
    group.remove("b")
    lost.step()
    assert lost.sends == set()
    group.settle()
    assert sorted(group.running().values()) == [["a"], ["b"]]


def test_workers_of_two_releases_hand_over_in_words_that_both_read(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the older one while it is a member, and then those of the newer ones."""
    for one in (assignment, records):
        monkeypatch.setattr(one, "FORM", 2)
    group.coordinator.form = 2
    create(group, "one", "two", "three", "four")

    def written(since: int = 0) -> set[bytes]:
        """Forms of releases since then, and of the last assignment."""
        releases = [one for one in group.statuses.entries[since:] if b".release-" in (one.key or b"")]
        assignments = [one for one in group.configs.entries if one.key == records.ASSIGNMENT.key()]
        assert releases
        return {(one.value or b"")[:12] for one in (*releases, assignments[-1])}

    group.kill("b")
    group.settle()
    group.add("c")  # the older one, a, leads
    group.settle()
    assert written() == {b'{"version":1'}
    assert {len(workers) for workers in group.running().values()} == {1}

    group.add("d")
    group.settle()
    group.kill("a")
    group.settle()
    since = len(group.statuses.entries)
    group.add("e")
    group.settle()
    assert written(since) == {b'{"version":2'}
    assert {len(workers) for workers in group.running().values()} == {1}
    assert len(group.running()) == 4


def test_what_another_worker_ran_is_taken_over_and_what_is_new_is_not(group: Group) -> None:
    """By the word of the worker that ran it."""
    create(group, "one", "two")
    assert not any(one.taken_over for worker in group.workers.values() for one in worker.loop.registry.all())
    registry, moved = group.workers["a"].loop.registry, set(group.workers["b"].loop.registry.connectors)
    group.kill("b")
    group.workers["a"].leader.step()
    group.workers["a"].config.read_to_end()
    group.workers["a"].owned.step()
    assert {name for name, one in registry.connectors.items() if one.taken_over} == moved
    group.settle()
    assert not any(one.taken_over for one in registry.connectors.values())


def test_a_killed_worker_that_is_started_again_is_not_waited_for(group: Group) -> None:
    """It tells of its earlier life, of which it knows that it ended, and others go on while brokers still list it."""
    create(group, "one", "two")
    member_id = group.workers["b"].membership.now().member_id
    again = group.add("b")
    again.owned.earlier = member_id

    def step() -> None:
        """Before it joins."""
        for reader in (again.config, again.status):
            reader.read_to_end()
        again.owned.step()
        group.workers["a"].step()

    for _ in range(10):
        step()
    assert group.coordinator.members["b"].member_id == member_id
    assert group.running() == {"one": ["a"], "two": ["a"]}
    group.coordinator.members.pop("b")
    group.settle()
    assert again.owned.earlier is None
    assert sorted(workers[0] for workers in group.running().values()) == ["a", "b"]


def test_what_is_not_known_to_have_ended_is_waited_for(group: Group) -> None:
    """As long as brokers list it, as any worker that was lost; then there is nothing left to tell."""
    create(group, "one", "two")
    before = len(group.statuses.entries)
    again = group.add("b")
    again.config.read_to_end()
    again.status.read_to_end()
    again.owned.step()
    again.owned.earlier = "another"
    again.owned.step()
    assert again.owned.earlier is None
    assert len(group.statuses.entries) == before
