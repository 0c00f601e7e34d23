"""`parquet-sink reshape connector.properties FILES… --out …`: rows of raw files, as a shaped connector makes them."""

import argparse
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from parquet_sink.connectors.check import check_files
from parquet_sink.connectors.ems.raw_checks import MODE
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.pipeline.settings import SinkSettings
from parquet_sink.targets.directory.settings import DirectorySettings

if TYPE_CHECKING:  # loaded once the connector file was found right
    from parquet_sink.reshape.spans import RawRange

INTERRUPTED: Final = 130
_RAW: Final = "It is raw, and so are the files already; give the connector file of a shaped one."
_ENDPOINT: Final = "connect.ems.endpoint"
_OVERRIDES: Final = {"connect.ems.archive.url": ""}
"""Nothing is kept a second time. With a folder as its endpoint a connector needs no credential."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The connector file, which raw files, and where to."""
    parser.description = (
        "Makes of raw files (connect.ems.mode=raw) what a shaped connector makes of the same records: decoded, "
        "transformed and shaped by the connector file. Nothing is read from Kafka, and nothing is sent to the "
        "connector's target."
    )
    parser.add_argument("connector", metavar="connector.properties", help="connector file, not in raw mode")
    parser.add_argument(
        "inputs", nargs="+", metavar="FILES", help="raw files: paths, patterns, or folders with all that is below them"
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="folder that is new, or has what this made before")
    parser.add_argument("--worker", metavar="FILE", help="worker file: converters")
    parser.add_argument(
        "--rejected",
        metavar="DIR",
        help="with errors.tolerance=all: folder for what has no row (default: in --out)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """0 when all records were read and each has a row, has none rightly, or is set aside; 1 after a failure."""
    out = os.path.abspath(args.out)
    settings = _settings(args, out)
    from parquet_sink.commands.reshape.inputs import find  # after the connector file was found right
    from parquet_sink.reshape.spans import ranges_of

    files = find(args.inputs)
    mine = [file for file in files if _reads(settings, file.topic)]
    others = sorted(file.topic for file in files if not _reads(settings, file.topic))
    left_out = {topic: others.count(topic) for topic in others}
    if not mine:
        raise InvalidConfiguration([_nothing(left_out)])
    _check_topics(settings, {file.topic for file in mine})
    return _reshape(args, settings, out, ranges_of(mine), left_out)


def _settings(args: argparse.Namespace, out: str) -> SinkSettings:
    overrides = {**_OVERRIDES, _ENDPOINT: f"directory:{out}"}
    checked = check_files([args.connector], args.worker, overrides=overrides)
    (settings,) = checked.require()
    if settings.shape.raw:
        raise InvalidConfiguration([f"Invalid [{MODE}]. {_RAW} (in {args.connector})"])
    return replace(settings, target=DirectorySettings(out, settings.target.target_table or settings.name))


def _reads(settings: SinkSettings, topic: str) -> bool:
    kafka = settings.kafka
    return topic in kafka.topics or (
        kafka.topics_regex is not None and re.fullmatch(kafka.topics_regex, topic) is not None
    )


def _nothing(left_out: Iterable[str]) -> str:
    topics = ", ".join(left_out)
    why = f"are of topics that the connector does not read ({topics})" if topics else "have no records"
    return f"Invalid [FILES]. All of them {why}; name others, or another connector file."


def _check_topics(settings: SinkSettings, topics: Iterable[str]) -> None:
    reasons = [settings.why_unusable(topic) for topic in sorted(topics)]
    if any(reasons):
        raise InvalidConfiguration([reason for reason in reasons if reason is not None])


def _reshape(
    args: argparse.Namespace, settings: SinkSettings, out: str, ranges: "Sequence[RawRange]", left_out: dict[str, int]
) -> int:
    from parquet_sink.commands.reshape import output
    from parquet_sink.commands.reshape.report import Progress, Summary
    from parquet_sink.reshape.marks import Mark
    from parquet_sink.reshape.run import Reshape, settings_for

    rejected = os.path.abspath(args.rejected or os.path.join(out, output.REJECTED))
    with output.work_folder(settings.tmp_dir, settings.name) as work:
        output.prepare(out, [Mark.of(settings.fingerprint, one) for one in ranges])
        own = settings_for(settings, work, rejected)
        output.prepare_rejected(own)
        summary = Summary(settings.name, out, own.parked_folder, left_out)
        progress = Progress(sum(one.rows for one in ranges))
        try:
            for done in Reshape(own, progress).run(ranges):
                summary.done.append(done)
        except KeyboardInterrupt:
            print("reshape: interrupted; --out has whole files, and the same command goes on", file=sys.stderr)
            return INTERRUPTED
    print(summary.to_json() if args.json else "\n".join(summary.lines()))
    if summary.failure is None:
        return os.EX_OK
    print(f"parquet-sink: {summary.failure.message}", file=sys.stderr)
    return 1
