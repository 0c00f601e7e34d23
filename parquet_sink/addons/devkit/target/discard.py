"""The memory of a target that discards: what came, never its content. For benchmarks."""

import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from parquet_sink.addons.devkit.target.contract import RepeatedName, Repeats, StoredFile, Totals, UploadParameters
from parquet_sink.addons.devkit.target.store import Acceptance

MAX_REMEMBERED: Final = 100_000
_ROWS: Final = re.compile(r"_rows-(\d{1,18})\.parquet$")


def rows_from_name(name: str) -> int | None:
    """The row count that a file name of the sink carries; None when it carries none."""
    found = _ROWS.search(name)
    return int(found[1]) if found else None


class DiscardLog:
    """One entry for each file, the newest MAX_REMEMBERED of them; the totals count all."""

    def __init__(self, repeats: Repeats = "recognise") -> None:
        self._repeats = repeats
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[str, str], StoredFile] = OrderedDict()
        self._totals = Totals()

    def accept(self, name: str, parameters: UploadParameters, size: int, times: tuple[int, int]) -> Acceptance:
        """Remember one upload. times: arrival and end of the body, epoch milliseconds.

        Raises RepeatedName for a known name where those are refused.
        """
        key = (parameters.target, name)
        with self._lock:
            known = self._entries.get(key)
            if known and self._repeats == "refuse":
                raise RepeatedName(name)
            if known:
                self._entries[key] = replace(known, repeated=known.repeated + 1)
                self._totals = _with_repeat(self._totals, known.rows or 0)
                return Acceptance(known, repeated=True)
            file = self._add(
                key,
                StoredFile(
                    sequence=0,
                    id="",
                    name=name,
                    parameters=parameters,
                    bytes=size,
                    rows=rows_from_name(name),
                    sha256=None,
                    received_at_ms=times[0],
                    accepted_at_ms=times[1],
                    state="discarded",
                ),
            )
            return Acceptance(file, repeated=False)

    def files(self, limit: int, offset: int, target: str | None = None) -> Sequence[StoredFile]:
        """Remembered files in order of acceptance, of one target or of all."""
        with self._lock:
            chosen = (f for f in self._entries.values() if target is None or f.parameters.target == target)
            return list(islice(chosen, offset, offset + limit))

    def file(self, file_id: str) -> StoredFile | None:
        """The remembered file with this id."""
        with self._lock:
            return next((f for f in self._entries.values() if f.id == file_id), None)

    def totals(self) -> Totals:
        """Sums over all files since the start, those no longer remembered included."""
        with self._lock:
            return replace(self._totals, upserts={"discarded": self._totals.files})

    def clear(self) -> None:
        """Forget every file."""
        with self._lock:
            self._entries.clear()
            self._totals = Totals()

    def _add(self, key: tuple[str, str], blank: StoredFile) -> StoredFile:
        sums = self._totals
        sequence = sums.files + 1
        file = replace(blank, sequence=sequence, id=f"{sequence:032x}")
        self._entries[key] = file
        if len(self._entries) > MAX_REMEMBERED:
            self._entries.popitem(last=False)
        self._totals = replace(sums, files=sequence, rows=sums.rows + (file.rows or 0), bytes=sums.bytes + file.bytes)
        return file


def _with_repeat(sums: Totals, rows: int) -> Totals:
    """One more file that came again. What is thrown away is put into no table twice, so all of them are recognised."""
    files, repeated_rows = sums.repeated + 1, sums.repeated_rows + rows
    return replace(sums, repeated=files, repeated_rows=repeated_rows, recognised=files, recognised_rows=repeated_rows)
