"""Classes of transforms and predicates for tests, to be named by their path: none of them is shipped."""

from dataclasses import replace

import pyarrow as pa

from parquet_sink.config.values import Values
from parquet_sink.convert.decoded import SchemaColumns, Untyped
from parquet_sink.model.records import VALUES_ONLY, RecordParts
from parquet_sink.transform.protocol import Side
from parquet_sink.transform.records import DecodedRecords, as_trees


class Keep:
    """Changes nothing."""

    keys = ()

    def __init__(self, values: Values, side: Side) -> None:
        self.needs = RecordParts(keys=side == "key")

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        return records


class Drop:
    """Drops every record."""

    keys = ()
    needs = VALUES_ONLY

    def __init__(self, values: Values, side: Side) -> None:
        """It has no settings."""

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        return records.without(records.positions.to_pylist())


class Twice(Drop):
    """Makes two rows of each record without a schema."""

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        (piece,) = records.values
        assert not isinstance(piece, SchemaColumns)
        trees = [tree for tree in as_trees(piece).trees for _ in range(2)]
        places = pa.array([at for at in piece.positions.to_pylist() for _ in range(2)], pa.int64())
        return replace(records, values=(Untyped(places, trees),))


class Never:
    """Chooses no record."""

    keys = ()
    needs = VALUES_ONLY

    def __init__(self, values: Values) -> None:
        """It has no settings."""

    def test(self, records: DecodedRecords) -> pa.BooleanArray:
        return pa.array([False] * len(records), pa.bool_())


class Headers(Keep):
    """Asks for headers, and changes nothing."""

    def __init__(self, values: Values, side: Side) -> None:
        super().__init__(values, side)
        self.needs = RecordParts(headers=True)
