"""Values that a checked file certainly has, and paths that hold in any process."""

import posixpath

from parquet_sink.config.key import ems
from parquet_sink.config.values import Values
from parquet_sink.worker_config.worker import Worker


def text(values: Values, name: str) -> str:
    """The text of a key, by its full name."""
    found = values.text(name)
    assert found is not None, name
    return found


def number(values: Values, name: str) -> int:
    """The number of a key of the EMS connector, by its name behind `connect.ems.`."""
    found = values.number(ems(name))
    assert found is not None, name
    return found


def absolute(path: str, worker: Worker) -> str:
    """Worker processes of Spark may have another working directory."""
    return posixpath.normpath(posixpath.join(worker.machine.working_dir, path))
