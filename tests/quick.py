"""Runs the unit tests of what changed, the nearest first: `make quick`, for the loop of edit and try.

What changed is what differs from where this branch left `main`, committed or not. A test file is chosen when its
imports reach a changed module, by whatever way; the graph is grimp's, with each `conftest.py` as an import of the tests
below it. What is found by name in a registry is imported by nobody: so the tests in the folder that mirrors a changed
module's are chosen, too, after the others. `make unit` is the proof, this is the look before it.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = "parquet_sink"
TESTS: Final = "tests"
EVERYTHING: Final = frozenset({"pyproject.toml", "tests/conftest.py"})
"""What every test may depend on."""
LAST: Final = ("tests.life.", "tests.test_import_graph", "tests.test_dependencies")
"""What takes a minute, or looks at the package as a whole: it comes after all others."""
BESIDE: Final = 99
"""As how far away a test counts that is chosen by its folder."""
BUDGET: Final = "QUICK_SECONDS"
"""The environment variable that tells each of pytest's two processes after how much CPU it begins no further test."""
SECONDS: Final = 20
"""On two idle cores all is over within 30 s then; on busy ones the same tests run, and take longer."""
MOST_FILES: Final = 25
"""More than these cost their imports alone most of the time that there is."""
SHOWN: Final = 15


@dataclass(frozen=True, order=True)
class Chosen:
    """A test file. late, steps: the order in which they are run; steps is how many imports away a change is."""

    late: bool
    steps: int
    path: str
    why: str = field(compare=False)


