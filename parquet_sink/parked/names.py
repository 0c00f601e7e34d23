"""Names of parked files, and whether there are any: what can be known without reading one."""

import os
import re
from typing import Final

_NAME: Final = re.compile(r"parked-([0-9]{6,})\.parquet")
_UNFINISHED: Final = re.compile(r"\.parked-[0-9]{6,}\.parquet\.[0-9a-f]{32}\.part")


def name_of(number: int) -> str:
    """The name of a topic-partition's file of this number."""
    return f"parked-{number:06d}.parquet"


def number_in(name: str) -> int | None:
    """The number in a name that `name_of` may have made, else None."""
    found = _NAME.fullmatch(name)
    return None if found is None else int(found[1])


def is_unfinished(name: str) -> bool:
    """Whether a file of this name was being written by `Staged`."""
    return _UNFINISHED.fullmatch(name) is not None


def any_parked(folder: str) -> bool:
    """Whether a file is there that has the name of a parked one."""
    return any(number_in(name) is not None for _, _, names in os.walk(folder) for name in names)
