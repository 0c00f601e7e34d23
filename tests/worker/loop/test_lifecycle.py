"""Random requests at random moments, with queries that fail and flushes that last: a model says what must come out."""

import random
from contextlib import suppress

import pytest

from parquet_sink.errors import failure_named
from parquet_sink.worker.herder.errors import ConnectorExists, InvalidConnector, UnknownConnector
from parquet_sink.worker.herder.values import State, TargetState
from parquet_sink.worker.loop.connector import Connector
from parquet_sink.worker.loop.status import Status
from tests.worker.loop.doubles import Query
from tests.worker.loop.worker_doubles import Loop

NAMES = ("one", "two", "o/d %d")
REQUESTS = 500


class Model:
    """What each connector is to be: the last configuration that was taken, and the last wish."""

    def __init__(self, loop: Loop, chance: random.Random) -> None:
        self._loop, self._chance = loop, chance
        self.wishes: dict[str, tuple[dict[str, str], TargetState]] = {}

    def ask(self) -> None:
        """One request. What is refused must be refused, and changes nothing."""
        name = self._chance.choice(NAMES)
        act = self._chance.choice(
            [self._create, self._put, self._put, self._patch, self._delete, self._aim, self._aim, self._restart]
        )
        act(name)

    def _config(self, name: str) -> dict[str, str]:
        found = {"name": name, "records": str(self._chance.randint(1, 4)), "tasks": str(self._chance.randint(1, 3))}
        return found | ({"bad": "x"} if self._chance.random() < 0.2 else {})

    def _create(self, name: str) -> None:
        config, target = self._config(name), self._chance.choice(list(TargetState))
        if name in self.wishes or "bad" in config:
            with pytest.raises(InvalidConnector if "bad" in config else ConnectorExists):
                self._loop.requests.create(name, config, target)
        else:
            self._loop.requests.create(name, config, target)
            self.wishes[name] = config, target

    def _put(self, name: str) -> None:
        config = self._config(name)
        if "bad" in config:
            with pytest.raises(InvalidConnector):
                self._loop.requests.put(name, config)
            return
        _, new = self._loop.requests.put(name, config)
        assert new == (name not in self.wishes)
        self.wishes[name] = config, self.wishes.get(name, ({}, TargetState.STARTED))[1]

    def _patch(self, name: str) -> None:
        changes = {"records": str(self._chance.randint(1, 4)), "comment": self._chance.choice([None, "x"])}
        if name not in self.wishes:
            with pytest.raises(UnknownConnector):
                self._loop.requests.patch(name, changes)
            return
        self._loop.requests.patch(name, changes)
        merged = {**self.wishes[name][0], **changes}
        self.wishes[name] = {key: text for key, text in merged.items() if text is not None}, self.wishes[name][1]

    def _delete(self, name: str) -> None:
        if name in self.wishes:
            self._loop.requests.delete(name)
            del self.wishes[name]
            return
        with pytest.raises(UnknownConnector):
            self._loop.requests.delete(name)

    def _aim(self, name: str) -> None:
        target = self._chance.choice(list(TargetState))
        if name in self.wishes:
            self._loop.requests.set_target(name, target)
            self.wishes[name] = self.wishes[name][0], target

    def _restart(self, name: str) -> None:
        with suppress(UnknownConnector):
            failed = self._chance.random() < 0.5
            self._loop.requests.restart(name, include_tasks=True, only_failed=failed)

    def expected(self) -> dict[str, tuple[State, str]]:
        """States and a setting, when nothing changes any more and nothing fails."""
        states = {
            TargetState.STARTED: State.RUNNING,
            TargetState.PAUSED: State.PAUSED,
            TargetState.STOPPED: State.STOPPED,
        }
        return {name: (states[target], config["records"]) for name, (config, target) in self.wishes.items()}


def disturb(loop: Loop, chance: random.Random, queries: list[Query]) -> None:
    """A query fails, for good or in passing; flushes begin to last, or end."""
    loop.drains = chance.random() < 0.7
    living = [query for query in queries if query.isActive]
    if not living or chance.random() < 0.8:
        return
    for run in loop.registry.runs:
        if run.state is not None and chance.random() < 0.5:
            run.state.record_failure(failure_named("UploadRefused", "no"))
    chance.choice(living).fail()


def check_runs(loop: Loop) -> None:
    """Never two of one name or group at once."""
    names = [run.settings.name for run in loop.registry.runs]
    groups = [run.settings.kafka.group for run in loop.registry.runs]
    assert len(set(names)) == len(names)
    assert len(set(groups)) == len(groups)


@pytest.mark.parametrize("seed", range(3))
def test_random_requests_end_where_they_should(loop: Loop, launched: list[Query], seed: int) -> None:
    """Whatever came before: what was asked for last is so, all else has ended, and the store says the same."""
    chance = random.Random(seed)
    model = Model(loop, chance)
    for _ in range(REQUESTS):
        model.ask()
        disturb(loop, chance, launched)
        loop.round(chance.randint(0, 4))
        check_runs(loop)
        states = set(loop.registry.snapshot().statuses.values())
        assert {task.state for status in states for task in status.tasks} <= set(State) - {State.STOPPED}
    loop.drains = True
    loop.round(400)
    for name, (_, target) in model.wishes.items():
        if target is not TargetState.STOPPED and loop.state(name) is State.FAILED:
            loop.requests.restart(name, include_tasks=True, only_failed=True)
    loop.round(60)
    found = loop.registry.snapshot()
    assert {
        name: (status.state, found.infos[name].config["records"]) for name, status in found.statuses.items()
    } == dict(sorted(model.expected().items()))
    assert {
        name: (dict(one.config), one.target) for name, one in loop.registry.store.connectors().items()
    } == model.wishes
    runs = {name for name, (_, target) in model.wishes.items() if target is not TargetState.STOPPED}
    assert {run.settings.name for run in loop.registry.runs} == runs
    assert {run.settings.flush.commit_records for run in loop.registry.runs} <= {1, 2, 3, 4}
    for run in loop.registry.runs:
        assert run.status is Status.RUNNING
        assert str(run.settings.flush.commit_records) == model.wishes[run.settings.name][0]["records"]
    assert sum(query.isActive for query in launched) == len(runs)


def test_locks_and_folders_of_what_ended_are_given_up(loop: Loop, launched: list[Query]) -> None:
    """After a delete another worker may have a connector of that name and folder."""
    loop.requests.create("one", {})
    loop.settle()
    folder, before = loop.run("one").folder, loop.run("one").settings
    loop.requests.delete("one")
    loop.settle()
    assert not folder.exists()
    again = Connector(before, folder)
    again.prepare()
    assert again.status is Status.STARTING
    again.close()
