"""Tasks of a source: their class, what they are told, and what becomes of what their code raises."""

import json
from collections.abc import Callable
from typing import TypeVar

from parquet_sink.addons.sources.flow.outcome import SourceWork
from parquet_sink.addons.sources.settings import SourceSettings
from parquet_sink.addons.sources.task import Reached, TaskClass
from parquet_sink.config.secret import Secret
from parquet_sink.errors import ConnectorError, SourceFailed, code_place
from parquet_sink.plugins import named
from parquet_sink.process import plugin_errors

T = TypeVar("T")


def task_class(path: str) -> TaskClass:
    """The class of a source's tasks, `module:Class`. Raises SourceFailed when it is not there."""
    try:
        found: TaskClass = named(path)
    except Exception as error:
        raise SourceFailed(
            f"The source's task {path} cannot be loaded: {code_place(error)}. It must be on every machine "
            "that runs Spark tasks."
        ) from error
    return found


def settings_of(settings: SourceSettings, task: int) -> dict[str, str]:
    """What a task is told, secrets revealed."""
    given = settings.tasks[task].items()
    return {name: value.reveal() if isinstance(value, Secret) else value for name, value in given}


def reached(work: SourceWork) -> Reached:
    """What a task is told of where it was."""
    return Reached([(json.loads(partition), place) for partition, place in work.places.items()], work.memory)


def guarded(call: Callable[[], T]) -> T:
    """What a task's code does. Raises SourceFailed for whatever it did not raise on purpose."""
    try:
        return call()
    except (ConnectorError, MemoryError):
        raise
    except Exception as error:
        raise SourceFailed(
            f"The source's task failed with {plugin_errors.reported(error)}. Correct its code, or its settings."
        ) from error
