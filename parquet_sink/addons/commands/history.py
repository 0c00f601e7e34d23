"""`parquet-sink history`: what connectors sent, when, and where a record is; which histories that is about."""

import argparse
import json
import os
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import unquote

from parquet_sink.cli.beside import check_beside, folders_of, given_settings, tmp_dir_beside
from parquet_sink.cli.options import HELP, add_files, timestamp
from parquet_sink.cli.worker_api.connector_options import add_connectors, of_worker
from parquet_sink.config.report import counted, printable
from parquet_sink.errors import InvalidConfiguration, SinkError
from parquet_sink.files.naming import HISTORY_FILE, history_file
from parquet_sink.history.locating import Location, Place, locate
from parquet_sink.history.records import Origin, UploadOutcome, UploadRecord
from parquet_sink.history.sqlite import read_history
from parquet_sink.history.store import HistoryExtent, HistoryQuery, HourSummary, Percentiles
from parquet_sink.model.ranges import Attempt
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.validate.preflight import inspect

if TYPE_CHECKING:
    from parquet_sink.cli.worker_api.remote import RemoteConnector

_HEADS: Final = (
    *("hour (UTC)", "files", "rows", "MB", "fresh p50", "p95", "p99", "max", "upload p50", "p95", "p99", "max"),
    *("attempts", "why files ended", "not accepted"),
)
_TEXTS: Final = frozenset({0, 13, 14})
"""Columns that are no numbers."""
MOST_SHOWN: Final = 50
EXAMPLE: Final = """\
examples:
  parquet-sink history --where orders:3:1200 orders.properties       # where is offset 1200 of topic-partition 3?
  parquet-sink history --summary --since 1d orders.properties        # each hour of the last day
  parquet-sink history --outcome refused --attempts orders.properties
  parquet-sink history --tmp-dir /var/lib/sink                       # of all connectors that keep their files there
  parquet-sink history --worker worker.properties --summary          # of all connectors of that worker

It may be asked while the connector runs; neither Kafka nor the target is asked.
Exit status: 0 it was printed, or the offset of --where is delivered by each connector (in a file, diverted, or \
without a row); 1 it is not, or a history cannot be read; 2 wrong files or options.
"""
Where = tuple[str, int, int]


class History(Protocol):
    """A history on this machine, or where a worker is."""

    @property
    def path(self) -> Path: ...
    def files(self, query: HistoryQuery) -> Iterator[UploadRecord]: ...
    def summary(self, query: HistoryQuery) -> list[HourSummary]: ...
    def extent(self) -> HistoryExtent: ...


@dataclass(frozen=True)
class ConnectorHistory:
    """Where one connector's history is, or would be. enabled: whether it keeps one."""

    connector: str
    path: Path
    enabled: bool = True


def histories(args: Namespace) -> list[ConnectorHistory]:
    """Those that `files` name.

    Without files all that are below `tmp_dir`, else those of the worker file's connectors, else all that are below the
    system's temporary folder. Raises InvalidConfiguration where files are wrong, or nothing is found without them.
    """
    if not args.files:
        if args.tmp_dir is not None and args.worker is not None:
            raise InvalidConfiguration([f"Invalid [--tmp-dir]. {args.tmp_dir!r} and --worker are given; remove one."])
        if args.worker is not None:
            return _below(*folders_of(args.worker))
        return _below(Path(args.tmp_dir or tempfile.gettempdir()))
    if args.tmp_dir is not None:
        raise InvalidConfiguration(
            [f"Invalid [--tmp-dir]. {args.tmp_dir!r} does not go with connector files, which name theirs; remove one."]
        )
    if given := given_settings(args):
        return list(map(_of_settings, given))
    checked = check_beside(args.files, args.worker, bootstrap_servers=args.bootstrap_servers)
    folders = [tmp_dir_beside(one, checked.worker.worker) for one in checked.connectors]
    whole = tuple(one for one, folder in zip(checked.connectors, folders, strict=True) if folder is None)
    settings = iter(inspect(replace(checked, connectors=whole)).require())
    return [
        _of_settings(next(settings))
        if folder is None
        else _without_secrets(one.resolved.values["name"].strip(), folder)
        for one, folder in zip(checked.connectors, folders, strict=True)
    ]


