"""`parquet-sink archive list|verify`: what a connector's archive has, and whether that is what was accepted."""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from parquet_sink.archive.settings import URL
from parquet_sink.cli.beside import settings_beside
from parquet_sink.cli.options import add_files
from parquet_sink.cli.worker_api.connector_options import add_connectors, of_worker
from parquet_sink.config.report import counted, printable
from parquet_sink.errors import HistoryUnusable, InvalidConfiguration, SinkError
from parquet_sink.files.naming import NameParts
from parquet_sink.settings.sink import SinkSettings

if TYPE_CHECKING:
    from parquet_sink.archive.archive import Archive, ArchivedFile
    from parquet_sink.archive.comparison import Gap
    from parquet_sink.archive.settings import ArchiveSettings
    from parquet_sink.archive.verify import Verified

MOST_LISTED: Final = 20
"""Of each kind, one by one; --json has all."""
ACTIONS: Final = ("list", "verify")
_ONLY: Final = {"quick": "verify", "progress": "verify", "partition": "list", "offset": "list"}
"""Options that one action has."""
EXAMPLES: Final = """\
examples:
  parquet-sink archive list --topic orders --offset 1200 orders.properties     # the file that has this offset
  parquet-sink archive verify orders.properties                                # is all there that was accepted?

Exit status of verify: 0 the archive has what the history says was accepted, unaltered, and nothing else; 1 it has \
gaps, altered or alien files, or cannot be read; 2 wrong files or options."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The action, the files as for `run`, and what is looked at."""
    parser.epilog = EXAMPLES
    parser.usage = f"%(prog)s {{{','.join(ACTIONS)}}} [options] [FILE ...]"
    parser.add_argument("action", choices=ACTIONS, help="list: each file; verify: compare with the history of uploads")
    add_files(parser, needed=False)
    add_connectors(parser)
    parser.add_argument("--topic", help="only files of this topic")
    parser.add_argument("--partition", type=int, metavar="N", help="list: only files of this topic-partition")
    parser.add_argument("--offset", type=int, metavar="N", help="list: only files with this offset")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="verify: compare names and sizes alone, and read no file, whose SHA-256 is compared otherwise",
    )
    parser.add_argument("--json", action="store_true", help="list: one JSON object a line; verify: one JSON object")
    parser.add_argument(
        "--progress", action="store_true", help="verify: log progress, also where standard error is not a terminal"
    )


def run(args: argparse.Namespace) -> int:
    """0 when it was printed and all is well, else 1. Raises InvalidConfiguration."""
    _check_options(args)
    if of_worker(args):
        return _run_of_worker(args)
    connectors = settings_beside(args)
    if without := [one.name for one in connectors if one.archive is None]:
        raise InvalidConfiguration([f"Invalid [{URL}]. Connector {name} has no archive; set it." for name in without])
    done = [_run_one(args, settings) for settings in connectors]
    return os.EX_OK if all(done) else 1


def _run_of_worker(args: argparse.Namespace) -> int:
    from parquet_sink.archive.listing import file_of
    from parquet_sink.cli.worker_api.api import open_worker
    from parquet_sink.cli.worker_api.remote import RemoteConnector, archive_pages, each_connector

    def verify(connector: RemoteConnector) -> bool:
        from parquet_sink.cli.worker_api.jobs import run_job

        options = {"topic": args.topic, "quick": args.quick, "json": args.json}
        return run_job(connector, ("archive", "verify"), options, logs=args.progress) == os.EX_OK

    def print_one(connector: RemoteConnector) -> bool:
        pages = iter(archive_pages(connector, args))
        first = next(pages)
        files = (file_of(one) for page in chain([first], pages) for one in page["files"])
        for line in listing(connector.name, first["archive"], files, as_json=args.json):
            print(line)
        return True

    with open_worker(args) as api:
        return each_connector(args, api, print_one if args.action == "list" else verify)


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
    from parquet_sink.archive.listing import ArchiveQuery, chosen

    query = ArchiveQuery(args.topic, args.partition, args.offset)
    for line in listing(connector, archive.name, chosen(archive, query), as_json=args.json):
        print(line)
    return True


def _verify(args: argparse.Namespace, settings: SinkSettings, own: "ArchiveSettings", archive: "Archive") -> bool:
    from rich.progress import DownloadColumn

    from parquet_sink.archive.verify import NOBODY, Others, Verified, altered, compare
    from parquet_sink.cli.progress import ShownProgress
    from parquet_sink.history.sqlite import read_history

    path, gathered = Path(settings.history_file), getattr(args, "others", None)
    others = Others.from_dict(gathered) if gathered else NOBODY
    try:
        with ExitStack() as parts:
            history = None if others.uploads and not path.exists() else parts.enter_context(closing(read_history(path)))
            comparison = compare(own, archive, history, args.topic, others)
    except FileNotFoundError:
        off = "" if settings.history.enabled else "; connect.ems.history.enable is false"
        raise HistoryUnusable(f"There is no history in {path} to compare {archive.name} with{off}.") from None
    total = 0 if args.quick else sum(one.archived.size_bytes for one in comparison.known)
    what = f"connector {settings.name}: archive"
    with ShownProgress(what, total, DownloadColumn(), logs=args.progress) as shown:
        read = partial(shown.advance, told=f"of {total / 1e6:.1f} MB read")
        found = Verified(
            comparison, tuple(altered(archive, comparison.known, read, quick=args.quick)), total, others.silent
        )
    for line in verified(settings.name, archive.name, found, as_json=args.json):
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


