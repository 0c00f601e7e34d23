"""What a connector that was deleted left on this machine is removed, when somebody asks for that.

That is its folder below `tmp.dir` (lock, state, history) and its folder for parked records. Its group's offsets stay.
"""

from parquet_sink.errors import ConnectorError
from parquet_sink.files import cleanup
from parquet_sink.files.lock import ConnectorLock
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.worker.herder.errors import NotPurged
from parquet_sink.worker.loop.flow import flow_of


def require(settings: ConnectorSettings) -> None:
    """Raises NotPurged where something would be gone that is nowhere else."""
    if (why := flow_of(settings).nowhere_else()) is not None:
        raise NotPurged(f"{why} Nothing was deleted.")


def purge(settings: ConnectorSettings) -> tuple[str, ...]:
    """Of a connector that has ended; what stays of its folder. Raises NotPurged."""
    lock = ConnectorLock(settings.tmp_dir, settings.name)
    try:
        with lock:
            require(settings)
            left = cleanup.purge(settings.tmp_dir, settings.name)
    except (ConnectorError, OSError) as error:
        raise NotPurged(f"Connector {settings.name} is deleted, and what it left is not removed: {error}") from None
    flow_of(settings).remove_beside()
    return tuple(left)
