"""What maintainers rely on: continuous integration, hooks, templates, the lock file, and how a release is packed."""

import re
import tarfile
import tomllib
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import yaml

from integration import release
from parquet_sink import __version__

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
LOCK = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8")
FORMS = sorted(path.name for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")


def read(name: str) -> Any:
    """A YAML file of the repository."""
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_continuous_integration_runs_what_is_in_the_repository() -> None:
    """The workflow runs `.ci/run` with the oldest supported Python and Java, and otherwise targets of the Makefile."""
    jobs = read(".github/workflows/ci.yml")["jobs"]
    matrix = jobs["run"]["strategy"]["matrix"]
    assert f">={matrix['python'][0]}" == PROJECT["requires-python"]
    assert re.search(r"-ge (\d+)", MAKEFILE)[1] == matrix["java"][0]  # type: ignore[index]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert ".ci/run" in commands
    targets = [word for line in commands if line.startswith("make ") for word in line.split()[1:] if "=" not in word]
    assert targets
    assert [one for one in targets if not re.search(rf"^{one}:", MAKEFILE, re.MULTILINE)] == []


def test_hooks_are_tools_of_the_environment() -> None:
    """Each hook runs a program of .venv, which the extra dev brings: no second version of it is downloaded."""
    repos = read(".pre-commit-config.yaml")["repos"]
    assert [repo["repo"] for repo in repos] == ["local"]
    programs = {hook["entry"].split()[0] for hook in repos[0]["hooks"]}
    dev = {re.split(r"[^\w-]", one)[0] for one in PROJECT["optional-dependencies"]["dev"]}
    assert {one.removeprefix(".venv/bin/") for one in programs} == {"ruff", "mypy"} <= dev


@pytest.mark.parametrize("name", FORMS)
def test_issue_forms_are_complete(name: str) -> None:
    """A form has a name, a description and fields that each have a label and an id of their own."""
    form = read(f".github/ISSUE_TEMPLATE/{name}")
    assert form["name"]
    assert form["description"]
    assert {field["type"] for field in form["body"]} <= {"textarea", "input"}
    assert all(field["attributes"]["label"] for field in form["body"])
    assert len({field["id"] for field in form["body"]}) == len(form["body"])


def test_the_lock_has_every_dependency_with_hashes_and_no_host() -> None:
    """requirements-dev.txt pins all that pyproject.toml names, by hashes, and says nothing of where it came from."""
    pins = re.findall(r"^([\w.-]+)==\S+(.*)", LOCK, re.MULTILINE)
    names = {name.lower().replace("_", "-") for name, _ in pins}
    wanted = [*PROJECT["dependencies"], *(one for each in PROJECT["optional-dependencies"].values() for one in each)]
    assert {re.split(r"[^\w-]", one)[0].lower().replace("_", "-") for one in wanted} - names == set()
    assert all(line.rstrip().endswith("\\") for _, line in pins)
    assert LOCK.count("--hash=sha256:") >= len(pins)
    assert re.findall(r"://|--index|--find-links|--extra-index", LOCK) == []


def sdist(path: Path, mtime: int, uid: int, names: list[str]) -> Path:
    """An sdist as a machine may write it."""
    with tarfile.open(path, "w:gz") as file:
        for name in names:
            member = tarfile.TarInfo(f"x-1/{name}")
            member.size, member.mtime, member.uid, member.uname = len(name), mtime, uid, f"user{uid}"
            member.mode = 0o664 if uid else 0o644
            file.addfile(member, BytesIO(name.encode()))
    return path


def test_an_sdist_says_nothing_of_the_machine(tmp_path: Path) -> None:
    """Two of the same files by other users, at other times and in another order become equal, byte by byte."""
    one = sdist(tmp_path / "one.tar.gz", 1_000, 0, ["a", "b"])
    other = sdist(tmp_path / "other.tar.gz", 2_000, 7, ["b", "a"])
    assert one.read_bytes() != other.read_bytes()
    for path in (one, other):
        release.packed_again(path, 500)
    assert one.read_bytes() == other.read_bytes()
    with tarfile.open(one) as file:
        members = [(each.name, each.mtime, each.mode, file.extractfile(each).read()) for each in file]  # type: ignore[union-attr]
    assert members == [("x-1/a", 500, 0o644, b"a"), ("x-1/b", 500, 0o644, b"b")]


@pytest.mark.parametrize("name", ["tests/test_cli.py", "parquet_sink/kafka/_native_reader.abi3.so", "a/keys.pem"])
def test_a_release_with_strange_files_is_refused(tmp_path: Path, name: str) -> None:
    """Tests, compiled files and keys have no place in an sdist, and the message names them."""
    path = sdist(tmp_path / "x-1.tar.gz", 0, 0, ["README.md", name])
    with pytest.raises(release.Wrong, match=re.escape(name)):
        release.check_contents(path, path)


def test_images_are_of_this_version() -> None:
    """Each tag of an image of ours in deploy/ is the version of the package."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "deploy").rglob("*.yaml")]
    tags = [tag for text in texts for tag in re.findall(r'parquet-sink[\w-]*(?:, newTag: "|:)(\d[\w.]*)', text)]
    assert len(tags) > 2
    assert set(tags) == {__version__}
