"""Output that cannot be written as it stands, or at all, changes nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

WORDS = ([sys.executable, "-m", "parquet_sink", "--help"], [sys.executable, "-m", "parquet_sink", "run", "--help"])
ASCII = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def connector(folder: Path) -> list[str]:
    """`check` of a connector file whose name and table are not ASCII, and which has a problem."""
    file = folder / "bestellungen-ä.properties"
    file.write_text("name=bestellungen-ä\ntopics=orders\nconnect.ems.target.table=BÜCHER…\n", encoding="utf-8")
    return [sys.executable, "-m", "parquet_sink", "check", str(file)]


def test_a_terminal_without_our_characters_gets_escapes(tmp_path: Path) -> None:
    """Neither help nor a report ends in a trace where the encoding is ASCII."""
    environment = {**os.environ, **ASCII}
    for words, status in [*((words, 0) for words in WORDS), (connector(tmp_path), 2)]:
        said = subprocess.run(words, env=environment, capture_output=True, check=False, timeout=60)
        assert said.returncode == status, said.stderr
        assert said.stderr == b""
        said.stdout.decode("ascii")
    assert b"bestellungen-\\" in said.stdout


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_pipe_that_nobody_reads_changes_no_status(tmp_path: Path, stream: str) -> None:
    """`check | head -1` ends as `check` does, and says nothing of the pipe."""
    reading, writing = os.pipe()
    os.close(reading)
    other = {"stdout": "stderr", "stderr": "stdout"}[stream]
    try:
        for words, status in [*((words, 0) for words in WORDS), (connector(tmp_path), 2)]:
            streams = {stream: writing, other: subprocess.PIPE}
            said = subprocess.run(words, check=False, timeout=60, **streams)  # type: ignore[call-overload]
            assert said.returncode == status
            assert b"Traceback" not in (said.stdout or b"") + (said.stderr or b"")
    finally:
        os.close(writing)


def test_there_are_none_of_the_program_and_its_children() -> None:
    """The limit is 0 in a process that the program starts; the hard one is left to the operator."""
    child = "import resource; print(*resource.getrlimit(resource.RLIMIT_CORE))"
    program = (
        "import resource, subprocess, sys\n"
        "resource.setrlimit(resource.RLIMIT_CORE, (4096, resource.getrlimit(resource.RLIMIT_CORE)[1]))\n"
        "from parquet_sink.cli import main as cli\n"
        "cli.main(['check', '/nowhere.properties'])\n"
        f"subprocess.run([sys.executable, '-c', {child!r}], check=True)\n"
        f"{child}\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    soft = [line.split()[0] for line in done.stdout.splitlines()[-2:]]
    hard = {line.split()[1] for line in done.stdout.splitlines()[-2:]}
    assert soft == ["0", "0"]
    assert hard != {"0"}
