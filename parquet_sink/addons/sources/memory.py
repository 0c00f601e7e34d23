"""What tasks remember, kept in a file of the connector's folder together with the places that it goes with.

It is written before the places are stored. So the file has what goes with the places before, too, and whoever begins
takes what goes with the places that he finds; nothing, where nobody knows of these.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from parquet_sink.addons.sources.offsets.connect_form import Places
from parquet_sink.addons.sources.task import Memory, Place
from parquet_sink.files.storage import storage_trouble, sync_folder

_Entry = dict[str, dict[str, Place]]
"""places: by source partition; tasks: by number, what is remembered."""
FILE: Final = ".source-memory.json"


class MemoryFile:
    """folder: the connector's, below `tmp.dir`."""

    def __init__(self, folder: str) -> None:
        self._folder, self._path = folder, os.path.join(folder, FILE)

    def read(self, places: Places) -> dict[int, Memory]:
        """By task, what goes with these places. Of two entries the older one counts: it repeats, and skips nothing."""
        known = [_tasks(one) for one in self._entries() if one["places"] == _plain(places)]
        return known[0] if known else {}

    def write(self, before: Places, after: Places, tasks: Mapping[int, Memory]) -> None:
        """What tasks remember at the places `after`; what was kept for others before stays. Raises StorageFailed."""
        kept = [one for one in self._entries() if one["places"] == _plain(before) != _plain(after)][:1]
        self._replace([*kept, _entry(after, tasks)])

    def update(self, change: Callable[[Places, Mapping[int, Memory]], Mapping[int, Memory]]) -> None:
        """What is remembered, as long as nobody knows which places are stored: then any of them may be.

        change: of places and what tasks remember there, to what they remember now. Raises StorageFailed.
        """
        before = self._entries() or [_entry({}, {})]
        after = [_entry(one["places"], change(one["places"], _tasks(one))) for one in before]
        if after != before:
            self._replace(after)

    def forget(self) -> None:
        """What is remembered goes with no place any more. Raises StorageFailed."""
        with storage_trouble(self._folder, f"remove {FILE}"), suppress(FileNotFoundError):
            os.unlink(self._path)

    def _replace(self, entries: Sequence[_Entry]) -> None:
        """Synced, because a position that is stored without it is taken on trust."""
        with storage_trouble(self._folder, f"write {FILE}"):
            new = f"{self._path}.new"
            with open(new, "w", encoding="utf-8") as file:
                json.dump(entries, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, self._path)
            sync_folder(self._folder)

    def _entries(self) -> list[_Entry]:
        try:
            with open(self._path, encoding="utf-8") as file:
                found = json.load(file)
            return [one for one in found if one.keys() == {"places", "tasks"}]
        except (OSError, ValueError, AttributeError, TypeError):
            return []


def _entry(places: Places, tasks: Mapping[int, Memory]) -> _Entry:
    return {"places": _plain(places), "tasks": {str(task): dict(memory) for task, memory in tasks.items() if memory}}


def _tasks(entry: _Entry) -> dict[int, Memory]:
    return {int(task): memory for task, memory in entry["tasks"].items()}


def _plain(places: Places) -> dict[str, Place]:
    return {partition: dict(place) for partition, place in places.items()}
