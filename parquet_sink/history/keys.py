"""Keys of the history of uploads."""

from typing import Final

from parquet_sink.config.key import Key, Origin, Type, ems
from parquet_sink.history.settings import DEFAULT_MAX_BYTES, DEFAULT_MAX_FILES, DEFAULT_RETENTION_MS

HISTORY: Final = "History"
ENABLE: Final = ems("history.enable")
MAX_FILES: Final = ems("history.max.files")
MAX_BYTES: Final = ems("history.max.bytes")
RETENTION: Final = ems("history.retention.ms")

HISTORY_KEYS: Final = (
    Key(
        ENABLE,
        HISTORY,
        Type.BOOLEAN,
        "Keep a history of uploads, see [history.md](history.md): for each file its offsets, rows, digest and "
        "attempts, in `.history.db` in the connector's folder below `connect.ems.tmp.dir`.",
        default=True,
        origin=Origin.OWN,
    ),
    Key(
        MAX_FILES,
        HISTORY,
        Type.INT,
        "How many uploads the history keeps; the oldest beyond are forgotten.",
        default=DEFAULT_MAX_FILES,
        minimum=1,
        origin=Origin.OWN,
    ),
    Key(
        MAX_BYTES,
        HISTORY,
        Type.LONG,
        "The most that the history may take on the disk, in bytes; the oldest uploads beyond are forgotten.",
        default=DEFAULT_MAX_BYTES,
        minimum=1_000_000,
        origin=Origin.OWN,
    ),
    Key(
        RETENTION,
        HISTORY,
        Type.LONG,
        "How long the history keeps an upload, in milliseconds.",
        default=DEFAULT_RETENTION_MS,
        minimum=1_000,
        origin=Origin.OWN,
    ),
)
