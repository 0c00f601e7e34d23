"""`parquet-sink` as a process of its own, with all its children found again, whoever their parent is by then."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from signal import SIGHUP, SIGTERM, Signals
from typing import IO, Final
from uuid import uuid4

from integration import processes
from integration.processes import Process
from parquet_sink.spark.run_folder import MEMORY_FOLDER, PREFIX

TIMEOUT_S: Final = 240.0
_RUN_FOLDER: Final = re.compile(rf"{re.escape(str(MEMORY_FOLDER / PREFIX))}\w+")


class Command:
    """One run. All its processes inherit a mark in their environment. `said`: everything it printed so far.

    before: words in front of the command (`timeout 5`, say). out, err: where its words go, None for the log.
    python: of another environment, in which the package is installed. run_folders: in memory, as far as they were seen.
    """

    def __init__(
        self,
        folder: Path,
        words: Sequence[str],
        environment: Mapping[str, str],
        *,
        before: Sequence[str] = (),
        err: IO[bytes] | None = None,
        out: IO[bytes] | None = None,
        python: Path | None = None,
    ) -> None:
        self._mark = uuid4().hex
        self.log, self.tmp = folder / f"said-{self._mark}.log", folder / f"tmp-{self._mark}"
        self.tmp.mkdir()
        self.run_folders: set[Path] = set()
        inherited = {name: value for name, value in os.environ.items() if python is None or name != "PYTHONPATH"}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*before, str(python or sys.executable), "-m", "parquet_sink", *words],
                stdin=subprocess.DEVNULL,
                stdout=out or log,
                stderr=err or log,
                env={**inherited, **environment, processes.MARK: self._mark, "TMPDIR": str(self.tmp)},
                cwd=folder,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def until(self, condition: Callable[[], bool], timeout_s: float = TIMEOUT_S) -> None:
        """Waits; fails when the process ends first or it takes too long."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert self.process.poll() is None, self.said[-3_000:]
            assert time.monotonic() < deadline, self.said[-3_000:]
            time.sleep(0.05)
        self.alive()

    def until_said(self, words: str) -> None:
        self.until(lambda: words in self.said)

    def until_caught(self) -> None:
        """Until the program handles signals: before, while Python itself starts, they end the process."""
        status = Path(f"/proc/{self.process.pid}/status")

        def caught() -> bool:
            [mask] = [line.split()[1] for line in status.read_text().splitlines() if line.startswith("SigCgt:")]
            return bool(int(mask, 16) >> (SIGHUP - 1) & 1)  # the last one

        self.until(caught)

    def send(self, number: Signals = SIGTERM) -> None:
        """To the program alone."""
        self.process.send_signal(number)

    def signal_group(self, number: Signals = SIGTERM) -> None:
        """To its process group, as `timeout` and terminals do."""
        os.killpg(self.process.pid, number)

    def signal_all(self, number: Signals = SIGTERM) -> None:
        """To each of its processes, as a service manager does."""
        for process in self.alive():
            with suppress(ProcessLookupError):
                os.kill(process.pid, number)

    def ended(self, timeout_s: float = TIMEOUT_S) -> int:
        return self.process.wait(timeout_s)

    def alive(self) -> list[Process]:
        """Its processes that live, children of children included. Run folders that they name are noted."""
        found = processes.of_run(self._mark)
        self.run_folders |= {Path(folder) for one in found for folder in _RUN_FOLDER.findall(one.command)}
        return found

    def gone_within(self, seconds: float) -> bool:
        """Whether no process of it is left within so many seconds."""
        deadline = time.monotonic() + seconds
        while self.alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def close(self) -> None:
        """Ends whatever is left of it."""
        while alive := self.alive():
            for process in alive:
                processes.kill(process)
            time.sleep(0.05)
        self.process.wait()
