"""The user's cache folder: what can be made or fetched again."""

import os
from collections.abc import Mapping
from pathlib import Path


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """PARQUET_SINK_CACHE, or `parquet-sink` in the user's cache folder."""
    if own := environment.get("PARQUET_SINK_CACHE"):
        return Path(own).expanduser().absolute()
    base = environment.get("XDG_CACHE_HOME")
    return (Path(base) if base and Path(base).is_absolute() else Path("~/.cache").expanduser()) / "parquet-sink"
