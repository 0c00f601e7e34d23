"""Places of sources in one JSON file, `offset.storage.file.filename`.

    {"version": 1, "connectors": {"NAME": [{"partition": {"filename": "…"}, "offset": {"position": 17}}]}}

A change is a new file under the old name, synced before and after it gets that, so that a crash leaves the old one or
the new one. Whoever changes it holds the lock on the file of that name with `.lock` behind it, so that the connectors
of one process, and several processes, keep their places in one file.
"""

import fcntl
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from parquet_sink.addons.sources.offsets.connect_form import Places, is_flat, text_of
from parquet_sink.errors import StorageFailed
from parquet_sink.files.storage import Purpose, storage_trouble, sync_folder
from parquet_sink.model.source_records import Place

KEY: Final = "offset.storage.file.filename"
VERSION: Final = 1
WAIT_S: Final = 10.0
"""How long another's change is waited for."""
_JAVA: Final = b"\xac\xed"
"""What Java's serialization begins with, which Kafka Connect writes such files by."""
_PURPOSE: Final = Purpose(KEY, KEY, "No position is changed: what was sent since is sent again at the next start.")


class FileStorage:
    """Implements `OffsetStorage`. The file is made at the first change, in a folder that must be there."""

    def __init__(self, path: str, wait_s: float = WAIT_S, pause: Callable[[float], None] = time.sleep) -> None:
        self._path, self._wait_s, self._pause = path, wait_s, pause
        self._folder = os.path.dirname(os.path.abspath(path))

    def look(self, connector: str) -> None:
        """Raises StorageFailed when the file cannot be read, or its folder not be written; writes nothing."""
        self.read(connector)
        if not os.access(self._folder, os.W_OK | os.X_OK):
            raise StorageFailed(
                f"Folder {self._folder} of {self._path} [{KEY}] is not there, or cannot be written by this user; make "
                "it, or name another file."
            )

    def check(self) -> None:
        """Raises StorageFailed when the file cannot be read, or its folder not be written."""
        self._connectors()
        with self._locked():
            pass

    def read(self, connector: str) -> Places:
        """Raises StorageFailed when the file cannot be read, or holds something else."""
        return self._connectors().get(connector, {})

    def write(self, connector: str, changes: Mapping[str, Place | None]) -> None:
        """Raises StorageFailed."""
        with self._locked():
            everything = self._connectors()
            places = {**everything.get(connector, {}), **changes}
            everything[connector] = {name: place for name, place in places.items() if place is not None}
            with storage_trouble(self._folder, f"write {self._path}", _PURPOSE):
                self._replace(_dumped({name: kept for name, kept in everything.items() if kept}))

    def close(self) -> None:
        """Nothing is held between calls."""

    def _connectors(self) -> dict[str, Places]:
        try:
            with open(self._path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StorageFailed(f"{self._path} [{KEY}] cannot be read: {error.strerror}. Name another file.") from None
        if data.startswith(_JAVA):
            raise StorageFailed(
                f"{self._path} [{KEY}] was written by Kafka Connect, in Java's own form, which is not read here. Name "
                "another file; sources then start from the beginning, unless their positions are set by PATCH "
                "/connectors/NAME/offsets."
            )
        return _parsed(data, self._path) if data else {}

    def _replace(self, data: bytes) -> None:
        """With the rights of the file that was there, for this user alone at first."""
        descriptor, new = tempfile.mkstemp(prefix=f".{os.path.basename(self._path)}.", dir=self._folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, self._path)
        except BaseException:
            with suppress(OSError):
                os.unlink(new)
            raise
        sync_folder(self._folder)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """The lock goes with the file's descriptor, however the process ends."""
        with storage_trouble(self._folder, f"open {self._path}.lock", _PURPOSE):
            descriptor = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            self._wait_for(descriptor)
            yield
        finally:
            os.close(descriptor)

    def _wait_for(self, descriptor: int) -> None:
        waited = 0.0
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            if waited >= self._wait_s:
                raise StorageFailed(
                    f"{self._path}.lock is held by another process for {self._wait_s:g} s; end that, or name another "
                    f"file in [{KEY}]."
                )
            self._pause(0.02)
            waited += 0.02


def _dumped(connectors: Mapping[str, Places]) -> bytes:
    entries = {
        name: [{"partition": json.loads(partition), "offset": dict(place)} for partition, place in places.items()]
        for name, places in sorted(connectors.items())
    }
    return json.dumps({"version": VERSION, "connectors": entries}, ensure_ascii=False, indent=1).encode() + b"\n"


def _parsed(data: bytes, path: str) -> dict[str, Places]:
    try:
        found = json.loads(data)
        connectors = found if found["version"] == VERSION else {}
        return {name: dict(map(_entry, entries)) for name, entries in connectors["connectors"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise StorageFailed(
            f"{path} [{KEY}] holds no positions of this version; put back a copy of it, name another file, or remove "
            "it: sources then start from the beginning."
        ) from None


def _entry(entry: Mapping[str, Any]) -> tuple[str, Place]:
    partition, offset = entry["partition"], entry["offset"]
    if not (is_flat(partition) and is_flat(offset)):
        raise ValueError
    return text_of(partition), offset
