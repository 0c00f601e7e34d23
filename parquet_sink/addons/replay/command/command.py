"""`parquet-sink replay`: what a connector delivered is sent again, or elsewhere, and compared with its first time."""

import argparse
import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final

from parquet_sink.addons.replay.pace import FULL, Rate
from parquet_sink.addons.replay.selection import Selection, problems
from parquet_sink.cli.beside import given_settings
from parquet_sink.cli.options import HELP, complete_target, timestamp
from parquet_sink.cli.worker_api.connector_options import misplaced_beside_files
from parquet_sink.cli.worker_api.settings import add_options
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.files.naming import REPLAY_JOURNAL_FOLDER

if TYPE_CHECKING:
    from parquet_sink.cli.worker_api.remote import RemoteConnector

EXAMPLES: Final = """\
examples:
  parquet-sink replay --connector orders.properties --dry-run             # ranges, files, rows, what Kafka lacks
  parquet-sink replay --connector orders.properties --topic orders --partition 0 --from 1200 --to 4999
  parquet-sink replay --connector orders.properties --times 2 --verify    # prove that the target's table did not change
  parquet-sink replay --connector orders.properties --target https://sink.example/push --target-key '${env:NEW_KEY}'
  parquet-sink replay --connector orders --url http://worker:8083 --since 2h    # by the worker that has it

Without a choice it is everything that was delivered and that Kafka still holds. Offsets of the group are never \
changed, and the connector may run meanwhile.
Exit status: 0 everything chosen was sent, also where files differ from the first time, and with --verify nothing \
changed; 1 something was not accepted, a record has no row, or with --verify something changed or could not be shown; \
2 wrong options, or Kafka no longer has what was chosen; 130 stopped by Ctrl-C (go on with --resume)."""
TIMES_MOST: Final = 1_000
_SHARE: Final = re.compile(r"(\d+(?:\.\d+)?)%")
_RECORDS: Final = re.compile(r"(\d+(?:\.\d+)?)/s")
_CHOICE: Final = ("topic", "partition", "first", "last", "since", "until", "newest", "file", "times", "target")
_ELSEWHERE: Final = {
    "worker": "Invalid [--worker]. The worker knows it; remove it, or give the connector file.",
    "bootstrap_servers": "Invalid [--bootstrap-servers]. The worker knows them; remove it, or give the connector file.",
    "target": "Invalid [--target]. A worker replays to the connector's own target; for another one give the connector "
    "file.",
    "differences": "Invalid [--differences]. The file would be the worker's; replay with the connector file there.",
}
"""Options that do not go with a worker's connector."""
_NAMES: Final = {"first": "from", "last": "to", "newest": "last"}


def run(args: argparse.Namespace) -> int:
    """0 when everything chosen was sent, 1 when something was not, 130 when it was stopped. Raises SinkError."""
    selection = selection_of(args)
    if _is_of_worker(args):
        return _run_of_worker(args)
    from parquet_sink.addons.replay.command import flow  # after the options were found right

    with _interruptible():
        if args.dry_run:
            return flow.dry_run(args, selection)
        return flow.resume(args) if args.resume else flow.begin(args, selection)


def _is_of_worker(args: argparse.Namespace) -> bool:
    """Whether the worker of a connector is to do it. Raises InvalidConfiguration with what does not go with that."""
    if given_settings(args):
        return False
    name = args.connector
    is_file = name.endswith((".properties", ".json")) or os.sep in name or os.path.exists(name)
    if not name.strip():
        raise InvalidConfiguration(
            ["Invalid [--connector]. It is empty; give a connector file, or a connector's name."]
        )
    wrong = [_ELSEWHERE[option] for option in _ELSEWHERE if not is_file and getattr(args, option) is not None]
    wrong += misplaced_beside_files(args) if is_file else []
    if wrong:
        raise InvalidConfiguration(wrong)
    return not is_file


def _run_of_worker(args: argparse.Namespace) -> int:
    from parquet_sink.cli.worker_api.api import open_worker, understanding
    from parquet_sink.cli.worker_api.jobs import run_job
    from parquet_sink.cli.worker_api.remote import RemoteConnector

    options = {
        **{name: getattr(args, name) for name in ("topic", "partition", "file", "skip_missing", "dry_run", "resume")},
        **{name: getattr(args, name) for name in ("verify", "json")},
        **{_NAMES[name]: getattr(args, name) for name in _NAMES},
        **{name: None if getattr(args, name) is None else str(getattr(args, name)) for name in ("since", "until")},
        "times": None if args.times == 1 else args.times,
        "rate": _rate_text(args.rate),
    }
    with open_worker(args) as api, understanding(api):
        connector = RemoteConnector(api, args.connector)
        if args.resume:
            connector = _find_begun(connector)
        return run_job(connector, ("replay",), options, logs=args.progress)


def _find_begun(connector: "RemoteConnector") -> "RemoteConnector":
    """Return the connector at the worker where a replay was stopped. Raise WorkerRefused where one does not answer."""
    holders = connector.find_holders()
    for holder in holders if len(holders) > 1 else ():
        if REPLAY_JOURNAL_FOLDER in holder.get("folder")["files"]:
            return holder
    return connector


