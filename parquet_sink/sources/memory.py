"""What tasks remember, kept in a file of the connector's folder together with the places that it goes with.

It is written before the places are stored. So the file has what goes with the places before, too, and whoever begins
takes what goes with the places that he finds; nothing, where nobody knows of these.
"""

import json
import os
from collections.abc import Mapping
from typing import Final

from parquet_sink.files.storage import storage_trouble
from parquet_sink.sources.offsets.connect_form import Places
from parquet_sink.sources.task import Memory, Place

_Entry = dict[str, dict[str, Place]]
"""places: by source partition; tasks: by number, what is remembered."""
FILE: Final = ".source-memory.json"


class MemoryFile:
    """folder: the connector's, below `tmp.dir`."""

    def __init__(self, folder: str) -> None:
        self._folder, self._path = folder, os.path.join(folder, FILE)

    def read(self, places: Places) -> dict[int, Memory]:
        """By task, what goes with these places. Of two entries the older one counts: it repeats, and skips nothing."""
        known = [one["tasks"] for one in self._entries() if one["places"] == _plain(places)]
        return {int(task): memory for task, memory in known[0].items()} if known else {}

    def write(self, before: Places, after: Places, tasks: Mapping[int, Memory]) -> None:
        """What tasks remember at the places `after`; what was kept for those before stays. Raises StorageFailed."""
        kept = [one for one in self._entries() if one["places"] == _plain(before)][:1]
        mine = {"places": _plain(after), "tasks": {str(task): dict(memory) for task, memory in tasks.items()}}
        with storage_trouble(self._folder, f"write {FILE}"):
            new = f"{self._path}.new"
            with open(new, "w", encoding="utf-8") as file:
                json.dump([*kept, mine], file)
            os.replace(new, self._path)

    def _entries(self) -> list[_Entry]:
        try:
            with open(self._path, encoding="utf-8") as file:
                found = json.load(file)
            return [one for one in found if one.keys() == {"places", "tasks"}]
        except (OSError, ValueError, AttributeError, TypeError):
            return []


def _plain(places: Places) -> dict[str, Place]:
    return {partition: dict(place) for partition, place in places.items()}
