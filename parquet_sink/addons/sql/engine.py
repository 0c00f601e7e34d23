"""DuckDB, locked: no files, no network, no extensions, one thread, bounded memory, nothing on disk.

One connection for each process, kept; queries over tables that it is lent from Arrow.
"""

import atexit
import json
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import pyarrow as pa

from parquet_sink.addons.sql.parts import Node
from parquet_sink.errors import install

EXTRA: Final = f"DuckDB is not installed, which a query needs. {install('sql')}"
OLD: Final = f"DuckDB {{}} is installed, and a query needs 2.0 or later. {install('sql')}"
MEMORY: Final = "256MB"
"""What DuckDB may take."""
MOST_ROWS: Final = 1_000_000
"""Rows of one result."""
LONGEST_S: Final = 20.0
"""A query over a batch is interrupted after so long: then each half of its records is asked alone."""
TOO_MANY: Final = f"it gives more than {MOST_ROWS:,} rows"
MOST_PREPARED: Final = 128
_OLDEST: Final = 2
"""DuckDB's major version from which on its syntax trees are as `validation` knows them."""
_ROWS_AT_ONCE: Final = 100_000

_SETTINGS: Final = (
    "threads = 1",
    f"memory_limit = '{MEMORY}'",
    "temp_directory = ''",
    "TimeZone = 'UTC'",
    "Calendar = 'gregorian'",
    "disabled_optimizers = 'common_subexpressions'",  # takes what may fail out of TRY
    "autoload_known_extensions = false",
    "autoinstall_known_extensions = false",
    "allow_community_extensions = false",
    "python_enable_replacements = false",
    "enable_external_access = false",
    "lock_configuration = true",
)
"""In this order: what comes last forbids changes of what comes before."""
_FUNCTIONS: Final = """
    SELECT lower(function_name), function_type, CASE
        WHEN stability = 'CONSISTENT_WITHIN_QUERY' AND len(parameter_types) > 0
            AND regexp_matches(concat(parameter_types::VARCHAR, return_type), 'WITH TIME ZONE|TIMESTAMPTZ')
        THEN 'CONSISTENT' ELSE stability END
    FROM duckdb_functions()
"""
"""From 2.0.1 on DuckDB says of what takes or gives a value with a time zone that it may change from query to query,
with the settings `TimeZone` and `Calendar`, which are locked above.
"""
_KINDS: Final = (("aggregate", ("aggregate",)), ("window", ("window",)), ("table", ("table", "table_macro", "pragma")))


class NoEngine(ValueError):
    """DuckDB is not there; the text names the cure."""


class QueryFailed(ValueError):
    """DuckDB refused a query, or failed in it. text: what it says, which may hold the content of fields.

    binding: it does not fit the columns, whatever they hold. broken: DuckDB found a mistake of its own, after which a
    connection answers nothing more. late: it was interrupted after LONGEST_S.
    """

    def __init__(self, text: str, *, binding: bool, broken: bool = False, late: bool = False) -> None:
        super().__init__(text)
        self.text, self.binding, self.broken, self.late = text, binding, broken, late


class _Lent:
    """A table whose rows are exchanged from query to query."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch

    def __arrow_c_schema__(self) -> object:
        return self.batch.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.RecordBatchReader.from_batches(self.batch.schema, [self.batch]).__arrow_c_stream__()


class Prepared:
    """A query that is run again and again, over tables of one schema."""

    def __init__(self, connection: Any, errors: Any, number: int, schema: pa.Schema, select: str, where: str) -> None:
        """Raises QueryFailed. select, where: the query without its FROM."""
        self._connection, self._errors, self._table = connection, errors, f"records{number}"
        self._lent = _Lent(_empty(schema))
        connection.register(self._table, self._lent)
        try:
            self._relation = connection.sql(f'SELECT {select} FROM "{self._table}"{where}')
        except errors as error:
            connection.unregister(self._table)
            raise _failed(error) from None

    @property
    def types(self) -> list[Any]:
        """DuckDB's types of the columns."""
        return list(self._relation.types)

    def run(self, rows: pa.RecordBatch) -> pa.Table:
        """Raises QueryFailed, also for more than MOST_ROWS rows."""
        self._lent.batch = rows
        found: list[pa.RecordBatch] = []
        count = 0
        late = threading.Event()
        timer = threading.Timer(LONGEST_S, self._interrupt, [late])
        timer.daemon = True
        timer.start()
        try:
            reader = self._relation.to_arrow_reader(_ROWS_AT_ONCE)
            for batch in reader:
                found.append(batch)
                count += batch.num_rows
                if count > MOST_ROWS:
                    reader.close()
                    raise QueryFailed(TOO_MANY, binding=False)
            return pa.Table.from_batches(found, reader.schema)
        except (self._errors, pa.ArrowException, OSError) as error:
            if late.is_set():
                raise QueryFailed("interrupted", binding=False, late=True) from None
            raise _failed(error) from None
        finally:
            timer.cancel()
            timer.join()
            self._lent.batch = rows.slice(0, 0)

    def _interrupt(self, late: threading.Event) -> None:
        """End what the connection runs; a function that works on one record is waited for."""
        late.set()
        self._connection.interrupt()

    def close(self) -> None:
        """Gives back what it has."""
        del self._relation
        self._connection.unregister(self._table)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def _failed(error: Exception) -> QueryFailed:
    kind = type(error).__name__
    return QueryFailed(
        str(error),
        binding=kind in ("BinderException", "CatalogException"),
        broken=kind in ("InternalException", "FatalException"),
    )


