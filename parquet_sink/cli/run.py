"""`parquet-sink run`."""

import argparse
import logging
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TextIO

from parquet_sink.cli.hosting import Plan, host, log_lines, on_cluster
from parquet_sink.cli.options import add_files, add_hosting, add_log_format, explain_keys
from parquet_sink.config.report import in_log
from parquet_sink.connectors.check import check_files
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.process.java_home import find_java
from parquet_sink.process.logs import JSON
from parquet_sink.process.threads import in_thread
from parquet_sink.spark import options
from parquet_sink.spark.slots import local_master
from parquet_sink.validate.preflight import inspect
from parquet_sink.worker.herder.store import ConfigStore, StoredConnector
from parquet_sink.worker_config.distributed import GROUP_ID

if TYPE_CHECKING:
    from parquet_sink.worker.loop.events import Listener

STANDALONE: Final = (
    "It has no effect in `run`, whose connectors are those of its files; start `parquet-sink worker` for a cluster."
)
log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The files, and how to run them."""
    parser.usage = "%(prog)s [options] connector.properties ..."
    parser.description = "Run connectors in one process. Where one file is wrong nothing starts."
    add_files(parser)
    explain_keys(parser)
    add_hosting(parser, local_master(1))
    parser.add_argument(
        "--until-caught-up",
        action="store_true",
        help="deliver what is in Kafka now, then end",
    )
    parser.add_argument("--no-live", action="store_true", help="log lines even on a terminal")
    add_log_format(parser)


def run(args: argparse.Namespace) -> int:
    """Runs until done, or a stop is requested. Raises InvalidConfiguration, SetupError."""
    in_thread(find_java)  # which asks Java, while files are read: whoever needs the answer asks again
    wrong = options.problems(args.master, args.conf)
    files = check_files(args.files, args.worker, bootstrap_servers=args.bootstrap_servers)
    checked = inspect(files, on_cluster=on_cluster(args.master))
    for warning in checked.warnings:
        log.warning("%s", in_log(warning))
    if wrong:
        raise InvalidConfiguration([*wrong, *checked.problems])
    settings = checked.settings()
    if checked.worker.worker.distributed is not None:
        log.warning("[%s]. %s", GROUP_ID, STANDALONE)
    rest = checked.worker.worker.rest
    if rest.given and args.until_caught_up:
        log.warning("[listeners]. There is no REST API with --until-caught-up, which ends by itself.")
    if rest.given and checked.worker.worker.machine.providers is None:
        log.warning("[config.providers]. %s", _unbounded(checked.providers_used or ["env"]))
    plan = Plan(
        checked.worker.worker,
        args.stop_request,
        master=args.master,
        spark_conf=dict(args.conf),
        until_caught_up=args.until_caught_up,
        serves=rest.given and not args.until_caught_up,
    )
    live = not args.no_live and args.log_format != JSON and draws(sys.stderr)
    known = {one.name: loaded for one, loaded in zip(settings, checked.connectors, strict=True)}
    store = ConfigStore({name: StoredConnector(one.properties) for name, one in known.items()})
    return host(plan, store, known, [_live_view() if live else log_lines()])


def _unbounded(names: Sequence[str]) -> str:
    """Of providers that nobody listed. names: those that are needed."""
    return (
        "It is not set, and there are listeners: whoever reaches the REST API may read this user's files and "
        f"environment by placeholders. Write config.providers={','.join(names)} in the worker file, and bound them: "
        "config.providers.env.param.allowlist.pattern, and param.allowed.paths of file and directory."
    )


def _live_view() -> "Listener":
    """The view on the terminal; log lines when it cannot be drawn."""
    from parquet_sink.worker.loop.events import Isolated
    from parquet_sink.worker.loop.log_lines import LogLines

    return Isolated("the live view", _make_live_view, LogLines)


def _make_live_view() -> "Listener":
    from parquet_sink.worker.loop.live_view import LiveView

    return LiveView()


def draws(stream: TextIO) -> bool:
    """Whether the live view can be drawn there: a terminal that has the characters it is drawn with."""
    try:
        "…".encode(stream.encoding)
    except (LookupError, TypeError, UnicodeEncodeError):
        return False
    return stream.isatty()
