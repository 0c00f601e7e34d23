"""What a record sink is: it takes records, decoded and transformed, where a target takes files.

The order of a range is the pipeline's (`task.record_task`): `put` as often as there are batches, then `flush`, and
only after that has returned is anything committed. What was put and not flushed comes again.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa

from parquet_sink.convert.decoded import InferredColumns, Piece, SchemaColumns
from parquet_sink.transform.fields.plain import to_plain
from parquet_sink.transform.records import DecodedRecords

ValuesOf = Callable[[Piece], Sequence[object]]
"""Gives one value for each row of a piece."""


@dataclass(frozen=True)
class SinkRecord:
    """One record. topic: the one that transforms gave it, else its own. timestamp_ms: epoch milliseconds, 0 for none.

    value, key: as Python has them; dates are days, times and timestamps milliseconds, maps with a schema lists of
    pairs. None: null, or a key that nobody asked for. headers: name and value, likewise; empty where nobody asked.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    value: object
    key: object = None
    headers: tuple[tuple[str, object], ...] = ()


class SinkRecords:
    """Records of one topic-partition in offset order, to be looped over; or as columns, in `pieces`."""

    def __init__(self, records: DecodedRecords) -> None:
        self._records = records
        self.topic, self.partition = records.batch.topic, records.batch.partition

    def __len__(self) -> int:
        """Records, one that a transform made several of counted once."""
        return len(self._records)

    def __iter__(self) -> Iterator[SinkRecord]:
        batch, headers, topics = self._records.batch, self._records.headers, self._records.topics
        keys = dict(_entries(self._records.keys or (), _values))
        for position, value in self.in_order(_values):
            yield SinkRecord(
                self.topic if topics is None else topics[position].as_py(),
                self.partition,
                batch.offsets[position].as_py(),
                batch.timestamps[position].as_py(),
                value,
                keys.get(position),
                () if headers is None else tuple((one.name, _plain(one.value)) for one in headers[position]),
            )

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The values as columns or trees, by their positions; tombstones are in none of them."""
        return self._records.values

    @cached_property
    def offsets(self) -> pa.Int64Array:
        """Of the records, increasing."""
        return self._records.batch.offsets.take(self._records.positions)

    def in_order(self, values_of: ValuesOf) -> Iterator[tuple[int, object]]:
        """Position and value of each record, tombstones as None. values_of: one for each row of a piece."""
        found = [*_entries(self.pieces, values_of)]
        there = np.fromiter((position for position, _ in found), np.int64, len(found))
        gone = np.setdiff1d(self._records.positions.to_numpy(), there)
        found += [(position, None) for position in gone.tolist()]
        return iter(sorted(found, key=lambda one: one[0]))


def _entries(pieces: Sequence[Piece], values_of: ValuesOf) -> Iterator[tuple[int, object]]:
    for piece in pieces:
        yield from zip(piece.positions.to_pylist(), values_of(piece), strict=True)


def _values(piece: Piece) -> Sequence[object]:
    if isinstance(piece, SchemaColumns):
        return to_plain(piece.rows)
    trees = (
        [piece.tree(row) for row in range(len(piece.positions))] if isinstance(piece, InferredColumns) else piece.trees
    )
    return [_plain(tree) for tree in trees]


def _plain(value: object) -> object:
    """Of a record without a schema, in which transforms may have left Arrow scalars."""
    if isinstance(value, pa.Scalar):
        return to_plain(pa.array([value], value.type))[0]
    if isinstance(value, dict):
        return {name: _plain(below) for name, below in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


class RecordSink(Protocol):
    """Takes the records of one range of one topic-partition; one thread at a time uses it.

    Ranges of several topic-partitions are under way side by side, each in a Spark task and with a sink of its own.
    Where it cannot work now, `put` and `flush` raise errors.RetryLater: the range comes again, as often as the
    connector's restart keys say. Where it never will, they raise another errors.ConnectorError, and the connector
    fails. Anything else that they raise is a defect.
    """

    def put(self, records: SinkRecords) -> None:
        """Takes some records, in offset order from call to call; they need not be durable yet."""

    def flush(self) -> None:
        """Returns when everything that was put is durable, also beyond a crash of the machine."""

    def close(self) -> None:
        """The range has ended, well or not; what was put and not flushed need not be kept. Raises nothing."""
