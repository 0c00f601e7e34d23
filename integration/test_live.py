"""`parquet-sink run` on a terminal: the live view, and Ctrl-C."""

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from integration.conftest import TopicFactory
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.demo import stage
from parquet_sink.addons.devkit.target.process import TargetProcess
from tests.messages import assert_says

LIMIT_S = 150
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A program on a terminal of its own, 120 columns wide and 40 lines high."""

    def __init__(self, *words: str, tmp: Path) -> None:
        self.text = ""
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
            environment = {**os.environ, "TMPDIR": str(tmp), "TERM": "xterm"}
            os.execve(sys.executable, [sys.executable, "-m", "parquet_sink", *words], environment)

    def wait_for(self, pattern: str) -> None:
        """Read until the text so far has this; fail after LIMIT_S."""
        deadline = time.monotonic() + LIMIT_S
        while not re.search(pattern, self.text):
            assert self._read(deadline), f"{pattern} did not come in:\n{self.text[-4000:]}"

    def read_for(self, seconds: float) -> None:
        """Read what comes within that time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self._read(deadline):
            pass

    def resize(self, rows: int, columns: int) -> None:
        """As when the window is made smaller or larger."""
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self._fd, keys)

    def wait(self) -> int:
        """Read to the end; the exit status."""
        deadline = time.monotonic() + LIMIT_S
        while self._read(deadline):
            pass
        os.close(self._fd)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._fd], [], [], max(deadline - time.monotonic(), 0))
        try:
            data = os.read(self._fd, 65_536) if ready else b""
        except OSError:  # how Linux says that the other side is closed
            data = b""
        self.text += CONTROL.sub("", data.decode(errors="replace")).replace("\r", "")
        return bool(data)


@pytest.mark.in_turn
@pytest.mark.timeout(2 * LIMIT_S + 30)
def test_the_view_shows_files_and_ctrl_c_ends_with_a_summary(
    broker: Broker, target: TargetProcess, topic: TopicFactory, producer: Producer, tmp_path: Path
) -> None:
    """On a terminal of any size: each topic-partition's line, then at Ctrl-C a graceful stop, one summary, status 0."""
    name = topic(partitions=2, prefix="orders")
    for number in range(1_000):
        producer.produce(name, f'{{"order_id":{number}}}', str(number), partition=number % 2)
    producer.flush(30)
    connector = tmp_path / "orders.properties"
    text = stage.with_endpoint(stage.shipped(stage.CONNECTOR).read_text(), target.endpoint())
    connector.write_text(text.replace("topics=orders", f"topics={name}").replace("name=orders", f"name={name}"))
    files = ("--worker", str(stage.shipped(stage.WORKER)), str(connector))
    terminal = Terminal("run", "--bootstrap-servers", broker.bootstrap_servers, *files, tmp=tmp_path)
    terminal.wait_for(rf"{name} 1 +0 +- +\d+ +interval +0-499 ")
    terminal.wait_for(rf"{name}  running  .* records/s; 2 files \(interval 2\), 1,000 rows")
    for rows, columns in ((6, 80), (1, 1), (2, 200), (40, 120)):
        terminal.resize(rows, columns)
        terminal.read_for(0.6)
    terminal.type(b"\x03")
    assert terminal.wait() == 0, terminal.text[-4000:]
    assert "cannot be drawn" not in terminal.text
    assert_says(terminal.text, "stopping", "finished first")
    summary = terminal.text.splitlines()[-1]
    assert_says(summary, f"connector {name}: done", "2 files (interval 2)", "1,000 rows", " kB", "lag 0")
