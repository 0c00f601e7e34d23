"""How `make test` shares tests out among its processes: whole files, and unit tests beside what waits."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from xdist.scheduler.loadfile import LoadFileScheduling
from xdist.workermanage import WorkerController

from tests.thorough import TURNS

T = TypeVar("T")
UNIT: Final = "tests/"
"""How the ids of unit tests begin."""
COMPUTING: Final = "gw0"
"""The process of pytest-xdist that begins with the unit tests."""
WITH_UNIT: Final = "with_unit_tests"
"""What a process is told: whether it has unit tests, too."""
TURN: Final = "turn"
"""What it is told, too: which of the tests that take turns are run; None for all."""
WITHOUT: Final = range(2, 5)
"""The numbers of processes that have none: to collect them takes each 10 s of CPU."""


def tell(node: WorkerController, turn: int | None = None) -> None:
    """Says to a process whether it has unit tests, and whose turn it is.

    One that replaces another has a further number, and has them.
    """
    node.workerinput |= {WITH_UNIT: int(node.gateway.id.removeprefix("gw")) not in WITHOUT, TURN: turn}


def of_the_turn(seconds: Mapping[str, float], turn: int) -> set[str]:
    """A quarter of these tests, by what they take: unit tests for themselves, since not all processes have them."""
    chosen = set()
    for of_unit in (True, False):
        dealt = [0.0] * TURNS
        ids = [one for one in seconds if one.startswith(UNIT) is of_unit]
        for one in sorted(ids, key=lambda one: (-seconds[one], one)):
            least = dealt.index(min(dealt))
            dealt[least] += seconds[one]
            if least == turn:
                chosen.add(one)
    return chosen


class ByFile(LoadFileScheduling):
    """Gives a process of pytest-xdist whole files of tests; each page of the documents counts as a file.

    One process takes files from the end of the queue, where the unit tests are: it computes while the others wait.
    """

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if "::test_what_a_page_shows_works[" in nodeid else super()._split_scope(nodeid)

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Processes differ in what they have, so all of it is kept, also of one that comes later."""
        self.registered_collections[node] = list(collection)

    def schedule(self) -> None:
        """Those that have all tests come first: by them it goes, and they are not the first to be found superfluous."""
        if self.collection is None:
            self.registered_collections = self._fullest_first(self.registered_collections)
            self.assigned_work = self._fullest_first(self.assigned_work)
        super().schedule()

    def _fullest_first(self, by_node: dict[WorkerController, T]) -> dict[WorkerController, T]:
        tests = self.registered_collections
        return dict(sorted(by_node.items(), key=lambda item: -len(tests[item[0]])))

    def _check_nodes_have_same_collection(self) -> bool:
        """Each has the same unit tests or none, and the same other ones."""
        found = self.registered_collections.values()
        unit = {tuple(sorted(one for one in ids if one.startswith(UNIT))) for ids in found}
        other = {tuple(sorted(one for one in ids if not one.startswith(UNIT))) for ids in found}
        return (len(unit - {()}) <= 1 and len(other) == 1) or super()._check_nodes_have_same_collection()

    def _assign_work_unit(self, node: WorkerController) -> None:
        known = set(self.registered_collections[node])
        its = [scope for scope, tests in self.workqueue.items() if next(iter(tests)) in known]
        if not its:
            node.shutdown()
            return
        self.workqueue.move_to_end(its[-1 if node.gateway.id == COMPUTING else 0], last=False)
        super()._assign_work_unit(node)
