"""`parquet-sink demo`: everything on this machine, from nothing to the proof, in about a minute."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Final

from parquet_sink.config.quantity import seconds

if TYPE_CHECKING:
    from parquet_sink.addons.devkit.demo.proof import Check, Freshness
    from parquet_sink.addons.devkit.demo.show import Show
    from parquet_sink.addons.devkit.demo.stage import Result, Stage

RECORDS: Final = 200_000
DURATION_S: Final = 12.0
LEAST_RECORDS: Final = 100
MOST_RECORDS: Final = 5_000_000
MOST_DURATION_S: Final = 3_600.0
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


_STATUSES: Final = """\
It needs the extra target: pip install '.[target]' in a copy of the repository.
Exit status: 0 every check holds, 1 one does not, 2 something is missing on the machine, 130 stopped by Ctrl-C."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `demo`."""
    parser.description = (
        "Start a Kafka broker and the reference target on this machine, send a stream of orders, run the sink on it "
        "with the shipped configuration, and prove that the target's table is what was sent. Everything is temporary."
    )
    parser.epilog = _STATUSES
    parser.add_argument(
        "--records", type=_records, default=RECORDS, metavar="N", help=f"records in all (default {RECORDS})"
    )
    parser.add_argument(
        "--duration",
        type=_seconds,
        default=DURATION_S,
        metavar="DURATION",
        help=f"how long orders keep coming after the sink has caught up (default {DURATION_S:g})",
    )
    parser.add_argument("--seed", type=int, default=1, help="the same seed sends the same orders (default 1)")
    afterwards = parser.add_mutually_exclusive_group()
    afterwards.add_argument(
        "--replay",
        action="store_true",
        help="then replay all of it twice, out of order, prove that the table did not change, and show what changes "
        "where no order column says which row is newer",
    )
    afterwards.add_argument(
        "--keep", action="store_true", help="leave everything running after the proof, until Ctrl-C"
    )


def run(args: argparse.Namespace) -> int:
    """0 when every check holds, 1 when one does not, 130 when interrupted. Raises SetupError, DemoFailed."""
    from parquet_sink.addons.devkit.target.command import require_extra

    require_extra("The demo")  # before anything is started
    from parquet_sink.addons.devkit.demo.show import Show
    from parquet_sink.addons.devkit.demo.stage import Size, Stage

    show = Show()
    with _interruptible():
        try:
            show.heading("Orders go through Kafka and the sink to a push target, as Parquet files.")
            with Stage(show, Size(args.records, args.duration, args.seed, args.replay)) as stage:
                stage.flow()
                ok = _keep(show, stage) if args.keep else _stop_and_prove(show, stage, replay=args.replay)
        except KeyboardInterrupt:
            print("Interrupted. Everything is stopped and removed.", file=sys.stderr)
            return 130
    return 0 if ok else 1


def _stop_and_prove(show: "Show", stage: "Stage", *, replay: bool) -> bool:
    from parquet_sink.addons.devkit.demo.stage import prove_stage

    show.step("stopping the sink (SIGTERM), then reading every file and the whole table")
    result = prove_stage(stage, stage.sink.stop())
    ok = print_result(show, result)
    if not replay:
        return ok
    show.heading("REPLAY")
    return print_checks(show, stage.replay(result.files)) and ok


def _keep(show: "Show", stage: "Stage") -> bool:
    from parquet_sink.addons.devkit.demo.stage import prove_stage

    show.step("reading every file and the whole table")
    ok = print_result(show, prove_stage(stage, None))
    _addresses(show, stage)
    try:
        while True:
            stage.check()
            time.sleep(0.5)
    except KeyboardInterrupt:
        status = stage.sink.stop()
        show.print(f"The sink stopped with exit status {status}; target and broker follow.")
    return ok and status == 0


def _addresses(show: "Show", stage: "Stage") -> None:
    url = stage.target.url
    show.heading("STILL RUNNING, until Ctrl-C")
    lines = (
        f"Kafka            {stage.broker.bootstrap_servers}   topic orders, consumer group connect-orders",
        f"Target           {url}",
        f"Sink             process {stage.sink.pid}, log {stage.sink.log}",
        "",
        f"curl '{url}/tables/ORDERS/rows?order_by=-updated_at&limit=3'",
        f"curl '{url}/files?limit=3'",
        f"curl {url}/statistics",
        "",
        *stage.further_commands(),
    )
    for line in lines:
        show.print(f"  {line}".rstrip())


def print_result(show: "Show", result: "Result") -> bool:
    """Print figures and proof; whether every check holds."""
    show.heading("FIGURES")
    size = sum(file.bytes for file in result.files)
    reasons = ", ".join(f"{reason} {count}" for reason, count in result.reasons.most_common())
    show.print(f"  Files      {len(result.files):,} uploaded, {size / 1e6:,.1f} MB; rotated by: {reasons}")
    show.print(f"  Rows       {sum(file.rows for file in result.files):,} upserted, {result.rows:,} left in the table")
    show.print("  Freshness  of each record: from its Kafka timestamp (set when it is sent) until the target has its")
    show.print("             file safely on disk")
    show.print(f"    orders as they came       {_percentiles(result.live)}")
    show.print(f"    backlog, with the start   {_percentiles(result.backlog)}")
    return print_checks(show, result.checks)


def print_checks(show: "Show", checks: "Sequence[Check]") -> bool:
    """Print what is proven; whether every check holds."""
    show.heading("PROOF")
    for check in checks:
        show.check(check)
    show.verdict(checks)
    return all(check.ok for check in checks)


def _percentiles(found: "Freshness | None") -> str:
    if found is None:
        return "no records"
    return (
        f"p50 {found.p50_s:5.2f} s   p90 {found.p90_s:5.2f} s   p99 {found.p99_s:5.2f} s   "
        f"max {found.max_s:5.2f} s   ({found.records:,} records)"
    )


@contextmanager
def _interruptible() -> Iterator[None]:
    """The first SIGINT, SIGTERM or SIGHUP raises KeyboardInterrupt; later ones must not disturb the cleaning up."""
    signals = 0

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal signals
        signals += 1
        if signals == 1:
            with suppress(OSError):
                os.write(2, b"\nStopping everything that was started; this takes some seconds.\n")
            raise KeyboardInterrupt

    former = {number: signal.signal(number, on_signal) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _records(text: str) -> int:
    if not (text.isascii() and text.isdigit() and LEAST_RECORDS <= int(text) <= MOST_RECORDS):
        raise argparse.ArgumentTypeError(f"must be a number from {LEAST_RECORDS} to {MOST_RECORDS}")
    return int(text)


def _seconds(text: str) -> float:
    found = seconds(text)
    if found is None or not found <= MOST_DURATION_S:
        raise argparse.ArgumentTypeError(f"must be a number of seconds from 0 to {MOST_DURATION_S:g}")
    return found
