"""The files that a range becomes: the decisions of `files.rotation`, on sizes that are known beforehand."""

from collections.abc import Iterator
from math import ceil

from parquet_sink.addons.tune.model import Sizes
from parquet_sink.files.rotation import (
    GROUP_MEMORY_BYTES,
    GROUP_ROWS,
    Fill,
    GroupLimits,
    Limits,
    Reason,
    next_group,
    should_rotate,
)

GROUP = GroupLimits(GROUP_MEMORY_BYTES, GROUP_ROWS)

File = tuple[int, float, Reason]
"""Records, bytes, and why it was closed."""


def files_of(records: int, reason: Reason, limits: Limits, sizes: Sizes, per_record: float | None) -> Iterator[File]:
    """The files of a range with so many records, in order, as `files.accumulator` makes them of rows.

    reason: of the range. per_record: Parquet bytes of a record as they were learned before, None when unknown.
    """
    in_memory = max(sizes.memory_bytes or sizes.record_bytes, 1.0)
    held, left = 0, records
    while left:
        on_disk = Fill(held, int(sizes.file_bytes(held))) if held else Fill(0, 0)
        end = next_group(on_disk, limits, GROUP, footer_bytes=int(sizes.overhead), parquet_bytes_per_row=per_record)
        taken = min(left, end.rows, max(ceil(end.memory_bytes / in_memory), 1), limits.records - held)
        held, left = held + taken, left - taken
        size = sizes.file_bytes(held)
        per_record = max((size - sizes.overhead) / held, 0.01)
        closed = should_rotate(Fill(held, int(size)), limits)
        if closed is not None or not left:
            yield held, size, closed or reason
            held = 0


def learned(records: int, sizes: Sizes) -> float:
    """Parquet bytes per record that a file with so many teaches."""
    return max((sizes.file_bytes(records) - sizes.overhead) / records, 0.01)
