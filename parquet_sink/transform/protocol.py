"""What a transform is, and a predicate; and what makes one from the keys of a connector file.

As Kafka Connect's single message transforms: each takes records between decoding and shaping, in the order of the
connector's configuration. The same class may work on values (`$Value`) or on keys (`$Key`), which have the same form in
`DecodedRecords`.
"""

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

import pyarrow as pa

from parquet_sink.config.class_settings import WrongSettings as WrongSettings  # noqa: PLC0414 - one door for authors
from parquet_sink.config.key import Key
from parquet_sink.config.values import Values
from parquet_sink.model.records import RecordParts
from parquet_sink.transform.records import DecodedRecords

Side = Literal["value", "key"]
"""What of a record a transform works on: `$Key` behind its class name says the key, `$Value` or nothing the value."""


class RecordFault(ValueError):
    """Raised by the code for one record: that record cannot be transformed, and is rejected with this reason.

    The text is one sentence without a full stop, and never holds the content of a field. Code for many records at once
    calls `DecodedRecords.reject` in its place.
    """


class Transform(Protocol):
    """Changes records, one independent of the other: how they are cut into batches must not matter."""

    @property
    def needs(self) -> RecordParts:
        """What it looks at beside values, topic, topic-partition, offset and timestamp; else that is not even read."""
        ...

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        """The same records, changed: other pieces, keys, headers or topics, for the same positions.

        A record that is to be passed over is left out (`DecodedRecords.without`); one that cannot be transformed is
        rejected (`DecodedRecords.reject`). Raises ConnectorError only for what is not a record's fault.
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


@runtime_checkable
class TransformClass(Protocol):
    """What `transforms.N.type` names: a class, or whatever else is called like one. Its docstring is in the reference.

    keys: what `transforms.N.` may stand before, named without that; each is parsed and checked by itself like any key.
    One that drops every record where it has no predicate says so in a class variable `drops_all`, and users are warned.
    """

    keys: Sequence[Key]

    def __call__(self, values: Values, side: Side) -> Transform:
        """A transform for one side of a record. values: by the names of `keys`, defaults included.

        It is made when a file is checked, too, so it does nothing but look at its settings. Raises WrongSettings.
        """
        ...


@runtime_checkable
class PredicateClass(Protocol):
    """What `predicates.N.type` names. keys: as for a transform, behind `predicates.N.`."""

    keys: Sequence[Key]

    def __call__(self, values: Values) -> Predicate:
        """Raises WrongSettings."""
        ...
