"""The archive of one connector over a file store: where files are in it, how they get there and are read back.

    <archive>/<connector>/<topic>/<file name>

Connectors and topics are one path component each, whatever they are called, so that none meets another's files.
"""

import logging
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import quote

from parquet_sink.archive.settings import ArchiveSettings
from parquet_sink.errors import ArchiveUnusable, StorageFailed
from parquet_sink.files.naming import component, parts_of
from parquet_sink.targets.outcome import Outcome, ProbeResult, Verdict
from parquet_sink.targets.store import FileStore, StoreUnusable
from parquet_sink.targets.store import LocalFile as Stored

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LocalFile:
    """A file to be kept. where: within the connector's folder (`path_of`). size_bytes: as it was verified.

    digest: SHA-256 of its bytes, hexadecimal; None when it is not known here.
    """

    path: str
    where: str
    size_bytes: int
    digest: str | None = None


@dataclass(frozen=True)
class ArchivedFile:
    """A file in an archive. where: as of `LocalFile`."""

    where: str
    size_bytes: int


def topic_folder(topic: str) -> str:
    """Of a topic, within the folder of a connector."""
    return component(topic)


def path_of(topic: str, file_name: str) -> str:
    """Of a file, within the folder of a connector."""
    return posixpath.join(topic_folder(topic), file_name)


def connector_folder(connector: str) -> str:
    """Of a connector, within the archive."""
    return component(connector)


class Archive:
    """What a connector has in a file store; threads may share it. Reading raises ArchiveUnusable."""

    def __init__(self, store: FileStore, connector: str) -> None:
        self.name, self._store, self._folder = store.name, store, connector_folder(connector)

    def keep(self, file: LocalFile, seconds_left: float) -> Outcome:
        """One attempt to keep a file, as `FileStore.put`."""
        local = Stored(file.path, file.size_bytes, file.digest)
        return self._store.put(local, self._name(file.where), _metadata(file), seconds_left)

    def probe(self, seconds_left: float) -> ProbeResult:
        """Tries whether files would be taken. Raises nothing on purpose."""
        return self._store.probe(self._folder, seconds_left)

    def files(self) -> Iterator[ArchivedFile]:
        """All that is in the connector's folder, in order of where it is."""
        with self._readable():
            for one in self._store.files(f"{self._folder}/"):
                yield ArchivedFile(one.name.removeprefix(f"{self._folder}/"), one.size_bytes)

    def digest(self, where: str) -> str | None:
        """SHA-256 of a file's bytes, hexadecimal, of all of them as they are now; None when it is not there."""
        with self._readable():
            return self._store.digest(self._name(where))

    def fetch(self, where: str, path: str) -> bool:
        """Puts a file's bytes into a new local file; False when it is not there. Raises StorageFailed, too."""
        with self._readable():
            return self._store.fetch(self._name(where), path)

    def close(self) -> None:
        """Lets go of what is open. May be called twice."""
        self._store.close()

    def _name(self, where: str) -> str:
        return posixpath.join(self._folder, where)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except StoreUnusable as error:
            raise ArchiveUnusable(f"Archive {self.name} cannot be read: {error}") from None


def open_archive(settings: ArchiveSettings) -> Archive:
    """An archive for the caller, who closes it. Raises as `targets.settings.TargetSettings.open`."""
    return Archive(settings.place.open(), settings.connector)


def kept(archive: Archive, file: LocalFile, seconds_left: float) -> Outcome:
    """One attempt, for whom an archive must not end: raises nothing.

    Trouble with the local file is as final as a refusal; what nobody foresaw may pass.
    """
    try:
        return archive.keep(file, seconds_left)
    except StorageFailed as error:
        return Outcome(Verdict.REFUSED, str(error), "Keep other programs out of connect.ems.tmp.dir")
    except Exception as error:
        log.debug("archive %s: file %s", archive.name, file.where, exc_info=True)
        return Outcome(Verdict.UNKNOWN, f"what was not foreseen: {type(error).__name__}: {error}", "Report it")


def _metadata(file: LocalFile) -> dict[str, str]:
    """What the name tells, in ASCII as headers need it."""
    parts = parts_of(posixpath.basename(file.where))
    if parts is None:
        return {}
    return {
        "topic": quote(parts.topic, safe=""),
        "partition": str(parts.partition),
        "first-offset": str(parts.first_offset),
        "last-offset": str(parts.last_offset),
        "records": str(parts.records),
    }
