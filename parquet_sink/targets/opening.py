"""Targets by their settings: opened anew, or kept by a process from micro-batch to micro-batch."""

import os
import threading
from typing import Final

from parquet_sink.process.lru_cache import LruCache
from parquet_sink.targets.directory.settings import DirectorySettings
from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.targets.settings import TargetSettings
from parquet_sink.targets.target import Target

MOST_TARGETS: Final = 16

_targets: LruCache[tuple[int, TargetSettings], Target] = LruCache(MOST_TARGETS)
_lock = threading.Lock()


def open_target(settings: TargetSettings) -> Target:
    """A target of its own for the caller, who closes it. Raises InvalidConfiguration for files that cannot be used."""
    if isinstance(settings, DirectorySettings):  # each loads only what it needs
        from parquet_sink.targets.directory.target import DirectoryTarget

        return DirectoryTarget(settings)
    if isinstance(settings, PushSettings):
        from parquet_sink.targets.push.target import PushTarget

        return PushTarget(settings)
    return settings.open()


def target_for(settings: TargetSettings) -> Target:
    """The process's target for these settings: opened when there is none, and kept. Raises as `open_target`.

    The process id is part of the key, because connections must not be shared with a forked process.
    """
    key = (os.getpid(), settings)
    with _lock:
        target = _targets.get(key)
        if target is None:
            target = open_target(settings)
            _targets.put(key, target)  # what it forgets is not closed: another thread may be sending with it
        return target
