"""Works off what connectors left in this worker's folders while another worker runs them, or none does.

Files that wait for the archive, and notices that wait for the webhook, are on this machine alone. Whoever runs the
connector now cannot see them, so this worker sends them, with the connector's lock held as a run holds it.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from parquet_sink.connectors.loading import Loaded
from parquet_sink.errors import SinkError
from parquet_sink.files import naming
from parquet_sink.files.lock import ConnectorLock
from parquet_sink.settings.sink import SinkSettings, of_sink
from parquet_sink.spark.behind_commit import BehindCommit, count_waiting

LOOK_S: Final = 2.0
"""How often a worker looks for what waits in its folders."""
AGAIN_S: Final = 30.0
"""After which a configuration is looked at again that could not be used: its archive may be away."""
log = logging.getLogger(__name__)


@dataclass
class _Tended:
    """A connector whose waiting files and notices are being sent."""

    settings: SinkSettings
    lock: ConnectorLock
    behind: BehindCommit

    def close(self) -> None:
        self.behind.close()
        self.lock.release()


class Caretaker:
    """Of one worker. Threads share it. load: validates a configuration, with this worker's folders."""

    def __init__(self, load: Callable[[Mapping[str, str], str], Loaded]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._run_here: set[str] = set()
        self._tended: dict[str, _Tended] = {}
        self._settings: dict[str, tuple[Mapping[str, str], Loaded, float]] = {}
        self.has_folder: Mapping[str, bool] = {}
        """Whether a connector has a folder here, by name; of those whose configuration could be read."""

    def make_way(self, name: str) -> None:
        """Leave a connector to a run of this worker. Return once its lock is free."""
        with self._lock:
            self._run_here.add(name)
            self._stop_tending(name)

    def take_over(self, name: str) -> None:
        """Look after a connector that this worker no longer runs."""
        with self._lock:
            self._run_here.discard(name)

    def step(self, connectors: Mapping[str, Mapping[str, str]]) -> None:
        """Begin with what waits, and end what is done. connectors: stored configurations of the group, by name."""
        self._settings = {name: known for name, known in self._settings.items() if name in connectors}
        with self._lock:
            for name in self._tended.keys() - connectors.keys():
                self._stop_tending(name)
        has_folder: dict[str, bool] = {}
        for name, config in connectors.items():
            try:
                settings = self._read_settings(name, config)
                if settings is not None:
                    has_folder[name] = os.path.isdir(naming.connector_folder(settings.tmp_dir, name))
                with self._lock:
                    self._look_after(name, settings)
            except Exception:  # the other connectors have their turn
                log.exception("connector %s: what waits in its folder could not be looked at", name)
        self.has_folder = has_folder

    def close(self) -> None:
        """End everything; what still waits is taken up at the worker's next start."""
        with self._lock:
            for name in list(self._tended):
                self._stop_tending(name)

    def _read_settings(self, name: str, config: Mapping[str, str]) -> SinkSettings | None:
        """Return the settings of a sink that writes files, or None of another connector, or while they are wrong."""
        known, now_s = self._settings.get(name), time.monotonic()
        if known is None or known[0] != config or (known[1].settings is None and now_s - known[2] >= AGAIN_S):
            known = self._settings[name] = config, self._load(config, name), now_s
        settings = known[1].settings
        return settings if settings is not None and of_sink(settings) else None

    def _look_after(self, name: str, settings: SinkSettings | None) -> None:
        tended = self._tended.get(name)
        if tended is not None:
            tended.behind.news()
            if tended.settings != settings or not count_waiting(tended.settings):
                self._stop_tending(name)
        elif name not in self._run_here and settings is not None and (count := count_waiting(settings)):
            self._tend(name, settings, count)

    def _tend(self, name: str, settings: SinkSettings, count: int) -> None:
        lock = ConnectorLock(settings.tmp_dir, name)
        try:
            lock.acquire()
        except SinkError as error:
            log.debug("connector %s: what waits in its folder is not sent yet: %s", name, error)
            return
        log.info("connector %s: this worker does not run it; %d files and notices that wait here are sent", name, count)
        tended = self._tended[name] = _Tended(settings, lock, BehindCommit(settings))
        tended.behind.start()

    def _stop_tending(self, name: str) -> None:
        if (tended := self._tended.pop(name, None)) is not None:
            tended.close()
