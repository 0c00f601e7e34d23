"""`parquet-sink parked list|show|replay|drop`: what connectors passed over, sending it again, or giving it up."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from parquet_sink.cli.beside import settings_beside
from parquet_sink.cli.options import add_files
from parquet_sink.cli.worker_api.connector_options import add_connectors, of_worker
from parquet_sink.errors import InvalidConfiguration, SinkError
from parquet_sink.model.rejected import Stage
from parquet_sink.settings.sink import SinkSettings

if TYPE_CHECKING:
    from parquet_sink.parked.scan import Selection

ACTIONS: Final = ("list", "show", "replay", "drop")
MOST_SHOWN: Final = 100
_ONLY: Final = {
    "json": ("list", "show"),
    "content": ("show",),
    "limit": ("show",),
    "dry_run": ("replay",),
    "all": ("drop",),
    "yes": ("drop",),
}
"""Options that not all actions have."""
_BOTH: Final = "Records are chosen beside it; remove it, or what chooses them."
_NEITHER: Final = (
    "It is missing, and nothing chooses records to drop; give --topic, --partition, --offset or --stage, or --all to "
    "drop all that the connectors have parked."
)


_EXAMPLES: Final = """\
examples:
  parquet-sink parked show --topic orders --offset 1200-1300 --content orders.properties
  parquet-sink parked replay --dry-run orders.properties

A replay goes through converter, transforms and table as at first; the connector may run meanwhile, and two replays at \
once are refused. What is accepted, or needs no row now, leaves the files. Files that cannot be read are named and \
skipped.
Exit status: 0 it is done; 1 something of what was chosen stays parked, or cannot be read; 2 wrong files or \
options."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The action, the files as for `run`, and which records are meant."""
    parser.epilog = _EXAMPLES
    parser.usage = f"%(prog)s {{{','.join(ACTIONS)}}} [options] [FILE ...]"
    parser.add_argument(
        "action",
        choices=ACTIONS,
        help="list: how many, and why; show: each record; replay: send them again; drop: remove them for good",
    )
    add_files(parser, needed=False)
    add_connectors(parser)
    parser.add_argument("--topic", help="only records of this topic")
    parser.add_argument("--partition", type=int, metavar="N", help="only records of this topic-partition")
    parser.add_argument(
        "--offset", type=_offsets, metavar="N[-M]", help="only the record at this offset, or those from N to M"
    )
    stages = [str(one) for one in Stage]
    parser.add_argument(
        "--stage", choices=stages, metavar="STAGE", help=f"only records that failed there: {', '.join(stages)}"
    )
    parser.add_argument("--json", action="store_true", help="list, show: one JSON object a line")
    parser.add_argument(
        "--content",
        action="store_true",
        help="show: with key, value and headers, which may be secret; base64 where they are no text",
    )
    parser.add_argument("--limit", type=int, metavar="N", help=f"show: at most so many (default {MOST_SHOWN}; 0: all)")
    parser.add_argument(
        "--dry-run", action="store_true", help="replay: say what would become of them; nothing is sent or changed"
    )
    parser.add_argument("--all", action="store_true", help="drop: all records, where no others are chosen")
    parser.add_argument("--yes", action="store_true", help="drop: do it; without it, what would be dropped is listed")


def run(args: argparse.Namespace) -> int:
    """0 when it is done, 1 when something stays parked that was to leave, or cannot be read; 2 wrong files."""
    _check_options(args)
    if of_worker(args):
        return _run_of_worker(args)
    done = [_run_one(args, settings) for settings in settings_beside(args)]
    return os.EX_OK if all(done) else 1


def _selection(args: argparse.Namespace) -> "Selection":
    from parquet_sink.parked.scan import Selection

    return Selection(topic=args.topic, partition=args.partition, offsets=args.offset, stage=args.stage)


def _run_of_worker(args: argparse.Namespace) -> int:
    from parquet_sink.addons.commands.parked import reports
    from parquet_sink.cli.worker_api.api import open_worker
    from parquet_sink.cli.worker_api.jobs import run_job
    from parquet_sink.cli.worker_api.remote import (
        RemoteConnector,
        RemoteRecords,
        each_connector,
        each_holder,
        parked_query,
        remote_parked,
    )

    selection = _selection(args)

    def do(connector: RemoteConnector) -> bool:
        if args.action in ("replay", "drop"):
            own = {"dry_run": args.dry_run} if args.action == "replay" else {"all": args.all, "yes": args.yes}
            return run_job(connector, ("parked", args.action), {**parked_query(selection), **own}) == os.EX_OK
        if args.action == "list":
            lines = reports.listing(connector.name, remote_parked(connector, selection), as_json=args.json)
        else:
            found = RemoteRecords(connector, selection, args.limit or None, args.content)
            lines = reports.records(connector.name, found, as_json=args.json)
        for line in lines:
            print(line)
        return True

    with open_worker(args) as api:
        return each_connector(args, api, lambda connector: each_holder(args, connector, do))


def _run_one(args: argparse.Namespace, settings: SinkSettings) -> bool:
    """Whether all went well. One connector's trouble does not keep others from their turn."""
    from parquet_sink.addons.commands.parked import replay, reports  # after the files were found right
    from parquet_sink.parked.listing import ParkedRecords, parked

    selection, folder = _selection(args), settings.parked_folder
    try:
        if args.action == "drop":
            return replay.drop(settings, selection, sure=args.yes)
        if args.action == "replay":
            return replay.replay(settings, selection, dry_run=args.dry_run)
        if args.action == "list":
            listed = parked(folder, settings.parked.max_bytes, selection)
            lines = reports.listing(settings.name, listed, as_json=args.json)
        else:
            found = ParkedRecords(folder, selection, args.limit or None, content=args.content)
            lines = reports.records(settings.name, found, as_json=args.json)
        for line in lines:
            print(line)
    except SinkError as error:
        print(f"parquet-sink: connector {settings.name}: {error}", file=sys.stderr)
        return False
    return True


def _check_options(args: argparse.Namespace) -> None:
    wrong = [_misplaced(name, actions) for name, actions in _ONLY.items() if _given(args, name, actions)]
    if args.limit is not None and args.limit < 0:
        wrong.append(f"Invalid [--limit]. {args.limit} is less than 0; give how many records to show, 0 for all.")
    choosing = (args.topic, args.partition, args.offset, args.stage)
    if args.action == "drop" and args.all is any(one is not None for one in choosing):
        wrong.append("Invalid [--all]. " + (_BOTH if args.all else _NEITHER))
    if wrong:
        raise InvalidConfiguration(wrong)
    args.limit = MOST_SHOWN if args.limit is None else args.limit


def _given(args: argparse.Namespace, name: str, actions: Sequence[str]) -> bool:
    return args.action not in actions and getattr(args, name) not in (None, False)


def _misplaced(name: str, actions: Sequence[str]) -> str:
    return f"Invalid [--{name.replace('_', '-')}]. It belongs to parquet-sink parked {' or '.join(actions)}; remove it."


def _offsets(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    if not (first.isascii() and first.isdigit() and (not dash or (last.isascii() and last.isdigit()))):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an offset, such as 17, nor a range of offsets, such as 17-30"
        )
    return int(first), int(last) if dash else int(first)
