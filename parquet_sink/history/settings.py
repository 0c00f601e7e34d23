"""Keys and settings of the history of uploads. Sizes are bytes, durations milliseconds."""

from parquet_sink.config.declared import Bytes, Milliseconds, declared, key
from parquet_sink.config.key import Origin, ems


@declared(group="History", prefix=ems("history."), origin=Origin.OWN)
class HistorySettings:
    """Whether there is a history of uploads, and how long it is."""

    enabled: bool = key(
        "enable",
        "Keep a history of uploads, see [history.md](../how-to/history.md): for each file its offsets, rows, digest "
        "and attempts, in `.history.db` in the connector's folder below `connect.ems.tmp.dir`.",
        default=True,
    )
    max_files: int = key(
        "max.files",
        "How many uploads the history keeps; the oldest beyond are forgotten.",
        default=100_000,
        minimum=1,
    )
    max_bytes: Bytes = key(
        "max.bytes",
        "The most that the history may take on the disk, in bytes; the oldest uploads beyond are forgotten.",
        default=128 << 20,
        minimum=1_000_000,
    )
    retention_ms: Milliseconds = key(
        "retention.ms",
        "How long the history keeps an upload, in milliseconds.",
        default=90 * 24 * 3_600_000,
        minimum=1_000,
    )
