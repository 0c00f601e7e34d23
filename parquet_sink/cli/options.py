"""Options that several commands share: connector files, Spark, log lines, timestamps; what a shell completes."""

import argparse
import glob
import time
from argparse import Namespace
from datetime import UTC, datetime
from typing import Any, Final, Literal

from parquet_sink.cli.parsing import AllHelp
from parquet_sink.config.quantity import Unit, amount
from parquet_sink.errors import SinkError
from parquet_sink.process.logs import FORMATS

_PATIENCE_S: Final = 2.0
"""A shell that waits for an unavailable worker is worse than no names."""
_FILE_ENDINGS: Final = (".properties", ".json")
HELP: Final = "2026-03-01T06:00Z (without a zone: UTC), epoch milliseconds, or how long ago: 90s, 10m, 2h, 3d"
_LATEST_MS: Final = 253_402_300_799_999
_KEYS: Final = "parquet-sink explain KEY explains a key of these files."


def explain_keys(parser: argparse.ArgumentParser) -> None:
    """Lets `--help-all` end with all keys of files, and `--help` say where they are explained."""
    parser.add_argument("--help-all", action=AllHelp, help="this help, and all keys of files")
    parser.epilog = _KEYS


def add_files(parser: argparse.ArgumentParser, least: Literal["+", "*"] = "+", *, needed: bool = True) -> None:
    """The connector files, and where what they share comes from. least: `*` where none may be given, too.

    needed: False where none may be given, and another argument stands before them, which `*` does not go with.
    """
    files = parser.add_argument(
        "files",
        nargs=least,
        metavar="connector.properties",
        help="connector files, .properties or .json",
    )
    files.completer = complete_file  # type: ignore[attr-defined]
    if not needed:
        files.required, files.default = False, []
    parser.add_argument("--worker", metavar="FILE", help="worker file: brokers, consumer.*, converters")
    parser.add_argument(
        "--bootstrap-servers",
        metavar="HOST:PORT,…",
        help="Kafka's address; wins over environment and file",
    )


def add_hosting(parser: argparse.ArgumentParser, default: str) -> None:
    """Spark's master and settings. default: the master of few connectors, for the help."""
    parser.add_argument(
        "--master",
        help=f"Spark master: {default} (the default), spark://…, yarn",
    )
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        type=_spark_setting,
        metavar="KEY=VALUE",
        help="a setting of Spark's; may be repeated",
    )


def _spark_setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.startswith("spark."):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form spark.KEY=VALUE")
    return key, value


def add_log_format(parser: argparse.ArgumentParser) -> None:
    """Read by `cli`, before the command begins."""
    parser.add_argument(
        "--log-format",
        choices=FORMATS,
        help="log lines as text, or a JSON object each",
    )


def timestamp(text: str) -> int:
    """Epoch milliseconds. Raises argparse.ArgumentTypeError with the forms that are understood."""
    if text.isascii() and text.isdigit() and len(text) >= 10 and int(text) <= _LATEST_MS:
        return int(text)
    try:
        if (ago_ms := amount(text, Unit.MILLISECONDS)) is not None:
            return max(int(time.time() * 1000) - ago_ms, 0)
        found = datetime.fromisoformat(text)
        at_s = (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; give {HELP}") from None
    if at_s < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is before 1970; Kafka's timestamps begin there")
    return round(at_s * 1000)


def complete_target(prefix: str, parsed_args: Namespace, **more: Any) -> list[str]:
    """For argcomplete: connector files, and names of the worker's connectors."""
    return complete_file(prefix, parsed_args) + complete_name(prefix, parsed_args)


def complete_name(prefix: str, parsed_args: Namespace, **more: Any) -> list[str]:
    """Names of connectors that were not given yet; none when the worker cannot be asked."""
    from parquet_sink.cli.worker_api.api import open_worker

    given = getattr(parsed_args, "targets", None) or ()
    try:
        with open_worker(Namespace(**{**vars(parsed_args), "timeout": _PATIENCE_S})) as api:
            names = api.get("connectors")
    except SinkError:
        return []
    listed = names if isinstance(names, list) else []
    return [name for name in listed if isinstance(name, str) and name.startswith(prefix) and name not in given]


def complete_file(prefix: str, parsed_args: Namespace, **more: Any) -> list[str]:
    """Connector files, and folders to look into."""
    found = glob.glob(glob.escape(prefix) + "*")
    folders = glob.glob(glob.escape(prefix) + "*/")
    return [path for path in found if path.endswith(_FILE_ENDINGS)] + folders