def listing(
    connector: str, archive: str, files: Iterable[tuple["ArchivedFile", NameParts | None]], *, as_json: bool
) -> Iterator[str]:
    """A line for each file, then the sum; as JSON a line for each file alone."""
    from parquet_sink.archive.listing import file_fields

    count = size_bytes = 0
    for one, parts in files:
        count, size_bytes = count + 1, size_bytes + one.size_bytes
        if as_json:
            yield json.dumps({"connector": connector, **file_fields(one, parts)}, ensure_ascii=False)
        else:
            yield printable(f"  {_file_text(one, parts)}")
    if not as_json:
        yield f"connector {connector}: {counted(count, 'file')}, {size_bytes:,} bytes in {archive}"


def _file_text(one: "ArchivedFile", parts: NameParts | None) -> str:
    if parts is None:
        return f"{one.where}: {one.size_bytes:,} bytes"
    offsets = f"offsets {parts.first_offset} to {parts.last_offset}, {parts.records:,} records"
    return f"{parts.topic} {parts.partition}, {offsets}, {one.size_bytes:,} bytes: {one.where}"


def verified(connector: str, archive: str, found: "Verified", *, as_json: bool) -> Iterator[str]:
    """What was found, with all that is wrong, the verdict last."""
    if as_json:
        yield json.dumps(_as_dict(connector, archive, found), ensure_ascii=False)
        return
    comparison = found.comparison
    yield from _listed("missing", [_gap_text(one) for one in comparison.gaps])
    yield from _listed("altered", [f"{one.where}: {one.how}" for one in found.altered])
    yield from _listed("alien", [f"{one.where}: not in the history" for one in comparison.alien])
    yield from _aside(found)
    yield from (f"  unknown: {printable(why)}" for why in found.silent)
    yield printable(f"connector {connector}: archive {archive}: {_verdict(found)}")


def _listed(what: str, lines: Sequence[str]) -> Iterator[str]:
    yield from (printable(f"  {what}: {line}") for line in lines[:MOST_LISTED])
    if len(lines) > MOST_LISTED:
        yield f"  and {len(lines) - MOST_LISTED:,} more {what}; --json has them all"


def _gap_text(one: "Gap") -> str:
    where = f"{one.topic} {one.partition}, offsets {one.first} to {one.last}"
    why = f": {'; '.join(one.causes)}" if one.causes else ""
    more = f" and {len(one.files) - 1:,} more" if len(one.files) > 1 else ""
    return f"{where}, {counted(len(one.files), 'file')}: {one.files[0]}{more}{why}"


def _aside(found: "Verified") -> Iterator[str]:
    """What is neither right nor wrong."""
    one = found.comparison
    others = (
        (len(one.earlier), "of offsets before all that the history has: not compared with it"),
        (len(one.later), "of offsets behind all that the history has: accepted, and not noted yet"),
        (len(one.frames), "with rows of a DataFrame, which have no history"),
        (one.waiting, "that wait for the archive"),
        (one.earlier_uploads, "that were accepted before the archive began"),
    )
    yield from (f"  {counted(count, 'file')} {what}" for count, what in others if count)


def _verdict(found: "Verified") -> str:
    one = found.comparison
    known = f"{counted(len(one.known), 'file')} of the history"
    read = f", {found.read_bytes:,} bytes read" if found.read_bytes else ""
    if found.complete:
        return f"complete: {known}{', unaltered' if read else ''}{read}"
    wrong = (
        (len(one.missing), "missing"),
        (len(found.altered), "altered"),
        (len(one.alien), "alien"),
    )
    silent = [f"{counted(len(found.silent), 'worker')} without an answer"] if found.silent else []
    listed = ", ".join([*(f"{counted(n, 'file')} {what}" for n, what in wrong if n), *silent])
    return f"not as it should be: {listed}, beside {known}{read}"


def _as_dict(connector: str, archive: str, found: "Verified") -> dict[str, Any]:
    one = found.comparison
    return {
        "connector": connector,
        "archive": archive,
        "complete": found.complete,
        "files": len(one.known),
        "read_bytes": found.read_bytes,
        "gaps": [asdict(gap) for gap in one.gaps],
        "altered": [asdict(file) for file in found.altered],
        "alien": [file.where for file in one.alien],
        "earlier_than_history": len(one.earlier),
        "later_than_history": len(one.later),
        "of_dataframes": len(one.frames),
        "waiting": one.waiting,
        "silent": list(found.silent),
        "accepted_before_archive": one.earlier_uploads,
    }
