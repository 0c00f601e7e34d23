"""All that a connector keeps in its folder below `tmp.dir`, beside the folders of its topics.

A purge removes it, ARCHITECTURE.md shows it, and integration tests compare it with what runs leave. To add a file or
folder: its name in `naming`, its line in `DURABLE_STATE` and in ARCHITECTURE.md.
"""

import os
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from parquet_sink.files import naming

_BESIDE: Final = ("", "-wal", "-shm", "-journal", ".new", ".damaged")
"""Endings of what SQLite, a file that is being replaced, or a damaged history has beside it."""


class AtMove(StrEnum):
    """What becomes of it when another worker of the group runs the connector.

    It stays, and means nothing elsewhere; it follows by a topic; its worker sends it; or commands ask each worker.
    """

    STAYS = "stays"
    FOLLOWS = "follows"
    SENT = "sent"
    ASKED = "asked"


@dataclass(frozen=True)
class DurableItem:
    """A file or folder. writer: the module that writes it. loss: what the loss of the machine costs."""

    name: str
    holds: str
    writer: str
    at_move: AtMove
    loss: str
    is_folder: bool = False

    @property
    def row(self) -> str:
        """Its line in ARCHITECTURE.md."""
        return f"| `{self.name}` | {self.holds} | `{self.writer}` | {self.at_move} | {self.loss} |"


_NOTHING: Final = "nothing"
DURABLE_STATE: Final = (
    DurableItem(naming.MARKER_FILE, "whose folder", "files/storage.py", AtMove.STAYS, _NOTHING),
    DurableItem(naming.LOCK_FILE, "who runs it here", "files/lock.py", AtMove.STAYS, _NOTHING),
    DurableItem(naming.CLAIMS_FOLDER, "who flushes a topic-partition", "files/lock.py", AtMove.STAYS, _NOTHING, True),
    DurableItem(naming.INPUT_FILE, "standard input", "addons/sources/file/", AtMove.STAYS, "its rest"),
    DurableItem(
        naming.STATE_FILE,
        "what topics taught, ranges in flight",
        "state/sqlite.py",
        AtMove.FOLLOWS,
        "estimates",
    ),
    DurableItem(
        naming.SOURCE_MEMORY_FILE,
        "what identifies a source's files",
        "addons/sources/memory.py",
        AtMove.FOLLOWS,
        "a rotated file's rest",
    ),
    DurableItem(naming.HISTORY_FILE, "what was sent", "history/sqlite.py", AtMove.ASKED, "what was sent"),
    DurableItem(
        naming.PARKED_FOLDER,
        "diverted records",
        "parked/folder.py",
        AtMove.ASKED,
        "these records",
        True,
    ),
    DurableItem(
        naming.WAITING_FOLDER,
        "files for a later archive",
        "archive/waiting.py",
        AtMove.SENT,
        "they are missing there",
        True,
    ),
    DurableItem(
        naming.NOTICES_FOLDER,
        "notices for the webhook",
        "notify/waiting.py",
        AtMove.SENT,
        "these notices",
        True,
    ),
    DurableItem(
        naming.REPLAY_FOLDER,
        "files of a parked replay",
        "addons/commands/parked/replay.py",
        AtMove.STAYS,
        _NOTHING,
        True,
    ),
    DurableItem(
        naming.REPLAY_JOURNAL_FOLDER,
        "plan and progress of a replay",
        "addons/replay/journal.py",
        AtMove.ASKED,
        "where it was",
        True,
    ),
)
OWN_FOLDERS: Final = tuple(item.name for item in DURABLE_STATE if item.is_folder)
_OWN_FILES: Final = frozenset(item.name + end for item in DURABLE_STATE if not item.is_folder for end in _BESIDE)


def is_own_file(name: str) -> bool:
    """Return True if a file of this name in the folder of a connector is in the table, or beside one that is."""
    return name in _OWN_FILES


def count_files(folder: str) -> dict[str, int]:
    """Return how many files each item has in a connector's folder, without locks; items that have none are absent."""
    counts = {item.name: _count(os.path.join(folder, item.name)) for item in DURABLE_STATE}
    return {name: count for name, count in counts.items() if count}


def _count(path: str) -> int:
    if os.path.isfile(path):
        return 1
    return sum(not name.startswith(".") for _, _, names in os.walk(path) for name in names)
