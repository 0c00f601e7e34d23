"""When an open file is full, and how many rows its next row group should hold.

`commit.records` is exact: a file never holds more Kafka records. `commit.size.bytes` bounds the finished file: the
size of what is still in memory is only known once it is encoded, so row groups are planned from the bytes per row seen
so far, and a file may exceed the bound by no more than one row group; or by one record, whose rows are never parted.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

# A file this close to its size is closed: what would still fit is not worth a row group of its own.
NEARLY_FULL: Final = 0.95
# The footer of a very wide table may be larger than a small commit.size.bytes; rows get at least this share of it.
LEAST_SHARE_FOR_ROWS: Final = 0.25
GROUP_MEMORY_BYTES: Final = 24 << 20
GROUP_ROWS: Final = 1_000_000
"""Bounds of a row group in memory."""


class Reason(StrEnum):
    """Why a file was closed. The reasons below SCHEMA belong to the range that ended, and come from admission.

    BATCH is the end of what a Spark task writes of a DataFrame.
    """

    RECORDS = "records"
    SIZE = "size"
    SCHEMA = "schema"
    INTERVAL = "interval"
    REQUEST = "request"
    SCHEDULE = "schedule"
    END_OF_INPUT = "end_of_input"
    STOP = "stop"
    END_OF_RANGE = "end_of_range"
    BATCH = "batch"


@dataclass(frozen=True)
class Limits:
    """`commit.size.bytes` and `commit.records`."""

    size_bytes: int
    records: int


@dataclass(frozen=True)
class GroupLimits:
    """Bounds of one row group: bytes held in memory, rows, and (when configured) Parquet bytes."""

    memory_bytes: int
    rows: int
    size_bytes: int | None = None


@dataclass(frozen=True)
class GroupEnd:
    """A row group is complete with the record that brings it to so many rows, or bytes in memory."""

    rows: int
    memory_bytes: float


@dataclass(frozen=True)
class Fill:
    """How full the open file is: Kafka records (those still in memory too), and estimated Parquet bytes on disk."""

    records: int
    size_bytes: int


def should_rotate(fill: Fill, limits: Limits, *, same_schema: bool = True) -> Reason | None:
    """The reason to close the open file before another row enters it, or None. An empty file is never closed."""
    if fill.records == 0:
        return None
    if not same_schema:
        return Reason.SCHEMA
    if fill.records >= limits.records:
        return Reason.RECORDS
    if fill.size_bytes >= NEARLY_FULL * limits.size_bytes:
        return Reason.SIZE
    return None


def next_group(
    fill: Fill, limits: Limits, group: GroupLimits, *, footer_bytes: int, parquet_bytes_per_row: float | None
) -> GroupEnd:
    """What the row group to come is gathered up to; `footer_bytes` is what it adds there.

    The rows of a record that was begun come on top. Without an estimate of Parquet bytes, the bytes in memory stand in:
    they are more in practice, so the first row group of an unknown topic comes out too small rather than too large.
    """
    least_share = LEAST_SHARE_FOR_ROWS if fill.size_bytes == 0 else 1 - NEARLY_FULL
    room = max(limits.size_bytes - fill.size_bytes - footer_bytes, least_share * limits.size_bytes)
    wanted = room if group.size_bytes is None else min(room, group.size_bytes)
    if parquet_bytes_per_row is None:
        return GroupEnd(group.rows, min(group.memory_bytes, wanted))
    by_size = wanted / max(parquet_bytes_per_row, 0.01)
    return GroupEnd(max(1, int(min(by_size, group.rows))), group.memory_bytes)
