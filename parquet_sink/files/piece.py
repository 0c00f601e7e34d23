"""Rows of consecutive records on their way into a file, with the offsets and Kafka timestamps of their records.

A Kafka record may have several rows (explode). They are never parted: every cut falls between two records.
"""

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class RecordTimes:
    """offsets: increasing. ms: the timestamp of each record, epoch milliseconds; 0 and less where it has none."""

    offsets: np.ndarray[Any, np.dtype[np.int64]]
    ms: np.ndarray[Any, np.dtype[np.int64]]

    @classmethod
    def of(cls, offsets: pa.Int64Array, timestamps: pa.Int64Array) -> "RecordTimes":
        """Of the columns of a block. Nothing is copied."""
        return cls(offsets.to_numpy(zero_copy_only=False), timestamps.to_numpy(zero_copy_only=False))

    def oldest_ms(self, wanted: pa.Int64Array, records: int) -> int | None:
        """The smallest timestamp of these records, None when none has one.

        wanted: their offsets, not decreasing, at least one, all of this block. records: how many different ones.
        """
        first, last = wanted[0].as_py(), wanted[-1].as_py()
        start, end = np.searchsorted(self.offsets, first, "left"), np.searchsorted(self.offsets, last, "right")
        ms = self.ms[start:end]
        if len(ms) != records:  # others between them have no row
            ms = self.ms[np.searchsorted(self.offsets, wanted.to_numpy(zero_copy_only=False))]
        if (oldest := int(ms.min())) > 0:
            return oldest
        timed = ms[ms > 0]
        return int(timed.min()) if len(timed) else None

    def of_record(self, offset: int) -> int | None:
        """The timestamp of one record of this block, None when it has none."""
        ms = int(self.ms[np.searchsorted(self.offsets, offset)])
        return ms if ms > 0 else None


class RunLike(Protocol):
    """What the accumulator needs of `rows.shaper.Run`: consecutive rows that share one Parquet schema.

    offsets: the Kafka offset of each row, not decreasing; there may be gaps, and the rows of one record share theirs.
    records: how many different offsets. All rows of a record are in one run.
    """

    @property
    def rows(self) -> pa.RecordBatch | pa.Table: ...
    @property
    def records(self) -> int: ...
    @property
    def first_offset(self) -> int: ...
    @property
    def last_offset(self) -> int: ...
    @property
    def incompatible(self) -> bool: ...
    @property
    def offsets(self) -> pa.Int64Array: ...


@dataclass(frozen=True)
class Piece:
    """All rows of consecutive records; `offsets` has one entry for each row. `times`: of these records, and of others.

    starts: where each record begins, counted in rows from `base` rows before the first one here; None when every
    record has one row, which then costs nothing.
    """

    rows: pa.Table
    offsets: pa.Int64Array
    times: RecordTimes | None = None
    starts: pa.Int64Array | None = None
    base: int = 0

    @classmethod
    def of(cls, run: RunLike, times: RecordTimes | None) -> "Piece":
        """Raises ValueError when the run's counts contradict each other: that would be a defect of shaping."""
        rows = run.rows if isinstance(run.rows, pa.Table) else pa.Table.from_batches([run.rows])
        starts = _starts(run.offsets) if run.records != len(run.offsets) else None
        records = len(run.offsets) if starts is None else len(starts)
        if not rows.num_rows == len(run.offsets) or run.records != records:
            raise ValueError(
                f"run of offsets {run.first_offset} to {run.last_offset} has {rows.num_rows} rows, {run.records} "
                f"records and {len(run.offsets)} offsets, {records} of them different; it needs an offset for each "
                f"row, and as many different ones as records"
            )
        return cls(rows.replace_schema_metadata(None), run.offsets, times, starts)

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def records(self) -> int:
        """How many Kafka records the rows are of."""
        return len(self) if self.starts is None else len(self.starts)

    @property
    def oldest_ms(self) -> int | None:
        """Smallest Kafka timestamp of the records, epoch milliseconds; None when not told, or none has one."""
        return None if self.times is None else self.times.oldest_ms(self.offsets, self.records)

    @property
    def first_ms(self) -> int | None:
        """Kafka timestamp of the first record, epoch milliseconds; None when not told, or it has none."""
        return None if self.times is None else self.times.of_record(self.offset(0))

    def after_records(self, count: int) -> int:
        """How many rows the first `count` records have, all rows when there are not so many."""
        if count >= self.records:
            return len(self)
        return count if self.starts is None else int(self.starts[count].as_py()) - self.base

    def after_rows(self, count: int) -> int:
        """The first row at or behind that many with which a record begins, all rows when there is none."""
        if self.starts is None or count >= len(self):
            return min(count, len(self))
        return self.after_records(_first(self.starts, self.base + count))

    def split(self, at: int) -> tuple["Piece", "Piece"]:
        """The first `at` rows, and the rest; a record must begin there. Nothing is copied."""
        head, tail = None, None
        if self.starts is not None:
            count = _first(self.starts, self.base + at)
            head, tail = self.starts[:count], self.starts[count:]
        return (
            Piece(self.rows.slice(0, at), self.offsets[:at], self.times, head, self.base),
            Piece(self.rows.slice(at), self.offsets[at:], self.times, tail, self.base + at),
        )

    def with_rows(self, rows: pa.Table) -> "Piece":
        """The same records with these rows, one for each of before."""
        return replace(self, rows=rows)

    def offset(self, index: int) -> int:
        """Kafka offset of one row; -1 is the last."""
        return int(self.offsets[index].as_py())


def _first(starts: pa.Int64Array, wanted: int) -> int:
    """The index of the first of them that is not below `wanted`."""
    return bisect_left(range(len(starts)), wanted, key=lambda index: int(starts[index].as_py()))


def _starts(offsets: pa.Int64Array) -> pa.Int64Array:
    """The rows with which records begin. Raises ValueError when offsets decrease."""
    if not len(offsets):
        return pa.array([], pa.int64())
    before, after = offsets[:-1], offsets[1:]
    if pc.any(pc.less(after, before)).as_py():
        raise ValueError("offsets of a run decrease")
    return pa.concat_arrays([pa.array([0], pa.int64()), pc.add(pc.indices_nonzero(pc.not_equal(after, before)), 1)])