def _of_settings(one: SinkSettings) -> ConnectorHistory:
    return ConnectorHistory(one.name, Path(one.history_file), one.history.enabled)


def _without_secrets(connector: str, tmp_dir: str) -> ConnectorHistory:
    return ConnectorHistory(connector, Path(history_file(tmp_dir, connector)))


def _below(*folders: Path) -> list[ConnectorHistory]:
    """Of connectors whose `tmp.dir` is one of these. A folder that is called by a shortened name keeps that."""
    found = [path for folder in folders for path in sorted(folder.glob(f"*/{HISTORY_FILE}"))]
    if not found:
        problem = f"None is given, and {str(folders[0])!r} has no connector's history"
        cure = "name connector files, or their connect.ems.tmp.dir with --tmp-dir"
        raise InvalidConfiguration([f"Invalid [connector.properties]. {problem}; {cure}."])
    return [ConnectorHistory(unquote(path.parent.name, errors="surrogateescape"), path) for path in found]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The files as for `run`, or none; which uploads are meant, and how they are printed."""
    add_files(parser, least="*")
    add_connectors(parser)
    parser.add_argument(
        "--tmp-dir",
        metavar="FOLDER",
        help="without connector files: all connectors whose connect.ems.tmp.dir this is (default: where the worker of "
        "--worker has them, else the system's temporary folder)",
    )
    parser.epilog = EXAMPLE
    parser.add_argument("--topic", help="only files of this topic")
    parser.add_argument("--partition", type=int, metavar="N", help="only files of this topic-partition")
    parser.add_argument("--offset", type=_offsets, metavar="N[-M]", help="only files with offset N, or any from N to M")
    parser.add_argument(
        "--since", type=timestamp, metavar="TIME", help=f"only uploads that ended then or later: {HELP}"
    )
    parser.add_argument("--until", type=timestamp, metavar="TIME", help="only uploads that ended before then")
    outcomes = [str(one) for one in UploadOutcome]
    parser.add_argument(
        "--outcome",
        action="append",
        choices=outcomes,
        metavar="OUTCOME",
        help=f"only these uploads: {', '.join(outcomes)}; may be repeated",
    )
    parser.add_argument("--file", action="append", metavar="NAME", help="only files of this name; may be repeated")
    parser.add_argument("--where", type=_where, metavar="TOPIC:N:OFFSET", help="say in one line where this offset is")
    parser.add_argument(
        "--summary",
        action="store_true",
        help="for each hour in place of each file: files, rows, bytes, percentiles of freshness and upload, why files "
        "ended, how many were not accepted",
    )
    parser.add_argument("--attempts", action="store_true", help="with each attempt at a file, in a line of its own")
    parser.add_argument("--limit", type=int, metavar="N", help=f"the latest N files (default {MOST_SHOWN}; 0: all)")
    parser.add_argument(
        "--json", action="store_true", help="one JSON object a line; all files, unless --limit is given"
    )


def run(args: argparse.Namespace) -> int:
    """0 when it was printed; with --where only if it is delivered, 1 otherwise; 1 for a history that cannot be read."""
    _check_options(args)
    if of_worker(args, needed=False):
        return _run_of_worker(args)
    done = [_run_one(args, one) for one in histories(args)]
    return os.EX_OK if all(done) else 1


def _run_of_worker(args: argparse.Namespace) -> int:
    from parquet_sink.cli.worker_api.api import open_worker
    from parquet_sink.cli.worker_api.remote import each_connector, each_holder, remote_history

    def print_one(connector: "RemoteConnector") -> bool:
        history = remote_history(connector)
        if history.kept is None:
            return _print_none(args, ConnectorHistory(connector.name, history.path, history.enabled), "the worker's")
        return _print(args, connector.name, history, history.locate)

    def print_each(connector: "RemoteConnector") -> bool:
        return each_holder(args, connector, print_one)

    with open_worker(args) as api:
        return each_connector(args, api, print_each if args.where is None else partial(_print_where, args))


def _print_where(args: argparse.Namespace, connector: "RemoteConnector") -> bool:
    """Print where an offset is, by the worker that delivered it, if one did. Return whether one did."""
    from parquet_sink.cli.worker_api.remote import remote_history, try_one

    locations: list[Location] = []
    none: list[ConnectorHistory] = []

    def find(holder: "RemoteConnector") -> bool:
        history = remote_history(holder)
        if history.kept is None:
            none.append(ConnectorHistory(holder.name, history.path, history.enabled))
        else:
            locations.append(history.locate(*args.where))
        return bool(locations) and locations[-1].delivered

    if not any(try_one(holder, find) for holder in connector.find_holders()) and not locations:
        return bool(none) and _print_none(args, none[0], "the worker's")
    location = next((one for one in locations if one.delivered), locations[0])
    print(location_line(connector.name, location, as_json=args.json))
    return location.delivered


def _run_one(args: argparse.Namespace, one: ConnectorHistory) -> bool:
    """Whether all went well. One connector's trouble does not keep others from their turn."""
    try:
        with closing(read_history(one.path)) as history:
            return _print(args, one.connector, history, partial(locate, history))
    except FileNotFoundError:
        return _print_none(args, one, "this")
    except SinkError as error:
        print(f"parquet-sink: connector {one.connector}: {error}{_cure(error)}", file=sys.stderr)
        return False


