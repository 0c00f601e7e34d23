"""The SQLite file: its tables, how it is opened, and transactions."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

RUN_TABLES: Final = {
    "event": "id integer primary key, digest blob not null unique, body text not null",
    "accepted": "topic text, partition int, body text not null, primary key (topic, partition)",
    "progress": "topic text, partition int, body text not null, primary key (topic, partition)",
    "field": "name text primary key, body text not null",
}
"""Forgotten when a run begins."""
LEARNED_TABLES: Final = {
    "knowledge": "id integer primary key, topic text, schema blob, bytes_per_row real, bytes_per_record real",
    "planned": (
        "topic text, partition int, start int, end int, reason text, recipe text, knowledge int, "
        "primary key (topic, partition)"
    ),
}
FORMER_TABLES: Final = ("receipt", "watch", "word")
"""Of earlier versions' runs."""


class Database:
    """Opens the file at `path`, making it when absent. Each process opens its own. Raises sqlite3.DatabaseError."""

    def __init__(self, path: str | Path) -> None:
        self._connection = sqlite3.connect(str(path), timeout=30.0, isolation_level=None, check_same_thread=False)
        self._connection.execute("pragma journal_mode=wal")
        self._connection.execute("pragma synchronous=off")
        self._create_tables()

    def _create_tables(self) -> None:
        for name, columns in {**RUN_TABLES, **LEARNED_TABLES}.items():
            self._connection.execute(f"create table if not exists {name} ({columns})")

    def _drop_run_tables(self) -> None:
        for name in (*RUN_TABLES, *FORMER_TABLES):
            self._connection.execute(f"drop table if exists {name}")
        self._create_tables()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._connection.execute("begin immediate")
        try:
            yield self._connection
        except BaseException:
            self._connection.execute("rollback")
            raise
        self._connection.execute("commit")

    def close(self) -> None:
        self._connection.close()
