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
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

FOLDER = os.environ.get("PARQUET_SINK_TEST_SEAMS")
SEAMS = {
    "parquet_sink.kafka.range_reader": ("RangeReader._acquire", "RangeReader._release"),
    "parquet_sink.shape.shaper": ("Shaper.shape",),
    "parquet_sink.files.accumulator": ("Accumulator.add", "Accumulator._close_file"),
    "parquet_sink.targets.push.target": ("PushTarget.push",),
    "parquet_sink.targets.delivery": ("after_acceptance",),
    "parquet_sink.pipeline.range_flush": ("RangeFlush.acknowledge", "RangeFlush.outcome"),
    "parquet_sink.parked.files": ("Staged.commit",),
    "parquet_sink.spark.sink": ("PushWriter.write", "PushWriter.commit"),
    "parquet_sink.state.sqlite.store": ("SqliteStore.record_accepted",),
    "parquet_sink.kafka.group.offsets": ("GroupOffsets._send",),
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


class _Patches(MetaPathFinder):
    """Lets the named modules be found as always, and wraps their seams once they are loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in SEAMS:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def patched(module: ModuleType) -> None:
                execute(module)
                for seam in SEAMS[fullname]:
                    _patch(module, seam)

            spec.loader.exec_module = patched  # type: ignore[method-assign]
        return spec


def _patch(module: ModuleType, seam: str) -> None:
    *outer, name = seam.split(".")
    owner: Any = functools.reduce(getattr, outer, module)
    setattr(owner, name, _wrapped(seam, getattr(owner, name)))


if FOLDER is not None:
    sys.meta_path.insert(0, _Patches())