class Engine:
    """Of one process; whoever uses it holds `lock`."""

    def __init__(self) -> None:
        """Raises NoEngine."""
        try:
            import duckdb
        except ImportError:
            raise NoEngine(EXTRA) from None
        if int(duckdb.__version__.partition(".")[0]) < _OLDEST:
            raise NoEngine(OLD.format(duckdb.__version__))
        self._connect, self._errors = duckdb.connect, duckdb.Error
        self._open()
        self._count = 0
        self._known: dict[str, set[tuple[str, str | None]]] = {}
        self._prepared: OrderedDict[object, Prepared | QueryFailed] = OrderedDict()
        self.lock = threading.RLock()

    def _open(self) -> None:
        self._connection = self._connect(":memory:", config={"threads": 1})
        for setting in _SETTINGS:
            self._do(f"SET {setting}")

    @contextmanager
    def _opened_anew_if_broken(self) -> Iterator[None]:
        """So that no other record is blamed for what DuckDB does after one."""
        try:
            yield
        except QueryFailed as error:
            if error.broken:
                self._prepared.clear()
                with suppress(self._errors):
                    self._connection.close()
                self._open()
            raise

    def parse(self, query: str) -> dict[str, Any]:
        """As DuckDB's json_serialize_sql."""
        found: dict[str, Any] = json.loads(self._do("SELECT json_serialize_sql(?::VARCHAR)", [query])[0][0])
        return found

    def text(self, tree: Node) -> str:
        """An expression as SQL."""
        select = {"type": "SELECT_NODE", "modifiers": [], "cte_map": {"map": []}, "select_list": [tree]}
        clauses = {"from_table": {"type": "EMPTY", "alias": "", "sample": None}, "where_clause": None}
        groups = {"group_expressions": [], "group_sets": [], "aggregate_handling": "STANDARD_HANDLING"}
        node = {**select, **clauses, **groups, "having": None, "sample": None, "qualify": None}
        statement = {"error": False, "statements": [{"node": node, "named_param_map": []}]}
        found: str = self._do("SELECT json_deserialize_sql(?::VARCHAR)", [json.dumps(statement)])[0][0]
        return found.removeprefix("SELECT ").removesuffix(";")

    def kind_of(self, function: str) -> str:
        """What a function is to DuckDB: aggregate, window, table, unstable, other, unknown."""
        found = self._functions().get(function)
        if found is None:
            return "unknown"
        kinds = {kind for kind, _ in found}
        for name, matching in _KINDS:
            if kinds & set(matching):
                return name
        return "unstable" if {stability for _, stability in found} - {"CONSISTENT", None} else "other"

    def _functions(self) -> dict[str, set[tuple[str, str | None]]]:
        """Of each function its types and how stable it is; asked for once: DuckDB makes the list again each time."""
        if not self._known:
            for name, kind, stability in self._do(_FUNCTIONS):
                self._known.setdefault(name, set()).add((kind, stability))
        return self._known

    def types(self, schema: pa.Schema, select: Sequence[str], where: str) -> list[Any]:
        """DuckDB's types of columns over a table of this schema. Raises QueryFailed."""
        self._count += 1
        with self._opened_anew_if_broken():
            asked = Prepared(self._connection, self._errors, self._count, schema, ", ".join(select), where)
        try:
            return asked.types
        finally:
            asked.close()

    def run(self, key: object, select: str, where: str, rows: pa.RecordBatch) -> pa.Table:
        """A query over rows, prepared once for each key. Raises QueryFailed."""
        with self._opened_anew_if_broken():
            return self._prepare(key, rows.schema, select, where).run(rows)

    def _prepare(self, key: object, schema: pa.Schema, select: str, where: str) -> Prepared:
        found = self._prepared.get(key)
        if found is None:
            self._count += 1
            try:
                found = Prepared(self._connection, self._errors, self._count, schema, select, where)
            except QueryFailed as error:
                if error.broken:
                    raise
                found = error
            self._prepared[key] = found
            self._forget()
        self._prepared.move_to_end(key)
        if isinstance(found, QueryFailed):
            raise QueryFailed(found.text, binding=found.binding)
        return found

    def _forget(self) -> None:
        """Drop what was used longest ago."""
        while len(self._prepared) > MOST_PREPARED:
            _, oldest = self._prepared.popitem(last=False)
            if isinstance(oldest, Prepared):
                oldest.close()

    def _do(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self._connection.execute(statement, list(values)).fetchall()
        return found

    def close(self) -> None:
        """Ends the connection."""
        self._prepared.clear()
        self._connection.close()
        del self._connection


_engines: dict[int, Engine] = {}
_lock: Final = threading.Lock()


def engine() -> Engine:
    """The process's. Raises NoEngine."""
    with _lock:
        found = _engines.get(os.getpid())
        if found is None:
            found = _engines[os.getpid()] = Engine()
            atexit.register(_close)
        return found


def _close() -> None:
    """Before Python ends, so that nothing of DuckDB outlives what it needs."""
    found = _engines.pop(os.getpid(), None)
    if found is not None:
        found.close()
