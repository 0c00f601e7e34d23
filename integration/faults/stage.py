"""One program with one connector for each of its acts: started, played, ended, started again, judged."""

import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from integration.faults.act import Act
from integration.faults.program import Program
from integration.faults.rows import BROKE, NOT_RUN, Broke, NotRun

SAMPLE_S: Final = 0.4
STOP_S: Final = 120.0
DRAIN_S: Final = 300.0


class Stage:
    """folder: for connector files and the log."""

    def __init__(self, acts: Sequence[Act], folder: Path) -> None:
        self._acts, self._folder = list(acts), folder
        self._program = Program(folder)
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
            self._program.close()
            for act in self._acts:
                with suppress(Exception):
                    act.clean_up()
                with suppress(Exception):
                    act.group.close()

    def _set_up(self) -> None:
        for act in list(self._acts):
            act.program = self._program
            try:
                act.set_up()
            except NotRun as reason:
                act.outcome.status, act.outcome.seen = NOT_RUN, str(reason)
                act.clean_up()
                self._acts.remove(act)

    def _start(self) -> None:
        self._program.prepare([act.settings() for act in self._acts], self._environment()).start()

    def _environment(self) -> dict[str, str]:
        return {name: value for act in self._acts for name, value in act.environment().items()}

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
        if self._program.ended() is None:
            self._program.sink.terminate(STOP_S)

    def _again(self) -> None:
        """One more start, until caught up, of all that stopped or did not deliver everything."""
        left = [act for act in self._acts if act.stops or not act.delivered()]
        for act in left:
            act.between()
        if not left:
            return
        again = self._program.prepare([{**act.settings(), **act.mended()} for act in left], self._environment())
        status = again.run_to_end(DRAIN_S, "--until-caught-up")
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
            self._program.read_log()
            for act in self._acts:
                with suppress(Exception):  # a broker that is away is what some rows are about
                    act.group.committed()
            self._over.wait(SAMPLE_S)
