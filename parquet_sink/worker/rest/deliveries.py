"""`/connectors/{name}/history`, `parked`, `archive`: what a connector sent and set aside, from its worker's files.

Answers are bounded: what is long comes in pages, and `next` of one is `after` of the request for the next.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, Final

from parquet_sink.archive.archive import open_archive
from parquet_sink.archive.listing import ArchiveQuery, chosen, file_fields
from parquet_sink.archive.settings import URL
from parquet_sink.archive.waiting import WaitingFolder
from parquet_sink.config.report import quoted
from parquet_sink.errors import SinkError
from parquet_sink.files.durable_state import count_files
from parquet_sink.files.naming import connector_folder
from parquet_sink.history.locating import locate
from parquet_sink.history.records import UploadOutcome
from parquet_sink.history.sqlite import SqliteHistory, read_history
from parquet_sink.history.store import HistoryQuery
from parquet_sink.model.rejected import Stage
from parquet_sink.parked.listing import ParkedRecords, parked
from parquet_sink.parked.scan import Selection
from parquet_sink.settings.sink import SinkSettings, of_sink
from parquet_sink.worker.herder.protocol import Herder
from parquet_sink.worker.rest.call import LARGEST, ONE, Call, Parameter, Reply, RestError, as_rest_errors, endpoint
from parquet_sink.worker_config.rest.roles import Role

MOST_FILES: Final = 1_000
MOST_RECORDS: Final = 1_000
MOST_ARCHIVED: Final = 10_000
MOST_CONTENT_BYTES: Final = 8 << 20
"""Of keys, values and headers in one page: the record that passes it is its last."""
_MOST_DIGITS: Final = 19
_NO_FILES: Final = "Connector {} writes no Parquet files, so it has no history, no parked records and no archive."
_TOPIC: Final = Parameter("topic", "string", "Only of this topic.")
_PARTITION: Final = Parameter("partition", "integer", "Only of this topic-partition.")
_OFFSETS: Final = Parameter("offset", "string", "Only with this offset, N, or any of N-M.")
_STAGE: Final = Parameter("stage", "string", "Only records that failed there.", tuple(map(str, Stage)))
_SINCE: Final = Parameter("since", "integer", "Only uploads that ended then or later, epoch milliseconds.")
_UNTIL: Final = Parameter("until", "integer", "Only uploads that ended before then, epoch milliseconds.")
_OUTCOME: Final = Parameter("outcome", "array", "Only these; may be repeated.", tuple(map(str, UploadOutcome)))
_FILE: Final = Parameter("file", "array", "Only files of this name; may be repeated.")
_OLDEST: Final = Parameter("oldest", "boolean", "Whether the oldest come first, and not the latest.", default=False)
_AFTER: Final = Parameter("after", "string", "`next` of the page before.")
WORKER: Final = Parameter(
    "worker",
    "string",
    "Whose files are meant: a worker of the group; the one that has the connector, if it is not said.",
)
_CHOSEN: Final = (WORKER, _TOPIC, _PARTITION, _OFFSETS, _SINCE, _UNTIL, _OUTCOME, _FILE)
_RECORDS: Final = (WORKER, _TOPIC, _PARTITION, _OFFSETS, _STAGE)
_ERRORS: Final = {400: "Error", 404: "Error", 409: "Error", 500: "Error"}


def _limit(most: int, default: int) -> Parameter:
    return Parameter("limit", "integer", f"At most so many, and at most {most}.", default=default)


class Deliveries:
    """The endpoints, each a method that may be called from any thread."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    @endpoint(
        "GET",
        f"{ONE}/history",
        "Files that were sent, the latest first",
        {200: "Uploads", **_ERRORS},
        role=Role.VIEWER,
        query=(*_CHOSEN, _limit(MOST_FILES, 50), _OLDEST, _AFTER),
    )
    def history(self, call: Call) -> Reply:
        query, most = _history_query(call), call.number("limit", least=1, most=MOST_FILES) or 50
        with self._history(call) as (about, history):
            if history is None:
                return Reply({**about, "extent": None, "files": [], "next": None})
            try:
                page = history.page(query, most, call.query.get("after"), oldest=call.flag("oldest"))
            except ValueError:
                raise RestError(400, "Invalid [after]. It is no `next` of a page of this; leave it out.") from None
            files = [one.to_dict() for one in page.uploads]
            return Reply({**about, "extent": asdict(history.extent()), "files": files, "next": page.more})

    @endpoint(
        "GET",
        f"{ONE}/history/summary",
        "Figures of each hour",
        {200: "UploadHours", **_ERRORS},
        role=Role.VIEWER,
        query=(*_CHOSEN,),
    )
    def summary(self, call: Call) -> Reply:
        query = _history_query(call)
        with self._history(call) as (about, history):
            return Reply({**about, "hours": [] if history is None else list(map(asdict, history.summary(query)))})

    @endpoint(
        "GET",
        f"{ONE}/history/where",
        "Which file has an offset, and what became of it",
        {200: "Location", **_ERRORS},
        role=Role.VIEWER,
        query=(WORKER, _TOPIC, _PARTITION, Parameter("offset", "integer", "The offset. All three are needed.")),
    )
    def where(self, call: Call) -> Reply:
        topic, partition, offset = call.query.get("topic"), call.number("partition"), call.number("offset")
        if not topic or partition is None or offset is None:
            raise RestError(400, "Invalid [offset]. An offset is meant by topic, partition and offset; give all three.")
        with self._history(call) as (about, history):
            found = None if history is None else locate(history, topic, partition, offset).to_dict()
            return Reply({**about, "location": found})

    @contextmanager
    def _history(self, call: Call) -> Iterator[tuple[dict[str, Any], SqliteHistory | None]]:
        """What each answer begins with, and the history, None where there is none."""
        settings = sink_settings(self._herder, call)
        path = Path(settings.history_file)
        about = {"connector": settings.name, "path": str(path), "enabled": settings.history.enabled}
        with refusing():
            try:
                history = read_history(path)
            except FileNotFoundError:
                yield about, None
                return
            with closing(history):
                yield about, history

    @endpoint(
        "GET",
        f"{ONE}/parked",
        "Parked records, by reason",
        {200: "Parked", **_ERRORS},
        role=Role.VIEWER,
        query=_RECORDS,
        pool="cluster",
    )
    def parked(self, call: Call) -> Reply:
        settings, selection = sink_settings(self._herder, call), selection_of(call.query)
        with refusing():
            found = parked(settings.parked_folder, settings.parked.max_bytes, selection)
        return Reply({"connector": settings.name, **found.to_dict()})

    @endpoint(
        "GET",
        f"{ONE}/parked/records",
        "Parked records one by one, without key and value",
        {200: "ParkedRecords", **_ERRORS},
        role=Role.VIEWER,
        query=(*_RECORDS, _limit(MOST_RECORDS, 100), _AFTER),
        pool="cluster",
    )
    def records(self, call: Call) -> Reply:
        return self._records(call, content=False)

    @endpoint(
        "GET",
        f"{ONE}/parked/content",
        "Parked records one by one, with key, value and headers",
        {200: "ParkedRecords", **_ERRORS},
        role=Role.OPERATOR,
        query=(*_RECORDS, _limit(MOST_RECORDS, 100), _AFTER),
        pool="cluster",
    )
    def content(self, call: Call) -> Reply:
        return self._records(call, content=True)

    def _records(self, call: Call, *, content: bool) -> Reply:
        settings, selection = sink_settings(self._herder, call), selection_of(call.query)
        most, skip = call.number("limit", least=1, most=MOST_RECORDS) or 100, call.number("after") or 0
        reading = ParkedRecords(settings.parked_folder, selection, most, skip, content, MOST_CONTENT_BYTES)
        with refusing():
            found = list(reading)
        following = str(skip + len(found)) if reading.left else None
        skipped = list(map(list, reading.skipped))
        about = {"connector": settings.name, "folder": settings.parked_folder, "skipped": skipped}
        return Reply({**about, "records": found, "left": reading.left, "next": following})

    @endpoint(
        "GET",
        f"{ONE}/archive",
        "Files of the archive, in the order of their places",
        {200: "Archived", **_ERRORS},
        role=Role.VIEWER,
        query=(
            *(WORKER, _TOPIC, _PARTITION, Parameter("offset", "integer", "Only files with this offset.")),
            *(_limit(MOST_ARCHIVED, 1_000), _AFTER),
        ),
        pool="cluster",
    )
    def archive(self, call: Call) -> Reply:
        settings = sink_settings(self._herder, call)
        if settings.archive is None:
            raise RestError(400, f"Invalid [{URL}]. Connector {settings.name} has no archive; set it.")
        query = ArchiveQuery(
            call.query.get("topic"), call.number("partition"), call.number("offset"), call.query.get("after")
        )
        most = call.number("limit", least=1, most=MOST_ARCHIVED) or 1_000
        with refusing(), closing(open_archive(settings.archive)) as archive:
            found = list(islice(chosen(archive, query), most + 1))
        files = [file_fields(*one) for one in found[:most]]
        following = files[-1]["path"] if len(found) > most else None
        waiting = [one.file.where for one in WaitingFolder(settings.archive.waiting).files()]
        about = {"connector": settings.name, "archive": archive.name, "waiting": waiting}
        return Reply({**about, "files": files, "next": following})

    @endpoint(
        "GET",
        f"{ONE}/workers",
        "Workers that may have files of it, the one that runs it first",
        {200: "Holders", 404: "Error"},
        role=Role.VIEWER,
    )
    def workers(self, call: Call) -> Reply:
        with as_rest_errors():
            return Reply(
                {"connector": call.connector, "workers": list(map(asdict, self._herder.find_holders(call.connector)))}
            )

    @endpoint(
        "GET",
        f"{ONE}/folder",
        "What its folder at a worker has",
        {200: "Folder", **_ERRORS},
        role=Role.VIEWER,
        query=(WORKER,),
    )
    def folder(self, call: Call) -> Reply:
        settings = sink_settings(self._herder, call)
        folder = connector_folder(settings.tmp_dir, settings.name)
        return Reply({"connector": settings.name, "folder": folder, "files": count_files(folder)})


