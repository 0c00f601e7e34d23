"""`connectors offsets`: where a connector's group stands, and where it is to go on."""

import json
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from parquet_sink.addons.commands.connectors.printing import columns, print_json, print_lines
from parquet_sink.cli.worker_api.api import WorkerApi
from parquet_sink.config.report import printable
from parquet_sink.errors import InvalidConfiguration, WorkerRefused

_LARGEST_BYTES: Final = 16 * 1024 * 1024
_TITLES: Final = ("TOPIC", "TOPIC-PARTITION", "OFFSET", "END", "LAG")
_NOT_STOPPED: Final = "STOPPED state"
Entry = Mapping[str, Any]


def offsets(args: Namespace, api: WorkerApi) -> bool:
    """Prints them, or changes them; whether that was done."""
    name = args.targets[0]
    path = ("connectors", name, "offsets")
    entries = _wanted(args)
    if entries is None and not args.reset:
        _print(args, api.get(*path) if args.json else api.get(*path, ends="true"))
        return True
    now = api.get(*path, ends="true")["offsets"]
    if beyond := list(_beyond(now, entries or ())):
        raise WorkerRefused("\n  ".join([f"connector {name}: nothing is changed, because", *beyond]), 400)
    harm = list(_harm(now, entries))
    if harm and not args.yes:
        print_lines([f"connector {name}: nothing is changed without --yes, because", *(f"  {one}" for one in harm)])
        return False
    answer = _change(api, name, path, entries)
    if args.json:
        print_json({"name": name, "action": "offsets", **(answer or {})})
    else:
        print_lines([f"connector {name}: {(answer or {}).get('message', 'offsets changed')}"])
    return True


def _change(api: WorkerApi, name: str, path: tuple[str, ...], entries: list[Entry] | None) -> Any:
    try:
        if entries is None:
            return api.ask("DELETE", path)
        return api.ask("PATCH", path, content={"offsets": entries})
    except WorkerRefused as error:
        if _NOT_STOPPED in error.message:
            raise WorkerRefused(f"{error.message}\nparquet-sink connectors stop {name} --wait", error.status) from None
        raise


def _wanted(args: Namespace) -> list[Entry] | None:
    """What the options say, as the worker takes it."""
    if args.from_file is not None:
        return _read(args.from_file)
    if not args.to:
        return None
    twice = sorted({one[:2] for one in args.to if [other[:2] for other in args.to].count(one[:2]) > 1})
    if twice:
        raise InvalidConfiguration(
            [f"Invalid [--to]. {topic} {partition} is given twice; choose." for topic, partition in twice]
        )
    return [
        {
            "partition": {"kafka_topic": topic, "kafka_partition": partition},
            "offset": None if offset is None else {"kafka_offset": offset},
        }
        for topic, partition, offset in args.to
    ]


def _read(path: str) -> list[Entry]:
    """A file as `--json` printed it. Raises InvalidConfiguration."""
    try:
        with Path(path).open("rb") as file:
            content = json.loads(file.read(_LARGEST_BYTES))
    except OSError as error:
        raise _wrong_file(path, f"It cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise _wrong_file(path, "It is not JSON") from None
    found = content.get("offsets") if isinstance(content, dict) else None
    if not isinstance(found, list) or not found or not all(_is_entry(one) for one in found):
        raise _wrong_file(path, 'It is not {"offsets": [{"partition": {...}, "offset": {...}}, ...]}')
    return found


def _is_entry(one: object) -> bool:
    return isinstance(one, dict) and isinstance(one.get("partition"), dict) and "offset" in one


def _wrong_file(path: str, why: str) -> InvalidConfiguration:
    return InvalidConfiguration(
        [f"Invalid file [{printable(path)}]. {why}; give what connectors offsets NAME --json printed."]
    )


def _beyond(now: list[Entry], entries: Iterable[Entry]) -> Iterator[str]:
    """What cannot be: offsets behind the end of a topic-partition, where the worker reports ends."""
    ends = {_position(one): one["end"] for one in now if one.get("end") is not None}
    for one in entries:
        where, to = _position(one), _offset(one)
        end = ends.get(where)
        if end is not None and to is not None and to > end:
            yield f"{where}: offset {to:,} is not there: it ends at {end:,}; give {end:,} to go on with what comes next"


def _harm(now: list[Entry], entries: list[Entry] | None) -> Iterator[str]:
    """What the change would leave undelivered or have delivered again, in sentences."""
    if entries is None:
        yield (
            "all offsets would be removed: it starts over with all that Kafka still holds, or with "
            "auto.offset.reset=latest skips it"
        )
        return
    standing = {_position(one): _offset(one) for one in now}
    for one in entries:
        where, to = _position(one), _offset(one)
        at = standing.get(where)
        if to is None:
            yield f"{where}: the offset would be removed; what it starts with then, auto.offset.reset says"
        elif at is None:
            yield f"{where}: no offset is known there, so records before {to:,} may be skipped"
        elif to > at:
            skipped = (
                f"{to - at:,} records from offset {at:,} to {to - 1:,}" if to - at > 1 else f"the record at {at:,}"
            )
            yield f"{where}: {skipped} would be skipped, and never be sent"


def _position(entry: Entry) -> str:
    """A topic-partition in words; of a source connector whatever it calls its own."""
    partition = entry["partition"]
    if "kafka_topic" in partition:
        return f"{partition['kafka_topic']} {partition.get('kafka_partition')}"
    return json.dumps(partition, sort_keys=True)


def _offset(entry: Entry) -> int | None:
    """The offset; None when there is none, or it is a source connector's."""
    offset = entry["offset"]
    try:
        return int(offset["kafka_offset"])
    except (KeyError, TypeError, ValueError):
        return None


def _print(args: Namespace, found: Mapping[str, Any]) -> None:
    if args.json:
        print_json(found)
    elif not found["offsets"]:
        print("no offsets")
    else:
        with_ends = any(one.get("end") is not None for one in found["offsets"])
        rows = sorted(map(_row, found["offsets"]), key=_order)
        print_lines(columns([row if with_ends else row[: _TITLES.index("END")] for row in (_TITLES, *rows)]))


def _row(entry: Entry) -> tuple[str, ...]:
    partition, offset, end = entry["partition"], _offset(entry), entry.get("end")
    if "kafka_topic" not in partition:
        return json.dumps(partition), "", json.dumps(entry["offset"]), "", ""
    topic, number = str(partition["kafka_topic"]), str(partition.get("kafka_partition"))
    lag = "?" if end is None or offset is None else f"{end - offset:,}"
    return topic, number, str(offset), "?" if end is None else str(end), lag


def _order(row: tuple[str, ...]) -> tuple[str, int]:
    return row[0], int(row[1]) if row[1].isdigit() else 0
