"""`parquet-sink workers`: the workers of a group, who leads, and which connectors each has and why."""

import argparse
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from parquet_sink.addons.commands.connectors.printing import columns, cut, print_json, print_lines
from parquet_sink.cli.worker_api.api import open_worker, understanding
from parquet_sink.cli.worker_api.settings import add_options
from parquet_sink.config.report import counted, printable
from parquet_sink.worker.loop.totals import format_age

_EXAMPLE: Final = """\
examples:
  parquet-sink workers
  parquet-sink workers --url http://worker-2.example:8083
  parquet-sink workers --forget worker-3.example:8083

Exit status: 0 each connector has a worker, 1 one has none, 2 the worker cannot be asked.
"""
_TITLES: Final = ("    CONNECTOR", "SINCE", "WHY")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where one of the workers is."""
    parser.epilog = _EXAMPLE
    add_options(parser)
    parser.add_argument("--json", action="store_true", help="print what the worker answers")
    parser.add_argument(
        "--forget",
        metavar="WORKER",
        help="wait no more for what a worker has of connectors, which is gone for good with its disk",
    )


def run(args: argparse.Namespace) -> int:
    """0 when each connector has a worker, 1 otherwise. Raises SetupError, WorkerRefused."""
    with open_worker(args) as api, understanding(api):
        if args.forget is not None:
            api.ask("DELETE", ("workers", args.forget))
        found = api.get("workers")
        if args.json:
            print_json(found)
        else:
            print_lines(_lines(found, time.time() * 1000))
        return 1 if found["waiting"] else os.EX_OK


def _lines(found: Mapping[str, Any], now_ms: float) -> Iterator[str]:
    workers = found["workers"]
    made = f", assignment {found['epoch']} of {_ago(found['at_ms'], now_ms)} ago" if found["epoch"] else ""
    yield counted(len(workers), "worker") + made
    for one in workers:
        joined = f"  joined {_ago(one['since_ms'], now_ms)} ago" if one["since_ms"] else ""
        leads = "  leader" if one["leads"] else ""
        yield f"  {cut(one['worker_id'])}{leads}{joined}  {counted(len(one['connectors']), 'connector')}"
        rows = [_row(connector, now_ms) for connector in one["connectors"]]
        yield from columns([_TITLES, *rows]) if rows else ()
    if found["waiting"]:
        yield f"  no worker has {', '.join(map(cut, found['waiting']))}"
    yield from (f"  warning: {printable(text)}" for text in found.get("warnings", ()))


def _row(one: Mapping[str, Any], now_ms: float) -> tuple[str, ...]:
    waits = f"; waits for {cut(one['waits_for'])} to release it" if one["waits_for"] else ""
    since = _ago(one["since_ms"], now_ms) if one["since_ms"] else ""
    return f"    {cut(one['name'])}", since, one["reason"] + waits


def _ago(at_ms: int, now_ms: float) -> str:
    return format_age(max(now_ms - at_ms, 0.0) / 1000)