def _print(
    args: argparse.Namespace, connector: str, history: History, find: Callable[[str, int, int], Location]
) -> bool:
    if args.where is not None:
        location = find(*args.where)
        print(location_line(connector, location, as_json=args.json))
        return location.delivered
    query = _query(args)
    lines = (
        summary_lines(connector, history.summary(query), as_json=args.json)
        if args.summary
        else listing(connector, history, query, as_json=args.json, attempts=args.attempts)
    )
    for line in lines:
        print(line)
    return True


def _print_none(args: argparse.Namespace, one: ConnectorHistory, whose: str) -> bool:
    off = "" if one.enabled else "; connect.ems.history.enable is false"
    sent = f"it has sent nothing from {whose} machine{off}; rows of DataFrames leave no history"
    text = f"connector {one.connector}: no history in {one.path}: {sent}"
    print(text, file=sys.stderr)
    return args.where is None


def _query(args: argparse.Namespace) -> HistoryQuery:
    first, last = args.offset or (None, None)
    shown = args.limit if args.limit is not None else 0 if args.json or args.summary else MOST_SHOWN
    return HistoryQuery(
        topic=args.topic,
        partition=args.partition,
        first_offset=first,
        last_offset=last,
        since_ms=args.since,
        until_ms=args.until,
        outcomes=frozenset(map(UploadOutcome, args.outcome or ())),
        file_names=frozenset(args.file or ()),
        newest=shown or None,
    )


def _check_options(args: argparse.Namespace) -> None:
    wrong = []
    if args.limit is not None and args.limit < 0:
        wrong.append(f"Invalid [--limit]. {args.limit} is less than 0; give how many files to show, 0 for all.")
    if args.partition is not None and args.partition < 0:
        wrong.append(f"Invalid [--partition]. {args.partition} is less than 0; give a topic-partition's number.")
    if None not in (args.since, args.until) and args.since >= args.until:
        wrong.append("Invalid [--since]. It is not before --until, so nothing lies between them; swap them.")
    if args.offset is not None and args.offset[0] > args.offset[1]:
        wrong.append(f"Invalid [--offset]. {args.offset[0]} is more than {args.offset[1]}; swap them.")
    if args.summary and args.attempts:
        wrong.append("Invalid [--attempts]. A summary has no single files; remove it, or --summary.")
    choosing = ("topic", "partition", "offset", "since", "until", "outcome", "file", "limit", "summary", "attempts")
    if args.where is not None:
        given = [name for name in choosing if getattr(args, name) not in (None, False)]
        wrong += [f"Invalid [--{name}]. --where says all that is asked; remove it, or --where." for name in given]
    if wrong:
        raise InvalidConfiguration(wrong)


