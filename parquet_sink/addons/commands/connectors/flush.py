"""`connectors flush`: what waits goes out now; with --wait until it did, and what did not."""

import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from parquet_sink.addons.commands.connectors.printing import print_json, print_lines
from parquet_sink.cli.worker_api.api import WorkerApi
from parquet_sink.config.report import counted
from parquet_sink.errors import SinkError, WorkerRefused
from parquet_sink.worker.herder.values import OFFSET, PARTITION, TOPIC

LOOK_S: Final = 0.25
MOST_LISTED: Final = 20
"""Topic-partitions that are listed; JSON has them all."""
_NOT_FOUND: Final = 404
Report = dict[str, Any]


def flush(
    args: Namespace,
    api: WorkerApi,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> bool:
    """Asks for it; whether it was taken, with --wait whether all of it went out."""
    name = args.targets[0]
    body = {"partitions": [_entry(*one) for one in args.topic_partition]} if args.topic_partition else None
    report: Report = api.ask("POST", ("connectors", name, "flush"), content=body)
    if args.wait is not None:
        report = _followed(api, report, clock() + args.wait, clock, pause)
    if args.json:
        print_json(report)
    else:
        print_lines(_lines(report, waited_s=args.wait))
    return args.wait is None or report["state"] == "done"


def _entry(topic: str, number: int | None) -> dict[str, Any]:
    return {TOPIC: topic} if number is None else {TOPIC: topic, PARTITION: number}


def _followed(
    api: WorkerApi, report: Report, deadline: float, clock: Callable[[], float], pause: Callable[[float], None]
) -> Report:
    """How it stands in the end. A worker that is away or started again meanwhile is asked until the deadline.

    Where nobody knows of the flush any more, the group's offsets say what went out.
    """
    name, flush_id = report["connector"], report["id"]
    why = ""
    while report["state"] == "waiting":
        try:
            report, why = api.get("connectors", name, "flush", flush_id), ""
        except WorkerRefused as error:
            if error.status == _NOT_FOUND:
                return _lost(api, report, str(error))
            why = str(error)
        except SinkError as error:
            why = str(error)
        left_s = deadline - clock()
        if left_s <= 0:
            break
        if report["state"] == "waiting":
            pause(min(LOOK_S, left_s))
    return {**report, "waits_for": why or report["waits_for"]}


def _lost(api: WorkerApi, report: Report, why: str) -> Report:
    """With what is committed by now."""
    reached: dict[tuple[str, int], int] = {}
    with suppress(SinkError, KeyError, TypeError):
        for one in api.get("connectors", report["connector"], "offsets")["offsets"]:
            reached[one["partition"][TOPIC], one["partition"][PARTITION]] = one["offset"][OFFSET]
    partitions = [_now(one, reached.get((one["topic"], one["partition"]))) for one in report["partitions"]]
    return {**report, "state": "lost", "partitions": partitions, "waits_for": why}


def _now(one: Mapping[str, Any], reached: int | None) -> Mapping[str, Any]:
    if reached is None or one["state"] != "waiting":
        return one
    done = one["until"] is not None and reached >= one["until"]
    return {**one, "reached": reached, "state": "done" if done else "lost"}


def _lines(report: Report, *, waited_s: float | None) -> Iterator[str]:
    name, partitions = report["connector"], report["partitions"]
    if waited_s is None:
        yield f"connector {name}: asked to flush; it is flush {report['id']}"
        return
    yield f"connector {name}: {_said(report['state'], waited_s)}: {_went(partitions)}"
    if report["waits_for"] and report["state"] != "done":
        yield f"  {report['waits_for']}"
    left = [one for one in partitions if one["state"] != "done"]
    yield from (f"  {_open(one)}" for one in left[:MOST_LISTED])
    if len(left) > MOST_LISTED:
        yield f"  and {len(left) - MOST_LISTED:,} more topic-partitions"


def _said(state: str, waited_s: float) -> str:
    if state == "waiting":
        return f"not flushed after {waited_s:g} s, and goes on"
    return "flushed" if state == "done" else "the flush was lost"


def _went(partitions: Sequence[Mapping[str, Any]]) -> str:
    files, rows, records = (sum(one[part] for one in partitions) for part in ("files", "rows", "records"))
    went = f"{counted(files, 'file')}, {counted(rows, 'row')}"
    return f"{went}, {counted(records, 'record')} without a file" if records else went


def _open(one: Mapping[str, Any]) -> str:
    where = f"{one['topic']}:{one['partition']}"
    if one["state"] == "gone":
        return f"{where}: it is not there any more"
    if one["until"] is None:
        return f"{where}: it is unavailable, so what waits in it is not known"
    return f"{where}: offsets {one['reached']} to {one['until'] - 1} did not go out"
