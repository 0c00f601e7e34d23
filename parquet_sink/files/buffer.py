"""Rows that wait in memory for the next row group, with the offset of each."""

from collections import deque
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from parquet_sink.files import schemas


class RunLike(Protocol):
    """What the accumulator needs of `shape.shaper.Run`: consecutive rows that share one Parquet schema.

    One row for each Kafka record. offsets: one for each row, increasing; there may be gaps.
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
    """Consecutive rows; `offsets` has one entry for each row. `oldest_ms`: epoch milliseconds, for freshness."""

    rows: pa.Table
    offsets: pa.Int64Array
    oldest_ms: int | None = None

    @classmethod
    def of(cls, run: RunLike, oldest_ms: int | None) -> "Piece":
        """Raises ValueError when the run's counts contradict each other: that would be a defect of shaping."""
        rows = run.rows if isinstance(run.rows, pa.Table) else pa.Table.from_batches([run.rows])
        if not rows.num_rows == run.records == len(run.offsets):
            raise ValueError(
                f"run of offsets {run.first_offset} to {run.last_offset} has {rows.num_rows} rows, "
                f"{run.records} records and {len(run.offsets)} offsets; it needs one offset and one record for each row"
            )
        return cls(rows.replace_schema_metadata(None), run.offsets, oldest_ms)

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def split(self, at: int) -> tuple["Piece", "Piece"]:
        """The first `at` rows, and the rest. Nothing is copied."""
        rows, offsets = self.rows, self.offsets
        return Piece(rows.slice(0, at), offsets[:at], self.oldest_ms), Piece(
            rows.slice(at), offsets[at:], self.oldest_ms
        )

    def offset(self, index: int) -> int:
        """Kafka offset of one row; -1 is the last."""
        return int(self.offsets[index].as_py())


class Buffer:
    """Pieces of one schema, in offset order."""

    def __init__(self) -> None:
        self.rows = 0
        self.arrow_bytes = 0
        self._pieces: deque[Piece] = deque()

    @property
    def schema(self) -> pa.Schema | None:
        """Schema of the rows within, None when empty."""
        return self._pieces[0].rows.schema if self._pieces else None

    @property
    def bytes_per_row(self) -> float:
        """Arrow bytes per row, 0 when empty."""
        return self.arrow_bytes / self.rows if self.rows else 0.0

    def append(self, piece: Piece) -> None:
        """Adds rows, which must have the schema of those within."""
        if len(piece):
            self._pieces.append(piece)
            self._count(piece, 1)

    def widen(self, schema: pa.Schema) -> bool:
        """Gives the rows within another schema; False, and nothing changed, when a value cannot be kept exactly."""
        tables = [schemas.aligned(piece.rows, schema) for piece in self._pieces]
        if any(table is None for table in tables):
            return False
        pieces = [Piece(t, p.offsets, p.oldest_ms) for t, p in zip(tables, self._pieces, strict=True) if t is not None]
        self._pieces, self.rows, self.arrow_bytes = deque(), 0, 0
        for piece in pieces:
            self.append(piece)
        return True

    def take(self, rows: int) -> list[Piece]:
        """Removes and returns the first `rows` rows, or all there are."""
        taken: list[Piece] = []
        while rows > 0 and self._pieces:
            piece = self._pieces.popleft()
            self._count(piece, -1)
            if len(piece) > rows:
                piece, rest = piece.split(rows)
                self._pieces.appendleft(rest)
                self._count(rest, 1)
            taken.append(piece)
            rows -= len(piece)
        return taken

    def _count(self, piece: Piece, sign: int) -> None:
        self.rows += sign * len(piece)
        self.arrow_bytes += sign * piece.rows.nbytes