def _cure(error: SinkError) -> str:
    if not getattr(error, "damaged", False):
        return ""
    return " The connector creates a damaged one again at its next start or upload; to keep it, copy it first."


def _offsets(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    if not (_number(first) and (not dash or _number(last))):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an offset, such as 17, nor a range of offsets, such as 17-30"
        )
    return int(first), int(last) if dash else int(first)


def _where(text: str) -> Where:
    topic, _, rest = text.partition(":")
    partition, _, offset = rest.partition(":")
    if not (topic and _number(partition) and _number(offset)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a topic, topic-partition and offset such as orders:3:1200")
    return topic, int(partition), int(offset)


def _number(text: str) -> bool:
    """Whether SQLite can look for it: a whole number of at most 63 bits."""
    return text.isascii() and text.isdigit() and int(text) < 1 << 63


def listing(connector: str, history: History, query: HistoryQuery, *, as_json: bool, attempts: bool) -> Iterator[str]:
    """Each upload in order of time. attempts: each with its attempts. Raises HistoryUnusable."""
    if as_json:
        for one in history.files(query):
            yield json.dumps({"connector": connector, **one.to_dict()}, ensure_ascii=False)
        return
    yield _heading(connector, history)
    shown = 0
    for one in history.files(query):
        shown += 1
        yield f"  {file_line(one)}"
        if attempts:
            yield from (f"    {attempt_line(made)}" for made in one.tried)
    if query.newest is not None and shown == query.newest:
        yield f"  these are the latest {shown:,} that match; --limit 0 shows all"
    elif not shown and history.extent().files:
        yield "  none of them matches"


def _heading(connector: str, history: History) -> str:
    extent = history.extent()
    if extent.first_ms is None or extent.last_ms is None:
        return f"connector {connector}: no upload in {history.path}"
    return (
        f"connector {connector}: {counted(extent.files, 'upload')} from {instant(extent.first_ms)} to "
        f"{instant(extent.last_ms)} UTC in {history.path} ({extent.size_bytes:,} bytes)"
    )


def file_line(one: UploadRecord) -> str:
    """One upload in one line."""
    fresh = f", oldest record {one.freshness_ms / 1000:.1f} s before" if one.freshness_ms is not None else ""
    parts = (
        f"{instant(one.at_ms)} {one.outcome} {one.file_name}: {one.topic} {one.partition}, offsets {one.first_offset} "
        f"to {one.last_offset}, {counted(one.rows, 'row')}, {one.size_bytes:,} bytes, by {one.reason}{fresh}, "
        f"upload {one.upload_s:.2f} s, {counted(one.attempts, 'attempt')}{_status(one)}"
    )
    table = f", table {one.table}" if one.table else ""
    answer = f", id {one.answer_id}" if one.answer_id else ""
    repeat = f", repeat {one.repeat}" if one.repeat else ""
    origin = "" if one.origin is Origin.RUN else f", by {one.origin}"
    digest = f", sha256 {one.digest[:12]}" if one.digest else ""
    archive = "" if one.archive is None else ", archived" if one.archive.cause is None else ", not archived"
    why = one.cause or (one.archive and one.archive.cause)
    return printable(f"{parts}{table}{answer}{digest}{repeat}{origin}{archive}{f': {why}' if why else ''}")


def attempt_line(one: Attempt) -> str:
    """One attempt in one line."""
    status = "no answer" if one.status is None else f"status {one.status}"
    cause = f": {one.cause}" if one.cause else ""
    return printable(f"{instant(one.at_ms)} {one.verdict} after {one.seconds:.2f} s, {status}{cause}")


def _status(one: UploadRecord) -> str:
    return "" if one.status is None else f" (status {one.status})"


def location_line(connector: str, found: Location, *, as_json: bool) -> str:
    """Where an offset is, in one line."""
    if as_json:
        return json.dumps({"connector": connector, **found.to_dict()}, ensure_ascii=False)
    about = f"connector {connector}: topic {found.topic}, topic-partition {found.partition}, offset {found.offset}"
    return printable(f"{about}: {_where_text(found)}")


def _where_text(found: Location) -> str:
    if found.file is not None:
        return _within(found, found.file)
    low, high = found.bounds or (0, 0)
    return {
        Place.NO_ROW: "delivered, and no file has it: it is not a record (a transaction's marker, compacted), or one "
        "without a row (a tombstone, dropped, diverted)",
        Place.UNDER_WAY: f"not delivered yet: its range is under way, and done with up to offset {found.done_until}",
        Place.LATER: f"not delivered yet: the history ends with offset {high}",
        Place.EARLIER: f"not in the history, which begins with offset {low}",
        Place.GAP: f"not in the history, which has offsets {low} to {high}, but not this one: the group's offsets were "
        "set, records were lost, or the history was off",
        Place.NOTHING: "not in the history, which has nothing of this topic-partition",
        Place.FILE: "",
    }[found.place]


def _within(found: Location, file: UploadRecord) -> str:
    what = {
        UploadOutcome.ACCEPTED: "accepted",
        UploadOutcome.WAITING: "not accepted yet, last tried",
        UploadOutcome.PASSED_OVER: "refused, its records diverted",
    }.get(file.outcome, f"not accepted ({file.outcome})")
    former = " of an earlier topic of that name" if found.former else ""
    sent = f", sent {found.sent} times" if found.sent > 1 else ""
    answer = f", id {file.answer_id}" if file.answer_id else ""
    cause = f": {file.cause}" if file.cause else ""
    place = f"table {file.table} at {file.target}" if file.table else f"at {file.target}"
    return (
        f"{what} {instant(file.at_ms)} UTC in file {file.file_name}{former} (offsets {file.first_offset} to "
        f"{file.last_offset}, {counted(file.rows, 'row')}, {place}{answer}, "
        f"{counted(file.attempts, 'attempt')}{_status(file)}{sent}){cause}"
    )


def instant(at_ms: int) -> str:
    """Date and time in UTC, to the millisecond."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}.{at_ms % 1000:03d}"


def summary_lines(connector: str, hours: Sequence[HourSummary], *, as_json: bool) -> Iterator[str]:
    """A line for each hour; in words with a heading, seconds for ages and uploads."""
    if as_json:
        for one in hours:
            begun = {"connector": connector, "hour": _hour(one.hour_ms).isoformat()}
            yield json.dumps({**begun, **asdict(one)}, ensure_ascii=False)
        return
    if not hours:
        yield f"connector {connector}: no upload matches"
        return
    files, rows = sum(one.files for one in hours), sum(one.rows for one in hours)
    size, repeated = sum(one.size_bytes for one in hours), sum(one.repeated for one in hours)
    again = f", {repeated:,} of them repeated" if repeated else ""
    yield (
        f"connector {connector}: {counted(files, 'file')} accepted{again}, {rows:,} rows, {size:,} "
        f"bytes in {counted(len(hours), 'hour')} (seconds: age of a file's oldest record, upload)"
    )
    yield from _table([_HEADS, *map(_cells, hours)])


def _table(cells: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = (
            text.ljust(width) if index in _TEXTS else text.rjust(width)
            for index, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield ("  " + "  ".join(padded)).rstrip()


def _cells(one: HourSummary) -> tuple[str, ...]:
    counts = (f"{_hour(one.hour_ms):%Y-%m-%d %H:00}", f"{one.files:,}", f"{one.rows:,}", f"{one.size_bytes / 1e6:,.1f}")
    spread = (*_spread(one.freshness_ms, 1000), *_spread(one.upload_s, 1))
    return (*counts, *spread, f"{one.attempts:,}", _counts(one.reasons), _counts(one.others))


def _spread(values: Percentiles | None, per_second: int) -> tuple[str, ...]:
    if values is None:
        return ("-",) * 4
    return tuple(f"{one / per_second:.2f}" for one in (values.p50, values.p95, values.p99, values.most))


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items(), key=lambda one: -one[1])) or "-"


def _hour(hour_ms: int) -> datetime:
    return datetime.fromtimestamp(hour_ms / 1000, UTC)
