"""`parquet-sink reshape connector.properties FILES… --out …`: rows of raw files, as a shaped connector makes them."""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from parquet_sink.addons.reshape.command.settings import Stores, for_output
from parquet_sink.addons.reshape.stores import is_stored, split
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.settings import place_of

if TYPE_CHECKING:  # loaded once the connector file was found right
    from parquet_sink.addons.reshape.marks import Marks
    from parquet_sink.addons.reshape.spans import RawFile, RawRange
    from parquet_sink.model.receipts import Failure

INTERRUPTED: Final = 130
_NO_FOLDER: Final = (
    "Invalid [--rejected]. It is missing; with errors.tolerance=all and a bucket as --out name a folder for records "
    "without a row."
)


_EXAMPLES: Final = """\
examples:
  parquet-sink reshape orders.properties '/data/raw/orders/*.parquet' --out /data/shaped
  parquet-sink reshape orders.properties s3://lake/raw --out s3://lake/shaped --rejected /data/rejected --json

Exit status: 0 each record has rows, has rightly none, or is diverted; 1 a record has no row, or it could not go on; \
2 wrong options or files; 130 stopped by Ctrl-C."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The connector file, which raw files, and where to."""
    parser.description = (
        "Makes of raw files (connect.ems.mode=raw) what a shaped connector makes of the same records: decoded, "
        "transformed and shaped by the connector file. Nothing is read from Kafka, and nothing is sent to the "
        "connector's target."
    )
    parser.epilog = _EXAMPLES
    parser.add_argument("connector", metavar="connector.properties", help="connector file, not in raw mode")
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="FILES",
        help="raw files: paths, patterns, folders with all that is below them, s3://BUCKET/PREFIX",
    )
    parser.add_argument(
        "--out", required=True, metavar="DIR", help="folder, or s3://BUCKET/PREFIX, that is new or has what this made"
    )
    parser.add_argument("--worker", metavar="FILE", help="worker file: converters")
    parser.add_argument(
        "--rejected", metavar="DIR", help="with errors.tolerance=all: folder for what has no row (default: in --out)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """0 when all records were read and each has a row, has none rightly, or is set aside; 1 after a failure."""
    settings = _settings(args)
    if settings.errors.invalid_records and is_stored(args.out) and args.rejected is None:
        raise InvalidConfiguration([_NO_FOLDER])
    from parquet_sink.addons.reshape.command.places import find  # after the connector file was found right
    from parquet_sink.addons.reshape.spans import ranges_of

    with Stores(args.connector, args.worker) as stores:
        mine, left_out = _chosen(settings, find(args.inputs, stores.open))
        return _reshape(args, settings, stores, ranges_of(mine), left_out)


def _settings(args: argparse.Namespace) -> SinkSettings:
    if is_stored(args.out):
        return for_output(args.connector, args.worker, args.out)
    args.out = os.path.abspath(args.out)
    return for_output(args.connector, args.worker, f"directory:{args.out}")


def _chosen(settings: SinkSettings, files: "Iterable[RawFile]") -> "tuple[list[RawFile], dict[str, int]]":
    """Files of topics that the connector reads; how many of each other topic. Raises InvalidConfiguration."""
    mine: list[RawFile] = []
    left_out: dict[str, int] = {}
    for file in files:
        if settings.kafka.reads(file.topic):
            mine.append(file)
        else:
            left_out[file.topic] = left_out.get(file.topic, 0) + 1
    if not mine:
        why = (
            f"are of topics that the connector does not read ({', '.join(left_out)})" if left_out else "have no records"
        )
        raise InvalidConfiguration([f"Invalid [FILES]. All of them {why}; name others, or another connector file."])
    reasons = [settings.why_unusable(topic) for topic in sorted({file.topic for file in mine})]
    if any(reasons):
        raise InvalidConfiguration([reason for reason in reasons if reason is not None])
    return mine, left_out


def _reshape(
    args: argparse.Namespace,
    settings: SinkSettings,
    stores: Stores,
    ranges: "Sequence[RawRange]",
    left_out: dict[str, int],
) -> int:
    from parquet_sink.addons.reshape.command import places
    from parquet_sink.addons.reshape.command.report import Progress, Summary
    from parquet_sink.addons.reshape.marks import Mark
    from parquet_sink.addons.reshape.run import Reshape, settings_for
    from parquet_sink.addons.reshape.stores import Reader

    rejected = os.path.abspath(args.rejected or os.path.join(args.out, places.REJECTED))
    with places.work_folder(settings.tmp_dir, settings.name) as work:
        wanted = [Mark.of(settings.fingerprint, one) for one in ranges]
        places.prepare(args.out, wanted, _marks(args.out, settings, stores, work))
        own = settings_for(settings, work, rejected)
        places.prepare_rejected(own)
        summary = Summary(settings.name, args.out, own.parked_folder, left_out)
        progress, reader = Progress(sum(one.rows for one in ranges)), Reader(stores.open, work)
        try:
            for done in Reshape(own, progress, tables=reader.tables).run(ranges):
                summary.done.append(done)
        except KeyboardInterrupt:
            print("reshape: interrupted; --out has whole files, and the same command goes on", file=sys.stderr)
            return INTERRUPTED
    return _told(summary.to_json() if args.json else "\n".join(summary.lines()), summary.failure)


def _marks(out: str, settings: SinkSettings, stores: Stores, work: str) -> "Callable[[], Marks]":
    """What is noted in --out, once it is asked."""
    from parquet_sink.addons.reshape.marks import MarkFolder
    from parquet_sink.addons.reshape.stores import StoreMarks

    if not is_stored(out):
        return lambda: MarkFolder(out)
    root, below = split(place_of(settings.target) or out)
    return lambda: StoreMarks(stores.open(root), f"{below}/" if below else "", work)


def _told(text: str, failure: "Failure | None") -> int:
    print(text)
    if failure is None:
        return os.EX_OK
    print(f"parquet-sink: {failure.message}", file=sys.stderr)
    return 1
