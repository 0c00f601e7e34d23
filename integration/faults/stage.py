"""One program with one connector for each of its acts: started, played, ended, started again, judged."""

import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from integration.faults.act import Act
from integration.faults.rows import BROKE, NOT_RUN, Broke, NotRun
from integration.sink_process import SinkProcess

SAMPLE_S: Final = 0.4
STOP_S: Final = 120.0
DRAIN_S: Final = 300.0


class Stage:
    """folder: for connector files and the log."""

    def __init__(self, acts: Sequence[Act], folder: Path) -> None:
        self._acts, self._folder = list(acts), folder
        self._sink: SinkProcess | None = None
        self._log = folder / "sink.log"
        self._mark = 0
        self._lines: list[str] = []
        self._over = threading.Event()

    def run(self) -> None:
        """The whole of it; what comes out is in the acts' outcomes."""
        self._folder.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        watch = threading.Thread(target=self._watch, name="watch", daemon=True)
        try:
            self._set_up()
            if self._acts:
                self._start()
                watch.start()
                self._play()
                self._stop()
                self._again()
                self._over.set()
                watch.join()
                for act in self._acts:
                    act.outcome.seconds = time.monotonic() - began
                    self._judge(act)
        finally:
            self._over.set()
            if self._sink is not None:
                self._sink.end_all()
            for act in self._acts:
                with suppress(Exception):
                    act.clean_up()
                with suppress(Exception):
                    act.group.close()

    def lines(self) -> list[str]:
        """What the program has said since its last start."""
        return self._lines

    def ended(self) -> int | None:
        """The program's exit status, None while it runs."""
        assert self._sink is not None
        return self._sink.ended()

    def file_of(self, act: Act) -> Path:
        """Its connector file."""
        return self._folder / f"{act.name}.properties"

    @property
    def sink(self) -> SinkProcess:
        assert self._sink is not None
        return self._sink

    def _set_up(self) -> None:
        for act in list(self._acts):
            act.stage = self
            try:
                act.set_up()
            except NotRun as reason:
                act.outcome.status, act.outcome.seen = NOT_RUN, str(reason)
                act.clean_up()
                self._acts.remove(act)

    def _start(self) -> None:
        self._sink = self._program([act.settings() for act in self._acts])
        self._sink.start()

    def _program(self, files: Sequence[Mapping[str, str]]) -> SinkProcess:
        environment = {name: value for act in self._acts for name, value in act.environment().items()}
        return SinkProcess(files, self._folder, environment)

    def _play(self) -> None:
        threads = [threading.Thread(target=self._one, args=(act,), name=act.name, daemon=True) for act in self._acts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _one(self, act: Act) -> None:
        try:
            act.play()
        except Broke as reason:
            act.troubles.append(str(reason))
        except Exception:  # noqa: BLE001 - a row that cannot be judged has not held
            act.troubles.append(traceback.format_exc())

    def _stop(self) -> None:
        """SIGTERM, if it still runs: clean, unless a connector failed."""
        assert self._sink is not None
        if self._sink.ended() is None:
            self._sink.terminate(STOP_S)

    def _again(self) -> None:
        """One more start, until caught up, of all that stopped or did not deliver everything."""
        left = [act for act in self._acts if act.stops or not act.delivered()]
        for act in left:
            act.between()
        if not left:
            return
        assert self._sink is not None
        self._sink.end_all()
        self._mark = self._log.stat().st_size
        self._sink = self._program([{**act.settings(), **act.mended()} for act in left])
        status = self._sink.run_to_end(DRAIN_S, "--until-caught-up")
        time.sleep(2 * SAMPLE_S)
        for act in left:
            if (failure := act.failed()) is not None:
                act.troubles.append(f"after the second start: {failure}")
            elif not act.delivered():
                act.troubles.append(f"not delivered after a second start (exit status {status}): {act.committed()}")

    def _judge(self, act: Act) -> None:
        try:
            act.judge()
        except Exception:  # noqa: BLE001 - as above
            act.outcome.status = BROKE
            act.outcome.troubles = [*act.troubles, traceback.format_exc()]

    def _watch(self) -> None:
        """Reads the log and the groups' offsets until all is over."""
        while not self._over.is_set():
            with suppress(OSError), self._log.open("rb") as log:
                log.seek(self._mark)
                self._lines = log.read().decode(errors="replace").splitlines()
            for act in self._acts:
                with suppress(Exception):  # a broker that is away is what some rows are about
                    act.group.committed()
            self._over.wait(SAMPLE_S)
