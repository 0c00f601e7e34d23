"""Kafka Connect's Filter: records are passed over."""

from dataclasses import replace
from typing import ClassVar

import pyarrow as pa

from parquet_sink.config.key import Key
from parquet_sink.config.values import Values
from parquet_sink.model.records import VALUES_ONLY
from parquet_sink.transform.protocol import Side
from parquet_sink.transform.records import DecodedRecords


class Filter:
    """Drops the records that its predicate chooses; all of them without one."""

    keys: ClassVar[tuple[Key, ...]] = ()
    needs = VALUES_ONLY

    def __init__(self, values: Values, side: Side) -> None:
        """As `transform.protocol.TransformClass` says."""

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        """No record is left."""
        keys = None if records.keys is None else ()
        return replace(records, positions=pa.array([], pa.int64()), values=(), keys=keys)
