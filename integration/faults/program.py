"""The program that a stage runs: its connector files, its process, and what its log says since the last start."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from integration.sink_process import SinkProcess


class Program:
    """folder: for connector files and the log."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sink: SinkProcess | None = None
        self._log = folder / "sink.log"
        self._mark = 0
        self._lines: list[str] = []

    @property
    def sink(self) -> SinkProcess:
        assert self._sink is not None
        return self._sink

    def prepare(self, files: Sequence[Mapping[str, str]], environment: Mapping[str, str]) -> SinkProcess:
        """A process that can be started, with these connectors; one before it is ended."""
        if self._sink is not None:
            self._sink.end_all()
            self._mark = self._log.stat().st_size
        self._sink = SinkProcess(files, self._folder, environment)
        return self._sink

    def lines(self) -> list[str]:
        """What it has said since its last start."""
        return self._lines

    def ended(self) -> int | None:
        """Its exit status, None while it runs."""
        return self.sink.ended()

    def file_of(self, connector: str) -> Path:
        """The file of a connector."""
        return self._folder / f"{connector}.properties"

    def read_log(self) -> None:
        """For `lines`."""
        with suppress(OSError), self._log.open("rb") as log:
            log.seek(self._mark)
            self._lines = log.read().decode(errors="replace").splitlines()

    def close(self) -> None:
        """Ends the process, if there is one."""
        if self._sink is not None:
            self._sink.end_all()
