"""`parquet-sink demo` from the command line: the proof, and an end that leaves nothing."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.messages import assert_says

COMMAND = [sys.executable, "-m", "parquet_sink", "demo", "--records", "4000", "--duration", "2"]
LIMIT_S = 360


def environment(folder: Path) -> dict[str, str]:
    """Temporary files go to a folder that the test can look into."""
    return {**os.environ, "TMPDIR": str(folder), "COLUMNS": "120"}


def started(command: list[str], folder: Path) -> subprocess.Popen[str]:
    """A demo that goes on while the test looks at it."""
    return subprocess.Popen(
        command, env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def lines_until(demo: subprocess.Popen[str], text: str) -> list[str]:
    """What it printed up to a line with this text, or all that it printed."""
    assert demo.stdout is not None
    seen = []
    for line in demo.stdout:
        seen.append(line)
        if text in line:
            break
    return seen


def processes_with(text: str) -> list[str]:
    """Command lines of living processes whose environment holds this text."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and text.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:200])
        except OSError:
            continue
    return found


@pytest.mark.timeout(LIMIT_S + 30)
@pytest.mark.parametrize("replay", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["plain", "replay"])
def test_the_demo_proves_its_result_and_leaves_nothing(replay: bool, tmp_path: Path) -> None:
    """Exit status 0, checks that hold, figures that fit each other, and no process or file afterwards.

    All of it is replayed where it is asked for: the table stays the same; another one, without an order, shows what
    went back in time.
    """
    done = subprocess.run(
        [*COMMAND, *["--replay"] * replay],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    text = done.stdout
    assert done.returncode == 0, text + done.stderr
    assert "\nPROVEN: all 6 checks hold.\n" in text
    assert text.count("  OK      ") == (9 if replay else 6)
    assert "FAILED" not in text
    assert "4,000 records, " in text
    assert "0 missing, 0 invented" in text
    assert "lag 0" in text
    assert re.search(r"Freshness .*\n.*\n +orders.+p50.+p99.*\n +backlog", text)
    assert re.search(r"Files +\d+ uploaded.+rotated by:.+interval \d+", text)
    if replay:
        assert text.splitlines()[-1] == "PROVEN: all 3 checks hold."
        assert re.search(r"ORDERS unchanged: [\d,]+ rows, [\d,]{6} repeated", text)
        assert re.search(r"ORDERS_BY_CREATION .+ [1-9]\d* of [\d,]+ rows", text)
        assert_says(text, "back in time", "why: order column created_at is equal")
        assert re.search(r"order \d+: was \w+ \(offset.+is \w+", text)
    assert list(tmp_path.iterdir()) == []
    assert processes_with(str(tmp_path)) == []


@pytest.mark.in_turn
@pytest.mark.timeout(LIMIT_S)
def test_ctrl_c_ends_everything(tmp_path: Path) -> None:
    """Interrupted while the sink starts: exit status 130, all children ended, all folders removed."""
    with started(COMMAND, tmp_path) as demo:
        seen = lines_until(demo, "sending a backlog")
        demo.send_signal(signal.SIGINT)
        rest, _ = demo.communicate(timeout=90)
    assert demo.returncode == 130, "".join(seen) + rest
    assert rest.endswith("Interrupted. Everything is stopped and removed.\n")
    until = time.monotonic() + 20  # Java and Spark's workers notice that their parents are gone
    while processes_with(str(tmp_path)) and time.monotonic() < until:
        time.sleep(0.2)
    assert processes_with(str(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.in_turn(seconds=70)
@pytest.mark.timeout(LIMIT_S)
def test_what_is_left_running_can_be_looked_at(tmp_path: Path) -> None:
    """With --keep the commands that it names work as they are printed; Ctrl-C then ends it with 0, nothing is left."""
    few = ["--records", "1000", "--duration", "1", "--keep"]
    command = [sys.executable, "-m", "parquet_sink", "demo", *few]
    with started(command, tmp_path) as demo:
        printed = [line.strip() for line in lines_until(demo, "  parquet-sink tune ")]
        assert "PROVEN: all 5 checks hold." in printed, printed
        told = {name: typed(printed, f"parquet-sink {name} ") for name in ("history", "replay", "tune")}
        demo.send_signal(signal.SIGINT)
        rest, _ = demo.communicate(timeout=90)
    assert re.search(r"orders: \d+ files accepted, 1,000 rows", told["history"])
    assert re.search(r"ORDERS: unchanged: [\d,]+ rows, [\d,]+ repeated", told["replay"])
    assert "connect.ems.commit.interval.ms=" in told["tune"]
    assert demo.returncode == 0, rest
    assert_says(rest, "sink stopped", "exit status 0")
    assert list(tmp_path.iterdir()) == []


def typed(printed: list[str], begin: str) -> str:
    """What one of the printed commands says in a shell, after the `export` before it. Ends with 0."""
    lines = [line for line in printed if line.startswith(("export ", begin))]
    path = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    script = "set -e\n" + "\n".join(lines)
    done = subprocess.run(
        ["bash", "-c", script], env=os.environ | path, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, script + done.stdout + done.stderr
    return done.stdout + done.stderr
