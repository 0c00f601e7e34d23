"""The journal of accepted files: one SQLite row for each, on disk before the upload is answered.

It survives `kill -9`: every write is synced, and a row is either there or not.
"""

import json
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from parquet_sink.addons.devkit.target.contract import StoredFile, Totals, UploadParameters, UpsertState

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS files (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, target TEXT NOT NULL,
    parameters TEXT NOT NULL, bytes INTEGER NOT NULL, rows INTEGER NOT NULL, sha256 TEXT NOT NULL,
    received_at_ms INTEGER NOT NULL, accepted_at_ms INTEGER NOT NULL, state TEXT NOT NULL, error TEXT,
    repeated INTEGER NOT NULL DEFAULT 0, altered INTEGER NOT NULL DEFAULT 0, again INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS files_by_state ON files (state, sequence);
CREATE INDEX IF NOT EXISTS files_by_name ON files (target, name);
"""
_COLUMNS: Final = (
    "sequence, id, name, parameters, bytes, rows, sha256, "
    "received_at_ms, accepted_at_ms, state, error, repeated, altered, again"
)
_INSERT: Final = (
    "INSERT INTO files (id, name, target, parameters, bytes, rows, sha256, received_at_ms, accepted_at_ms, altered, "
    "again, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'waiting')"
)
# Journals of the first versions held a file once: by its name, then by name and content.
_ONCE: Final = "SELECT 1 FROM sqlite_schema WHERE name = 'files' AND sql LIKE '%UNIQUE (target, name%'"
_REBUILD: Final = f"""
BEGIN;
ALTER TABLE files RENAME TO files_once;
DROP INDEX files_by_state;
{_SCHEMA}
INSERT INTO files SELECT *, 0 FROM files_once;
DELETE FROM sqlite_sequence WHERE name = 'files';
UPDATE sqlite_sequence SET name = 'files' WHERE name = 'files_once';
DROP TABLE files_once;
COMMIT;
"""
_SUMS: Final = (
    "COUNT(*), TOTAL(rows), TOTAL(bytes), TOTAL(repeated + again), TOTAL((repeated + again) * rows), "
    "TOTAL(repeated), TOTAL(repeated * rows), TOTAL(altered)"
)


class Journal:
    """Rows of accepted files, in order of acceptance. Safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        once = self._connection.execute(_ONCE).fetchone()
        self._connection.executescript(_REBUILD if once else _SCHEMA)

    def add(
        self,
        file_id: str,
        name: str,
        parameters: UploadParameters,
        facts: tuple[int, int, str],
        times: tuple[int, int],
        *,
        altered: bool = False,
        again: bool = False,
    ) -> StoredFile:
        """Write one accepted file and sync it.

        facts: bytes, rows, sha256. times: arrival and acceptance, epoch milliseconds. altered: the target holds a file
        of this name with other content. again: it holds this very file.
        """
        asked = json.dumps(vars(parameters))
        size, rows, sha256 = facts
        received_at_ms, accepted_at_ms = times
        row = (file_id, name, parameters.target, asked, *facts, *times, int(altered), int(again))
        with self._lock:
            sequence = self._connection.execute(_INSERT, row).lastrowid or 0
        return StoredFile(
            sequence=sequence,
            id=file_id,
            name=name,
            parameters=parameters,
            bytes=size,
            rows=rows,
            sha256=sha256,
            received_at_ms=received_at_ms,
            accepted_at_ms=accepted_at_ms,
            state="waiting",
            altered=int(altered),
            again=int(again),
        )

    def find(self, target: str, name: str) -> Sequence[StoredFile]:
        """The files of this name that the target holds already, in order of acceptance."""
        return self._select("WHERE target = ? AND name = ? ORDER BY sequence", (target, name))

    def count_repeat(self, sequence: int) -> None:
        """A stored file came once more."""
        self._execute("UPDATE files SET repeated = repeated + 1 WHERE sequence = ?", (sequence,))

    def waiting(self, limit: int) -> Sequence[StoredFile]:
        """Files not upserted yet, of the target whose turn it is, in order of acceptance."""
        turn = "(SELECT target FROM files WHERE state = 'waiting' ORDER BY sequence LIMIT 1)"
        return self._select(f"WHERE state = 'waiting' AND target = {turn} ORDER BY sequence LIMIT ?", (limit,))

    def waiting_sequences(self) -> set[int]:
        """The sequences of all files that are not upserted yet."""
        with self._lock:
            return {row[0] for row in self._connection.execute("SELECT sequence FROM files WHERE state = 'waiting'")}

    def first_waiting(self) -> int | None:
        """The sequence of the oldest file that is not upserted yet; None when there is none."""
        with self._lock:
            row = self._connection.execute("SELECT MIN(sequence) FROM files WHERE state = 'waiting'").fetchone()
        return None if row[0] is None else int(row[0])

    def last(self) -> int:
        """The highest sequence accepted so far, 0 for none."""
        with self._lock:
            return int(self._connection.execute("SELECT COALESCE(MAX(sequence), 0) FROM files").fetchone()[0])

    def settle(self, sequences: Sequence[int], state: UpsertState, error: str | None = None) -> None:
        """Record how the upsert of these files ended."""
        marks = ", ".join("?" * len(sequences))
        self._execute(f"UPDATE files SET state = ?, error = ? WHERE sequence IN ({marks})", (state, error, *sequences))

    def files(self, limit: int, offset: int, target: str | None = None) -> Sequence[StoredFile]:
        """Accepted files in order of acceptance, of one target or of all."""
        if target is None:
            return self._select("ORDER BY sequence LIMIT ? OFFSET ?", (limit, offset))
        return self._select("WHERE target = ? ORDER BY sequence LIMIT ? OFFSET ?", (target, limit, offset))

    def file(self, file_id: str) -> StoredFile | None:
        """The file with this id."""
        found = self._select("WHERE id = ?", (file_id,))
        return found[0] if found else None

    def last_of(self, target: str) -> StoredFile | None:
        """The latest file of a target; letter case does not matter, as for the table's name."""
        found = self._select("WHERE LOWER(target) = LOWER(?) ORDER BY sequence DESC LIMIT 1", (target,))
        return found[0] if found else None

    def totals(self, target: str | None = None) -> Totals:
        """Sums over all accepted files, or those of a target; letter case does not matter, as for the table's name."""
        where, values = ("", ()) if target is None else ("WHERE LOWER(target) = LOWER(?)", (target,))
        with self._lock:
            sums = self._connection.execute(f"SELECT {_SUMS} FROM files {where}", values).fetchone()
            by_state = f"SELECT state, COUNT(*) FROM files {where} GROUP BY state"
            states = dict(self._connection.execute(by_state, values))
        files, rows, size, repeated, repeated_rows, recognised, recognised_rows, altered = map(int, sums)
        return Totals(files, rows, size, repeated, repeated_rows, recognised, recognised_rows, altered, states)

    def clear(self) -> None:
        """Forget every file; sequences go on, so that an old one never comes back."""
        self._execute("DELETE FROM files", ())

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _execute(self, statement: str, values: tuple[object, ...]) -> None:
        with self._lock:
            self._connection.execute(statement, values)

    def _select(self, where: str, values: tuple[object, ...]) -> list[StoredFile]:
        with self._lock:
            rows = self._connection.execute(f"SELECT {_COLUMNS} FROM files {where}", values).fetchall()
        return [_stored(row) for row in rows]


def _stored(row: tuple[object, ...]) -> StoredFile:
    sequence, file_id, name, asked, *rest = row
    fields = json.loads(str(asked))
    parameters = UploadParameters(**{**fields, "primary_keys": tuple(fields["primary_keys"])})
    return StoredFile(sequence, file_id, name, parameters, *rest)  # type: ignore[arg-type]
