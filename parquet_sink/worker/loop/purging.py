"""What a connector that was deleted left on this machine is removed, when somebody asks for that.

That is its folder below `tmp.dir` (lock, state, history) and its folder for parked records. Its group's offsets stay.
"""

from contextlib import suppress
from pathlib import Path

from parquet_sink.errors import ConnectorError
from parquet_sink.files import cleanup
from parquet_sink.files.lock import ConnectorLock
from parquet_sink.parked.names import any_parked
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.worker.herder.errors import NotPurged
from parquet_sink.worker.loop.archiving import waiting_files


def require(settings: ConnectorSettings) -> None:
    """Raises NotPurged where something would be gone that is nowhere else."""
    if isinstance(settings, SinkSettings) and any_parked(settings.parked_folder):
        raise NotPurged(
            f"Connector {settings.name} has parked records in {settings.parked_folder}, which are nowhere else: send "
            "them with parquet-sink parked replay, or give them up with parquet-sink parked drop. Nothing was deleted."
        )
    if count := waiting_files(settings):
        raise NotPurged(
            f"{count} files of connector {settings.name} wait for the archive; let it take them, or remove "
            "connect.ems.archive.url. Nothing was deleted."
        )


def purge(settings: ConnectorSettings) -> tuple[str, ...]:
    """Of a connector that has ended; what stays of its folder. Raises NotPurged."""
    lock = ConnectorLock(settings.tmp_dir, settings.name)
    try:
        with lock:
            require(settings)
            left = cleanup.purge(settings.tmp_dir, settings.name)
    except (ConnectorError, OSError) as error:
        raise NotPurged(f"Connector {settings.name} is deleted, and what it left is not removed: {error}") from None
    if isinstance(settings, SinkSettings):
        _remove_parked(Path(settings.parked_folder))
    return tuple(left)


def _remove_parked(folder: Path) -> None:
    """Of a folder of one's own for parked records, in which there are none."""
    from parquet_sink.parked.locks import CHANGES, REPLAY
    from parquet_sink.parked.scan import MARKER  # loads Arrow, where there is something to remove

    if not (folder / MARKER).is_file():
        return
    for name in (CHANGES, REPLAY, MARKER):
        with suppress(OSError):
            (folder / name).unlink()
    cleanup.remove_empty(str(folder))
