"""The target's tables in DuckDB: files go in exactly once, each in one transaction with the note that it did."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow.parquet as pq

from parquet_sink.addons.devkit.target import sql
from parquet_sink.addons.devkit.target.columns import UNTYPED, Incompatible, check_names, fold, plan

_CONFIG: Final[dict[str, str | bool | int | float | list[str]]] = {
    "threads": 1,  # the sink under test needs the cores
    "memory_limit": "1GB",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
# DuckDB 1.5 to 2.0: with deleted rows the first passes over row groups in ORDER BY ... LIMIT (duckdb/duckdb#22949),
# the second loses rows in row_number() = 1 when the order is null (duckdb/duckdb#24363). Upserts delete and rank.
_WRONG_OPTIMIZERS: Final = ("row_group_pruner", "top_n_window_elimination")
_SCHEMA: Final = (
    f"CREATE SCHEMA IF NOT EXISTS {sql.TABLES}",
    "CREATE SCHEMA IF NOT EXISTS bookkeeping",
    "CREATE TABLE IF NOT EXISTS bookkeeping.applied (sequence BIGINT)",
)
_COLUMNS_OF: Final = (
    "SELECT column_name, data_type FROM duckdb_columns() "
    f"WHERE schema_name = '{sql.TABLES}' AND table_name = ? ORDER BY column_index"
)
_NAMES: Final = f"SELECT table_name FROM duckdb_tables() WHERE schema_name = '{sql.TABLES}' ORDER BY table_name"


class UpsertFailed(Exception):
    """A file's rows did not go into the table; nothing of it did. The text says why, in one line."""


