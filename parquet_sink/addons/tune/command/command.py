"""`parquet-sink tune`: which thresholds give what matters, from what the topics really get."""

import argparse
import difflib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TextIO, TypeVar

from parquet_sink.addons.tune import quantities
from parquet_sink.addons.tune.command.edit import edited
from parquet_sink.connectors.check import check_files
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.validate.preflight import inspect

T = TypeVar("T")
PERCENTILES: Final = ("p50", "p95", "p99", "max")
MOST_PARTITIONS: Final = 10_000
_STATED: Final = ("record_bytes", "parquet_bytes", "partitions", "bursts", "skew")
EXAMPLES: Final = """\
examples:
  parquet-sink tune --sample 10m --freshness 30s --max-files-per-hour 250 --plot tune.png orders.properties
  parquet-sink tune --history --file-size 10MB --freshness p95:5m --apply orders.properties
  parquet-sink tune --rate 500/s --record-bytes 300 --partitions 12 --bursts 20000/5m --freshness 30s

Objectives count in the order in which they stand: the first is kept before the second is looked at. Nothing is sent, \
committed or changed, but for the file with --apply.
Exit status: 0 settings were recommended, whether they keep all objectives or not; 2 there is nothing to learn from, \
or a file or an option is wrong.
"""
PROGRESS_S: Final = 5.0


def run(args: argparse.Namespace) -> int:
    """0 when settings were recommended; 2 when there is nothing to learn from, or a file or an option is wrong."""
    check(args)
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
            TextColumn("{task.description}"),
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the load comes from, what matters, how long things take, and what is wanted back."""
    parser.description = (
        "Learns what the topics get, simulates commit.size.bytes, commit.records and commit.interval.ms with the "
        "program's own rules, and recommends values for what you say matters."
    )
    parser.epilog = EXAMPLES
    parser.add_argument(
        "file", metavar="connector.properties", nargs="?", help="connector file, .properties or .json; not for --rate"
    )
    parser.add_argument("--worker", metavar="FILE", help="worker file: bootstrap.servers, consumer.*, converters")
    parser.add_argument("--bootstrap-servers", metavar="HOST:PORT,…", help="Kafka's address, as for run")
    _load(parser.add_argument_group("the load, from one of: the topics, the history, your own words"))
    _objectives(parser.add_argument_group("what matters, the most important first"))
    _durations(parser.add_argument_group("where and how fast the sink runs"))
    out = parser.add_argument_group("what comes back")
    out.add_argument("--plot", metavar="FILE", help="draw freshness against files an hour: .png, .svg or .pdf")
    out.add_argument(
        "--progress", action="store_true", help="lines about progress, also where standard error is not a terminal"
    )
    out.add_argument("--json", action="store_true", help="print one JSON object")
    out.add_argument(
        "--apply", action="store_true", help="write the three keys into the connector file, after showing the change"
    )


def _load(group: Any) -> None:
    group.add_argument(
        "--sample",
        type=of(quantities.duration_s),
        metavar="TIME",
        help="what the topics got within the last TIME, such as 10m: read without a group, nothing is committed "
        "(default: 10m)",
    )
    group.add_argument(
        "--records",
        type=whole(1, 1 << 31),
        metavar="N",
        help="about the latest N records, however old; with --sample: at most N of them are read",
    )
    group.add_argument(
        "--history",
        nargs="?",
        type=of(quantities.duration_s),
        const=0.0,
        metavar="TIME",
        help="what the connector uploaded, from its history; of the last TIME, or all of it",
    )
    group.add_argument(
        "--rate",
        type=of(quantities.rate_per_s),
        metavar="N/TIME",
        help="a load in your words: so many records, of all topic-partitions together, such as 500/s or 40/h",
    )
    group.add_argument(
        "--record-bytes", type=of(quantities.size_bytes), metavar="SIZE", help="with --rate: size of a record, needed"
    )
    group.add_argument(
        "--parquet-bytes",
        type=of(quantities.size_bytes),
        metavar="SIZE",
        help="with --rate: what a record takes in a Parquet file (default: a quarter of --record-bytes)",
    )
    group.add_argument(
        "--partitions", type=whole(1, MOST_PARTITIONS), metavar="N", help="with --rate: topic-partitions, needed"
    )
    group.add_argument(
        "--bursts",
        type=of(quantities.bursts),
        metavar="N/EVERY[:WITHIN]",
        help="with --rate: N more records each so often, within so long (1s), such as 20000/5m:10s",
    )
    group.add_argument(
        "--skew",
        type=of(_skew),
        metavar="S",
        help="with --rate: the Nth largest topic-partition gets 1/N^S of the largest (default: 0, all the same)",
    )


def _objectives(group: Any) -> None:
    group.add_argument(
        "--freshness",
        action=_ObjectiveOption,
        type=of(freshness),
        metavar="[pNN:]TIME",
        help="how long from a record's arrival until the target has it: 30s is for 99 %% of the records, p50:, p95: "
        "and max: choose otherwise",
    )
    group.add_argument(
        "--max-files-per-hour",
        action=_ObjectiveOption,
        type=of(_files),
        metavar="N",
        help="files of all topic-partitions together, such as a target's limit on requests",
    )
    group.add_argument(
        "--file-size",
        action=_ObjectiveOption,
        type=of(quantities.size_bytes),
        metavar="SIZE",
        help="files of about this size",
    )


def _durations(group: Any) -> None:
    group.add_argument(
        "--connectors", type=whole(1, 1_000), default=1, metavar="N", help="how many share the process (default 1)"
    )
    group.add_argument(
        "--slots", type=whole(1, 10_000), metavar="N", help="Spark tasks at once (default: three more than connectors)"
    )
    group.add_argument(
        "--upload", type=of(quantities.duration_s), metavar="TIME", help="one request beside its bytes, such as 200ms"
    )
    group.add_argument(
        "--upload-speed", type=of(quantities.size_bytes), metavar="SIZE", help="bytes a second of one upload"
    )
    group.add_argument(
        "--batch", type=of(quantities.duration_s), metavar="TIME", help="a micro-batch beside its records and uploads"
    )


class _ObjectiveOption(argparse.Action):
    """Keeps the order of the objectives: the first that is given matters most."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        setattr(namespace, self.dest, values)
        order = [name for name in getattr(namespace, "order", ()) if name != self.dest]
        namespace.order = (*order, self.dest)


