"""Kills a process of the sink at a named seam, once: how `test_steps` crashes before and after each numbered step.

Python imports this module at the start of every process that has this folder on its PYTHONPATH; the sink itself knows
nothing of it. It changes nothing unless PARQUET_SINK_TEST_SEAMS names a folder. There a file `armed` with one JSON
object says where and how to crash; it is renamed to `fired` by the process that crashes, so that it happens once.
"""

import functools
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from integration.patching import install

FOLDER = os.environ.get("PARQUET_SINK_TEST_SEAMS")
SEAMS = {
    "parquet_sink.kafka.range_reader": ("RangeReader._acquire", "RangeReader._release"),
    "parquet_sink.kafka.several_ranges": ("read_together",),
    "parquet_sink.rows.row_builder": ("RowBuilder.shape",),
    "parquet_sink.files.accumulator": ("Accumulator.add", "Accumulator._close"),
    "parquet_sink.targets.push.target": ("PushTarget.push",),
    "parquet_sink.notify.topic": ("TopicNotices.send",),
    "parquet_sink.targets.uploader": ("after_acceptance",),
    "parquet_sink.task.range_flush": ("RangeFlush.acknowledge", "RangeFlush.outcome"),
    "parquet_sink.parked.files": ("Staged.commit",),
    "parquet_sink.spark.sink": ("PushWriter.write", "PushWriter.commit"),
    "parquet_sink.state.sqlite": ("SqliteStore.record_accepted",),
    "parquet_sink.kafka.group.offsets": ("GroupOffsets._look_and_commit",),
}


def _wrapped(seam: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def at_seam(*args: Any, **kwargs: Any) -> Any:
        caller = sys._getframe(1).f_code.co_name
        _perhaps(seam, "before", caller)
        result = function(*args, **kwargs)
        _perhaps(seam, "after", caller)
        return result

    return at_seam


def _perhaps(seam: str, when: str, caller: str) -> None:
    """Crashes if this seam is armed. Whoever renames the file is the one to die."""
    assert FOLDER is not None
    armed = os.path.join(FOLDER, "armed")
    try:
        with open(armed, encoding="utf-8") as file:
            order = json.load(file)
        if (order["seam"], order["when"]) == (seam, when) and order["caller"] in ("", caller):
            os.rename(armed, os.path.join(FOLDER, "fired"))
            _crash(whole=order["whole"])
    except FileNotFoundError:
        return


def _crash(*, whole: bool) -> None:
    """SIGKILL for this process, or for every process of the sink and this one last."""
    if whole:
        from integration import processes

        for process in processes.of_run(os.environ[processes.MARK]):
            if process.pid != os.getpid():
                processes.kill(process)
    os.kill(os.getpid(), signal.SIGKILL)


if FOLDER is not None:
    install({module: {seam: functools.partial(_wrapped, seam) for seam in seams} for module, seams in SEAMS.items()})
