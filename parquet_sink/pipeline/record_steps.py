"""What a connector does to records on their way from Kafka to rows."""

from dataclasses import dataclass, field

from parquet_sink.convert.decoded import Decoder
from parquet_sink.model.records import RecordParts
from parquet_sink.pipeline.reject_policy import RejectPolicy, StopAtRejected
from parquet_sink.transform.chain import TransformChain


@dataclass(frozen=True)
class RecordSteps:
    """decoder: of values; None for JSON without a schema. transforms: None for none. policy: for what is rejected.

    tombstone_keys: decoder of keys, where tombstones become rows; None where they are skipped.
    """

    decoder: Decoder | None = None
    transforms: TransformChain | None = None
    policy: RejectPolicy = field(default_factory=StopAtRejected)
    tombstone_keys: Decoder | None = None

    @property
    def needs(self) -> RecordParts:
        """What of a record is read beside its value: what any of these looks at."""
        needs = self.policy.needs | RecordParts(keys=self.tombstone_keys is not None)
        return needs if self.transforms is None else needs | self.transforms.needs
