"""Which process of `make test` gets which files of tests, and when."""

from collections import OrderedDict
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

from integration.by_file import COMPUTING, ByFile
from integration.conftest import LONGEST, LONGEST_UNIT, rank

ROOT = Path(__file__).parents[1]


def test_one_process_begins_at_the_end() -> None:
    """It computes unit tests while the others wait for what they start; the two ends of the queue meet."""
    scheduler = ByFile.__new__(ByFile)
    scheduler.workqueue = OrderedDict((name, {f"{name}::test": False}) for name in "abcd")
    scheduler.assigned_work = {}
    scheduler.registered_collections = {}
    for worker in ("gw1", COMPUTING, "gw2", COMPUTING):
        node = Mock(gateway=SimpleNamespace(id=worker))
        scheduler.registered_collections[node] = [f"{name}::test" for name in "abcd"]
        scheduler._assign_work_unit(node)
    assert [[*work] for work in scheduler.assigned_work.values()] == [["a"], ["d"], ["b"], ["c"]]


def test_the_longest_files_stand_at_both_ends() -> None:
    """Those that are named, all of which there are: integration tests at the beginning, unit tests at the end."""
    paths = [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "integration").glob("test_*.py")]
    names = [path.stem.removeprefix("test_") for path in sorted(paths, key=rank)]
    assert names[: len(LONGEST)] == [*LONGEST]
    assert names[-len(LONGEST_UNIT) :] == [*reversed(LONGEST_UNIT)]
