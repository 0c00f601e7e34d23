"""What signals ask of the program."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from parquet_sink.process import signals
from parquet_sink.process.signals import SAME_REQUEST_S, ParentDeathGuard, StopRequest
from tests.messages import assert_line_says

NUMBERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Hand:
    """Sends signals at times, to a wish that ends nothing."""

    def __init__(self) -> None:
        self.now = 100.0
        self.ended: list[int] = []
        self.stop_request = StopRequest(clock=lambda: self.now, end_at_once=self.ended.append)

    def at(self, seconds: float, number: int = signal.SIGTERM) -> None:
        self.now = 100.0 + seconds
        self.stop_request.on_signal(number, None)


@pytest.mark.parametrize("number", NUMBERS)
def test_the_first_signal_is_a_wish(number: int, capfd: pytest.CaptureFixture[str]) -> None:
    """It is noted with its time, and what is promised is told."""
    hand = Hand()
    hand.stop_request.notice = "; soon"
    assert not hand.stop_request
    hand.at(0, number)
    assert hand.stop_request
    assert (hand.stop_request.requested_at_s, hand.ended) == (100.0, [])
    assert capfd.readouterr().err == "parquet-sink: stopping; soon\n"


def test_signals_that_come_together_are_one_wish(capfd: pytest.CaptureFixture[str]) -> None:
    """`timeout` signals the program and then its group; a terminal that closes says so twice."""
    hand = Hand()
    for seconds in (0, 0, SAME_REQUEST_S / 2, SAME_REQUEST_S - 0.01):
        hand.at(seconds)
    assert hand.ended == []
    assert capfd.readouterr().err.count("stopping") == 1


def test_a_later_signal_ends_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    """With the status that a shell gives to the signal."""
    hand = Hand()
    hand.at(0)
    hand.at(SAME_REQUEST_S, signal.SIGINT)
    assert hand.ended == [130]
    assert_line_says(capfd.readouterr().err, "second signal", "at once")


def test_signals_count_when_nobody_can_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard error on a full disk, a closed pipe or none at all changes nothing."""

    def broken(descriptor: int, words: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", broken)
    hand = Hand()
    hand.at(0)
    hand.at(2)
    assert hand.stop_request
    assert hand.ended == [128 + signal.SIGTERM]


def test_a_pipe_that_nobody_reads_holds_nothing_up() -> None:
    """The handler does not wait for room in a full pipe."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writing, bytes(65_536))
    os.set_blocking(writing, True)
    kept = os.dup(2)
    os.dup2(writing, 2)
    try:
        hand = Hand()
        hand.at(0)
        assert hand.stop_request
    finally:
        os.dup2(kept, 2)
        for descriptor in (kept, reading, writing):
            os.close(descriptor)


def test_handlers_are_restored() -> None:
    """Who listened before listens again afterwards."""
    before = [signal.getsignal(number) for number in NUMBERS]
    with StopRequest().handling():
        assert [signal.getsignal(number) for number in NUMBERS] != before
    assert [signal.getsignal(number) for number in NUMBERS] == before


def test_a_hangup_that_is_ignored_stays_ignored() -> None:
    """A program under `nohup` goes on when its terminal closes."""
    former = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        stop_request = StopRequest()
        with stop_request.handling():
            signal.raise_signal(signal.SIGHUP)
        assert not stop_request
    finally:
        signal.signal(signal.SIGHUP, former)


@pytest.mark.parametrize(("deaf", "ends"), [(True, False), (False, True)])
def test_a_child_of_java_can_be_ended_by_it(deaf: bool, ends: bool) -> None:
    """Java ends processes of its own by SIGTERM, which they would ignore as Java does; workers below us stay deaf."""
    program = (
        "import signal\n"
        "from parquet_sink.process.signals import restore_sigterm\n"
        "restore_sigterm()\n"
        "signal.raise_signal(signal.SIGTERM)\n"
    )
    environment = {**os.environ, **({signals.DEAF: "1"} if deaf else {})}
    command = ["/bin/sh", "-c", 'trap "" TERM; exec "$@"', "sh", sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, timeout=60, check=False)
    assert (done.returncode == -signal.SIGTERM) == ends


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_the_very_start_leaves_no_trace(number: signal.Signals) -> None:
    """Before anything is there that could stop in order the process just ends."""
    for wait_s in (0.01, 0.03, 0.06, 0.1, 0.15, 0.25):
        command = [sys.executable, "-m", "parquet_sink", "run", "/dev/null"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as program:
            time.sleep(wait_s)
            program.send_signal(number)
            assert program.stderr is not None
            said = program.stderr.read()
        assert "Traceback" not in said.partition("parquet_sink/__main__")[2], said


def test_a_signal_while_modules_load_is_a_wish(tmp_path: Path) -> None:
    """The program catches it before it loads what it runs: it ends by itself, with a status of its own."""
    command = [sys.executable, "-X", "importtime", "-m", "parquet_sink", "run", str(tmp_path / "absent.properties")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr is not None
        loaded = iter(program.stderr)
        next(line for line in loaded if line.split()[-1] == "parquet_sink.process.signals")
        while not catches(program.pid, signal.SIGTERM):
            time.sleep(0.001)
        program.send_signal(signal.SIGTERM)
        later = list(loaded)
    assert program.returncode == 2
    assert any(line.split()[-1:] == ["parquet_sink.cli.main"] for line in later)
    assert any("stopping" in line for line in later)


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether a process handles a signal."""
    [mask] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt:")]
    return bool(int(mask.split()[1], 16) >> (number - 1) & 1)


def cannot_write(words: str) -> list[str]:
    """A command line whose standard error and output take nothing."""
    return ["/bin/sh", "-c", f'exec "$@" {words}', "sh", sys.executable, "-m", "parquet_sink"]


@pytest.mark.parametrize("where", ["> /dev/full 2>&1", ">&- 2>&-", "2> /dev/full", "2>&- < /dev/null"])
@pytest.mark.parametrize(("words", "status"), [(["run", "absent.properties"], 2), (["check", "absent.properties"], 2)])
def test_the_exit_status_needs_no_standard_error(where: str, words: list[str], status: int) -> None:
    """Words that cannot be written change no exit status."""
    done = subprocess.run([*cannot_write(where), *words], timeout=60, check=False, stdout=subprocess.DEVNULL)
    assert done.returncode == status


def test_closed_standard_streams_are_no_other_file() -> None:
    """A program without standard error must not write its words into a file that got the same number."""
    program = (
        "import os, sys\n"
        "from parquet_sink.process import program\n"
        "program.open_closed_streams()\n"
        "sys.exit(os.open('/dev/zero', os.O_RDONLY) <= 2 or not os.path.samefile('/dev/fd/2', os.devnull))"
    )
    command = ["/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", program]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0


PROGRAM = """
import os, pathlib, subprocess, sys, time
from parquet_sink.process.signals import ParentDeathGuard
child = subprocess.Popen(["sleep", "600"], start_new_session=True)
guard = ParentDeathGuard(child.pid, pathlib.Path(sys.argv[1]))
print(child.pid, guard._process.pid, flush=True)
time.sleep(600)
"""


def alive(pid: int) -> bool:
    """Whether a process runs, and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("disturbed", [False, True])
def test_a_killed_process_takes_its_child_along(tmp_path: Path, disturbed: bool) -> None:
    """After kill -9 the child is gone, and then its folder, also when all were signalled before."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder)], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    child, guard = map(int, program.stdout.readline().split())
    if disturbed:
        time.sleep(0.2)  # until the shell has set its trap
        os.kill(guard, signal.SIGTERM)
    program.kill()
    program.wait()
    program.stdout.close()
    deadline = time.monotonic() + 20
    while (alive(child) or folder.exists()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(child)
    assert not folder.exists()


def test_what_is_let_go_lives_on(tmp_path: Path) -> None:
    """A child that ended in order is forgotten, and its folder is its owner's to remove."""
    with subprocess.Popen(["sleep", "600"]) as child:
        guard = ParentDeathGuard(child.pid, tmp_path)
        guard.release()
        guard.release()
        assert child.poll() is None
        assert tmp_path.exists()
        child.kill()
