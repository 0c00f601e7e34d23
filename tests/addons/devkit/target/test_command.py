"""Options of `parquet-sink target`, before anything is served."""

import argparse
import subprocess
import sys

import pytest

from parquet_sink.addons.devkit.target import command
from parquet_sink.errors import InvalidConfiguration, SetupError
from tests.messages import assert_says, saying


def parsed(*argv: str) -> argparse.Namespace:
    """The options as the command line gives them."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(argv)


def test_importing_the_command_loads_nothing_heavy() -> None:
    """The command line of the sink starts without the target's packages."""
    code = (
        "import sys, parquet_sink.addons.devkit.target.command; "
        "print({'duckdb', 'starlette', 'uvicorn', 'pyarrow', 'python_multipart'} & set(sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "set()"


@pytest.mark.parametrize("package", ["duckdb", "starlette", "uvicorn", "python_multipart"])
def test_a_missing_package_is_named_with_the_cure(package: str) -> None:
    """The extra is not installed: one line, exit status 2."""
    code = (
        f"import sys; sys.modules['{package}'] = None; "
        "from parquet_sink.addons.devkit.target.command import main; sys.exit(main(['--port', '0']))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert said.returncode == SetupError.exit_status
    assert_says(said.stderr, f"Python package {package}", "pip install '.[target]'")
    assert "Traceback" not in said.stderr


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["--host", "0.0.0.0"], ("[--host]", "0.0.0.0", "--allow-remote")),
        (["--host", "example.org"], ("[--host]", "example.org", "use 127.0.0.1", "--allow-remote")),
        (["--host", "::", "--allow-remote"], ("[--authorization]", "required")),
        (["--authorization", " "], ("[--authorization]", "empty", "give the value")),
        (["--discard", "--data-dir", "d"], ("[--data-dir]", "--discard", "leave one")),
        (["--discard", "--forget-names"], ("[--forget-names]", "--discard", "leave one")),
        (["--deleted-column", ""], ("[--deleted-column]", "empty", "name a column")),
    ],
)
def test_options_that_do_not_fit_are_refused(argv: list[str], named: tuple[str, ...]) -> None:
    """Before anything is opened."""
    with pytest.raises(InvalidConfiguration, match=saying(*named)):
        command.run(parsed(*argv))


def test_all_problems_are_told_at_once() -> None:
    """Two wrong options give two lines."""
    with pytest.raises(InvalidConfiguration) as caught:
        command.run(parsed("--host", "10.0.0.1", "--discard", "--data-dir", "d"))
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize("port", ["-1", "65536", "http", "1.5", "²"])
def test_ports_outside_the_range_are_refused(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The message tells the range."""
    with pytest.raises(SystemExit):
        parsed("--port", port)
    assert "0 to 65535" in capsys.readouterr().err


def test_a_key_given_as_an_option_is_a_secret() -> None:
    """It shows in no representation of the options."""
    assert "canary" not in repr(parsed("--authorization", "AppKey canary"))


@pytest.mark.parametrize(
    ("host", "near"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("a.b", False),
    ],
)
def test_loopback_is_told_from_everything_else(host: str, near: bool) -> None:
    """Only this machine reaches a loopback address."""
    assert command.is_loopback(host) is near


def test_the_demo_tells_of_a_missing_package_before_it_starts_anything() -> None:
    """No broker is fetched or started for a demo that could not go on."""
    program = (
        "import sys; sys.modules['duckdb'] = None; from parquet_sink.cli import main; sys.exit(main.main(['demo']))"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert said.returncode == 2
    assert said.stdout == ""
    assert_says(said.stderr, "The demo", "Python package duckdb", "extra 'target'")
    assert len(said.stderr.splitlines()) == 1
