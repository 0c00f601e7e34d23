"""What a connector does to records on their way from Kafka to rows."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from parquet_sink.convert.decoded import Decoder
from parquet_sink.model.records import RecordBatch, RecordParts
from parquet_sink.model.rejected import Rejected
from parquet_sink.rows.raw import RAW_PARTS, RawRowBuilder
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.run import Run
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.task.reject_policy import RejectPolicy, StopAtRejected
from parquet_sink.transform.chain import TransformChain


class RowShaper(Protocol):
    """What makes rows of blocks, one for each range: `RowBuilder` has what its members mean."""

    @property
    def known(self) -> pa.Schema | None: ...
    def shape(self, block: RecordBatch, *, across_rejected: bool = False) -> Iterator[Run | Rejected]: ...
    def unmatched(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class RecordSteps:
    """decoder: of values; None for JSON without a schema. transforms: None for none. policy: for what is rejected.

    tombstone_keys: decoder of keys, where tombstones become rows; None where they are skipped. raw: nothing of all this
    is done but what the policy does.
    """

    decoder: Decoder | None = None
    transforms: TransformChain | None = None
    policy: RejectPolicy = field(default_factory=StopAtRejected)
    tombstone_keys: Decoder | None = None
    raw: bool = False

    @property
    def needs(self) -> RecordParts:
        """What of a record is read beside its value: what any of these looks at."""
        if self.raw:
            return RAW_PARTS  # the policy is asked about refused files alone, whose records are read again
        needs = self.policy.needs | RecordParts(keys=self.tombstone_keys is not None)
        return needs if self.transforms is None else needs | self.transforms.needs

    def shaper(self, settings: ShapeSettings, known: pa.Schema | None = None) -> RowShaper:
        """One for a range. known: what was learned of the topic."""
        if self.raw:
            return RawRowBuilder()
        return RowBuilder(settings, known, self.decoder, self.transforms, self.tombstone_keys)
