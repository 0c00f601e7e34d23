"""What the page asks beside REST, and keeps for a moment: how all connectors stand, and what `tune` would recommend.

What only the owner of a connector has is as JSON has it, so that it is the same from here and from another worker.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from parquet_sink.addons.page.frame import link
from parquet_sink.addons.page.hour import SLOT_S, SLOTS, LastHour
from parquet_sink.config.key import ems
from parquet_sink.config.properties import as_properties
from parquet_sink.errors import SinkError
from parquet_sink.files.settings import TMP_DIR
from parquet_sink.history.sqlite import read_history
from parquet_sink.history.store import HistoryQuery
from parquet_sink.kafka.settings import COMMIT_RECORDS, COMMIT_SIZE, INTERVAL
from parquet_sink.process.threads import in_thread
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.worker.herder.errors import Elsewhere, HerderError
from parquet_sink.worker.herder.protocol import Herder
from parquet_sink.worker.herder.values import ConnectorProgress
from parquet_sink.worker.rest.call import Call, Endpoint, Reply, RestError, as_rest_errors
from parquet_sink.worker.rest.in_process import Api
from parquet_sink.worker_config.rest.roles import Role

KEPT_S: Final = 0.4
"""How long what all browsers see is taken for true: they share one look."""
OTHERS_S: Final = 3.0
TUNE_S: Final = 60.0
_ALL: Final = "/page/facts"
_TUNING: Final = "/page/tuning/{connector}"
"""Beside `/ui`, where all that is no screen is answered by the page that says so."""
_NO_FILES: Final = "Connector {} writes no Parquet files, so there are no thresholds to tune."
_BUSY: Final = "Another recommendation is being computed; ask again in some seconds."
_AIMS: Final = {"freshness": "--freshness", "files": "--max-files-per-hour", "size": "--file-size"}
"""What may be asked of a recommendation, and the options of `parquet-sink tune`."""
_STANDS_FOR: Final = {
    "connector.class": "parquet_sink.EmsSink",
    "topics": "any",
    "bootstrap.servers": "localhost:9092",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    ems("endpoint"): "https://localhost/",
    ems("authorization.key"): "AppKey none",
    ems("target.table"): "any",
}
"""In a file for `tune --history`, which reaches neither Kafka nor target: so no secret is written to one."""


@dataclass(frozen=True)
class Look:
    """How everything stands. known: of each connector, as far as its owner answers: thresholds and last hour."""

    progress: Mapping[str, ConnectorProgress] = field(default_factory=dict)
    known: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class Facts:
    """herder: of this worker. hours: what happened to files lately, kept by the same process. clock: epoch seconds."""

    def __init__(self, herder: Herder, hours: LastHour, clock: Callable[[], float] = time.time) -> None:
        self._herder, self._hours, self._clock = herder, hours, clock
        self._lock, self._tuning = threading.Lock(), threading.Lock()
        self._looked_s, self._look = -KEPT_S, Look()

    def endpoints(self) -> list[Endpoint]:
        """What other workers ask."""
        return [
            Endpoint(
                "GET", _ALL, lambda call: Reply(self._own()), "What this worker knows of its connectors", Role.VIEWER
            ),
            Endpoint("GET", _TUNING, self._answer, "What tune recommends", Role.VIEWER),
        ]

    def changed(self) -> None:
        """Somebody did something: the next look is a new one."""
        self._looked_s = -KEPT_S

    def look(self, api: Api) -> Look:
        """At all connectors, those of other workers included."""
        with self._lock:
            if time.monotonic() - self._looked_s >= KEPT_S:
                progress = {one.status.name: one for one in self._herder.progress()}
                self._look = Look(progress, {**self._others(api), **self._own()})
                self._looked_s = time.monotonic()
            return self._look

    def _others(self, api: Api) -> dict[str, Any]:
        others = [one for one in self._herder.workers().workers if one.url and one.worker_id != self._herder.worker_id]
        asked = [in_thread(partial(api.of_worker, Elsewhere(one.url, one.worker_id), _ALL)) for one in others]
        done, _ = wait(asked, OTHERS_S)
        found: dict[str, Any] = {}
        for future in done:
            if future.exception() is None:
                found |= future.result()
        return found

    def _own(self) -> dict[str, Any]:
        names = [one.status.name for one in self._herder.own_progress()]
        settings = {name: self._settings(name) for name in names}
        self._hours.keep(self._herder.names())
        if waiting := self._hours.to_seed(name for name, one in settings.items() if one is not None):
            in_thread(partial(self._seed, [settings[name] for name in waiting]))
        return {
            name: {**_thresholds(settings[name]), "hour": self._hours.of(name), "began_s": self._hours.started(name)}
            for name in names
        }

    def _settings(self, name: str) -> ConnectorSettings | None:
        try:
            return self._herder.settings(name)
        except HerderError:  # it went elsewhere meanwhile, or cannot be read: its status tells why
            return None

    def _seed(self, connectors: Sequence[ConnectorSettings | None]) -> None:
        """What happened in the last hour before this process began; a history that cannot be read is told elsewhere."""
        since = HistoryQuery(since_ms=int(self._clock() * 1000) - SLOTS * SLOT_S * 1000, until_ms=self._hours.begun_ms)
        for one in connectors:
            if isinstance(one, SinkSettings) and one.history.enabled:
                with suppress(SinkError, FileNotFoundError), closing(read_history(Path(one.history_file))) as history:
                    self._hours.seed(one.name, history.files(since))

    def tuning(self, api: Api, name: str, aim: str, value: str) -> dict[str, Any]:
        """The report of `parquet-sink tune --json`, by the connector's history. Raises RestError."""
        try:
            settings = self._herder.settings(name)
        except Elsewhere as elsewhere:
            target = link(_TUNING.format(connector=quote(name, safe="")), aim=aim, value=value)
            return dict(api.of_worker(elsewhere, target))
        return self._tuned(settings, aim, value)

    def _answer(self, call: Call) -> Reply:
        with as_rest_errors():
            settings = self._herder.settings(call.connector)
        return Reply(self._tuned(settings, call.query.get("aim", ""), call.query.get("value", "")))

    def _tuned(self, settings: ConnectorSettings, aim: str, value: str) -> dict[str, Any]:
        """In a process of its own: it computes for seconds, and this one has connectors to look after."""
        if not isinstance(settings, SinkSettings):
            raise RestError(400, _NO_FILES.format(settings.name))
        option = [f"{_AIMS[aim]}={value}"] if aim in _AIMS and value.strip() else []
        if not self._tuning.acquire(blocking=False):
            raise RestError(503, _BUSY)
        try:
            return _run_tune(settings, option, len(self._herder.own_progress()))
        finally:
            self._tuning.release()


