"""Python processes that are forked from one that has imported everything."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from parquet_sink.spark.forks import client
from parquet_sink.spark.forks.host import SCRIPT, ForkServer
from parquet_sink.spark.forks.server import Asked

MODULE = """
import os, signal, sys
line = sys.stdin.readline().strip()
print(os.getpid(), sys.argv[1:], os.environ["GIVEN"], line, "pyarrow" in sys.modules, os.getcwd(), flush=True)
if sys.argv[1] == "wait":
    terms = [int(word) for word in sys.argv[2:]]  # statuses of a SIGTERM each; 0: goes on
    def heard(number, frame):
        status = terms.pop(0)
        os.write(1, b"heard\\n")  # it may interrupt a print
        if status:
            sys.exit(status)
    signal.signal(signal.SIGTERM, heard)
    print("waiting", flush=True)
    while True:
        signal.pause()
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which the script reaches a server."""
    before = dict(os.environ)
    forks = ForkServer(tmp_path_factory.mktemp("forks"))
    assert forks.start() == str(SCRIPT)
    environment = dict(os.environ)
    _until_ready(tmp_path_factory.mktemp("ready"), environment)
    os.environ.clear()
    os.environ.update(before)
    yield environment
    forks.end()


def _until_ready(folder: Path, environment: dict[str, str]) -> None:
    """A client waits some seconds for a server that imports, and a busy machine may take longer."""
    deadline = time.monotonic() + 120
    forked = False
    while not forked:
        assert time.monotonic() < deadline
        with _start(folder, environment, "0") as process:
            said, _ = process.communicate("\n", timeout=60)
        forked = int(said.split()[0]) != process.pid


def _start(folder: Path, environment: dict[str, str], *arguments: str) -> "subprocess.Popen[str]":
    (folder / "asked_module.py").write_text(MODULE)
    return subprocess.Popen(
        [str(SCRIPT), "-m", "asked_module", *arguments],
        env={**environment, "PYTHONPATH": str(folder), "GIVEN": "a=b\nc"},
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _printed(arguments: list[str], folder: Path, *, forked: bool) -> str:
    """What the module prints behind the number of its process."""
    return f"{arguments} a=b\nc a line {forked} {folder}\n"


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [((), {}), (("-m", "x"), {b"A": b"1"}), (("-m", "x", "", "ü"), {b"A": b"", b"B": b"b=c\n"})],
)
def test_a_request_is_read_as_it_was_made(
    arguments: tuple[str, ...], environment: dict[bytes, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments, folder and environment arrive whole, empty ones and those with line ends too."""
    monkeypatch.setattr(os, "environb", environment)
    assert Asked.parse(client.request(arguments, "/a b")) == Asked(arguments, "/a b", environment)


@pytest.mark.parametrize("status", [0, 7])
def test_a_module_runs_in_a_fork(server: dict[str, str], tmp_path: Path, status: int) -> None:
    """It has the streams, arguments, folder and environment of the process in whose place it runs, and its status."""
    with _start(tmp_path, server, str(status), "more words") as process:
        said, _ = process.communicate("a line\n", timeout=60)
    pid, rest = said.split(" ", 1)
    assert int(pid) != process.pid
    assert rest == _printed([str(status), "more words"], tmp_path, forked=True)
    assert process.returncode == status


def test_the_end_of_a_process_is_that_of_its_fork(server: dict[str, str], tmp_path: Path) -> None:
    """Java ends a process by SIGTERM: the fork hears each, `ps` shows what it is, and its status comes back."""
    with _start(tmp_path, server, "wait", "0", "0", "9") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        fork = int(process.stdout.readline().split()[0])
        assert process.stdout.readline() == "c  True " + str(tmp_path) + "\n"
        assert process.stdout.readline() == "waiting\n"
        shown = Path(f"/proc/{fork}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        assert shown == [os.fsencode(sys.executable), b"-m", b"asked_module", b"wait", b"0", b"0", b"9"]
        for _ in range(3):
            process.send_signal(signal.SIGTERM)
            assert process.stdout.readline() == "heard\n"
        assert process.wait(30) == 9


@pytest.mark.parametrize("ignored", [False, True])
def test_a_fork_that_is_killed_ends_the_process(server: dict[str, str], tmp_path: Path, ignored: bool) -> None:
    """With status 1, also after a SIGTERM, and where that was ignored when it began, as Java's children have it."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN if ignored else signal.SIG_DFL)
    try:
        process = _start(tmp_path, server, "wait", "0")
    finally:
        signal.signal(signal.SIGTERM, before)
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        fork = int(process.stdout.readline().split()[0])
        assert [process.stdout.readline() for _ in range(2)][1] == "waiting\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "heard\n"
        os.kill(fork, signal.SIGKILL)
        assert process.wait(30) == 1


@pytest.mark.parametrize("address", ["", "/nowhere/at-all"])
def test_without_a_server_python_runs_itself(tmp_path: Path, address: str) -> None:
    """A server that is gone, or never was, costs time and nothing else."""
    environment = {**os.environ, client.PYTHON: sys.executable, client.ADDRESS: address}
    with _start(tmp_path, environment, "7") as process:
        said, _ = process.communicate("a line\n", timeout=60)
    assert said == f"{process.pid} " + _printed(["7"], tmp_path, forked=False)
    assert process.returncode == 7


def test_a_server_that_was_killed_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is asked for while the server dies starts by itself."""
    monkeypatch.setenv(client.PYTHON, "")
    monkeypatch.setenv(client.ADDRESS, "")
    forks = ForkServer(tmp_path)
    forks.start()
    assert forks.pid is not None
    os.kill(forks.pid, signal.SIGKILL)
    with _start(tmp_path, dict(os.environ), "0") as process:
        said, _ = process.communicate("\n", timeout=60)
    forks.end()
    assert int(said.split()[0]) == process.pid


@pytest.mark.parametrize("ports", [(), ("50001",), ("50001", "50002", "50001")])
def test_the_port_of_a_process_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ports: tuple[str, ...]
) -> None:
    """Whoever asks hears of each port once, also of a process that no server started; a daemon has none."""
    for variable in (client.PYTHON, client.ADDRESS, client.PORT):
        monkeypatch.setenv(variable, "")
    forks = ForkServer(tmp_path)
    assert forks.take_ports() == set()
    forks.start()
    forks.end()
    for port in ("", *ports):
        with _start(tmp_path, {**os.environ, client.PORT: port}, "0") as process:
            process.communicate("\n", timeout=60)
    assert forks.take_ports() == set(map(int, ports))
    assert forks.take_ports() == set()


def test_other_arguments_are_pythons(server: dict[str, str]) -> None:
    """Java asks Python for its version by `-c`, which needs no fork."""
    said = subprocess.run(
        [SCRIPT, "-c", "import sys; print(sys.version)"], env=server, capture_output=True, text=True, check=True
    )
    assert said.stdout == sys.version + "\n"


def test_the_server_ends_with_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of its input, which is the end of the program, however that comes."""
    monkeypatch.setenv(client.PYTHON, "")
    monkeypatch.setenv(client.ADDRESS, "")
    forks = ForkServer(tmp_path)
    forks.start()
    pid = forks.pid
    forks.end()
    assert not Path(f"/proc/{pid}").exists()
    forks.end()


def test_a_folder_too_deep_for_a_socket_has_no_server(tmp_path: Path) -> None:
    """Then Spark takes Python itself."""
    forks = ForkServer(tmp_path / ("x" * 120))
    assert forks.start() == sys.executable
    assert forks.pid is None
