"""Digests of a table's rows: one number for each row, by key, so that two moments of a table can be compared.

DuckDB's own hash, which is vectorised: no secret, and made for tables, not against forgers. It may differ between
versions of DuckDB; `method` says which one it is. Equal rows have equal digests whatever the order of rows and columns.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb

from parquet_sink.addons.devkit.target import sql
from parquet_sink.addons.devkit.target.columns import fold
from parquet_sink.addons.devkit.target.tables import Tables

MOST_PARTS: Final = 10_000
_NESTED: Final = ("STRUCT", "MAP", "UNION", "LIST", "ARRAY")


class UnknownColumn(Exception):
    """A column was asked for that the table does not have."""


@dataclass(frozen=True)
class Asked:
    """What a digest is made of: `columns` of the table, and what stands beside each row's digest.

    keys, also: columns by which rows are found and judged; they come out as `key_0`, `key_1`, ... and `also_0`, ...
    """

    table: str
    columns: tuple[str, ...]
    keys: tuple[str, ...] = ()
    also: tuple[str, ...] = ()

    @property
    def row(self) -> str:
        """The digest of a row, as SQL: of its columns in the order of their names."""
        return f"hash({sql.names(sorted(self.columns, key=fold))})"

    @property
    def part(self) -> str:
        """What decides in which part of a table a row is: its key; without keys the row itself."""
        return f"hash({sql.names(self.keys)})" if self.keys else self.row


class Digests:
    """Makes digests of the tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def method(self) -> str:
        """How rows become numbers: digests by another method cannot be compared."""
        return f"duckdb {duckdb.__version__} hash"

    def of_table(self, asked: Asked) -> dict[str, Any]:
        """Rows, deleted ones included, and one digest of all of them."""
        query = f"SELECT count(*), sum({asked.row}), bit_xor({asked.row}) FROM {sql.table(asked.table)}"
        count, total, mixed = self._tables.fetch(query)[0]
        digest = f"{int(total or 0) % 2**64:016x}{int(mixed or 0):016x}"
        return {"rows": int(count), "digest": digest, "method": self.method()}

    def write_part(self, asked: Asked, number: int, of: int, path: Path) -> None:
        """Write the rows of one of `of` equal parts as Parquet: `key_N`, `also_N`, `deleted`, `digest`."""
        types = self._tables.columns(asked.table) or {}
        mark = self._tables.mark(asked.table)
        deleted = f"coalesce({sql.identifier(mark)}, false)" if mark else "false"
        columns = [*_renamed(types, asked.keys, "key"), *_renamed(types, asked.also, "also")]
        chosen = ", ".join([*columns, f"{deleted} AS deleted", f"{asked.row} AS digest"])
        query = f"SELECT {chosen} FROM {sql.table(asked.table)} WHERE {asked.part} % {of:d} = {number:d}"
        self._tables.copy(query, path)

    def asked(self, table: str, columns: Sequence[str], keys: Sequence[str], also: Sequence[str]) -> Asked:
        """The columns as the table writes them; all of them where `columns` is empty. Raises UnknownColumn."""
        known = {fold(name): name for name in self._tables.columns(table) or {}}
        missing = [name for name in (*columns, *keys, *also) if fold(name) not in known]
        if missing:
            raise UnknownColumn(missing[0])
        own = [tuple(known[fold(name)] for name in names) for names in (columns or known.values(), keys, also)]
        return Asked(table, *own)


def _renamed(types: Mapping[str, str], names: Iterable[str], prefix: str) -> list[str]:
    """Columns under plain names; nested ones as text, which can be compared and shown."""
    found = []
    for number, name in enumerate(names):
        nested = types[name].startswith(_NESTED) or types[name].endswith("]")
        value = f"CAST({sql.identifier(name)} AS VARCHAR)" if nested else sql.identifier(name)
        found.append(f"{value} AS {prefix}_{number}")
    return found
