"""Tests are shared out among processes of which some have no unit tests: each is run once, whoever is quick."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from integration.by_file import UNIT as UNIT_IDS
from integration.by_file import WITH_UNIT, ByFile, of_the_turn, tell
from tests.thorough import TURNS, turn_of

UNIT = [f"tests/test_{name}.py::test_{number}" for name in "abcdefgh" for number in range(5)]
OTHER = [f"integration/test_{name}.py::test_{number}" for name in "pqrst" for number in range(4)]


@dataclass
class Gateway:
    """Its name."""

    id: str


@dataclass(eq=False)
class Process:
    """A double of xdist's; `asked` are the numbers of tests that it is to run."""

    gateway: Gateway
    workerinput: dict[str, Any] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)
    shutting_down: bool = False

    def send_runtest_some(self, numbers: list[int]) -> None:
        assert not self.shutting_down
        self.asked += numbers

    def shutdown(self) -> None:
        self.shutting_down = True


class Config:
    """As of `-n N --dist loadfile --no-loadscope-reorder`."""

    def __init__(self, processes: int) -> None:
        self.option = type("Option", (), {"loadscopereorder": False, "debug": False})
        self._processes = processes

    def getvalue(self, name: str) -> Any:
        return {"tx": [f"{self._processes}*popen"], "numprocesses": self._processes}[name]


def played(processes: int, unit: list[str], other: list[str], random: Random) -> dict[str, list[str]]:
    """What each process ran, until all are told to end. They collect, and run, in any order."""
    scheduler = ByFile(Config(processes), None)  # type: ignore[arg-type]
    nodes: list[Any] = [Process(Gateway(f"gw{number}")) for number in range(processes)]
    for node in nodes:
        tell(node)
        scheduler.add_node(node)
    for node in random.sample(nodes, len(nodes)):
        scheduler.add_node_collection(node, [*other, *(unit if node.workerinput[WITH_UNIT] else [])])
    scheduler.schedule()
    ran: dict[str, list[str]] = {node.gateway.id: [] for node in nodes}
    while busy := [node for node in nodes if node.asked]:
        node = random.choice(busy)
        number = node.asked.pop(0)
        ran[node.gateway.id].append(scheduler.registered_collections[node][number])
        scheduler.mark_test_complete(node, number)
    assert all(node.shutting_down for node in nodes)
    assert scheduler.tests_finished
    return ran


@pytest.mark.parametrize("processes", [1, 2, 3, 5, 7])
@pytest.mark.parametrize(("unit", "other"), [(UNIT, OTHER), (UNIT, []), ([], OTHER), (UNIT[:1], OTHER[:1])])
def test_each_test_is_run_once(processes: int, unit: list[str], other: list[str]) -> None:
    """Whichever process is quick, and however few tests there are; a file stays in one process."""
    for number in range(20):
        ran = played(processes, unit, other, Random(number))
        assert sorted(one for ids in ran.values() for one in ids) == sorted([*unit, *other])
        files = [{one.partition("::")[0] for one in ids} for ids in ran.values()]
        assert sum(map(len, files)) == len(set().union(*files))


def test_some_have_no_unit_tests_and_one_begins_with_them() -> None:
    """The processes that wait most of the time do not even read them."""
    ran = played(5, UNIT, OTHER, Random(1))
    assert [one for name in ("gw2", "gw3", "gw4") for one in ran[name] if one.startswith("tests/")] == []
    assert ran["gw0"][0].startswith("tests/test_h")


def test_other_tests_than_those_of_the_others_end_the_run() -> None:
    """As without sharing out: a name of a test that differs from process to process would be run by nobody."""
    scheduler = ByFile(Config(2), None)  # type: ignore[arg-type]
    first, second = Process(Gateway("gw0")), Process(Gateway("gw1"))
    for node, ids in ((first, UNIT), (second, UNIT[1:])):
        scheduler.add_node(node)  # type: ignore[arg-type]
        scheduler.add_node_collection(node, ids)  # type: ignore[arg-type]
    reported: list[dict[str, object]] = []
    scheduler.config.hook = type("Hook", (), {"pytest_collectreport": lambda **what: reported.append(what)})
    scheduler.schedule()
    assert len(reported) == 1
    assert first.asked == second.asked == []


@pytest.mark.parametrize("count", [0, 1, 2, 3, 20])
def test_tests_that_take_turns_are_run_by_one_of_four_commits(count: int) -> None:
    """Each once, in whatever order they are collected; each quarter takes as long, and one is run without git."""
    ids = [f"{folder}/test_long.py::test_{number}" for number in range(count) for folder in ("integration", "tests")]
    seconds = {one: int(one.rpartition("_")[2]) % 4 * 30 + 10 for one in ids}
    again = dict(sorted(seconds.items(), reverse=True))
    turns = {turn_of(commit) for commit in "abcd"}
    assert turns == set(range(TURNS))
    assert sorted(one for turn in turns for one in of_the_turn(again, turn)) == sorted(ids)
    others = {one: s for one, s in seconds.items() if not one.startswith(UNIT_IDS)}
    chosen = [of_the_turn(others, turn) for turn in sorted(turns)]
    assert all(some <= of_the_turn(seconds, turn) for turn, some in enumerate(chosen))
    sums = [sum(others[one] for one in some) for some in chosen]
    assert max(sums) - min(sums) <= 100
    assert turn_of("") in turns