@contextmanager
def _interruptible() -> Iterator[None]:
    """The first SIGINT, SIGTERM or SIGHUP ends the replay after the files on their way; a second one at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked: list[int] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        if asked:
            os._exit(128 + number)
        asked.append(number)
        os.write(2, b"parquet-sink: stopping after the files on their way; once more ends at once\n")
        raise KeyboardInterrupt

    numbers = [one for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) != signal.SIG_IGN]
    before = {number: signal.signal(number, on_signal) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What is sent, where, how often, and at which pace."""
    parser.epilog = EXAMPLES
    connector = parser.add_argument(
        "--connector",
        required=True,
        metavar="FILE|NAME",
        help="connector file, .properties or .json; or the name of a worker's connector, which the worker replays",
    )
    connector.completer = complete_target  # type: ignore[attr-defined]
    parser.add_argument("--worker", metavar="FILE", help="worker file, as for run")
    parser.add_argument("--bootstrap-servers", metavar="HOST:PORT,…", help="Kafka's address, as for run")
    add_options(parser.add_argument_group("with the name of a worker's connector"))
    _add_choice(parser)
    parser.add_argument(
        "--times",
        type=int,
        default=1,
        metavar="K",
        help="send all of it so many times, one after the other (default 1)",
    )
    parser.add_argument(
        "--target",
        metavar="URL",
        help="send to this address, directory:/path or s3://bucket/prefix (by connect.ems.s3.*), in place of the "
        "connector's",
    )
    parser.add_argument(
        "--target-key",
        metavar="KEY",
        help="with --target: the value of the Authorization header; ${env:NAME} and the like as in connector files",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="say what would be sent, what of it from the archive, and what Kafka no longer has; nothing is sent",
    )
    parser.add_argument(
        "--rate",
        type=_rate,
        metavar="SHARE%|N/s",
        help="work at most this share of the time, or take at most N records a second (default: 25%% while the "
        "connector runs on this machine, else 100%%)",
    )
    parser.add_argument("--resume", action="store_true", help="go on with the replay that was stopped before its end")
    parser.add_argument(
        "--verify",
        action="store_true",
        help="ask the target what its tables are before and after, and prove that nothing changed, or say what did",
    )
    parser.add_argument(
        "--differences", metavar="FILE", help="with --verify: write each row that differs, one JSON object a line"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--progress", action="store_true", help="log progress, also where standard error is not a terminal"
    )


def _add_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", help="only this topic (default: all of the connector's)")
    parser.add_argument("--partition", type=int, metavar="P", help="only this topic-partition")
    parser.add_argument(
        "--from",
        type=int,
        dest="first",
        metavar="N",
        help="offsets from N on; needs one topic-partition, and so does --to",
    )
    parser.add_argument("--to", type=int, dest="last", metavar="M", help="offsets up to M, which is included")
    parser.add_argument(
        "--since", type=timestamp, metavar="TIME", help=f"from the first record of this time on: {HELP}"
    )
    parser.add_argument("--until", type=timestamp, metavar="TIME", help="before the first record of this time")
    parser.add_argument("--last", type=int, dest="newest", metavar="N", help="the last N files of the history")
    parser.add_argument(
        "--file", nargs="+", action="extend", metavar="NAME", help="files of the history, by their names"
    )
    parser.add_argument(
        "--skip-missing", action="store_true", help="send what Kafka still has of it; else nothing is sent"
    )


def selection_of(args: argparse.Namespace) -> Selection:
    """What was chosen. Raises InvalidConfiguration with all that is wrong."""
    chosen = Selection(
        args.topic,
        args.partition,
        args.first,
        args.last,
        args.since,
        args.until,
        args.newest,
        tuple(dict.fromkeys(args.file or ())),
        args.skip_missing,
    )
    wrong = [*problems(chosen), *_problems(args)]
    if wrong:
        raise InvalidConfiguration(wrong)
    return chosen


def _problems(args: argparse.Namespace) -> list[str]:
    found = []
    if not 1 <= args.times <= TIMES_MOST:
        found.append(f"Invalid [--times]. {args.times} is not between 1 and {TIMES_MOST:,}; give a number that is.")
    if args.target_key is not None and args.target is None and not args.resume:
        found.append("Invalid [--target-key]. It goes with --target alone; the connector file has its own key.")
    if args.differences is not None and not args.verify:
        found.append("Invalid [--differences]. It goes with --verify, which finds them; add that, or remove this.")
    if args.verify and args.dry_run:
        found.append("Invalid [--verify]. With --dry-run nothing is sent that could change anything; remove one.")
    if args.resume:
        given = [one for one in _CHOICE if getattr(args, one) not in (None, 1 if one == "times" else None)]
        found += [
            f"Invalid [--{_NAMES.get(one, one)}]. --resume goes on with what was chosen; remove one of the two."
            for one in given
        ]
        if args.dry_run:
            found.append("Invalid [--dry-run]. It does not go with --resume, which sends; remove one of the two.")
    return found


def _rate_text(rate: Rate | None) -> str | None:
    """The inverse of `_rate`."""
    if rate is None:
        return None
    return f"{rate.share * 100:g}%" if rate.records_per_s is None else f"{rate.records_per_s:g}/s"


def _rate(text: str) -> Rate:
    if (share := _SHARE.fullmatch(text)) is not None and 0 < float(share[1]) <= 100:
        return FULL if float(share[1]) == 100 else Rate(float(share[1]) / 100)
    if (records := _RECORDS.fullmatch(text)) is not None and float(records[1]) > 0:
        return Rate(records_per_s=float(records[1]))
    raise argparse.ArgumentTypeError(
        f"{text!r} is neither a share of the time, such as 10%, nor records, such as 500/s"
    )
