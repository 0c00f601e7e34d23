"""What is learned of a topic and kept for the next range: its payload columns, and what its decoder learned.

To the outside it is a `pyarrow.Schema` with metadata, which survives `schema.serialize()`.
"""

from dataclasses import dataclass
from typing import Final

import orjson
import pyarrow as pa

from parquet_sink.convert.json import profile
from parquet_sink.rows import metadata
from parquet_sink.rows.schema.evolution import Columns, leaves, merged
from parquet_sink.rows.schema.value_types import MAX_COLUMNS
from parquet_sink.rows.settings import ShapeSettings

COLUMNS_KEY: Final = b"parquet_sink.columns"
DECODER_KEY: Final = b"parquet_sink.decoder"


@dataclass(frozen=True)
class LearnedSchema:
    """columns: of the topic. decoder: see `convert.decoded.LearningDecoder`."""

    columns: Columns = ()
    decoder: bytes | None = None

    @classmethod
    def restored(cls, saved: pa.Schema | None, settings: ShapeSettings) -> "LearnedSchema":
        """What `to_schema` gave; nothing when it was learned under other settings, or by an earlier version."""
        if saved is None:
            return cls()
        found = saved.metadata or {}
        if found.get(COLUMNS_KEY) != _fingerprint(settings) or metadata.names(settings) & set(saved.names):
            return cls()
        return cls(tuple(saved), found.get(DECODER_KEY))

    def to_schema(self, settings: ShapeSettings) -> pa.Schema | None:
        """The schema to keep; None when nothing is known."""
        if not self.columns and self.decoder is None:
            return None
        found = {COLUMNS_KEY: _fingerprint(settings)}
        if self.decoder is not None:
            found[DECODER_KEY] = self.decoder
        return pa.schema(self.columns, metadata=found)


def merge(first: pa.Schema | None, second: pa.Schema | None) -> pa.Schema | None:
    """What two Spark tasks learned about one topic, taken together; where they cannot be, `second`."""
    if first is None or second is None:
        return second if first is None else first
    old, new = first.metadata or {}, second.metadata or {}
    if old.get(COLUMNS_KEY) != new.get(COLUMNS_KEY):
        return second
    columns, _ = merged(tuple(first), tuple(second))
    if leaves(columns) > MAX_COLUMNS:
        return second
    decoder = profile.merged(old.get(DECODER_KEY), new.get(DECODER_KEY))
    return pa.schema(columns, metadata={**new, **({} if decoder is None else {DECODER_KEY: decoder})})


def _fingerprint(settings: ShapeSettings) -> bytes:
    """The settings that decide columns; what was learned under others is forgotten."""
    return orjson.dumps(
        [
            *(settings.flatten, settings.discard_collections, settings.decimals_to_double, settings.lowercase),
            *(settings.chunks, settings.explode),
        ]
    )
