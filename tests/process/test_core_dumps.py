"""Core dumps, which would hold secrets."""

import subprocess
import sys


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
