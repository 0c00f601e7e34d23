"""`make quick`: which tests run for a change, in what order, and why."""

import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.quick import BUDGET, ROOT, Chosen, Imports, changed_files, chosen, is_test, pytest_runtest_protocol


@cache
def imports() -> Imports:
    """Of this checkout."""
    pytest.importorskip("grimp", reason="this environment is older than pyproject.toml: any `make` target renews it")
    return Imports.of(ROOT)


def found(*changed: str) -> list[Chosen]:
    """What runs for these files."""
    return chosen(changed, imports())


def test_what_imports_a_module_runs_the_nearest_first() -> None:
    """Its own test, then those that reach it by one more module, each with the shortest way to it."""
    uploads = found("parquet_sink/targets/uploader.py")
    assert (uploads[0].path, uploads[0].why) == (
        "tests/targets/test_uploader.py",
        "imports parquet_sink.targets.uploader",
    )
    steps = [one.steps for one in uploads if not one.late]
    assert steps == sorted(steps)
    task = next(one for one in uploads if one.path == "tests/task/test_task.py")
    assert task.why == "imports parquet_sink.task.task -> parquet_sink.targets.uploader"


def test_a_test_that_changed_runs_first() -> None:
    """Before those that only reach what changed."""
    both = found("tests/task/test_task.py", "parquet_sink/errors.py")
    assert (both[0].path, both[0].why) == ("tests/task/test_task.py", "changed itself")
    assert len(both) > 200


def test_fixtures_reach_the_tests_below_them() -> None:
    """A conftest.py is imported by no test that uses it."""
    paths = {one.path for one in found("tests/parked/conftest.py")}
    assert "tests/parked/test_folder.py" in paths
    assert all(path.startswith("tests/parked/") for path in paths)


def test_what_is_found_by_name_is_tested_by_its_folder() -> None:
    """A transform of the registry is imported by few; what stands in the folder of its tests comes after those."""
    cast = found("parquet_sink/addons/transforms/fields/cast.py")
    beside = [one for one in cast if one.why.startswith("is in the folder")]
    assert "tests/addons/transforms/fields/test_java.py" in {one.path for one in beside}
    assert all(one.steps > other.steps for one in beside for other in cast if other.why.startswith("imports"))


@pytest.mark.parametrize("path", ["pyproject.toml", "tests/conftest.py"])
def test_what_everything_depends_on_runs_everything(path: str) -> None:
    """In no other order than any."""
    assert {one.path for one in found(path)} == {
        f"{name.replace('.', '/')}.py" for name in imports().modules if is_test(name)
    }


def test_pages_are_tested_by_those_of_the_documentation() -> None:
    """What no import reaches, and other files that no test knows run nothing."""
    assert {Path(one.path).parent.name for one in found("docs/how-to/s3.md")} == {"docs"}
    assert found("LICENSE", ".gitignore") == []


def test_a_change_of_the_package_is_looked_at_as_a_whole_last() -> None:
    """Rules over all modules, and the long lives of connectors, after what is near."""
    late = [one.path for one in found("parquet_sink/task/task.py") if one.late]
    assert {"tests/test_import_graph.py", "tests/test_dependencies.py", "tests/life/test_life.py"} <= set(late)
    assert [one.path for one in found("parquet_sink/task/task.py")][-len(late) :] == late


def test_what_changed_is_what_differs_from_where_the_branch_began(tmp_path: Path) -> None:
    """Commits of the branch, what is not committed, deleted and new files; not what main did since."""

    def git(*words: str) -> None:
        named = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *named, *words], cwd=tmp_path, check=True, capture_output=True)

    def write(name: str) -> None:
        (tmp_path / name).write_text("changed")
        git("add", name)

    git("init")
    for name in ("old.py", "gone.py", "edited.py"):
        write(name)
    git("commit", "-m", "begin")
    git("checkout", "-b", "mine")
    write("committed.py")
    git("commit", "-m", "mine")
    git("checkout", "main")
    write("theirs.py")
    git("commit", "-m", "theirs")
    git("checkout", "mine")
    (tmp_path / "edited.py").write_text("again")
    (tmp_path / "gone.py").unlink()
    (tmp_path / "new.py").write_text("new")
    assert changed_files(tmp_path, "main") == ["committed.py", "edited.py", "gone.py", "new.py"]
    assert changed_files(tmp_path, "no-such-branch") == ["edited.py", "gone.py", "new.py"]


def test_no_test_is_begun_when_the_time_is_spent(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CPU of the process decides; nothing is cut off."""

    class Session:
        shouldstop: object = False

    class Item:
        session = Session()

    monkeypatch.setenv(BUDGET, "1000000")
    pytest_runtest_protocol(Item())  # type: ignore[arg-type]
    assert Session.shouldstop is False
    monkeypatch.setenv(BUDGET, "0")
    pytest_runtest_protocol(Item())  # type: ignore[arg-type]
    assert Item.session.shouldstop
