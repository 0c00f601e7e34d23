"""What tasks remember, in the connector's folder and in the topic that has its places, so that it follows a move.

The topic has it under a name that no connector can have, because Kafka Connect's record of a place stays as it is, byte
for byte. Each of the two has a version; whoever takes the connector over takes the later one.
"""

import json
import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from parquet_sink.addons.sources.memory import MemoryEntry, MemoryFile
from parquet_sink.addons.sources.offsets.connect_form import Places
from parquet_sink.addons.sources.offsets.storage import OffsetStorage
from parquet_sink.addons.sources.task import Memory
from parquet_sink.errors import ConnectorError

PARTITION: Final = '{"parquet-sink":"memory"}'
AGAIN_S: Final = 30.0
"""After which it is published again where the brokers did not take it."""
log = logging.getLogger(__name__)


class TopicMemory(MemoryFile):
    """Memory of a connector whose places are in a topic. The file comes first; `publish` brings the topic up to it."""

    def __init__(
        self, folder: str, connector: str, storage: OffsetStorage, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(folder)
        self._name, self._storage, self._clock = f" {connector}", storage, clock
        self._published = 0
        self._tried_s: float | None = None

    def read(self, places: Places) -> dict[int, Memory]:
        """Return what the file has, once it has taken what the topic alone or later has. Raise ConnectorError."""
        version, entries = self._read_topic()
        self._published = version
        if version > self.version or (version and not self.knows(places)):
            self._replace(entries, version)
        return super().read(places)

    def publish(self) -> None:
        """Bring the topic up to the file. Raise ConnectorError."""
        entries = self._entries()
        if self.version > self._published and (self._published or any(entry["tasks"] for entry in entries)):
            self._tried_s = self._clock()
            self._write_topic(self.version, entries)

    def publish_late(self) -> None:
        """Publish what is not urgent, now and again where the brokers do not take it."""
        if self._tried_s is None or self._clock() - self._tried_s >= AGAIN_S:
            try:
                self.publish()
            except ConnectorError as error:
                log.warning("connector%s: which files it follows is not stored yet: %s", self._name, error)

    def forget(self) -> None:
        """Forget it here, and at workers that had the connector before. Raise ConnectorError."""
        version = max(self._read_topic()[0], self.version)
        super().forget()
        if version:
            self._write_topic(version + 1, [])

    def _read_topic(self) -> tuple[int, list[MemoryEntry]]:
        try:
            place = self._storage.read(self._name)[PARTITION]
            return int(str(place["version"])), json.loads(str(place["entries"]))
        except (KeyError, TypeError, ValueError, RecursionError):
            return 0, []

    def _write_topic(self, version: int, entries: Sequence[MemoryEntry]) -> None:
        self._storage.write(self._name, {PARTITION: {"version": version, "entries": json.dumps(entries)}})
        self._published, self._tried_s = version, None
