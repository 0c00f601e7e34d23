"""`parquet-sink tune`: which thresholds give what matters, from what the topics really get."""

import argparse
import difflib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TextIO

from parquet_sink.addons.tune.command import options
from parquet_sink.config.files import edited
from parquet_sink.connectors.check import check_files
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.validate.preflight import inspect

PROGRESS_S: Final = 5.0

add_arguments = options.add_arguments


def run(args: argparse.Namespace) -> int:
    """0 when settings were recommended; 2 when there is nothing to learn from, or a file or an option is wrong."""
    options.check(args)
    settings = None if args.file is None else _settings(args)
    if args.plot is not None:
        from parquet_sink.addons.tune.plot import check_plot

        check_plot(args.plot)
    from parquet_sink.addons.tune.command import flow, report  # after the options were found right: they load Arrow

    with _progress(sys.stderr, lines=args.progress) as progress:
        found, picture = flow.tuned(args, settings, int(time.time() * 1000), progress)
    print(report.to_json(found) if args.json else "\n".join(report.lines(found)), flush=True)
    if args.plot is not None:
        from parquet_sink.addons.tune.plot import write_plot

        write_plot(args.plot, picture)
        print(f"drawn: {args.plot}", file=sys.stderr)
    if args.apply:
        _apply(args.file, report.numbers(found.chosen.thresholds), sys.stderr if args.json else sys.stdout)
    return os.EX_OK


def _settings(args: argparse.Namespace) -> SinkSettings:
    """Of the connector file. Raises InvalidConfiguration."""
    checked = inspect(check_files([args.file], args.worker, bootstrap_servers=args.bootstrap_servers))
    for warning in checked.warnings:
        print(warning, file=sys.stderr)
    (settings,) = checked.require()
    return settings


def _apply(path: str, numbers: Mapping[str, int], out: TextIO) -> None:
    """Shows what changes in the connector file, then writes it."""
    edit = edited(path, numbers)
    before, after = (text.splitlines(keepends=True) for text in (edit.before, edit.after))
    changes = list(difflib.unified_diff(before, after, path, f"{path} (tuned)", n=1))
    if not changes:
        print(f"\n{path} has these settings; nothing is written.", file=out)
        return
    shown = "".join(line if line.endswith("\n") else f"{line}\n" for line in changes)
    print(f"\n{shown}", end="", file=out, flush=True)
    edit.write()
    print(f"written: {path}; they count when the connector is started again", file=out)


@contextmanager
def _progress(stream: TextIO, *, lines: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A bar for what takes long, on a terminal; elsewhere lines if they were asked for, else nothing."""
    if lines:
        yield Lines(stream).tell
    elif not stream.isatty():
        yield lambda what, done, of: None
    else:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{settings.description}"),
            BarColumn(),
            TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
        )
        with Progress(*columns, TimeRemainingColumn(), console=Console(file=stream), transient=True) as bar:
            task = bar.add_task("", total=1)
            yield lambda what, done, of: bar.update(task, description=what, completed=done, total=of)


class Lines:
    """Says what is done: when it begins and ends, and every few seconds between. monotonic: seconds that never jump."""

    def __init__(self, stream: TextIO, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._monotonic = stream, monotonic
        self._what, self._last_s = "", monotonic()

    def tell(self, what: str, done: int, of: int) -> None:
        """So much of it is done."""
        now = self._monotonic()
        if what != self._what or done >= of or now - self._last_s >= PROGRESS_S:
            self._what, self._last_s = what, now
            print(f"{what}: {done:,} of {of:,}", file=self._stream, flush=True)
