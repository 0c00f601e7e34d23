"""What an archive is: files of one connector are kept there, listed, and read back."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from parquet_sink.errors import StorageFailed
from parquet_sink.targets.outcome import Outcome, ProbeResult, Verdict

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LocalFile:
    """A file to be kept. where: within the connector's folder (`layout.path_of`). size_bytes: as it was verified.

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


class ArchiveStore(Protocol):
    """The archive of one connector; threads may share it. Reading raises ArchiveUnusable."""

    @property
    def name(self) -> str:
        """Where it is, for a message, without secrets."""
        ...

    def keep(self, file: LocalFile, seconds_left: float) -> Outcome:
        """One attempt to keep a file, within so many seconds.

        ACCEPTED only when the archive has the whole file durably. The same file that is there already is accepted;
        another one of the name is REFUSED, and never overwritten. Leaves the local file alone. Raises StorageFailed
        when that cannot be read.
        """
        ...

    def probe(self, seconds_left: float) -> ProbeResult:
        """Tries whether files would be taken. Raises nothing on purpose."""
        ...

    def files(self) -> Iterator[ArchivedFile]:
        """All that is in the connector's folder, in order of where it is."""
        ...

    def digest(self, where: str) -> str | None:
        """SHA-256 of a file's bytes, hexadecimal, of all of them as they are now; None when it is not there."""
        ...

    def fetch(self, where: str, path: str) -> bool:
        """Puts a file's bytes into a new local file; False when it is not there. Raises StorageFailed, too."""
        ...

    def close(self) -> None:
        """Lets go of what is open. May be called twice."""
        ...


def kept(archive: ArchiveStore, file: LocalFile, seconds_left: float) -> Outcome:
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
