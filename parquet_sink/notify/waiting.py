"""Notices that wait for the webhook, in a folder of the connector below `tmp.dir`: a process that ends loses none.

Workers put them there, and the program posts them (`notify.webhook`). Names say since when one waits, and which it is:

    .notices/<epoch nanoseconds>-<id>.json
"""

import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from parquet_sink.files.lock import is_locked
from parquet_sink.files.naming import LOCK_FILE
from parquet_sink.notify.notice import Notice

_NAME: Final = re.compile(r"([0-9]{20})-([0-9a-f]{32})\.json")
_UNFINISHED: Final = ".tmp"
_OLD_S: Final = 60.0
"""After so long what nobody finished is removed."""


@dataclass(frozen=True)
class WaitingNotice:
    """path: of its file. since_s: epoch seconds."""

    path: str
    id: str
    since_s: float

    def read(self) -> Notice | None:
        """None for what is no notice, such as one of a disk that was full. Raises OSError."""
        with open(self.path, encoding="utf-8") as file:
            try:
                return Notice.from_json(file.read())
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                return None

    def remove(self) -> None:
        """It waits no more."""
        with suppress(FileNotFoundError):
            os.unlink(self.path)


class NoticeFolder:
    """folder: of one connector. Processes share it."""

    def __init__(self, folder: str, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._folder, self._now_ns = folder, now_ns

    @property
    def tended(self) -> bool:
        """Whether the connector's program runs on this machine, so that what is put here is posted."""
        return is_locked(os.path.join(os.path.dirname(self._folder), LOCK_FILE))

    def put(self, notice: Notice) -> None:
        """Raises OSError."""
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        path = os.path.join(self._folder, f"{self._now_ns():020d}-{notice.id}.json")
        with open(path + _UNFINISHED, "w", encoding="utf-8") as file:
            file.write(notice.to_json())
        os.rename(path + _UNFINISHED, path)

    def notices(self) -> list[WaitingNotice]:
        """What waits, the longest first."""
        try:
            names = sorted(os.listdir(self._folder))
        except FileNotFoundError:
            return []
        found = []
        for name in names:
            path = os.path.join(self._folder, name)
            if (parts := _NAME.fullmatch(name)) is not None:
                found.append(WaitingNotice(path, parts[2], int(parts[1]) / 1e9))
            elif name.endswith(_UNFINISHED):
                self._remove_old(path)
        return found

    def _remove_old(self, path: str) -> None:
        with suppress(OSError):
            if self._now_ns() / 1e9 - os.stat(path).st_mtime > _OLD_S:
                os.unlink(path)
