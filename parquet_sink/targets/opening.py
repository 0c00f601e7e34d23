"""Targets by their settings: opened anew, or kept by a process from micro-batch to micro-batch."""

import os
import threading
from collections import OrderedDict
from typing import Final

from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.targets.target import Target

MOST_TARGETS: Final = 16

_targets: OrderedDict[tuple[int, PushSettings], Target] = OrderedDict()
_lock = threading.Lock()


def open_target(settings: PushSettings) -> Target:
    """A target of its own for the caller, who closes it. Raises InvalidConfiguration for files that cannot be used."""
    from parquet_sink.targets.push.target import PushTarget  # loads only what this connector needs

    return PushTarget(settings)


def target_for(settings: PushSettings) -> Target:
    """The process's target for these settings: opened when there is none, and kept. Raises as `open_target`.

    The process id is part of the key, because connections must not be shared with a forked process.
    """
    key = (os.getpid(), settings)
    with _lock:
        target = _targets.pop(key, None) or open_target(settings)
        _targets[key] = target
        if len(_targets) > MOST_TARGETS:
            _targets.popitem(last=False)  # not closed: another thread may be sending with it
        return target
