"""The user's cache folder, and files there whose names tell size and checksum, so that a damaged one is known."""

import os
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_NAME: Final = re.compile(r".*-(?P<size>\d+)-(?P<sum>[0-9a-f]{8})")


def whole_name(stem: str, file: Path) -> str:
    """The name of a file that is whole: the stem, its size and checksum, its suffix. Raises OSError."""
    return f"{stem}-{file.stat().st_size}-{_checksum(file)}{file.suffix}"


def is_whole(file: Path) -> bool:
    """Whether it has the size and the checksum that its name tells. Raises OSError."""
    named = _NAME.fullmatch(file.stem)
    if named is None or file.stat().st_size != int(named["size"]):
        return False
    return _checksum(file) == named["sum"]


def _checksum(file: Path) -> str:
    """CRC-32 of its content, in hexadecimal."""
    found = 0
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            found = zlib.crc32(block, found)
    return f"{found:08x}"


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """PARQUET_SINK_CACHE, or `parquet-sink` in the user's cache folder."""
    if own := environment.get("PARQUET_SINK_CACHE"):
        return Path(own).expanduser().absolute()
    base = environment.get("XDG_CACHE_HOME")
    return (Path(base) if base and Path(base).is_absolute() else Path("~/.cache").expanduser()) / "parquet-sink"
