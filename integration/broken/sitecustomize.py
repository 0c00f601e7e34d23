"""Breaks a sink on purpose, in five ways that lose or alter records: what the oracle must catch.

Which connector is broken how is told by its name, which is also its topic and its table; all others stay sound.
Python imports this module in every process of the sink whose PYTHONPATH has this folder (see `integration.patching`).
"""

import functools
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from integration.patching import install

ON = os.environ.get("PARQUET_SINK_TEST_BROKEN")
SKIPPED = "skip-a-record"
FORGOTTEN_PARTITION = 1


def commit_before_upload(take: Callable[..., Any]) -> Callable[..., Any]:
    """The end of a range is committed when the range is taken."""

    @functools.wraps(take)
    def broken(plans: Any, found: Any) -> Any:
        taken = take(plans, found)
        if plans._context.settings.name == "commit-before-upload" and taken:
            plans._context.group.commit({(one.topic, one.partition): one.end for one in taken})
        return taken

    return broken


def forget_a_partition(take: Callable[..., Any]) -> Callable[..., Any]:
    """Nothing of one topic-partition is ever taken."""

    @functools.wraps(take)
    def broken(plans: Any, found: Any) -> Any:
        forgets = plans._context.settings.name == "forget-a-partition"
        return take(plans, [one for one in found if not (forgets and one[1][1] == FORGOTTEN_PARTITION)])

    return broken


def drop_on_500(push: Callable[..., Any]) -> Callable[..., Any]:
    """An answer of 500 counts as acceptance."""

    @functools.wraps(push)
    def broken(target: Any, file: Any, seconds_left: float) -> Any:
        outcome = push(target, file, seconds_left)
        if file.topic == "drop-on-500" and outcome.status == 500:
            return replace(outcome, verdict=type(outcome.verdict).ACCEPTED)
        return outcome

    return broken


def other_name_on_retry(push: Callable[..., Any]) -> Callable[..., Any]:
    """From the second attempt on a file has another name."""
    attempts: dict[str, int] = {}

    @functools.wraps(push)
    def broken(target: Any, file: Any, seconds_left: float) -> Any:
        if file.topic == "other-name-on-retry":
            attempts[file.name] = attempts.get(file.name, 0) + 1
            if attempts[file.name] > 1:
                file = replace(file, name=f"attempt-{attempts[file.name]}_{file.name}")
        return push(target, file, seconds_left)

    return broken


def skip_a_record(add: Callable[..., Any]) -> Callable[..., Any]:
    """Of each run of rows the second record is left out."""

    @functools.wraps(add)
    def broken(accumulator: Any, run: Any, *more: Any, **named: Any) -> Any:
        if accumulator._place.topic == SKIPPED and run.records > 2:
            run = _without_second(run)
        return add(accumulator, run, *more, **named)

    return broken


def _without_second(run: Any) -> Any:
    import pyarrow as pa

    rows = pa.concat_tables([run.rows.slice(0, 1), run.rows.slice(2)])
    offsets = pa.concat_arrays([run.offsets.slice(0, 1), run.offsets.slice(2)])
    return replace(run, rows=rows, offsets=offsets, records=run.records - 1)


def _both(*changes: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Callable[..., Any]:
    return lambda function: functools.reduce(lambda made, change: change(made), changes, function)


if ON is not None:
    install(
        {
            "parquet_sink.planner.range_plans": {"RangePlans.take": _both(commit_before_upload, forget_a_partition)},
            "parquet_sink.targets.push.target": {"PushTarget.push": _both(drop_on_500, other_name_on_retry)},
            "parquet_sink.files.accumulator": {"Accumulator.add": skip_a_record},
        }
    )
