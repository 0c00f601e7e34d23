"""Records on their way to Kafka: what a source's task gives, and where in the source they came from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

Place = Mapping[str, str | int | float | bool | None]
"""A flat JSON object: which part of a source (`{"filename": …}`), or where in it (`{"position": …}`)."""


class SourceHeader(NamedTuple):
    """One header: its value as that of a record."""

    name: str
    value: object
    type: "pa.DataType | None" = None


@dataclass(frozen=True)
class SourceRecord:
    """One record for Kafka, with the place behind it in the source.

    topic: where it goes, unless a transform routes it. value, key: None, or what `value_type`, `key_type` say: an Arrow
    type stands for a schema, as `convert.decoded` lists them; without one text, bytes, numbers, booleans, lists and
    dicts are taken. partition: of the topic; None leaves it to the key, else to chance. timestamp_ms: since the epoch;
    None is the time of sending. source_partition, source_offset: as JSON objects, what the next start of a task is
    given when everything up to this record is in Kafka; no offset: nothing is kept for it.
    """

    topic: str
    value: object = None
    value_type: "pa.DataType | None" = None
    key: object = None
    key_type: "pa.DataType | None" = None
    partition: int | None = None
    headers: tuple[SourceHeader, ...] = ()
    timestamp_ms: int | None = None
    source_partition: Place = field(default_factory=dict)
    source_offset: Place | None = None
