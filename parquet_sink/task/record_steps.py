"""What a connector's settings have done to records: decoder, transforms, and the policy for rejected ones."""

from dataclasses import dataclass, field

import pyarrow as pa

from parquet_sink.convert.decoded import Decoder
from parquet_sink.model.records import RecordParts
from parquet_sink.model.rejected import Stage
from parquet_sink.rows.raw import RAW_PARTS, RawRowBuilder
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.settings.record_sink import RecordSinkSettings
from parquet_sink.settings.sink import SinkSettings, of_sink
from parquet_sink.task.reject_policy import DivertPolicy, DivertStore, LoggedRejects, RejectPolicy, StopAtRejected
from parquet_sink.transform.chain import TransformChain


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

    def shaper(self, settings: ShapeSettings, known: pa.Schema | None = None) -> RowBuilder | RawRowBuilder:
        """One for a range. known: what was learned of the topic."""
        if self.raw:
            return RawRowBuilder()
        return RowBuilder(settings, known, self.decoder, self.transforms, self.tombstone_keys)


# Decoders and transforms are kept in this process from micro-batch to micro-batch. What follows loads only what this
# connector needs.


def steps_for(settings: SinkSettings, policy: RejectPolicy) -> RecordSteps:
    """Of a sink that writes Parquet files."""
    if settings.shape.raw:
        return RecordSteps(policy=policy, raw=True)
    from parquet_sink.convert.decoders import decoder_for, key_decoder_for

    transforms = None
    if settings.transforms:
        from parquet_sink.transform.building import chain_for

        transforms = chain_for(settings.transforms, settings.key, settings.header)
    tombstone_keys = None if settings.shape.tombstone_column is None else key_decoder_for(settings.key)
    return RecordSteps(decoder_for(settings.value), transforms, policy, tombstone_keys)


def steps_of_record_sink(settings: RecordSinkSettings) -> RecordSteps:
    """Of a sink that takes records."""
    from parquet_sink.convert.decoders import decoder_for
    from parquet_sink.transform.building import chain_of

    chain = chain_of(settings.transforms, settings.key, settings.header, settings.sink.needs)
    return RecordSteps(decoder_for(settings.value), chain, policy_for(settings))


def policy_for(settings: SinkSettings | RecordSinkSettings) -> RejectPolicy:
    """Rejected records go to the dead-letter topic, or are parked; without either the first one stops the connector."""
    store = _store(settings)
    policy = StopAtRejected() if store is None else DivertPolicy(settings.errors, store)
    if not settings.errors.log:
        return policy
    return LoggedRejects(policy, settings.name, settings.errors.log_content, classes_of(settings))


def _store(settings: SinkSettings | RecordSinkSettings) -> DivertStore | None:
    if (topic := settings.errors.dead_letters) is not None:
        from parquet_sink.kafka.dead_letters import DeadLetters, HeaderWriter

        return DeadLetters(topic, HeaderWriter(settings.name, topic.context, classes_of(settings)))
    if of_sink(settings) and settings.errors.parks:
        from parquet_sink.parked.folder import ParkedFolder, ParkedStore

        return ParkedStore(ParkedFolder(settings.parked_folder, settings.name, settings.parked.max_bytes))
    return None


def classes_of(settings: SinkSettings | RecordSinkSettings) -> dict[Stage, str]:
    """What carries out each stage, by its full name: of a converter the one that stands in a connector file.

    Of a transform each record that it rejects names it. Our own names stay when classes move: they stand in dead
    letters.
    """
    return {
        Stage.KEY_CONVERTER: settings.key.in_reports if settings.key else "",
        Stage.VALUE_CONVERTER: settings.value.in_reports,
        Stage.HEADER_CONVERTER: settings.header.in_reports,
        Stage.SHAPE: "parquet_sink.shape.shaper.Shaper",
        Stage.OBFUSCATION: "parquet_sink.shape.obfuscation.field_obfuscator.FieldObfuscator",
        Stage.TASK_PUT: "parquet_sink.targets.uploader.OrderedUploader",
    }
