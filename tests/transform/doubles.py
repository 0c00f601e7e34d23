"""Transforms and predicates for tests: none of them is shipped."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from parquet_sink.convert.decoded import Piece, SchemaColumns, Tree, Untyped
from parquet_sink.model.records import VALUES_ONLY, RecordParts
from parquet_sink.transform.records import DecodedRecords, as_trees


@dataclass
class Identity:
    """Gives what it gets, and remembers it."""

    needs: RecordParts = VALUES_ONLY
    seen: list[DecodedRecords] = field(default_factory=list)

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        self.seen.append(records)
        return records


@dataclass
class Fails:
    """Works until the record at this offset comes."""

    at: int
    error: Exception
    needs: RecordParts = VALUES_ONLY

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        if self.at in records.batch.offsets.to_pylist():
            raise self.error
        return records


@dataclass
class EachTree:
    """Changes trees one by one: the row-wise form. A change that gives None drops the record; a text rejects it."""

    change: Callable[[Tree, DecodedRecords, int], Tree | str | None]
    needs: RecordParts = VALUES_ONLY

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        pieces = []
        dropped: list[int] = []
        rejected: dict[int, str] = {}
        for piece in records.values:
            assert not isinstance(piece, SchemaColumns)
            kept = []
            for at, tree in zip(piece.positions.to_pylist(), as_trees(piece).trees, strict=True):
                changed = self.change(tree, records, at)
                if changed is None:
                    dropped.append(at)
                elif isinstance(changed, str):
                    rejected[at] = changed
                else:
                    kept.append((at, changed))
            pieces.append(Untyped(pa.array([at for at, _ in kept], pa.int64()), [tree for _, tree in kept]))
        return replace(records, values=tuple(pieces)).without(dropped).reject(rejected)


@dataclass
class Stamp:
    """Connect's InsertField, with the record's offset, on columns where records are columns."""

    name: str
    needs: RecordParts = VALUES_ONLY

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        return replace(records, values=tuple(self._piece(records, piece) for piece in records.values))

    def _piece(self, records: DecodedRecords, piece: Piece) -> Piece:
        stamps = records.batch.offsets.take(piece.positions)
        if isinstance(piece, Untyped):
            trees = zip(piece.trees, stamps.to_pylist(), strict=True)
            return replace(piece, trees=[{**tree, self.name: stamp} for tree, stamp in trees])
        fields, arrays = list(piece.rows.type), piece.rows.flatten()
        rows = pa.StructArray.from_arrays([*arrays, stamps], fields=[*fields, pa.field(self.name, pa.int64())])
        if isinstance(piece, SchemaColumns):
            return replace(piece, rows=rows)
        return replace(piece, rows=rows, tree=lambda row: {**piece.tree(row), self.name: stamps[row].as_py()})


@dataclass
class DropAll:
    """Connect's Filter."""

    needs: RecordParts = VALUES_ONLY

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        return records.where(np.zeros(len(records.batch), np.bool_))


@dataclass
class Route:
    """Connect's RegexRouter, with one name for all."""

    name: str
    needs: RecordParts = VALUES_ONLY

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        return replace(records, topics=pa.repeat(self.name, len(records.batch)))


@dataclass
class Where:
    """A predicate that asks about each record by its position."""

    test_one: Callable[[DecodedRecords, int], bool]
    needs: RecordParts = VALUES_ONLY

    def test(self, records: DecodedRecords) -> pa.BooleanArray:
        return pa.array([self.test_one(records, at) for at in records.positions.to_pylist()], pa.bool_())


def is_tombstone(records: DecodedRecords, position: int) -> bool:
    """Connect's RecordIsTombstone."""
    return not any(position in piece.positions.to_pylist() for piece in records.values)


def has_header(name: str) -> Where:
    """Connect's HasHeaderKey."""

    def test(records: DecodedRecords, position: int) -> bool:
        assert records.headers is not None
        return any(header.name == name for header in records.headers[position])

    return Where(test, RecordParts(headers=True, header_values=frozenset()))


def on_topic(name: str) -> Where:
    """Connect's TopicNameMatches."""
    return Where(
        lambda records, at: name == (records.batch.topic if records.topics is None else records.topics[at].as_py())
    )
