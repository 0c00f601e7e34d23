"""What the owner of a connector knows beyond REST: thresholds, its last hour, files, what is parked, where a record is.

Everything is as JSON has it, so that it is the same whether it was found here or asked of another worker.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from parquet_sink.errors import SinkError
from parquet_sink.history.locating import locate
from parquet_sink.history.records import UploadOutcome
from parquet_sink.history.sqlite import read_history
from parquet_sink.history.store import HistoryQuery
from parquet_sink.process.threads import in_thread
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.worker.herder.errors import Elsewhere, HerderError
from parquet_sink.worker.herder.protocol import Herder
from parquet_sink.worker.page.frame import Api, link
from parquet_sink.worker.page.hour import SLOT_S, SLOTS, LastHour
from parquet_sink.worker.rest.call import Call, Endpoint, Reply, RestError, as_rest_errors

KEPT_S: Final = 0.7
"""How long what all browsers see is taken for true: they share one look."""
MOST_FILES: Final = 400
OTHERS_S: Final = 3.0
_ALL: Final = "/ui/facts"
_ONE: Final = "/ui/facts/{connector}/{part}"
Query = Mapping[str, str]


class Facts:
    """herder: of this worker. hours: what happened to files lately, kept by the same process."""

    def __init__(self, herder: Herder, hours: LastHour, clock: Callable[[], float] = time.time) -> None:
        self._herder, self._hours, self._clock = herder, hours, clock
        self._parts: Mapping[str, Callable[[SinkSettings, Query], dict[str, Any]]] = {
            "files": self._files,
            "where": _where,
        }
        self._lock = threading.Lock()
        self._kept: tuple[float, dict[str, Any]] = (-KEPT_S, {})

    def endpoints(self) -> list[Endpoint]:
        """What other workers ask."""
        return [
            Endpoint("GET", _ALL, lambda call: Reply(self._own()), "What this worker knows of its connectors"),
            Endpoint("GET", _ONE, self._answer, "What the owner of a connector knows"),
        ]

    def _answer(self, call: Call) -> Reply:
        with as_rest_errors():
            settings = self._herder.settings(call.connector)
        return Reply(self._part(settings, call.path["part"], dict(call.query)))

    def overview(self, api: Api) -> dict[str, Any]:
        """Of all connectors by name: interval, thresholds, last hour. What others do not answer is absent."""
        with self._lock:
            if time.monotonic() - self._kept[0] >= KEPT_S:
                self._kept = time.monotonic(), {**self._others(api), **self._own()}
            return self._kept[1]

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
        if waiting := self._hours.to_seed(name for name, one in settings.items() if one is not None):
            in_thread(partial(self._seed, [settings[name] for name in waiting]))
        return {name: {**_thresholds(settings[name]), "hour": self._hours.of(name)} for name in names}

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

    def of(self, api: Api, name: str, part: str, **query: object) -> dict[str, Any]:
        """One part of what its owner knows. Raises RestError."""
        given = {key: str(value) for key, value in query.items() if value not in (None, "")}
        try:
            settings = self._herder.settings(name)
        except Elsewhere as elsewhere:
            return dict(api.of_worker(elsewhere, link(f"{_ALL}/{quote(name, safe='')}/{part}", **given)))
        return self._part(settings, part, given)

    def _part(self, settings: ConnectorSettings, part: str, query: Query) -> dict[str, Any]:
        if part not in self._parts:
            raise RestError(404, f"There is no {part} of a connector.")
        if not isinstance(settings, SinkSettings):
            return {"kind": settings.kind}
        try:
            return {"kind": settings.kind, **self._parts[part](settings, query)}
        except SinkError as error:
            raise RestError(500, str(error)) from error

    def _files(self, settings: SinkSettings, query: Query) -> dict[str, Any]:
        """The latest files, and of each topic-partition the last; since: epoch milliseconds."""
        file = query.get("file")
        asked = HistoryQuery(
            topic=query.get("topic"),
            partition=_whole(query.get("partition"), "partition"),
            since_ms=_whole(query.get("since"), "since"),
            outcomes=frozenset() if query.get("outcome") != "failed" else _NOT_ACCEPTED,
            file_names=frozenset() if file is None else frozenset({file}),
            newest=_whole(query.get("newest"), "newest") or MOST_FILES,
        )
        if not settings.history.enabled:
            return {"files": [], "why": "connect.ems.history.enable is false, so no file is remembered."}
        try:
            with closing(read_history(Path(settings.history_file))) as history:
                return {"files": [one.to_dict() for one in history.files(asked)], "why": ""}
        except FileNotFoundError:
            return {"files": [], "why": ""}


_NOT_ACCEPTED: Final = frozenset(UploadOutcome) - {UploadOutcome.ACCEPTED}


def _thresholds(settings: ConnectorSettings | None) -> dict[str, Any]:
    if not isinstance(settings, SinkSettings):
        return {"interval_s": None, "records": None, "bytes": None}
    flush = settings.flush
    return {
        "interval_s": flush.commit_interval_ms / 1000,
        "records": flush.commit_records,
        "bytes": flush.commit_size_bytes,
    }


def _whole(text: str | None, name: str) -> int | None:
    """Raises RestError for what is no whole number of at most 63 bits."""
    if text is None or text == "":
        return None
    if not (text.isascii() and text.isdigit() and int(text[:20]) < 1 << 63):
        raise RestError(400, f"Invalid [{name}]. {text[:40]!r} is no whole number; write one, such as 1200.")
    return int(text)


def _where(settings: SinkSettings, query: Query) -> dict[str, Any]:
    """What became of one offset. query: topic, partition, offset."""
    partition, offset = (_whole(query.get(name), name) for name in ("partition", "offset"))
    topic = query.get("topic", "")
    if not topic or partition is None or offset is None:
        raise RestError(400, "Give the topic, the number of its topic-partition, and the offset.")
    try:
        with closing(read_history(Path(settings.history_file))) as history:
            return locate(history, topic, partition, offset).to_dict()
    except FileNotFoundError:
        return {"place": "nothing", "file": None, "delivered": False, "bounds": None, "sent": 0, "done_until": None}
