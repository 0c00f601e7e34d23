"""What a transform is, and a predicate.

As Kafka Connect's single message transforms: each takes records between decoding and shaping, in the order of the
connector's configuration. The same class may work on values (`$Value`) or on keys (`$Key`), which have the same form in
`DecodedRecords`.
"""

from typing import Protocol

import pyarrow as pa

from parquet_sink.model.records import RecordParts
from parquet_sink.transform.records import DecodedRecords


class Transform(Protocol):
    """Changes records, one independent of the other: how they are cut into batches must not matter."""

    @property
    def needs(self) -> RecordParts:
        """What it looks at beside values, topic, topic-partition, offset and timestamp; else that is not even read."""
        ...

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        """The same records, changed: other pieces, keys, headers or topics, for the same positions.

        A record that is to be passed over is left out (`DecodedRecords.without`); one that cannot be transformed is
        rejected (`DecodedRecords.reject`). Raises ConnectorError only for what is no record's fault.
        """
        ...


class Predicate(Protocol):
    """Chooses the records that a transform is applied to."""

    @property
    def needs(self) -> RecordParts:
        """As for a transform."""
        ...

    def test(self, records: DecodedRecords) -> pa.BooleanArray:
        """Whether each of `records.positions`, in their order, is chosen; no nulls."""
        ...
