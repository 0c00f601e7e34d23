"""Where a source goes on: what is stored of it, and what its tasks remember of that."""

import os
from collections.abc import Callable, Mapping
from typing import Final

from parquet_sink.addons.sources.flow.reached import SourceReached
from parquet_sink.addons.sources.memory import MemoryFile
from parquet_sink.addons.sources.offsets.connect_form import Places
from parquet_sink.addons.sources.offsets.storage import OffsetStorage, opened
from parquet_sink.addons.sources.settings import SourceSettings
from parquet_sink.addons.sources.task import Memory
from parquet_sink.addons.sources.topic_memory import TopicMemory
from parquet_sink.files import naming
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import SENT
from parquet_sink.worker_config.offset_storage import OffsetStorageSettings

OF_RUN: Final = "positions.json"


class SourcePositions:
    """Of one connector. run_folder: for positions that are kept for a run alone."""

    def __init__(self, settings: SourceSettings, run_folder: str) -> None:
        self._name = settings.name
        of_run = OffsetStorageSettings(file=os.path.join(run_folder, OF_RUN))
        self._storage = opened(settings.storage or of_run)
        self._memory = MemoryFile(run_folder) if settings.storage is None else memory_of(settings, self._storage)
        self.places: Places = {}
        self.memories: dict[int, Memory] = {}

    def read(self) -> None:
        """Takes up what is stored. Raises ConnectorError."""
        self.places = self._storage.read(self._name)
        self.memories = self._memory.read(self.places)
        self._memory.publish_late()

    def store(self, state: SqliteStore) -> SourceReached | None:
        """Stores what the last micro-batch reached; None when there was none. Raises ConnectorError.

        Memory comes first: without its places it is ignored, and places without their memory would be taken on trust.
        """
        text = state.get(SENT)
        if text is None:
            self._memory.publish_late()
            return None
        reached = SourceReached.from_json(text)
        if reached.places:
            after = {**self.places, **reached.places}
            memories = {**self.memories, **_moved(reached)}
            self._memory.write(self.places, after, memories)
            self._memory.publish()
            self._storage.write(self._name, reached.places)
            self.places, self.memories = after, memories
        state.set(SENT, None)
        return reached

    def remember(self, memories: Mapping[int, Memory]) -> None:
        """What some tasks remember from now on, at the places that are stored. Raises StorageFailed."""
        self.memories = {**self.memories, **memories}
        self._memory.write(self.places, self.places, self.memories)
        self._memory.publish_late()

    def remember_unread(self, change: Callable[[Places, Mapping[int, Memory]], Mapping[int, Memory]]) -> None:
        """The same before it is known which places are stored, as `MemoryFile.update` says. Raises StorageFailed."""
        self._memory.update(change)

    def close(self) -> None:
        self._storage.close()


def memory_of(settings: SourceSettings, storage: OffsetStorage) -> MemoryFile:
    """Return the memory of a connector whose places are in a storage."""
    folder = naming.connector_folder(settings.tmp_dir, settings.name)
    if settings.storage is None or settings.storage.topic is None:
        return MemoryFile(folder)
    return TopicMemory(folder, settings.name, storage)


def _moved(reached: SourceReached) -> Mapping[int, Memory]:
    return {number: one.memory for number, one in reached.tasks.items() if one.moved}
