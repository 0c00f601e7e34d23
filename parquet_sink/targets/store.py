"""What a file store is: whole files under names, put there once, listed and read back. Archive and reshape use them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol

from parquet_sink.errors import SinkError
from parquet_sink.targets.outcome import Outcome, ProbeResult

NO_METADATA: Final[Mapping[str, str]] = MappingProxyType({})


class StoreUnusable(SinkError):
    """A file store cannot be read; the text says why, with the cure."""


@dataclass(frozen=True)
class LocalFile:
    """A file to be put. size_bytes: as it was verified. digest: SHA-256 of its bytes, hexadecimal; None: not known."""

    path: str
    size_bytes: int
    digest: str | None = None


@dataclass(frozen=True)
class StoredFile:
    """A file of a store. name: below the store's address."""

    name: str
    size_bytes: int


class FileStore(Protocol):
    """Files below one address; threads may share it. Reading raises StoreUnusable."""

    @property
    def name(self) -> str:
        """Its address, for a message, without secrets."""
        ...

    def put(self, file: LocalFile, name: str, metadata: Mapping[str, str], seconds_left: float) -> Outcome:
        """One attempt to store a file, within so many seconds. metadata: texts in ASCII, kept where there is a place.

        ACCEPTED only when the store has the whole file durably. The same file that is there already is accepted;
        another one of the name is REFUSED, and never overwritten. Leaves the local file alone. Raises StorageFailed
        when that cannot be read, and nothing else on purpose.
        """
        ...

    def probe(self, below: str, seconds_left: float) -> ProbeResult:
        """Tries whether files would be taken below a name. Stores nothing. Raises nothing on purpose."""
        ...

    def files(self, prefix: str = "") -> Iterator[StoredFile]:
        """All files whose names begin so, in order of names."""
        ...

    def digest(self, name: str) -> str | None:
        """SHA-256 of a file's bytes as they are now, hexadecimal; None when it is not there."""
        ...

    def fetch(self, name: str, path: str) -> bool:
        """Puts a file's bytes into a new local file; False when it is not there. Raises StorageFailed, too."""
        ...

    def close(self) -> None:
        """Lets go of what is open. May be called twice."""
        ...


class StoreSettings(Protocol):
    """How one store is reached: a frozen dataclass, handed over by value, that opens its store."""

    @property
    def address(self) -> str:
        """Where it is, for people, without secrets."""
        ...

    def problems(self, environment: Mapping[str, str]) -> Iterable[str]:
        """What is wrong as far as it can be told without connecting or writing."""
        ...

    def open(self) -> FileStore:
        """A store of its own for the caller, who closes it. Raises as `targets.settings.TargetSettings.open`."""
        ...
