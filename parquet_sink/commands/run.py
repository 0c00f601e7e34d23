"""`parquet-sink run`."""

import argparse
import logging
import sys
from typing import TYPE_CHECKING, TextIO

from parquet_sink.commands.file_options import add_files, explain_keys
from parquet_sink.commands.log_options import add_log_format
from parquet_sink.commands.parked.preflight import on_cluster
from parquet_sink.commands.preflight import inspect
from parquet_sink.commands.telemetry import trace_listeners
from parquet_sink.connectors.check import check_files
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.process.log_format import JSON
from parquet_sink.spark import options

if TYPE_CHECKING:
    from parquet_sink.runtime.events import Listener

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The files, and how to run them."""
    add_files(parser)
    explain_keys(parser)
    parser.add_argument(
        "--master",
        help="Spark master: local[N,ATTEMPTS] (default local[4,4]), spark://…, k8s://…, yarn",
    )
    parser.add_argument(
        "--until-caught-up",
        action="store_true",
        help="deliver what is in Kafka now, whatever the thresholds say, then end",
    )
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        type=_setting,
        metavar="KEY=VALUE",
        help="a Spark setting, may be repeated, for example spark.driver.memory=1g",
    )
    parser.add_argument("--no-live", action="store_true", help="log lines even on a terminal")
    add_log_format(parser)


def run(args: argparse.Namespace) -> int:
    """Runs until done or told to stop. Raises InvalidConfiguration, SetupError."""
    wrong = options.problems(args.master, args.conf)
    checked = inspect(check_files(args.files, args.worker, bootstrap_servers=args.bootstrap_servers))
    for warning in checked.warnings:
        log.warning("%s", warning)
    if wrong:
        raise InvalidConfiguration([*wrong, *checked.problems])
    settings = checked.require()
    if not (args.master or "local").startswith("local"):
        for told in filter(None, map(on_cluster, settings)):
            log.warning("%s", told)
    from parquet_sink.runtime.events import EventDispatcher  # after the files were found right: it takes a second
    from parquet_sink.runtime.worker import Worker

    live = not args.no_live and args.log_format != JSON and draws(sys.stderr)
    worker = Worker(
        settings,
        master=args.master,
        spark_conf=dict(args.conf),
        until_caught_up=args.until_caught_up,
        observer=EventDispatcher([_live_view() if live else _log_lines(), *trace_listeners()]),
        stop_request=args.stop_request,
    )
    return worker.run()


def _log_lines() -> "Listener":
    from parquet_sink.runtime.isolated import Isolated
    from parquet_sink.runtime.log_lines import LogLines

    return Isolated("log lines", LogLines)


def _live_view() -> "Listener":
    """The view on the terminal; log lines when it cannot be drawn."""
    from parquet_sink.runtime.isolated import Isolated
    from parquet_sink.runtime.log_lines import LogLines

    return Isolated("the live view", _make_live_view, LogLines)


def _make_live_view() -> "Listener":
    from parquet_sink.runtime.live_view import LiveView

    return LiveView()


def draws(stream: TextIO) -> bool:
    """Whether the live view can be drawn there: a terminal that has the characters it is drawn with."""
    try:
        "…".encode(stream.encoding)
    except (LookupError, TypeError, UnicodeEncodeError):
        return False
    return stream.isatty()


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.startswith("spark."):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form spark.KEY=VALUE")
    return key, value
