"""`parquet-sink history`: what connectors sent, when, and where a record is; which histories that is about."""

import argparse
import logging
import os
import sys
import tempfile
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from parquet_sink.cli.beside import check_beside
from parquet_sink.cli.options import HELP, add_files, timestamp
from parquet_sink.errors import InvalidConfiguration, SinkError
from parquet_sink.files.naming import HISTORY_FILE
from parquet_sink.history.records import UploadOutcome
from parquet_sink.validate.preflight import inspect

if TYPE_CHECKING:
    from parquet_sink.history.sqlite.store import SqliteHistory
    from parquet_sink.history.store import HistoryQuery

MOST_SHOWN: Final = 50
EXAMPLE: Final = """\
examples:
  parquet-sink history orders.properties                             the latest uploads
  parquet-sink history --tmp-dir /var/lib/sink                       of all connectors that keep their files there
  parquet-sink history --where orders:3:1200 orders.properties       where is offset 1200 of topic-partition 3?
  parquet-sink history --summary --since 1d orders.properties        each hour of the last day
  parquet-sink history --outcome refused --attempts orders.properties
"""
Where = tuple[str, int, int]
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ConnectorHistory:
    """Where one connector's history is, or would be. enabled: whether it keeps one."""

    connector: str
    path: Path
    enabled: bool = True


def histories(args: Namespace) -> list[ConnectorHistory]:
    """Those that `files` name; without files all that are below `tmp_dir`, else below the system's temporary folder.

    Raises InvalidConfiguration where files are wrong, or nothing is found without them.
    """
    if not args.files:
        return _below(Path(args.tmp_dir or tempfile.gettempdir()))
    if args.tmp_dir is not None:
        raise InvalidConfiguration(
            [f"Invalid [--tmp-dir]. {args.tmp_dir!r} does not go with connector files, which name theirs; remove one."]
        )
    checked = inspect(check_beside(args.files, args.worker, bootstrap_servers=args.bootstrap_servers))
    for warning in checked.warnings:
        log.debug("%s", warning)
    return [ConnectorHistory(one.name, Path(one.history_file), one.history.enabled) for one in checked.require()]


def _below(folder: Path) -> list[ConnectorHistory]:
    """Of connectors whose `tmp.dir` is this folder. A folder that is called by a shortened name keeps that."""
    found = sorted(folder.glob(f"*/{HISTORY_FILE}"))
    if not found:
        problem = f"None is given, and {str(folder)!r} has no connector's history"
        cure = "name connector files, or their connect.ems.tmp.dir with --tmp-dir"
        raise InvalidConfiguration([f"Invalid [connector.properties]. {problem}; {cure}."])
    return [ConnectorHistory(unquote(path.parent.name, errors="surrogateescape"), path) for path in found]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The files as for `run`, or none; which uploads are meant, and how they are told."""
    add_files(parser, least="*")
    parser.add_argument(
        "--tmp-dir",
        metavar="FOLDER",
        help="without connector files: all connectors whose connect.ems.tmp.dir this is (default: the system's "
        "temporary folder)",
    )
    parser.formatter_class, parser.epilog = argparse.RawDescriptionHelpFormatter, EXAMPLE
    parser.add_argument("--topic", help="only files of this topic")
    parser.add_argument("--partition", type=int, metavar="N", help="only files of this topic-partition")
    parser.add_argument("--offset", type=_offsets, metavar="N[-M]", help="only files with offset N, or any from N to M")
    parser.add_argument(
        "--since", type=timestamp, metavar="TIME", help=f"only uploads that ended then or later: {HELP}"
    )
    parser.add_argument("--until", type=timestamp, metavar="TIME", help="only uploads that ended before then")
    outcomes = [str(one) for one in UploadOutcome]
    parser.add_argument("--outcome", action="append", choices=outcomes, help="only these uploads; may be repeated")
    parser.add_argument("--file", action="append", metavar="NAME", help="only files of this name; may be repeated")
    parser.add_argument("--where", type=_where, metavar="TOPIC:N:OFFSET", help="say in one line where this offset is")
    parser.add_argument("--summary", action="store_true", help="figures of each hour in place of each file")
    parser.add_argument("--attempts", action="store_true", help="with each attempt at a file, in a line of its own")
    parser.add_argument("--limit", type=int, metavar="N", help=f"the latest N files (default {MOST_SHOWN}; 0: all)")
    parser.add_argument(
        "--json", action="store_true", help="one JSON object a line; all files, unless --limit is given"
    )


def run(args: argparse.Namespace) -> int:
    """0 when it was told; with --where only if it is delivered, 1 otherwise; 1 for a history that cannot be read."""
    _check_options(args)
    done = [_run_one(args, one) for one in histories(args)]
    return os.EX_OK if all(done) else 1


def _run_one(args: argparse.Namespace, one: ConnectorHistory) -> bool:
    """Whether all went well. One connector's trouble does not keep others from their turn."""
    from parquet_sink.history.sqlite.store import read_history  # after the files were found right

    try:
        try:
            history = read_history(one.path)
        except FileNotFoundError:
            return _tell_of_none(args, one)
        try:
            return _tell(args, one.connector, history)
        finally:
            history.close()
    except SinkError as error:
        print(f"parquet-sink: connector {one.connector}: {error}{_cure(error)}", file=sys.stderr)
        return False


def _tell(args: argparse.Namespace, connector: str, history: "SqliteHistory") -> bool:
    from parquet_sink.cli import history_reports
    from parquet_sink.cli.history_reports import summary_lines
    from parquet_sink.history.locating import locate

    if args.where is not None:
        location = locate(history, *args.where)
        print(history_reports.location_line(connector, location, as_json=args.json))
        return location.delivered
    query = _query(args)
    lines = (
        summary_lines(connector, history.summary(query), as_json=args.json)
        if args.summary
        else history_reports.listing(connector, history, query, as_json=args.json, attempts=args.attempts)
    )
    for line in lines:
        print(line)
    return True


def _tell_of_none(args: argparse.Namespace, one: ConnectorHistory) -> bool:
    off = "" if one.enabled else "; connect.ems.history.enable is false"
    text = f"connector {one.connector}: no history in {one.path}: it has sent nothing from this machine{off}"
    print(text, file=sys.stderr)
    return args.where is None


def _query(args: argparse.Namespace) -> "HistoryQuery":
    from parquet_sink.history.store import HistoryQuery

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
    return " The connector makes a damaged one anew at its next start or upload; to keep it, copy it away before."


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
        raise argparse.ArgumentTypeError(f"{text!r} is no topic, topic-partition and offset, such as orders:3:1200")
    return topic, int(partition), int(offset)


def _number(text: str) -> bool:
    """Whether SQLite can look for it: a whole number of at most 63 bits."""
    return text.isascii() and text.isdigit() and int(text) < 1 << 63
