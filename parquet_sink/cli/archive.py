"""`parquet-sink archive list|verify`: what a connector's archive has, and whether that is what was accepted."""

import argparse
import logging
import os
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from parquet_sink.archive.settings import URL
from parquet_sink.cli.beside import check_beside
from parquet_sink.cli.options import add_files
from parquet_sink.errors import HistoryUnusable, InvalidConfiguration, SinkError
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.validate.preflight import inspect

if TYPE_CHECKING:
    from parquet_sink.archive.archive import Archive
    from parquet_sink.archive.settings import ArchiveSettings

log = logging.getLogger(__name__)

ACTIONS: Final = ("list", "verify")
_ONLY: Final = {"quick": "verify", "progress": "verify", "partition": "list", "offset": "list"}
"""Options that one action has."""
EXAMPLES: Final = """\
examples:
  parquet-sink archive list --topic orders --offset 1200 orders.properties     the file that has this offset
  parquet-sink archive verify orders.properties                                is all there that was accepted?

Exit status of verify: 0 the archive has what the history says was accepted, unaltered, and nothing else; 1 it has gaps,
altered or alien files, or cannot be read; 2 wrong files or options."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The action, the files as for `run`, and what is looked at."""
    parser.formatter_class, parser.epilog = argparse.RawDescriptionHelpFormatter, EXAMPLES
    parser.add_argument("action", choices=ACTIONS, help="list: each file; verify: compare with the history of uploads")
    add_files(parser)
    parser.add_argument("--topic", help="only files of this topic")
    parser.add_argument("--partition", type=int, metavar="N", help="list: only files of this topic-partition")
    parser.add_argument("--offset", type=int, metavar="N", help="list: only files with this offset")
    parser.add_argument("--quick", action="store_true", help="verify: compare names and sizes alone, and read no file")
    parser.add_argument("--json", action="store_true", help="list: one JSON object a line; verify: one JSON object")
    parser.add_argument(
        "--progress", action="store_true", help="verify: log progress, also where standard error is no terminal"
    )


def run(args: argparse.Namespace) -> int:
    """0 when it was told and all is well, else 1. Raises InvalidConfiguration."""
    _check_options(args)
    checked = inspect(check_beside(args.files, args.worker, bootstrap_servers=args.bootstrap_servers))
    for warning in checked.warnings:
        log.debug("%s", warning)
    connectors = checked.require()
    if without := [one.name for one in connectors if one.archive is None]:
        raise InvalidConfiguration([f"Invalid [{URL}]. Connector {name} has no archive; set it." for name in without])
    done = [_run_one(args, settings) for settings in connectors]
    return os.EX_OK if all(done) else 1


def _run_one(args: argparse.Namespace, settings: SinkSettings) -> bool:
    """Whether all is well. One connector's trouble does not keep others from their turn."""
    from parquet_sink.archive.archive import open_archive  # after the files were found right

    assert settings.archive is not None
    try:
        with closing(open_archive(settings.archive)) as archive:
            if args.action == "list":
                return _list(args, settings.name, archive)
            return _verify(args, settings, settings.archive, archive)
    except SinkError as error:
        print(f"parquet-sink: connector {settings.name}: {error}", file=sys.stderr)
        return False


def _list(args: argparse.Namespace, connector: str, archive: "Archive") -> bool:
    from parquet_sink.archive.verify import files_of
    from parquet_sink.cli import archive_reports

    chosen = archive_reports.Chosen(args.partition, args.offset)
    for line in archive_reports.listing(
        connector, archive.name, files_of(archive, args.topic), chosen, as_json=args.json
    ):
        print(line)
    return True


def _verify(args: argparse.Namespace, settings: SinkSettings, own: "ArchiveSettings", archive: "Archive") -> bool:
    from rich.progress import DownloadColumn

    from parquet_sink.archive.verify import Verified, altered, compare
    from parquet_sink.cli import archive_reports
    from parquet_sink.cli.progress import ShownProgress
    from parquet_sink.history.sqlite.store import read_history

    path = Path(settings.history_file)
    try:
        with closing(read_history(path)) as history:
            comparison = compare(own, archive, history, args.topic)
    except FileNotFoundError:
        off = "" if settings.history.enabled else "; connect.ems.history.enable is false"
        raise HistoryUnusable(f"There is no history in {path} to compare {archive.name} with{off}.") from None
    total = 0 if args.quick else sum(one.archived.size_bytes for one in comparison.known)
    what = f"connector {settings.name}: archive"
    with ShownProgress(what, total, DownloadColumn(), logs=args.progress) as shown:
        read = partial(shown.advance, told=f"of {total / 1e6:.1f} MB read")
        found = Verified(comparison, tuple(altered(archive, comparison.known, read, quick=args.quick)), total)
    for line in archive_reports.verified(settings.name, archive.name, found, as_json=args.json):
        print(line)
    return found.complete


def _check_options(args: argparse.Namespace) -> None:
    wrong = [
        f"Invalid [--{name}]. It belongs to parquet-sink archive {action}; remove it."
        for name, action in _ONLY.items()
        if args.action != action and getattr(args, name) not in (None, False)
    ]
    wrong += [
        f"Invalid [--{name}]. {getattr(args, name)} is less than 0; give a number that is not."
        for name in ("partition", "offset")
        if (getattr(args, name) or 0) < 0
    ]
    if wrong:
        raise InvalidConfiguration(wrong)
