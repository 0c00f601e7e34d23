"""`parquet-sink status`: state, lag, age, last upload and last error of each connector; `--watch` shows it again."""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from parquet_sink.addons.commands.connectors.printing import print_json, print_lines
from parquet_sink.addons.commands.status_text import all_well, connector_lines
from parquet_sink.cli.options import complete_name
from parquet_sink.cli.worker_api.api import WorkerApi, open_worker, understanding
from parquet_sink.cli.worker_api.settings import add_options, duration_s
from parquet_sink.errors import InvalidConfiguration, SinkError, WorkerRefused
from parquet_sink.worker.herder.values import ConnectorProgress
from parquet_sink.worker.rest.renderings import read_progress

WATCH_S: Final = 2.0
EXAMPLE: Final = """\
examples:
  parquet-sink status
  parquet-sink status orders --partitions
  parquet-sink status --watch 5 --url https://sink.example:8443 --client-file client.properties

Exit status: 0 nothing failed, 1 a connector or task is FAILED, 2 the worker cannot be asked.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which connectors, how much of them, and where the worker is."""
    parser.epilog = EXAMPLE
    names = parser.add_argument(
        "targets", nargs="*", metavar="NAME", help="only these connectors, with the warnings about their configuration"
    )
    names.completer = complete_name  # type: ignore[attr-defined]
    parser.add_argument(
        "--partitions",
        action="store_true",
        help="with a line for each topic-partition: lag, age of its oldest record, records a second",
    )
    parser.add_argument(
        "--watch",
        type=duration_s,
        nargs="?",
        const=WATCH_S,
        metavar="DURATION",
        help="show it again and again, until Ctrl-C, also while the worker is unavailable "
        f"(without a number: each {WATCH_S:g} s)",
    )
    add_options(parser)
    parser.add_argument(
        "--json", action="store_true", help="print what the worker answers, as a JSON list; with --watch one a line"
    )


def run(args: argparse.Namespace) -> int:
    """0 when nothing failed, 1 otherwise; 2 when the worker cannot be asked. A watch ends with 0 by Ctrl-C."""
    if args.watch is not None and not args.watch > 0:
        raise InvalidConfiguration([f"Invalid [--watch]. {args.watch:g} is not more than 0; give seconds."])
    with open_worker(args) as api:
        if args.watch is None:
            found, unknown = _asked(args, api)
            well = _show(args, found)
            if unknown:
                raise unknown
            return os.EX_OK if well else 1
        with suppress(KeyboardInterrupt):
            _watch(args, api)
    return os.EX_OK


def _asked(args: argparse.Namespace, api: WorkerApi) -> tuple[list[dict[str, Any]], WorkerRefused | None]:
    """What the worker answers about the connectors that are meant; and which of them it does not know."""
    with understanding(api):
        try:
            found = api.get("progress")
        except WorkerRefused as error:
            if error.status == 404:
                raise WorkerRefused(
                    f"What answers at {api.url} reports no progress: it is not a worker of parquet-sink. "
                    "parquet-sink connectors list works with any worker of Kafka Connect.",
                    404,
                ) from None
            raise
        if not args.targets:
            return [dict(one) for one in found], None
        by_name = {one["status"]["name"]: one for one in found}
    unknown = [name for name in args.targets if name not in by_name]
    trouble = WorkerRefused(f"Connector {', '.join(unknown)} not found at {api.url}.", 404) if unknown else None
    return [by_name[name] for name in dict.fromkeys(args.targets) if name in by_name], trouble


def _show(args: argparse.Namespace, found: list[dict[str, Any]]) -> bool:
    """Prints them; whether nothing failed."""
    progress = read_progress(found)
    if args.json:
        print_json(found)
    elif progress or not args.targets:
        print_lines(_lines(args, progress))
    return all_well(progress)


def _lines(args: argparse.Namespace, progress: Sequence[ConnectorProgress]) -> list[str]:
    if not progress:
        return ["no connectors"]
    shown = {"partitions": args.partitions, "named": bool(args.targets)}
    return [line for one in progress for line in connector_lines(one, time.time(), **shown)]


def _watch(args: argparse.Namespace, api: WorkerApi) -> None:
    """Until it is interrupted. An unavailable worker is reported, and asked again."""
    if args.json or not sys.stdout.isatty():
        _watch_lines(args, api)
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(highlight=False), auto_refresh=False, screen=True) as live:
        while True:
            lines = _tried(args, api)
            live.update(Text("\n".join(lines), no_wrap=True, overflow="ellipsis"), refresh=True)
            time.sleep(args.watch)


def _tried(args: argparse.Namespace, api: WorkerApi) -> list[str]:
    heading = f"{api.url}  {time.strftime('%H:%M:%S')}  (Ctrl-C ends it)"
    try:
        found, unknown = _asked(args, api)
        return [heading, "", *_lines(args, read_progress(found)), *([str(unknown)] if unknown else ())]
    except SinkError as error:
        return [heading, "", str(error)]


def _watch_lines(args: argparse.Namespace, api: WorkerApi) -> None:
    while True:
        try:
            found, unknown = _asked(args, api)
            if args.json:
                print(json.dumps(found, ensure_ascii=False), flush=True)
            else:
                print_lines([*_lines(args, read_progress(found)), ""])
                sys.stdout.flush()
            if unknown:
                raise unknown
        except SinkError as error:
            print(f"parquet-sink: {error}", file=sys.stderr)
        time.sleep(args.watch)