def of(parse: Callable[[str], T]) -> Callable[[str], T]:
    """A type for argparse whose ValueError is shown in its own words."""

    def parsed(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parsed


def whole(least: int, most: int) -> Callable[[str], int]:
    """A whole number within bounds."""

    def parsed(text: str) -> int:
        plain = text.replace("_", "").replace(",", "")
        if not plain.isascii() or not plain.isdigit() or not least <= int(plain) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least:,} to {most:,}")
        return int(plain)

    return parsed


def freshness(text: str) -> tuple[str, float]:
    """`30s`, `p95:30s`: which percentile, and seconds. Raises ValueError."""
    name, colon, rest = text.partition(":")
    if colon and name not in PERCENTILES:
        raise ValueError(f"{text!r}: there is p50, p95, p99 and max, such as p95:30s")
    return (name, quantities.duration_s(rest)) if colon else ("p99", quantities.duration_s(text))


def _files(text: str) -> float:
    number = float(text) if text.replace(".", "", 1).isdigit() else 0.0
    if not number > 0:
        raise ValueError(f"{text!r} is not a number of files above 0, such as 250")
    return number


def _skew(text: str) -> float:
    number = float(text) if text.replace(".", "", 1).isdigit() else -1.0
    if not 0 <= number <= 5:
        raise ValueError(f"{text!r} is not a number from 0 to 5")
    return number


def check(args: argparse.Namespace) -> None:
    """Raises InvalidConfiguration for options that do not go together, all at once."""
    problems = [*_sources(args), *_declared(args)]
    if args.apply and args.file is None:
        problems.append("Invalid [--apply]. There is no connector file to write to; name it, or leave --apply out.")
    if args.file is None and args.rate is None:
        problems.append(
            "Invalid [connector.properties]. It is missing; name the connector file, or state a load: --rate 500/s "
            "--record-bytes 300 --partitions 12."
        )
    if problems:
        raise InvalidConfiguration(problems)


def _sources(args: argparse.Namespace) -> Sequence[str]:
    """The load comes from one place."""
    given = [
        option
        for option, is_given in (
            ("--sample", args.sample is not None or args.records is not None),
            ("--history", args.history is not None),
            ("--rate", args.rate is not None),
        )
        if is_given
    ]
    if len(given) < 2:
        return ()
    named = " and ".join("--sample or --records" if one == "--sample" else one for one in given)
    return [f"Invalid [{given[1]}]. The load comes from one place, and {named} are given; keep one of them."]


def _declared(args: argparse.Namespace) -> list[str]:
    """What belongs to a declared load, and what it needs."""
    options = {name: f"--{name.replace('_', '-')}" for name in _STATED}
    if args.rate is None:
        return [
            f"Invalid [{option}]. It goes with --rate alone; remove it, or add --rate."
            for name, option in options.items()
            if getattr(args, name) is not None
        ]
    examples = {"record_bytes": 300, "partitions": 12}
    return [
        f"Invalid [{options[name]}]. It is missing, and --rate needs it; for example {options[name]} {example}."
        for name, example in examples.items()
        if getattr(args, name) is None
    ]
