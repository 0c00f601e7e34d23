"""The command line: help, version, exit statuses, and where words go."""

import argparse
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from parquet_sink import __version__, plugins
from parquet_sink.cli import built_in
from parquet_sink.cli import main as cli
from parquet_sink.errors import InvalidConfiguration, SetupError, UploadRefused
from tests.messages import assert_line_says, assert_says

COMMANDS = plugins.BUILT_IN[plugins.COMMANDS]
ORDERS = Path(__file__).parents[1] / "config" / "orders.properties"
WORKER = Path(__file__).parents[1] / "config" / "worker.properties"


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leaves the levels of loggers as they were."""
    monkeypatch.delenv("PARQUET_SINK_LOG_LEVEL", raising=False)
    levels = {name: logging.getLogger(name).level for name in ("", "py4j", "urllib3", "pyspark")}
    yield
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def ends(words: list[str]) -> int:
    """The status of a command line that ends in the parser."""
    with pytest.raises(SystemExit) as found:
        cli.main(words)
    return int(found.value.code or 0)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`parquet-sink COMMAND --help` says what the command does, and ends well."""
    assert ends([command, "--help"]) == 0
    told = capsys.readouterr().out
    assert f"usage: parquet-sink {command}" in told
    assert "options:" in told


def test_help_lists_all_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """`parquet-sink --help` has a line for each command, and the exit statuses."""
    assert ends(["--help"]) == 0
    told = capsys.readouterr().out
    assert all(command in told for command in COMMANDS)
    statuses = " ".join(told.split()).partition("Exit status: ")[2]
    assert_says(statuses, "0 done", "1 a connector failed", "2 invalid configuration")


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """`--version` prints name and version."""
    assert ends(["--version"]) == 0
    assert capsys.readouterr().out == f"parquet-sink {__version__}\n"


@pytest.mark.parametrize("words", [["nonsense"], ["run"], ["check", "--nonsense", "x"], ["run", "--master"]])
def test_a_wrong_command_line_is_a_usage_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown command or option, or a missing file, ends with 2 and says how it is used."""
    assert ends(words) == 2
    assert "parquet-sink" in (told := capsys.readouterr().err)
    assert "--help` shows what there is" in told or "usage: parquet-sink" in told


def test_files_that_are_right_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    """`check` of the shipped files ends with 0."""
    assert cli.main(["check", "--worker", str(WORKER), str(ORDERS)]) == 0
    assert_line_says(capsys.readouterr().out, "OK", "connector orders", "orders -> table ORDERS")


@pytest.mark.parametrize("command", ["run", "check"])
def test_files_that_are_wrong_end_with_2(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every problem of a file is told, and nothing is started."""
    wrong = tmp_path / "wrong.properties"
    wrong.write_text("name=x\ntopics=orders\nconnect.ems.commit.records=0\n")
    assert cli.main([command, "--worker", str(WORKER), str(wrong)]) == 2
    captured = capsys.readouterr()
    told = captured.err + captured.out
    for key in ("connect.ems.commit.records", "connect.ems.endpoint", "connect.ems.target.table"):
        assert f"Invalid [{key}]." in told


def test_a_file_that_is_not_there_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A path that is wrong is told as such."""
    assert cli.main(["run", str(tmp_path / "absent.properties")]) == 2
    assert "absent.properties" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (InvalidConfiguration(["Invalid [a]. One", "Invalid [b]. Two"]), 2, "Invalid [a]. One\nInvalid [b]. Two\n"),
        (SetupError("Java is missing"), 2, "parquet-sink: Java is missing\n"),
        (UploadRefused("the target answered 403", 403), 1, "parquet-sink: the target answered 403\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_errors_have_exit_statuses(
    error: BaseException,
    status: int,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What was raised on purpose ends with its status and its words on standard error, without a stack trace."""

    def fail(args: argparse.Namespace) -> int:
        raise error

    monkeypatch.setattr(
        built_in, "import_module", lambda name: SimpleNamespace(add_arguments=lambda parser: None, run=fail)
    )
    assert cli.main(["run"]) == status
    assert capsys.readouterr().err == words


def test_a_command_s_own_status_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    """`run` ends with 1 when a connector failed."""
    command = SimpleNamespace(add_arguments=lambda parser: None, run=lambda args: 1)
    monkeypatch.setattr(built_in, "import_module", lambda name: command)
    assert cli.main(["run"]) == 1


def test_a_log_level_that_is_none_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A typing error in PARQUET_SINK_LOG_LEVEL is an invalid configuration, with the levels there are."""
    monkeypatch.setenv("PARQUET_SINK_LOG_LEVEL", "loud")
    assert cli.main(["check", str(ORDERS)]) == 2
    assert_line_says(capsys.readouterr().err, "[PARQUET_SINK_LOG_LEVEL]", "'loud'", "DEBUG, INFO, WARNING, ERROR")


@pytest.mark.parametrize("how", ["option", "variable"])
def test_errors_are_json_where_lines_are(how: str, tmp_path: Path) -> None:
    """A collector can read all that comes on standard error, also why nothing began; by default it is for people."""
    wrong = tmp_path / "wrong.properties"
    wrong.write_text("name=orders\n")
    option = ["--log-format", "json"] if how == "option" else []
    variable = {} if how == "option" else {"PARQUET_SINK_LOG_FORMAT": "json"}
    command = [sys.executable, "-m", "parquet_sink", "run", str(wrong)]
    done = subprocess.run(
        [*command, *option], capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **variable}
    )
    assert done.returncode == 2
    found = [json.loads(line) for line in done.stderr.splitlines()]
    errors = [one["message"] for one in found if one["level"] == "ERROR"]
    assert any("[topics]" in error for error in errors)
    plain = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert plain.stderr.splitlines()[-len(errors) :] == errors


def test_help_is_quick_to_load() -> None:
    """`parquet-sink --help` loads neither Spark nor Arrow, nor any command."""
    program = (
        "import sys\n"
        "from parquet_sink.cli.main import parser_for\n"
        "parser_for(['--help']).format_help()\n"
        "print(*[name for name in ('pyspark', 'pyarrow', 'confluent_kafka', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == []


def test_the_package_runs_as_a_module() -> None:
    """`python -m parquet_sink` is the same program."""
    command = [sys.executable, "-m", "parquet_sink", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == f"parquet-sink {__version__}\n"