class Tables:
    """One DuckDB database. One thread writes; any thread may read, each through a cursor of its own.

    deleted_column: a row in which this column is true is gone: no read-out has it. It stays in the table with its order
    value, so that an older row does not bring its key back, and the same file may come again. None: no row is.
    """

    def __init__(self, path: Path, deleted_column: str | None = None) -> None:
        self._path, self._deleted_column = path, deleted_column
        self._open()

    def apply(
        self, target: str, files: Mapping[int, Path], keys: Sequence[str], order: str | None, columns: Mapping[str, str]
    ) -> None:
        """Put files of one schema into the table, in one transaction. Raises UpsertFailed.

        files: path by sequence, in order of acceptance; columns: theirs, as `columns_of_file` tells.
        """
        try:
            self._in_transaction(
                self._statements(target, [str(p) for p in files.values()], keys, order, columns), files
            )
        except (Incompatible, duckdb.Error) as reason:
            if isinstance(reason, duckdb.FatalException):
                self._reopen()
            raise UpsertFailed(one_line(reason)) from reason

    def columns_of_file(self, path: Path) -> dict[str, str]:
        """Name and DuckDB type of each column of a Parquet file, without those that are null in every row's type.

        Raises UpsertFailed.
        """
        try:
            schema: Any = pq.read_schema(path)
            check_names(schema.names)
            rows = self._cursor().execute(f"DESCRIBE SELECT * FROM {sql.read_files([str(path)])}").fetchall()
        except (Incompatible, duckdb.Error, OSError, ValueError) as reason:
            raise UpsertFailed(one_line(reason)) from reason
        return {str(row[0]): str(row[1]) for row in rows if row[1] != UNTYPED}

    def applied(self) -> set[int]:
        """Sequences whose rows are in the tables."""
        return {int(row[0]) for row in self._cursor().execute("SELECT sequence FROM bookkeeping.applied").fetchall()}

    def names(self) -> list[str]:
        """All tables."""
        return [str(row[0]) for row in self._cursor().execute(_NAMES).fetchall()]

    def columns(self, target: str) -> dict[str, str] | None:
        """Name and type of each column of a table, None when there is no such table."""
        own = next((name for name in self.names() if fold(name) == fold(target)), target)
        rows = self._cursor().execute(_COLUMNS_OF, [own]).fetchall()
        return {str(row[0]): str(row[1]) for row in rows} or None

    def count(self, target: str) -> int:
        """The number of rows of a table, without those that are deleted."""
        return self._number(self._shown(target))

    def deleted(self, target: str) -> int:
        """How many rows of a table are deleted."""
        mark = self.mark(target)
        return self._number(f"{sql.table(target)} WHERE {sql.identifier(mark)}") if mark else 0

    def rows(
        self, target: str, limit: int, offset: int, order_by: str | None, descending: bool
    ) -> list[dict[str, Any]]:
        """Some rows of a table as Python values, in stored order unless `order_by` names a column; none deleted."""
        ordered = f"ORDER BY {sql.identifier(order_by)}{' DESC' if descending else ''} NULLS LAST" if order_by else ""
        query = f"SELECT * FROM {self._shown(target)} {ordered} LIMIT {limit:d} OFFSET {offset:d}"
        rows: list[dict[str, Any]] = self._cursor().sql(query).to_arrow_table().to_pylist()
        return rows

    def export(self, target: str, path: Path) -> None:
        """Write a whole table as one Parquet file, without rows that are deleted."""
        self.copy(f"SELECT * FROM {self._shown(target)}", path)

    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return self._cursor().execute(query).fetchall()

    def copy(self, query: str, path: Path) -> None:
        """Write the rows of a query as one Parquet file."""
        self._cursor().execute(f"COPY ({query}) TO {sql.literal(str(path))} (FORMAT parquet)")

    def clear(self) -> None:
        """Drop every table."""
        drops = [f"DROP TABLE {sql.table(name)}" for name in self.names()]
        self._in_transaction([*drops, "DELETE FROM bookkeeping.applied"], ())

    def close(self) -> None:
        self._connection.close()

    def mark(self, target: str) -> str | None:
        """The table's column that tells which rows are deleted."""
        if self._deleted_column is None:
            return None
        wanted, columns = fold(self._deleted_column), self.columns(target) or {}
        return next((name for name, type_ in columns.items() if fold(name) == wanted and type_ == "BOOLEAN"), None)

    def _shown(self, target: str) -> str:
        """What a read-out is made from."""
        mark = self.mark(target)
        return f"{sql.table(target)} WHERE {sql.identifier(mark)} IS NOT TRUE" if mark else sql.table(target)

    def _number(self, rows: str) -> int:
        row = self._cursor().execute(f"SELECT count(*) FROM {rows}").fetchone()
        return int(row[0]) if row else 0

    def _statements(
        self, target: str, paths: list[str], keys: Sequence[str], order: str | None, columns: Mapping[str, str]
    ) -> list[str]:
        own = self.columns(target)
        todo = plan(own, columns, keys)
        in_file, in_table = _has(columns, order), _has(own or {}, order)
        rows = sql.select_rows(paths, list(columns), keys, order if in_file else None)
        if todo.create:
            return sql.create(target, rows)
        put = sql.upsert(target, rows, keys, sql.newer(order, in_table, in_file)) if keys else sql.append(target, rows)
        return [*sql.alter(target, todo.add, todo.widen), *put]

    def _in_transaction(self, statements: Iterable[str], sequences: Iterable[int]) -> None:
        self._connection.execute("BEGIN")
        try:
            for statement in statements:
                self._connection.execute(statement)
            for sequence in sequences:
                self._connection.execute("INSERT INTO bookkeeping.applied VALUES (?)", [sequence])
            self._connection.execute("COMMIT")
        except duckdb.Error:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        with suppress(duckdb.Error):  # a failed COMMIT, or a database that gave up, has no transaction any more
            self._connection.execute("ROLLBACK")

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        return self._connection.cursor()

    def _open(self) -> None:
        self._connection = duckdb.connect(str(self._path), config=_CONFIG)
        known = {row[0] for row in self._connection.execute("SELECT * FROM duckdb_optimizers()").fetchall()}
        wrong = ",".join(name for name in _WRONG_OPTIMIZERS if name in known)
        self._connection.execute(f"SET GLOBAL disabled_optimizers = '{wrong}'")
        for statement in _SCHEMA:
            self._connection.execute(statement)

    def _reopen(self) -> None:
        # After a fatal error (a full disk, say) DuckDB answers nothing until the database is opened again.
        with suppress(duckdb.Error):
            self._connection.close()
        self._open()


def one_line(reason: BaseException) -> str:
    """The first line of an error, bounded; DuckDB's further lines quote the SQL."""
    text = str(reason).strip().partition("\n")[0]
    return text[:500] or type(reason).__name__


def _has(columns: Iterable[str], name: str | None) -> bool:
    return name is not None and fold(name) in {fold(column) for column in columns}