@dataclass(frozen=True)
class Imports:
    """The import graph of package and tests: the modules, and by module those that import it."""

    modules: frozenset[str]
    importers: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, root: Path) -> "Imports":
        """What stands in the files below a folder now."""
        import grimp

        names, cache = [name for name in (PACKAGE, TESTS) if (root / name).is_dir()], str(root / ".grimp_cache")
        graph = grimp.build_graph(*names, cache_dir=cache, exclude_type_checking_imports=True)
        for conftest in [name for name in graph.modules if name.endswith(".conftest")]:
            below = conftest.removesuffix("conftest")
            for test in [one for one in graph.modules if is_test(one) and one.startswith(below)]:
                graph.add_import(importer=test, imported=conftest)
        modules = frozenset(graph.modules)
        return cls(modules, {name: frozenset(graph.find_modules_that_directly_import(name)) for name in modules})

    def reaching(self, changed: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """By module, the shortest way from it to one that changed, itself first."""
        found = {name: (name,) for name in changed if name in self.modules}
        nearest = list(found)
        for name in nearest:  # grows meanwhile: breadth first
            for importer in sorted(self.importers[name] - found.keys()):
                found[importer] = (importer, *found[name])
                nearest.append(importer)
        return found


def changed_files(root: Path, base: str) -> list[str]:
    """What differs from where this branch left `base`, and what git does not know yet; deleted files, too."""

    def git(*words: str) -> list[str]:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
        return [line for line in done.stdout.split("\0") if line]

    try:
        (start,) = git("merge-base", "HEAD", base)
    except subprocess.CalledProcessError:
        start = "HEAD"
    differing = git("diff", "--name-only", "--no-renames", "-z", start.strip())
    return sorted({*differing, *git("ls-files", "--others", "--exclude-standard", "-z")})


def module_of(path: str) -> str:
    """The name by which a Python file is imported; of any other file none."""
    stem = path.removesuffix(".py").removesuffix("/__init__") if path.endswith(".py") else ""
    return stem.replace("/", ".")


def is_test(module: str) -> bool:
    """Whether pytest finds tests in a module."""
    return module.startswith(f"{TESTS}.") and module.rpartition(".")[2].startswith("test_")


def mirror_of(path: str, tests: Iterable[str]) -> str:
    """The tests for what is in a folder of the package, as a dotted prefix; none for what is in the package itself."""
    parts = path.split("/")[1:-1] if path.startswith(f"{PACKAGE}/") else []
    prefixes = (".".join([TESTS, *parts[:count], "test_"]) for count in range(len(parts), 0, -1))
    return next((prefix for prefix in prefixes if any(test.startswith(prefix) for test in tests)), "")


def chosen(changed: Sequence[str], imports: Imports) -> list[Chosen]:
    """The test files to run, the nearest first."""
    tests = {name for name in imports.modules if is_test(name)}
    every = next((path for path in changed if path in EVERYTHING), None)
    if every is not None:
        return sorted(_one(test, 1, f"everything may depend on {every}") for test in tests)
    ways = imports.reaching(module_of(path) for path in changed)
    reached = {test: _one(test, len(way) - 1, _told(way)) for test, way in ways.items() if test in tests}
    for path in changed:
        shown = path.endswith(".md") or path.startswith(("docs/", "config/", "deploy/"))
        prefix = f"{TESTS}.docs." if shown else mirror_of(path, tests)
        for test in [one for one in tests - reached.keys() if prefix and one.startswith(prefix)]:
            reached[test] = _one(test, BESIDE, f"is in the folder for {path}")
    if any(module_of(path).startswith(f"{PACKAGE}.") for path in changed):
        whole = {test for test in tests - reached.keys() if test.startswith(LAST[1:])}
        reached |= {test: _one(test, BESIDE, "looks at the package as a whole") for test in whole}
    return sorted(reached.values())


def _one(test: str, steps: int, why: str) -> Chosen:
    return Chosen(test.startswith(LAST), steps, f"{test.replace('.', '/')}.py", why)


def _told(way: Sequence[str]) -> str:
    return "changed itself" if len(way) == 1 else f"imports {' -> '.join(way[1:])}"


def spent_s() -> float:
    """The CPU that this process and its children took."""
    return sum(os.times()[:4])


def pytest_runtest_protocol(item: pytest.Item) -> None:
    """In each of pytest's processes, before each test: whether there is time for it."""
    if spent_s() > float(os.environ[BUDGET]):
        item.session.shouldstop = "what there was of time is spent"


class Tally:
    """Of the tests of a run, as pytest tells of each."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.files.add(report.nodeid.partition("::")[0])
        self.failed = self.failed or report.failed

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.failed = self.failed or report.failed


def main(argv: Sequence[str] | None = None) -> int:
    """Chooses, says what and why, and runs; the exit status is 0 when nothing that ran failed."""
    parser = argparse.ArgumentParser(prog="make quick", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--base", default="main", help="the branch to compare with (%(default)s)")
    parser.add_argument(
        "--seconds",
        type=int,
        default=SECONDS,
        help="CPU of a process after which it begins no test (%(default)s)",
    )
    parser.add_argument("--files", type=int, default=MOST_FILES, help="run so many test files at most (%(default)s)")
    parser.add_argument("--list", action="store_true", help="say what would run, all of it, and run nothing")
    args = parser.parse_args(argv)
    changed = changed_files(ROOT, args.base)
    found = chosen(changed, Imports.of(ROOT)) if changed else []
    show(changed, found, args.base, len(found) if args.list else SHOWN)
    if args.list or not found:
        return 0
    nearest = [one.path for one in found[: args.files]]
    ran, failed = run(nearest, args.seconds)
    if missing := len(found) - ran:
        print(f"quick: {ran} of {len(found)} test files ran; the other {missing} are further away: make unit")
    return int(failed)


def show(changed: Sequence[str], found: Sequence[Chosen], base: str, most: int) -> None:
    """What changed, what runs for it, and why."""
    print(f"quick: {len(changed)} files differ from {base}: {' '.join(changed[:most])}{' ...' * (len(changed) > most)}")
    print(f"quick: {len(found)} test files, the nearest first")
    for one in found[:most]:
        print(f"  {one.path}  {one.why}")
    if len(found) > most:
        print(f"  ... and {len(found) - most} more: --list")


def run(paths: Sequence[str], seconds: int) -> tuple[int, bool]:
    """How many of the files had a test that ran, and whether any failed."""
    os.environ[BUDGET] = str(seconds)
    tally = Tally()
    workers = ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"] if len(paths) > 1 else ["-n", "0"]
    pytest.main(["-q", "-r", "fE", "-p", __spec__.name, "--randomly-dont-reorganize", *workers, *paths], [tally])
    return len(tally.files), tally.failed


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
