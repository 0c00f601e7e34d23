"""What a worker tells of one of its connectors, in the form that its files here have."""

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from parquet_sink.cli.worker_api.api import WorkerApi, understanding
from parquet_sink.errors import SetupError, SinkError, WorkerRefused
from parquet_sink.history.locating import Location
from parquet_sink.history.records import UploadRecord
from parquet_sink.history.store import ALL, HistoryExtent, HistoryQuery, HourSummary
from parquet_sink.parked.listing import Parked
from parquet_sink.parked.scan import Selection

_NOT_OURS: Final = "HTTP 404 Not Found"
_PAGE: Final = 1_000
_PAGE_OF_ARCHIVE: Final = 10_000


class RemoteConnector:
    """One connector of a worker. Methods raise what `WorkerApi` raises.

    worker_id: whose files are meant; None for the worker that has the connector.
    """

    def __init__(self, api: WorkerApi, name: str, worker_id: str | None = None) -> None:
        self.api, self.name, self.worker_id = api, name, worker_id

    def find_holders(self) -> list["RemoteConnector"]:
        """Return the connector at each worker that may have files of it; itself alone where the worker is alone."""
        try:
            found = self.api.get("connectors", self.name, "workers")["workers"]
        except WorkerRefused as error:
            if error.status != 404 or error.message != _NOT_OURS:
                raise
            return [self]  # it is of an older version
        if len(found) == 1 and found[0]["answers"]:
            return [self]
        return [RemoteConnector(self.api, self.name, holder["worker_id"]) for holder in found] or [self]

    def get(self, *path: str, **query: object) -> Any:
        """What the worker tells of it at a path below it."""
        return self.ask("GET", path, query)

    def ask(
        self, method: str, path: Sequence[str], query: Mapping[str, object] | None = None, content: object = None
    ) -> Any:
        """As `WorkerApi.ask`, below the connector. A value of the query that is None is left out."""
        named = {**(query or {}), "worker": self.worker_id}
        asked = {name: _text(value) for name, value in named.items() if value is not None}
        try:
            return self.api.ask(method, ("connectors", self.name, *path), asked, content)
        except WorkerRefused as error:
            if error.status == 404 and error.message == _NOT_OURS:
                raise WorkerRefused(
                    f"The worker at {self.api.url} does not tell that: it is one of Kafka Connect's, or of an older "
                    "version; ask with the connector file on its machine.",
                    404,
                ) from None
            raise

    def pages(self, *path: str, **query: object) -> Iterator[Mapping[str, Any]]:
        """An answer and those that follow it."""
        after: str | None = None
        while True:
            page = self.get(*path, **query, after=after)
            yield page
            after = page["next"]
            if after is None:
                return


def _text(value: object) -> str | Sequence[str]:
    if isinstance(value, bool):
        return str(value).lower()
    return [str(one) for one in value] if isinstance(value, (tuple, list)) else str(value)


@dataclass(frozen=True)
class RemoteHistory:
    """The history of a connector where its worker is, as `history.sqlite` has one that is here."""

    connector: RemoteConnector
    path: Path
    enabled: bool
    kept: HistoryExtent | None

    def extent(self) -> HistoryExtent:
        """How much is kept."""
        assert self.kept is not None
        return self.kept

    def files(self, query: HistoryQuery = ALL) -> Iterator[UploadRecord]:
        """The uploads that are meant, in order of time."""
        asked = _history_query(query)
        if query.newest is None:
            for page in self.connector.pages("history", **asked, limit=_PAGE, oldest=True):
                yield from map(UploadRecord.from_dict, page["files"])
            return
        found: list[UploadRecord] = []
        for page in self.connector.pages("history", **asked, limit=min(query.newest, _PAGE)):
            found += map(UploadRecord.from_dict, page["files"])
            if len(found) >= query.newest:
                break
        yield from reversed(found[: query.newest])

    def summary(self, query: HistoryQuery = ALL) -> list[HourSummary]:
        """Figures of each hour."""
        return [
            HourSummary.from_dict(one)
            for one in self.connector.get("history", "summary", **_history_query(query))["hours"]
        ]

    def locate(self, topic: str, partition: int, offset: int) -> Location:
        """Where an offset is."""
        found = self.connector.get("history", "where", topic=topic, partition=partition, offset=offset)
        return Location.from_dict(found["location"])


