"""`parquet-sink try`: what becomes of one record, step by step; nothing is sent, stored or committed."""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from parquet_sink.config.report import printable
from parquet_sink.connectors.check import check_files
from parquet_sink.errors import InvalidConfiguration, NoSuchRecord, TopicGone
from parquet_sink.model.records import Header, RecordBatch
from parquet_sink.model.rejected import Rejected
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.validate.preflight import inspect

if TYPE_CHECKING:
    from parquet_sink.addons.commands.trial import Seen, Shown, Trial

REJECTED: Final = 1
"""Exit status when the record cannot become a row."""
_MOST: Final = {"partition": 2**31 - 1, "offset": 2**63 - 2, "timestamp": 2**63 - 1}
_WITH_VALUE: Final = ("key", "header", "timestamp")
_NULL: Final = {"value": None, "type": ""}


_EXAMPLES: Final = """\
examples:
  parquet-sink try --topic orders --offset 1200 orders.properties
  parquet-sink try --value order.json --key key.txt --header trace=abc orders.properties

Exit status: 0 the record has rows, or rightly none (a tombstone, or a step drops it); 1 it is rejected or cannot be \
read; 2 wrong options or files."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The connector file, and which record: one of Kafka, or one of files."""
    parser.description = (
        "Shows one record after each step (decoded, each transform) and the row that it becomes, or why it has none; "
        "one that cannot be decoded is shown as it was received, with its schema id and the value's first 64 bytes. "
        "Fields that are obfuscated are so in the row alone: the steps before show them in clear."
    )
    parser.epilog = _EXAMPLES
    parser.add_argument("file", metavar="connector.properties", help="connector file, .properties or .json")
    parser.add_argument("--worker", metavar="FILE", help="worker file: bootstrap.servers, consumer.*, converters")
    parser.add_argument("--bootstrap-servers", metavar="HOST:PORT,…", help="Kafka's address, as for run")
    parser.add_argument(
        "--topic",
        help="the record's topic (default: the connector's, if it reads one); one that it does not read is taken with "
        "a warning",
    )
    parser.add_argument("--partition", type=int, default=0, help="the record's topic-partition (default 0)")
    parser.add_argument("--offset", type=int, help="the record's offset: it is read from Kafka, without a group")
    parser.add_argument("--value", metavar="FILE", help="the bytes of a record's value, in place of a record of Kafka")
    parser.add_argument("--key", metavar="FILE", help="with --value: the bytes of its key")
    parser.add_argument(
        "--header", metavar="NAME=TEXT", action="append", default=[], help="with --value: a header; may be repeated"
    )
    parser.add_argument("--timestamp", type=int, metavar="MS", help="with --value: its time (default: now)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """0 when the record has a row or rightly none, 1 when it is rejected. Raises SinkError."""
    _check(args)
    checked = inspect(check_files([args.file], args.worker, bootstrap_servers=args.bootstrap_servers), keeps=False)
    # of a file's record those of the connector alone: no broker is asked
    for warning in checked.warnings if args.value is None else checked.connectors[0].warnings:
        print(warning, file=sys.stderr)
    (settings,) = checked.require()
    record = _record(args, settings)
    from parquet_sink.addons.commands.trial import timestamp_text, trial
    from parquet_sink.task.record_steps import StopAtRejected, steps_for

    found = trial(record, steps_for(settings, StopAtRejected()), settings.shape)
    table = settings.table_of(record.topic)
    if args.json:
        print(to_json(found, table))
    else:
        stamp = record.timestamps[0].as_py()
        print(_title(record, "no timestamp" if stamp is None else f"timestamp {stamp} ({timestamp_text(stamp)})"))
        for line in lines(found, table):
            print(line)
    return REJECTED if found.rejected is not None else os.EX_OK


def _title(record: RecordBatch, stamp: str) -> str:
    return f"topic {record.topic}, topic-partition {record.partition}, offset {record.offsets[0]}, {stamp}"


def _check(args: argparse.Namespace) -> None:
    problems = []
    if (args.value is None) == (args.offset is None):
        problems.append(
            "Invalid [--offset]. Give either --offset, for a record of Kafka, or --value, for one of a file."
        )
    if args.value is None:
        problems += [
            f"Invalid [--{name}]. It goes with --value alone."
            for name in _WITH_VALUE
            if getattr(args, name) not in (None, [])
        ]
    problems += [
        f"Invalid [--{name}]. {number} is less than 0."
        for name in _MOST
        if (number := getattr(args, name)) is not None and number < 0
    ]
    problems += [
        f"Invalid [--{name}]. {number} is more than {most}."
        for name, most in _MOST.items()
        if (number := getattr(args, name)) is not None and number > most
    ]
    problems += [f'Invalid [--header]. "{one}" has no =; write NAME=TEXT.' for one in args.header if "=" not in one]
    if problems:
        raise InvalidConfiguration(problems)


def _record(args: argparse.Namespace, settings: SinkSettings) -> RecordBatch:
    topics = settings.kafka.topics
    topic = args.topic or (topics[0] if len(topics) == 1 else None)
    if topic is None:
        raise InvalidConfiguration(["Invalid [--topic]. The connector reads more than one; name the record's."])
    if (reason := settings.why_unusable(topic)) is not None:
        raise InvalidConfiguration([reason])
    if topics and topic not in topics:
        what = f"The connector does not read {topic}, but {', '.join(topics)}."
        print(f"Warning [--topic]. {what} It is taken as it would be if it did.", file=sys.stderr)
    if args.value is None:
        return _of_kafka(args, settings, topic)
    stamp = int(time.time() * 1000) if args.timestamp is None else args.timestamp
    key = None if args.key is None else _bytes("--key", args.key)
    headers: list[Header] = [_header(one) for one in args.header]
    return RecordBatch.of(topic, args.partition, [0], [stamp], [_bytes("--value", args.value)], [key], [headers])


def _of_kafka(args: argparse.Namespace, settings: SinkSettings, topic: str) -> RecordBatch:
    from parquet_sink.kafka.one_record import read_one

    try:
        return read_one(settings.kafka, topic, args.partition, args.offset)
    except TopicGone:
        if args.topic is None:
            raise
        raise NoSuchRecord(f"Topic {topic} does not exist; correct --topic.") from None


def _header(text: str) -> Header:
    name, _, value = text.partition("=")
    return name, value.encode()


def _bytes(option: str, path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidConfiguration(
            [f"Invalid [{option}]. {path} cannot be read ({reason}); correct the path."]
        ) from None
    if not data:
        raise InvalidConfiguration([f"Invalid [{option}]. {path} is empty; write the record's bytes into it."])
    return data


def lines(found: "Trial", table: str) -> Iterator[str]:
    """After each step what it changed, then the rows, or why there are none."""
    before: Seen | None = None
    for one in found.seen:
        yield printable(one.step)
        yield from _changes(before, one)
        before = one
    yield from _end(found, table)


def to_json(found: "Trial", table: str) -> str:
    """All of it as one object."""
    rejected = found.rejected
    steps: list[dict[str, Any]] = [asdict(one) for one in found.seen]
    for step in steps:
        step["headers"] = step["headers"] and [{"name": name, **(shown or _NULL)} for name, shown in step["headers"]]
    whole = {
        "steps": steps,
        "table": table,
        "columns": found.columns,
        "rows": found.rows,
        "rejected": None if rejected is None else _why(found, rejected),
        "dropped_by": found.dropped_by,
        "unmatched": found.unmatched,
    }
    return json.dumps(whole, ensure_ascii=False, indent=2)


def _why(found: "Trial", rejected: Rejected) -> dict[str, str]:
    return {"stage": rejected.stage, "by": found.rejected_by, "reason": rejected.reason}


def _changes(before: "Seen | None", now: "Seen") -> Iterator[str]:
    changed = False
    for name in ("topic", "key", "headers", "value"):
        if before is None or getattr(before, name) != getattr(now, name):
            changed = True
            yield from _part(name, getattr(now, name))
    if not changed:
        yield "  unchanged"


def _part(name: str, part: Any) -> Iterator[str]:
    if name == "topic":
        yield f"  topic    {part}"
    elif name == "headers" and not part:
        yield "  headers  " + ("not readable: a name is not UTF-8" if part is None else "none")
    elif name == "headers":
        for number, (header, shown) in enumerate(part):
            yield f"  {'' if number else 'headers':<8} {printable(header)}: {_value(shown)}{_type_behind(shown)}"
    else:
        yield f"  {name:<8} {_value(part)}{_type_behind(part)}"


def _value(shown: "Shown | None") -> str:
    return "null" if shown is None else _line(shown.value)


def _type_behind(shown: "Shown | None") -> str:
    from parquet_sink.addons.commands.trial import NOT_DECODED

    if shown is None or not shown.type:
        return ""
    return f"  ({shown.type})" if shown.type == NOT_DECODED or "," not in shown.type else f"\n           {shown.type}"


def _line(value: object) -> str:
    """On one line, without what a terminal would not print."""
    return printable(json.dumps(value, ensure_ascii=False))


def _end(found: "Trial", table: str) -> Iterator[str]:
    if found.rejected is not None:
        by = f" by {found.rejected_by}" if found.rejected_by else ""
        yield printable(f"no row: rejected{by} ({found.rejected.stage}): {found.rejected.reason}")
    elif found.dropped_by is not None:
        yield f"no row: dropped by {printable(found.dropped_by)}; its offset is committed"
    elif not found.rows:
        why = "a null value" if found.seen[-1].value is None else "it gives none"
        yield f"no row: {why}; its offset is committed"
    else:
        yield f"{len(found.rows)} {'row' if len(found.rows) == 1 else 'rows'} of table {printable(table)}"
        yield from (f"  {_line(row)}" for row in found.rows)
        yield f"  columns: {printable(', '.join(found.columns))}"
        for path in found.unmatched:
            yield f"  nothing is obfuscated at {printable(path)}: the record has no such field"
