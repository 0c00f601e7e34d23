"""What tasks remember, kept in a file of the connector's folder together with the places that it goes with.

It is written before the places are stored. So the file has what goes with the places before, too, and whoever begins
takes what goes with the places that he finds; nothing, where nobody knows of these.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from parquet_sink.addons.sources.offsets.connect_form import Places
from parquet_sink.addons.sources.task import Memory, Place
from parquet_sink.files.naming import SOURCE_MEMORY_FILE
from parquet_sink.files.storage import storage_trouble, sync_folder

MemoryEntry = dict[str, dict[str, Place]]
"""places: by source partition; tasks: by number, what is remembered."""
FILE: Final = SOURCE_MEMORY_FILE


class MemoryFile:
    """folder: the connector's, below `tmp.dir`."""

    def __init__(self, folder: str) -> None:
        self._folder, self._path = folder, os.path.join(folder, FILE)

    def read(self, places: Places) -> dict[int, Memory]:
        """By task, what goes with these places. Of two entries the older one counts: it repeats, and skips nothing."""
        known = [_tasks(one) for one in self._entries() if one["places"] == _plain(places)]
        return known[0] if known else {}

    def knows(self, places: Places) -> bool:
        """Return True if something was remembered at these places, be it nothing."""
        return any(entry["places"] == _plain(places) for entry in self._entries())

    def write(self, before: Places, after: Places, tasks: Mapping[int, Memory]) -> None:
        """What tasks remember at the places `after`; what was kept for others before stays. Raises StorageFailed."""
        kept = [one for one in self._entries() if one["places"] == _plain(before) != _plain(after)][:1]
        self._replace([*kept, _entry(after, tasks)], self.version + 1)

    def update(self, change: Callable[[Places, Mapping[int, Memory]], Mapping[int, Memory]]) -> None:
        """What is remembered, as long as nobody knows which places are stored: then any of them may be.

        change: of places and what tasks remember there, to what they remember now. Raises StorageFailed.
        """
        before = self._entries() or [_entry({}, {})]
        after = [_entry(one["places"], change(one["places"], _tasks(one))) for one in before]
        if after != before:
            self._replace(after, self.version)

    def forget(self) -> None:
        """What is remembered goes with no place any more. Raises StorageFailed."""
        with storage_trouble(self._folder, f"remove {FILE}"), suppress(FileNotFoundError):
            os.unlink(self._path)

    def publish(self) -> None:
        """Do nothing: it is in the file alone."""

    def publish_late(self) -> None:
        """Do nothing, likewise."""

    @property
    def version(self) -> int:
        """How often it was written; 0: never, or by a release that did not count."""
        return next((int(part["version"]) for part in self._parts() if part.keys() == {"version"}), 0)

    def _replace(self, entries: Sequence[MemoryEntry], version: int) -> None:
        """Synced, because a position that is stored without it is taken on trust."""
        with storage_trouble(self._folder, f"write {FILE}"):
            new = f"{self._path}.new"
            with open(new, "w", encoding="utf-8") as file:
                json.dump([*entries, {"version": version}], file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, self._path)
            sync_folder(self._folder)

    def _entries(self) -> list[MemoryEntry]:
        return [part for part in self._parts() if part.keys() == {"places", "tasks"}]

    def _parts(self) -> list[dict[str, Any]]:
        try:
            with open(self._path, encoding="utf-8") as file:
                return [part for part in json.load(file) if isinstance(part, dict)]
        except (OSError, ValueError, TypeError):
            return []


def _entry(places: Places, tasks: Mapping[int, Memory]) -> MemoryEntry:
    return {"places": _plain(places), "tasks": {str(task): dict(memory) for task, memory in tasks.items() if memory}}


def _tasks(entry: MemoryEntry) -> dict[int, Memory]:
    return {int(task): memory for task, memory in entry["tasks"].items()}


def _plain(places: Places) -> dict[str, Place]:
    return {partition: dict(place) for partition, place in places.items()}