def _run_tune(settings: SinkSettings, option: Sequence[str], connectors: int) -> dict[str, Any]:
    """Raises RestError with what it says where it recommends nothing."""
    flush = settings.flush
    own = {
        **_STANDS_FOR,
        "name": settings.name,
        "tasks.max": str(settings.kafka.tasks_max or 1),
        TMP_DIR: settings.tmp_dir,
        COMMIT_SIZE: str(flush.commit_size_bytes),
        COMMIT_RECORDS: str(flush.commit_records),
        INTERVAL: str(flush.commit_interval_ms),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "connector.properties")
        Path(path).write_text(as_properties(own), encoding="utf-8")
        program = [sys.executable, "-m", "parquet_sink", "tune", "--history", "--json"]
        shared = ["--connectors", str(min(max(connectors, 1), 1_000))]
        try:
            done = subprocess.run(
                [*program, *shared, *option, "--", path], capture_output=True, text=True, timeout=TUNE_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise RestError(503, f"It took more than {TUNE_S:g} s and was ended; run parquet-sink tune.") from None
    if done.returncode:
        raise RestError(400, _said(done.stderr))
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _said(text: str) -> str:
    """What the command says, without its name and its usage."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("usage:", " ", "`"))]
    said = lines[-1] if lines else "It ended without a word; the worker's log may have more."
    return said.removeprefix("parquet-sink: ").removeprefix("parquet-sink tune: ").removeprefix("error: ")


def _thresholds(settings: ConnectorSettings | None) -> dict[str, Any]:
    if not isinstance(settings, SinkSettings):
        return {"interval_s": None, "records": None, "bytes": None}
    flush = settings.flush
    return {
        "interval_s": flush.commit_interval_ms / 1000,
        "records": flush.commit_records,
        "bytes": flush.commit_size_bytes,
    }