def remote_history(connector: RemoteConnector) -> RemoteHistory:
    """Whose `kept` is None where there is none."""
    found = connector.get("history", limit=1)
    extent = None if found["extent"] is None else HistoryExtent(**found["extent"])
    return RemoteHistory(connector, Path(found["path"]), found["enabled"], extent)


def _history_query(query: HistoryQuery) -> dict[str, object]:
    return {
        "topic": query.topic,
        "partition": query.partition,
        "offset": None if query.first_offset is None else f"{query.first_offset}-{query.last_offset}",
        "since": query.since_ms,
        "until": query.until_ms,
        "outcome": sorted(map(str, query.outcomes)) or None,
        "file": sorted(query.file_names) or None,
    }


def remote_parked(connector: RemoteConnector, selection: Selection) -> Parked:
    """By topic, stage and reason."""
    return Parked.from_dict(connector.get("parked", **parked_query(selection)))


def parked_query(selection: Selection) -> dict[str, object]:
    """As endpoints have it."""
    span = selection.offsets
    return {
        "topic": selection.topic,
        "partition": selection.partition,
        "offset": None if span is None else f"{span[0]}-{span[1]}",
        "stage": selection.stage,
    }


@dataclass
class RemoteRecords:
    """Parked records one by one; as `parked.listing.ParkedRecords`. most: None for all."""

    connector: RemoteConnector
    selection: Selection
    most: int | None
    content: bool
    left: int = 0
    skipped: tuple[tuple[str, str], ...] = field(default=())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        room = self.most
        limit = _PAGE if room is None else min(room, _PAGE)
        what = "content" if self.content else "records"
        for page in self.connector.pages("parked", what, **parked_query(self.selection), limit=limit):
            now = page["records"] if room is None else page["records"][:room]
            yield from now
            self.skipped = tuple((path, why) for path, why in page["skipped"])
            self.left = page["left"] + len(page["records"]) - len(now)
            room = None if room is None else room - len(now)
            if room == 0:
                return


def archive_pages(connector: RemoteConnector, args: Namespace) -> Iterator[Mapping[str, Any]]:
    """Answers with the files that options mean."""
    chosen = {"topic": args.topic, "partition": args.partition, "offset": args.offset}
    return connector.pages("archive", **chosen, limit=_PAGE_OF_ARCHIVE)


def each_connector(args: Namespace, api: WorkerApi, do: Callable[[RemoteConnector], bool]) -> int:
    """The exit status. One connector's trouble does not keep others from their turn, unless no worker answers."""
    done = [try_one(RemoteConnector(api, name), do) for name in dict.fromkeys(args.of_worker)]
    return os.EX_OK if all(done) else 1


def each_holder(args: Namespace, connector: RemoteConnector, do: Callable[[RemoteConnector], bool]) -> bool:
    """Do it at each worker that may have files of a connector. Return True if each of them answered, and did it."""
    holders, done = connector.find_holders(), []
    for holder in holders:
        if len(holders) > 1 and not getattr(args, "json", False):
            print(f"worker {holder.worker_id}:")
        done.append(try_one(holder, do))
    return all(done)


def try_one(connector: RemoteConnector, do: Callable[[RemoteConnector], bool]) -> bool:
    """Return what it came to, False where that is an error, which is printed. Raise SetupError."""
    try:
        with understanding(connector.api):
            return do(connector)
    except SetupError:
        raise
    except SinkError as error:
        print(f"parquet-sink: connector {connector.name}: {error}", file=sys.stderr)
        return False
