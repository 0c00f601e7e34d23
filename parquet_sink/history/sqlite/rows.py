"""Records of the history as rows of tables and back, and queries as conditions."""

import json
from dataclasses import fields
from hashlib import sha256
from typing import Any, Final

from parquet_sink.history.records import RangeRecord, UploadRecord, known_from_json
from parquet_sink.history.store import HistoryQuery

_TABLE: Final = "target_table"
_FIELDS: Final = tuple(one.name for one in fields(UploadRecord) if one.name != "archive")
FILE_COLUMNS: Final = tuple(_TABLE if name == "table" else name for name in _FIELDS)
"""In the order of `UploadRecord`'s fields but what is known of its archive; `repeat` is the last."""
ARCHIVE_COLUMNS: Final = ("place", "at_ms", "cause")
RANGE_COLUMNS: Final = (
    "topic",
    "partition",
    "start",
    "end",
    "reason",
    "topic_id",
    "recipe",
    "version",
    "at_ms",
    "done_until",
)
"""Of a range, but what was known."""
Condition = tuple[str, list[Any]]


def file_row(record: UploadRecord) -> tuple[Any, ...]:
    """One value for each of FILE_COLUMNS. `dataclasses.asdict` would be two thirds of what adding a file costs."""
    tried = json.dumps([vars(one) for one in record.tried], separators=(",", ":"), ensure_ascii=False)
    return tuple(tried if name == "tried" else getattr(record, name) for name in _FIELDS)


def file_key(row: tuple[Any, ...]) -> bytes:
    """Of the row of a file: the same for what is the same upload, and else another, but for how often it was sent."""
    return sha256(json.dumps(row[:-1]).encode()).digest()[:16]


def file_of(row: tuple[Any, ...]) -> UploadRecord:
    """Of the values of FILE_COLUMNS, then of ARCHIVE_COLUMNS. Raises ValueError, KeyError or TypeError."""
    values: dict[str, Any] = dict(zip(_FIELDS, row[: len(_FIELDS)], strict=True))
    archive = dict(zip(ARCHIVE_COLUMNS, row[len(_FIELDS) :], strict=True))
    known = archive if archive["place"] is not None else None
    return UploadRecord.from_dict({**values, "tried": json.loads(values["tried"]), "archive": known})


def range_of(row: tuple[Any, ...]) -> RangeRecord:
    """Of the values of RANGE_COLUMNS, then what was known as JSON. Raises ValueError, KeyError or TypeError."""
    values: dict[str, Any] = dict(zip(RANGE_COLUMNS, row[:-1], strict=True))
    return RangeRecord(**values, known=known_from_json(row[-1]))


def files_where(query: HistoryQuery) -> Condition:
    """The condition of a query for files."""
    text, values = _where(query, "first_offset", "last_offset")
    for column, wanted in (("outcome", query.outcomes), ("file_name", query.file_names)):
        if wanted:
            text += f" and {column} in ({','.join('?' * len(wanted))})"
            values += sorted(map(str, wanted))
    return text, values


def ranges_where(query: HistoryQuery) -> Condition:
    """The condition of a query for ranges; their ends are exclusive."""
    return _where(query, "start", "end - 1")


def _where(query: HistoryQuery, first: str, last: str) -> Condition:
    conditions = (
        ("topic = ?", query.topic),
        ("partition = ?", query.partition),
        (f"{last} >= ?", query.first_offset),
        (f"{first} <= ?", query.last_offset),
        ("at_ms >= ?", query.since_ms),
        ("at_ms < ?", query.until_ms),
    )
    given = [(text, value) for text, value in conditions if value is not None]
    return " and ".join(["1", *(text for text, _ in given)]), [value for _, value in given]