def sink_settings(herder: Herder, call: Call) -> SinkSettings:
    """Return the settings of a connector that writes files, at the worker that is meant. Raise RestError, Elsewhere."""
    with as_rest_errors():
        settings = herder.settings(call.connector, call.query.get("worker"))
    if not of_sink(settings):
        raise RestError(400, _NO_FILES.format(call.connector))
    return settings


@contextmanager
def refusing() -> Iterator[None]:
    """Within, what cannot be read becomes an answer."""
    try:
        yield
    except SinkError as error:
        raise RestError(500, str(error)) from None


def _history_query(call: Call) -> HistoryQuery:
    first, last = offsets_of(call.query.get("offset")) or (None, None)
    known = set(map(str, UploadOutcome))
    wrong = next((text for text in call.query.getlist("outcome") if text not in known), None)
    if wrong is not None:
        raise RestError(400, f"Invalid [outcome]. {quoted(wrong)} is none of {', '.join(sorted(known))}.")
    return HistoryQuery(
        topic=call.query.get("topic"),
        partition=call.number("partition"),
        first_offset=first,
        last_offset=last,
        since_ms=call.number("since"),
        until_ms=call.number("until"),
        outcomes=frozenset(map(UploadOutcome, call.query.getlist("outcome"))),
        file_names=frozenset(call.query.getlist("file")),
    )


def selection_of(given: Mapping[str, str]) -> Selection:
    """The parked records that are meant. Raises RestError."""
    partition, stage = given.get("partition"), given.get("stage")
    if stage is not None and stage not in set(map(str, Stage)):
        raise RestError(400, f"Invalid [stage]. {quoted(stage)} is none of {', '.join(map(str, Stage))}.")
    if partition is not None and not _number(partition):
        raise RestError(400, f"Invalid [partition]. {quoted(partition)} is not the number of a topic-partition.")
    return Selection(
        topic=given.get("topic"),
        partition=None if partition is None else int(partition),
        offsets=offsets_of(given.get("offset")),
        stage=stage,
    )


def offsets_of(text: str | None) -> tuple[int, int] | None:
    """`N` or `N-M`. Raises RestError."""
    if text is None:
        return None
    first, dash, last = text.partition("-")
    if not (_number(first) and (not dash or _number(last))):
        raise RestError(400, f"Invalid [offset]. {quoted(text)} is neither an offset, 17, nor offsets from-to, 17-30.")
    return int(first), int(last) if dash else int(first)


def _number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS and int(text) <= LARGEST
