"""Where and how local Parquet files are written. Sizes are bytes."""

from dataclasses import dataclass
from typing import Literal

Codec = Literal["snappy", "zstd", "gzip", "lz4", "none"]


@dataclass(frozen=True)
class FileSettings:
    """Where and how local Parquet files are written. `row_group_size_bytes` None: as large as is useful."""

    tmp_dir: str
    codec: Codec = "snappy"
    row_group_size_bytes: int | None = None
    keep_files: bool = False
