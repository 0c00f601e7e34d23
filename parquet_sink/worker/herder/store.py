"""Stores of connectors: their configurations, and what each is to do, in memory or in one JSON file of a folder.

The file is written whole and synced; a lock keeps other workers out.
Nothing that a connector needs to go on is in it: positions are offsets of its consumer group.
"""

import fcntl
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from parquet_sink.errors import SetupError
from parquet_sink.worker.herder.errors import StoreFailed
from parquet_sink.worker.herder.values import TargetState

FOLDER_KEY: Final = "config.storage.folder"
FILE: Final = "connectors.json"
LOCK: Final = "worker.lock"
FORMAT: Final = "parquet-sink connectors"
VERSION: Final = 1


@dataclass(frozen=True)
class StoredConnector:
    """config: as it was given, placeholders unresolved, passwords in the clear. topics: active since the last reset."""

    config: Mapping[str, str] = field(repr=False)
    target: TargetState = TargetState.STARTED
    topics: tuple[str, ...] = ()


class ConfigStore:
    """For as long as the process lives: of `run`, whose connectors are files. generation: grows with each change.

    Whatever a method did is there as a whole; a method that raises StoreFailed did nothing.
    """

    def __init__(self, connectors: Mapping[str, StoredConnector] | None = None, generation: int = 0) -> None:
        self._connectors, self.generation = dict(connectors or {}), generation

    def connectors(self) -> Mapping[str, StoredConnector]:
        """All of them by name."""
        return dict(self._connectors)

    def put(self, name: str, connector: StoredConnector) -> None:
        """Adds a connector, or replaces it."""
        self._replace({**self._connectors, name: connector})

    def delete(self, name: str) -> None:
        """Forgets a connector; one that is not there is forgotten already."""
        if name in self._connectors:
            self._replace({other: one for other, one in self._connectors.items() if other != name})

    def _replace(self, connectors: Mapping[str, StoredConnector]) -> None:
        self.generation, self._connectors = self.generation + 1, dict(connectors)


class FileConfigStore(ConfigStore):
    """Of one worker at a time, in a file that outlives it and its crash; `generation` grows over restarts, too.

    Raises SetupError when the folder or its file is of no use.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._lock: int | None = _locked(folder)
        try:
            generation, connectors = _read(self._path)
        except BaseException:
            self.close()
            raise
        super().__init__(connectors, generation)

    def close(self) -> None:
        """Lets another worker have it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _replace(self, connectors: Mapping[str, StoredConnector]) -> None:
        text = _text(self.generation + 1, connectors)
        try:
            _write(self._path, text.encode())
        except OSError as error:
            raise StoreFailed(
                f"The connectors' file {self._path} cannot be written ({error.strerror or type(error).__name__}); make "
                f"room, or give this user the right to write its folder ({FOLDER_KEY}). Nothing was changed."
            ) from None
        super()._replace(connectors)


def _text(generation: int, connectors: Mapping[str, StoredConnector]) -> str:
    described = {
        name: {"target": one.target, "config": dict(one.config), "topics": list(one.topics)}
        for name, one in sorted(connectors.items())
    }
    body = {"format": FORMAT, "version": VERSION, "generation": generation, "connectors": described}
    return json.dumps(body, indent=1) + "\n"


def _write(path: Path, data: bytes) -> None:
    """In the file's place, whole or not at all, and on the disk before this returns. Raises OSError."""
    new = path.with_name(f".{path.name}.new")
    try:
        with suppress(FileNotFoundError):
            new.unlink()
        number = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _locked(folder: Path) -> int:
    """The descriptor that holds the folder's lock, which ends with the process. Raises SetupError."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise SetupError(
            f"Folder {folder} for the worker's connectors cannot be used ({error.strerror or type(error).__name__}); "
            f"set {FOLDER_KEY} in the worker file to a folder that this user can write."
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(lock, 32, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(lock)
        raise SetupError(
            f"Another worker (process {holder}) has the connectors of folder {folder}; stop that one first, or set "
            f"{FOLDER_KEY} in the worker file to a folder of this worker's own."
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    return lock


def _read(path: Path) -> tuple[int, dict[str, StoredConnector]]:
    """Raises SetupError with the cure; what is in a file that is not understood is never overwritten."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return 0, {}
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SetupError(f"The connectors' file {path} cannot be read ({reason}); let this user read it.") from None
    try:
        return _parsed(json.loads(data))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise SetupError(
            f"The connectors' file {path} holds no connectors of this program ({_why(error)}): it is torn, or not "
            f"ours. Put a copy of it back, or move it away to begin without connectors; nothing was changed."
        ) from None


def _why(error: BaseException) -> str:
    """In words without what the file holds, which may be secret."""
    if isinstance(error, json.JSONDecodeError):
        return f"no JSON from line {error.lineno}, column {error.colno}"
    return str(error) if type(error) is ValueError else "its parts are not those expected"


def _parsed(body: Any) -> tuple[int, dict[str, StoredConnector]]:
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise ValueError(f'its "format" is not "{FORMAT}"')
    if body["version"] != VERSION:
        raise ValueError(f"it is of version {body['version']!r}, and this program knows {VERSION}")
    if not isinstance(body["generation"], int):
        raise TypeError
    return body["generation"], {name: _connector(one) for name, one in body["connectors"].items()}


def _connector(one: dict[str, Any]) -> StoredConnector:
    config, topics = one["config"], tuple(one["topics"])
    if not all(isinstance(text, str) for text in (*config.keys(), *config.values(), *topics)):
        raise TypeError
    return StoredConnector(dict(config), TargetState(one["target"]), topics)
