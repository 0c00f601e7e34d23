"""`parquet-sink run`."""

import argparse
import logging
import sys
from typing import TYPE_CHECKING, Final, TextIO

from parquet_sink.connectors.check import check_files
from parquet_sink.connectors.documentation import help_text
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.runtime.preflight import inspect
from parquet_sink.spark import options

if TYPE_CHECKING:
    from parquet_sink.runtime.events import Listener

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `run`; `check` shares the first three."""
    add_files(parser)
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


_KEYS: Final = "all keys"


class _HelpWithKeys(argparse.RawDescriptionHelpFormatter):
    """Writes the help on keys only when help is asked for: installed packages may have some."""

    def add_text(self, text: str | None) -> None:
        super().add_text(help_text() if text is _KEYS else text)


def add_files(parser: argparse.ArgumentParser) -> None:
    """The files, and what overrides them."""
    parser.formatter_class = _HelpWithKeys
    parser.epilog = _KEYS
    parser.add_argument(
        "files",
        nargs="+",
        metavar="connector.properties",
        help="connector files, .properties or .json; one connector each",
    )
    parser.add_argument(
        "--worker", metavar="worker.properties", help="worker file: bootstrap.servers, consumer.*, converters"
    )
    parser.add_argument(
        "--bootstrap-servers",
        metavar="HOST:PORT,…",
        help="Kafka's address; wins over PARQUET_SINK_BOOTSTRAP_SERVERS and the worker file",
    )


def run(args: argparse.Namespace) -> int:
    """Runs until done or told to stop. Raises InvalidConfiguration, SetupError."""
    wrong = options.problems(args.master, args.conf)
    checked = inspect(check_files(args.files, args.worker, bootstrap_servers=args.bootstrap_servers))
    for warning in checked.warnings:
        log.warning("%s", warning)
    if wrong:
        raise InvalidConfiguration([*wrong, *checked.problems])
    settings = checked.require()
    from parquet_sink.runtime.events import EventDispatcher  # after the files were found right: it takes a second
    from parquet_sink.runtime.worker import Worker

    live = not args.no_live and draws(sys.stderr)
    worker = Worker(
        settings,
        master=args.master,
        spark_conf=dict(args.conf),
        until_caught_up=args.until_caught_up,
        observer=EventDispatcher([_live_view() if live else _log_lines()]),
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
