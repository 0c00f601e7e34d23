"""How long the history is. Sizes are bytes, durations milliseconds."""

from dataclasses import dataclass
from typing import Final

DEFAULT_MAX_FILES: Final = 100_000
DEFAULT_MAX_BYTES: Final = 128 << 20
DEFAULT_RETENTION_MS: Final = 90 * 24 * 3_600_000


@dataclass(frozen=True)
class HistorySettings:
    """enabled: whether there is one. max_files: uploads that it keeps. retention_ms: how long. max_bytes: on disk."""

    enabled: bool = True
    max_files: int = DEFAULT_MAX_FILES
    max_bytes: int = DEFAULT_MAX_BYTES
    retention_ms: int = DEFAULT_RETENTION_MS
