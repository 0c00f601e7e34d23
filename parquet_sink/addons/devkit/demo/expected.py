"""What the target's table must be: the last value of each key that was not deleted, as a row.

Written from the documented mapping (docs/reference/data-mapping.md) and not with the sink's own code, so
that the comparison is one of two opinions.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_ODD: Final = re.compile(r"[^A-Za-z0-9]")
SHOWN: Final = 3
"""Differences that are shown in full."""

Cell = int | float | bool | str | None
Row = Mapping[str, Cell]


@dataclass(frozen=True)
class Delivered:
    """A record with a value that Kafka has acknowledged. timestamp_ms: Kafka's, epoch milliseconds."""

    value: bytes
    partition: int
    offset: int
    timestamp_ms: int


def row_of(record: Delivered) -> dict[str, Cell]:
    """The record's row: nested objects flattened, lists as JSON text, then the columns that are added."""
    row: dict[str, Cell] = {}
    _flatten(json.loads(record.value), "", row)
    return row | {
        "kafkaPartition": record.partition,
        "kafkaOffset": record.offset,
        "kafkaTimestamp": record.timestamp_ms,
        "kafkaPartitionOffset": f"{record.partition}_{record.offset}",
        "__celonis_order": record.offset,
        "__deleted": False,
    }


def _flatten(below: Mapping[str, Any], prefix: str, row: dict[str, Cell]) -> None:
    for name, value in below.items():
        if isinstance(value, dict):
            _flatten(value, f"{prefix}{name}_", row)
        elif isinstance(value, list):
            row[_ODD.sub("_", prefix + name)] = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        else:
            row[_ODD.sub("_", prefix + name)] = value


@dataclass(frozen=True)
class Comparison:
    """rows, columns: how many were compared. differences: cells or rows that differ. examples: the first of them."""

    rows: int
    columns: int
    differences: int
    examples: tuple[str, ...]


def compare(
    expected: Mapping[int, Row], actual: Sequence[Row], deleted: Collection[int] = (), key: str = "order_id"
) -> Comparison:
    """Every row and every cell, value and type; none of a key that was deleted. A cell that a row lacks is null."""
    found: dict[Cell, Row] = {}
    problems: list[str] = []
    for row in actual:
        if row.get(key) in found:
            problems.append(f"{key} {row.get(key)} stands more than once in the table")
        found[row.get(key)] = row
    problems += [f"{key} {missing} is not in the table" for missing in expected.keys() - found.keys()]
    problems += [
        f"{key} {other!r} is in the table, and was {'deleted' if other in deleted else 'never sent'}"
        for other in found.keys() - expected.keys()
    ]
    columns = list(dict.fromkeys(name for rows in (expected.values(), actual) for name in _names(rows)))
    for order_id in expected.keys() & found.keys():
        problems += _cells(f"{key} {order_id}", columns, expected[order_id], found[order_id])
    return Comparison(len(actual), len(columns), len(problems), tuple(problems[:SHOWN]))


def _names(rows: Iterable[Row]) -> Iterable[str]:
    return {name: None for row in rows for name in row}


def _cells(which: str, columns: Sequence[str], expected: Row, actual: Row) -> list[str]:
    return [
        f"{which}, column {name}: {actual.get(name)!r} instead of {expected.get(name)!r}"
        for name in columns
        if not _same(expected.get(name), actual.get(name))
    ]


def _same(expected: Cell, actual: Cell) -> bool:
    return type(expected) is type(actual) and expected == actual
