"""Help and errors of the command line, as somebody sees them who types it for the first time."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from parquet_sink.cli import help as help_command
from parquet_sink.cli.command_class import commands_for
from parquet_sink.cli.main import main, parser_for
from parquet_sink.cli.parsing import Parser


def told(words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    try:
        status = main(words.split())
    except SystemExit as end:
        status = int(end.code or 0)
    return status, *capsys.readouterr()


@pytest.mark.parametrize(
    ("words", "says", "near"),
    [
        ("foo", "no such command: foo", ""),
        ("statsu", "no such command: statsu", "status"),
        ("connectors lst", "'lst'", "list"),
        ("run --until-cought-up x.properties", "no such option: --until-cought-up", "--until-caught-up"),
        ("connectors list --jsn", "no such option: --jsn", "--json"),
        ("parked shwo x.properties", "'shwo'", "show"),
        ("history --outcome refussed", "'refussed'", "refused"),
        ("explain one two", "one argument too many: two", ""),
        ("worker w.properties c.properties", "too many: c.properties", ""),
        ("worker w.properties c.properties", "A worker's connectors are created", ""),
        ("worker w.properties c.properties", "run --worker worker.properties c.properties", ""),
        ("run", "connector.properties", ""),
        ("help statsu", "no such command: statsu", "status"),
    ],
)
def test_an_error_says_what_was_meant_in_two_lines(
    words: str, says: str, near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And where help is; status 2, nothing on standard output."""
    status, out, err = told(words, capsys)
    first, second = err.splitlines()
    assert (status, out) == (2, "")
    assert says in first
    assert (f" Did you mean {near}?" in first) is bool(near)
    assert second.endswith("--help` shows what there is.")


def test_without_a_command_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error, because nothing was asked for that could be done."""
    status, out, err = told("", capsys)
    assert (status, out) == (2, "")
    assert all(f"    {name}" in err for name in commands_for(None).usable)


@pytest.mark.parametrize("words", ["run", "connectors", "connectors edit", "explain", "history"])
def test_help_is_what_dash_dash_help_says(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a command, and of an action."""
    assert told(f"help {words}", capsys) == told(f"{words} --help", capsys)
    assert told("help", capsys) == told("--help", capsys)


def test_help_of_run_fits_one_screen(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """24 lines of 80 columns; all keys are behind `--help-all`, and each is explained by a command that it names."""
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = told("run --help", capsys)
    lines = out.splitlines()
    assert len(lines) < 24
    assert max(map(len, lines)) <= 80
    assert "parquet-sink explain" in out
    _, whole, _ = told("run --help-all", capsys)
    assert whole.startswith(out)
    assert "connect.ems.commit.records" in whole


@pytest.mark.parametrize("command", [None, *commands_for("run").usable])
def test_help_keeps_within_its_terminal(
    command: str | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for examples, which are to be copied."""
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = told(f"{command or ''} --help", capsys)
    assert [line for line in out.partition("\nexample")[0].splitlines() if len(line) > 80] == []


def test_help_completes_commands_and_actions() -> None:
    """For argcomplete."""
    given = parser_for(["help"]).parse_args(["help"])
    assert "status" in help_command.complete("s", given)
    given.words = ["connectors"]
    assert {"edit", "list"} <= set(help_command.complete("", given))
    given.words = ["nothing"]
    assert help_command.complete("", given) == []


def test_parsers_of_actions_are_of_the_same_kind() -> None:
    """So that their errors are, too."""
    parser = parser_for(["connectors"])
    assert all(isinstance(one, Parser) for one in parser.under["connectors"].under.values())


@pytest.mark.parametrize("words", [["--help"], ["explain", "connect.ems"], ["run", "--help-all"]])
def test_a_reader_that_goes_away_is_no_error(words: list[str], tmp_path: Path) -> None:
    """`| head -1` ends it without a trace."""
    process = subprocess.Popen(
        [sys.executable, "-m", "parquet_sink", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "LC_ALL": "C"},
        cwd=tmp_path,
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr as stderr:
        assert stderr.read() == b""
    assert process.wait(60) == 0
