"""Commands of other packages: in the list, with their options, and what is said of those that cannot be used."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from parquet_sink import plugins
from parquet_sink.cli import main as cli
from parquet_sink.cli.command_class import commands_for
from parquet_sink.errors import StorageFailed
from tests.connectors.packages import forget, install
from tests.messages import assert_says

ROOT = Path(__file__).parents[2]
GOOD = """
from parquet_sink.errors import StorageFailed

class Tally:
    help = "count what is there"

    def add_arguments(self, parser):
        parser.add_argument("--from", dest="begin", type=int, default=3)

    def run(self, args):
        if args.begin < 0:
            raise StorageFailed("Begin at 0.")
        print("counted from", args.begin)
        return args.begin
"""
PACKAGES = ("acme_tally", "acme_other")
Add = Callable[..., None]


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Add]:
    """Installs a package with commands."""
    monkeypatch.syspath_prepend(tmp_path)

    def added(package: str = "acme_tally", source: str = GOOD, **names: str) -> None:
        paths = {name.replace("_", "-"): path for name, path in (names or {"tally": f"{package}:Tally"}).items()}
        install(tmp_path, package, source, paths, plugins.COMMANDS)

    yield added
    for package in PACKAGES:
        forget(package)


def told(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command line."""
    try:
        status = cli.main(words)
    except SystemExit as end:
        status = int(end.code or 0)
    said = capsys.readouterr()
    return status, said.out, said.err


def test_it_stands_in_the_list_and_runs(add: Add, capsys: pytest.CaptureFixture[str]) -> None:
    """Behind our own, with its line of help, its options and its exit status."""
    add()
    status, out, err = told(["--help"], capsys)
    assert (status, err) == (0, "")
    assert out.index("a local Kafka broker") < out.index("count what is there")
    assert told(["tally", "--from", "7"], capsys) == (7, "counted from 7\n", "")
    status, out, _ = told(["tally", "--help"], capsys)
    assert "usage: parquet-sink tally" in out
    assert "Count what is there." in out


def test_what_it_raises_is_told_like_ours(add: Add, capsys: pytest.CaptureFixture[str]) -> None:
    """A SinkError is one line, with the exit status of its class."""
    add()
    status, _, err = told(["tally", "--from", "-1"], capsys)
    assert (status, err) == (StorageFailed.exit_status, "parquet-sink: Begin at 0.\n")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("class Tally:\n    help = ''", "it has no add_arguments, run"),
        ("class Tally:\n    def __init__(self):\n        raise ValueError('not today')", "ValueError: not today"),
    ],
)
def test_one_that_cannot_be_loaded_harms_no_other(
    add: Add, capsys: pytest.CaptureFixture[str], source: str, reason: str
) -> None:
    """It is named with the reason and is missing in the list; asked for, it ends with 2; all others work."""
    add(source=source)
    add("acme_other", GOOD, count="acme_other:Tally")
    status, out, err = told(["--help"], capsys)
    assert status == 0
    assert "count what is there" in out
    assert not any(line.split()[:1] == ["tally"] for line in out.splitlines())
    assert len(err.splitlines()) == 1
    assert_says(err, "parquet-sink:", '"tally"', reason, "correct the package")
    assert told(["tally"], capsys) == (2, "", err)
    assert told(["count"], capsys) == (3, "counted from 3\n", "")


def test_options_that_fail_are_told(add: Add, capsys: pytest.CaptureFixture[str]) -> None:
    """Only who asks for the command hears of it."""
    add(source=GOOD.replace("default=3", "nonsense=3"))
    assert told(["--help"], capsys)[2] == ""
    status, _, err = told(["tally"], capsys)
    assert status == 2
    assert_says(err, "parquet-sink:", "options", '"tally"', "acme_tally:Tally", "TypeError")


def test_our_names_are_taken(add: Add, capsys: pytest.CaptureFixture[str]) -> None:
    """A command that takes one is refused, and both are named; ours runs as ever."""
    add(check="acme_tally:Tally")
    status, out, err = told(["--help"], capsys)
    assert (status, "count what is there" in out) == (0, False)
    assert len(err.splitlines()) == 1
    assert_says(err, '"check"', "parquet-sink's own", "parquet_sink.cli.built_in:Check", "acme_tally:Tally")
    assert_says(err, "package acme-tally", "not taken", "another name", "entry points")
    status, out, err = told(["check", "--help"], capsys)
    assert (status, err) == (0, "")
    assert "usage: parquet-sink check" in out


def test_two_of_one_name_are_both_refused(add: Add, capsys: pytest.CaptureFixture[str]) -> None:
    """Which of them came first is nobody's choice."""
    add()
    add("acme_other", GOOD, tally="acme_other:Tally")
    status, out, err = told(["tally"], capsys)
    assert (status, out) == (2, "")
    assert {"acme_tally:Tally", "acme_other:Tally"} <= set(err.split())
    assert "neither is taken" in err


@pytest.mark.parametrize("name", ["Tally", "tally_up", "--tally", "tally.up"])
def test_a_name_is_one_that_can_be_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Lower-case letters, digits and hyphens."""
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "acme_tally", GOOD, {name: "acme_tally:Tally"}, plugins.COMMANDS)
    _, out, err = told(["--help"], capsys)
    assert "count what is there" not in out
    assert_says(err, f'"{name}"', "acme-tally", "Give it such")


def test_ours_neither_look_for_others_nor_load_them(add: Add, tmp_path: Path) -> None:
    """Only the list and what is not ours do; so the start of `run` and `check` costs nothing more."""
    add(source="raise SystemExit('loaded')")
    program = "import sys; from parquet_sink.cli.main import parser_for; parser_for(['check']); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={"PYTHONPATH": f"{ROOT}:{tmp_path}"},
    )
    assert {"acme_tally", "importlib.metadata", "parquet_sink.cli.run"} & set(done.stdout.split()) == set()


def test_the_list_loads_nothing_of_ours() -> None:
    """A line of help costs no module of a command."""
    program = "import sys; from parquet_sink.cli.main import parser_for; parser_for([]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    ours = {name for name in done.stdout.split() if name.startswith("parquet_sink.cli.")}
    assert ours == {f"parquet_sink.cli.{name}" for name in ("built_in", "command_class", "main", "parsing")}


def test_each_of_ours_is_in_the_registry() -> None:
    """Name by name, with help that begins in lower case."""
    ours = commands_for("check").usable
    assert list(ours) == list(plugins.BUILT_IN[plugins.COMMANDS])
    assert all(command.help[0].islower() for command in ours.values())
