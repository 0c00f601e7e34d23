"""Topics whose records force a new file every few rows: which column is at fault, said once.

One such file now and then is how types change. Many in a row mean that producers disagree, and a target that gets a
file for every second record.
"""

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

import pyarrow as pa

from parquet_sink.convert.invalid import show
from parquet_sink.rows.schema.arrow_types import fields, name
from parquet_sink.rows.schema.evolution import Columns, Incompatible, joined, widens

_LOG = logging.getLogger(__name__)

FILES: Final = 10
"""Files in a row that another schema ended, before anything is said."""

FEW_ROWS: Final = 1_000
"""Rows of such files, on average, that are few."""

_Clash = tuple[tuple[str, ...], pa.DataType, pa.DataType]


class ChangeHistory:
    """Of one topic, fed with each file that ended because the next rows could not share its columns."""

    def __init__(self, connector: str, topic: str) -> None:
        self._who = f"connector {connector}: topic {topic}"
        self._rows: deque[int] = deque(maxlen=FILES)
        self._warned = False

    def ended(self, rows: int, before: pa.Schema, after: pa.Schema) -> str | None:
        """What to warn of, once; else None.

        rows: of the file. before, after: the columns of the rows just before its end, and of those that came then.
        """
        self._rows.append(rows)
        mean = sum(self._rows) / len(self._rows)
        if self._warned or len(self._rows) < FILES or mean >= FEW_ROWS:
            return None
        self._warned = True
        every = f"its records' types ended the last {FILES} files early, at {mean:,.1f} rows per file"
        return f"{self._who}: {every}. {_why(tuple(before), tuple(after))}"


class SchemaChangeMonitor:
    """Of one range: logs what `ChangeHistory` has to say, once for each connector and topic in a process."""

    def __init__(self, connector: str, topic: str) -> None:
        self._churn = _of(connector, topic)
        self._schema: pa.Schema | None = None

    def added(self, schema: pa.Schema, ended: Iterable[int]) -> None:
        """Rows of this schema were added. ended: the rows of each file that had to end because of their schema."""
        for rows in ended:
            text = self._churn.ended(rows, self._schema or schema, schema)
            if text is not None:
                _LOG.warning("%s", text)
        self._schema = schema


@lru_cache(maxsize=4_096)
def _of(connector: str, topic: str) -> ChangeHistory:
    return ChangeHistory(connector, topic)


def _why(before: Columns, after: Columns) -> str:
    """What keeps rows of these columns from sharing a file, and what to do."""
    found = next(_clashes(before, after, ()), None) or next(_misfits(before, after, ()), None)
    if found is not None:
        path, one, other = found
        return (
            f"Column {show(path)} is {_name(one)} in some records and {_name(other)} in others, and no column holds "
            "both. Let the producers write one type, or give each its own topic; connect.ems.flattener.jsonblob.chunks "
            "stores records as text, whatever their types."
        )
    known = {column.name for column in before}
    new = [column.name for column in after if column.name not in known]
    example = f", the last one {show((new[-1],))}" if new else ""
    return (
        f"Its records bring ever new columns{example}. Let the producers keep data out of the names of fields; "
        "connect.ems.flattener.jsonblob.chunks stores records as text, whatever their fields."
    )


def _clashes(before: Columns, after: Columns, above: tuple[str, ...]) -> Iterator[_Clash]:
    """Columns whose types cannot be one, structs opened."""
    for one, other in _pairs(before, after):
        path = (*above, one.name)
        try:
            joined(one, other)
        except Incompatible:
            if pa.types.is_struct(one.type) and pa.types.is_struct(other.type):
                yield from _clashes(fields(one.type), fields(other.type), path)
            else:
                yield path, one.type, other.type


def _misfits(before: Columns, after: Columns, above: tuple[str, ...]) -> Iterator[_Clash]:
    """Columns of which one side has whole numbers that no double may hold, and the other fractions."""
    for one, other in _pairs(before, after):
        path = (*above, one.name)
        if pa.types.is_struct(one.type) and pa.types.is_struct(other.type):
            yield from _misfits(fields(one.type), fields(other.type), path)
        elif widens(one, both := joined(one, other)) or widens(other, both):
            yield path, one.type, other.type


def _pairs(before: Sequence[pa.Field], after: Sequence[pa.Field]) -> Iterator[tuple[pa.Field, pa.Field]]:
    known: Mapping[str, pa.Field] = {column.name: column for column in before}
    return ((known[column.name], column) for column in after if column.name in known)


def _name(arrow: pa.DataType) -> str:
    if pa.types.is_integer(arrow):
        return f"a whole number ({arrow})"
    if pa.types.is_floating(arrow):
        return f"a fraction ({arrow})"
    plain = not (pa.types.is_nested(arrow) or pa.types.is_decimal(arrow)) or pa.types.is_struct(arrow)
    return name(arrow) if plain else str(arrow)
