"""What authors of plug-ins import: `from parquet_sink.api import Key, FieldTransform`. These names never move.

Each is loaded when it is asked for first, so that a plug-in loads what it uses: those of keys, settings and errors load
neither Arrow nor Spark. Other modules are our own affair, and may move with any version.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # the same names for the type checker
    from parquet_sink.addons.sources.connector import checks, keys
    from parquet_sink.addons.sources.connector.build import source_settings as source_settings
    from parquet_sink.addons.sources.connector.keys import SOURCE_KEYS as SOURCE_KEYS
    from parquet_sink.addons.sources.task import Reached as Reached
    from parquet_sink.addons.sources.task import SourceTask as SourceTask
    from parquet_sink.cli.command_class import CommandPlugin as CommandPlugin
    from parquet_sink.config.class_settings import WrongSettings as WrongSettings
    from parquet_sink.config.declared import Bytes as Bytes
    from parquet_sink.config.declared import LocalPath as LocalPath
    from parquet_sink.config.declared import Long as Long
    from parquet_sink.config.declared import Milliseconds as Milliseconds
    from parquet_sink.config.declared import ShortBytes as ShortBytes
    from parquet_sink.config.declared import ShortMilliseconds as ShortMilliseconds
    from parquet_sink.config.declared import check as check
    from parquet_sink.config.declared import declared as declared
    from parquet_sink.config.declared import filled_by as filled_by
    from parquet_sink.config.declared import key as key
    from parquet_sink.config.declared import keys_of as keys_of
    from parquet_sink.config.declared import made as made
    from parquet_sink.config.key import Check as Check
    from parquet_sink.config.key import Key as Key
    from parquet_sink.config.key import Origin as Origin
    from parquet_sink.config.key import Type as Type
    from parquet_sink.config.machine import Machine as Machine
    from parquet_sink.config.provider import ProviderError as ProviderError
    from parquet_sink.config.provider import Resolved as Resolved
    from parquet_sink.config.report import Report as Report
    from parquet_sink.config.secret import Secret as Secret
    from parquet_sink.config.values import Values as Values
    from parquet_sink.config.values import read as read
    from parquet_sink.connectors import reading, record_sinks
    from parquet_sink.connectors.connect_keys import CONNECTOR_KEYS as CONNECTOR_KEYS
    from parquet_sink.connectors.connector_class import ConnectorClass as ConnectorClass
    from parquet_sink.connectors.kinds import ConnectorKind as ConnectorKind
    from parquet_sink.connectors.reading import kafka_settings as kafka_settings
    from parquet_sink.connectors.record_sinks import RECORD_SINK_KEYS as RECORD_SINK_KEYS
    from parquet_sink.convert.custom import ConverterClass as ConverterClass
    from parquet_sink.convert.custom import OneByOne as OneByOne
    from parquet_sink.convert.decoded import Decoded as Decoded
    from parquet_sink.convert.decoded import Decoder as Decoder
    from parquet_sink.convert.decoded import Inferred as Inferred
    from parquet_sink.convert.decoded import InferredColumns as InferredColumns
    from parquet_sink.convert.decoded import Piece as Piece
    from parquet_sink.convert.decoded import SchemaColumns as SchemaColumns
    from parquet_sink.convert.decoded import Trees as Trees
    from parquet_sink.convert.decoded import Typed as Typed
    from parquet_sink.convert.decoded import Untyped as Untyped
    from parquet_sink.convert.decoders import decoder_for as decoder_for
    from parquet_sink.convert.invalid import InvalidValue as InvalidValue
    from parquet_sink.convert.keys import CONVERTER_KEYS as CONVERTER_KEYS
    from parquet_sink.convert.settings import Converter as Converter
    from parquet_sink.convert.settings import ConverterSettings as ConverterSettings
    from parquet_sink.errors import RecordSinkFailed as RecordSinkFailed
    from parquet_sink.errors import RetryLater as RetryLater
    from parquet_sink.errors import SinkError as SinkError
    from parquet_sink.errors import SourceFailed as SourceFailed
    from parquet_sink.files.accumulator import FinishedFile as FinishedFile
    from parquet_sink.files.settings import FileSettings as FileSettings
    from parquet_sink.kafka.settings import OVERRIDE_KEYS as OVERRIDE_KEYS
    from parquet_sink.kafka.settings import TOPIC_KEYS as TOPIC_KEYS
    from parquet_sink.kafka.settings import FlushSettings as FlushSettings
    from parquet_sink.kafka.settings import KafkaSettings as KafkaSettings
    from parquet_sink.model.events import Event as Event
    from parquet_sink.model.records import VALUES_ONLY as VALUES_ONLY
    from parquet_sink.model.records import RecordBatch as RecordBatch
    from parquet_sink.model.records import RecordParts as RecordParts
    from parquet_sink.model.source_records import SourceRecord as SourceRecord
    from parquet_sink.net.settings import HttpSettings as HttpSettings
    from parquet_sink.rows.row_builder import Shaper as Shaper
    from parquet_sink.rows.run import Run as Run
    from parquet_sink.rows.settings import OBFUSCATION_KEYS as OBFUSCATION_KEYS
    from parquet_sink.rows.settings import SHAPE_KEYS as SHAPE_KEYS
    from parquet_sink.rows.settings import ShapeSettings as ShapeSettings
    from parquet_sink.settings.connector import ConnectorSettings as ConnectorSettings
    from parquet_sink.settings.connector import ErrorSettings as ErrorSettings
    from parquet_sink.settings.connector import RestartSettings as RestartSettings
    from parquet_sink.settings.sink import SinkSettings as SinkSettings
    from parquet_sink.targets.outcome import Health as Health
    from parquet_sink.targets.outcome import Outcome as Outcome
    from parquet_sink.targets.outcome import ProbeResult as ProbeResult
    from parquet_sink.targets.outcome import Verdict as Verdict
    from parquet_sink.targets.push.settings import PushSettings as PushSettings
    from parquet_sink.targets.record_sink import RecordSink as RecordSink
    from parquet_sink.targets.record_sink import SinkRecords as SinkRecords
    from parquet_sink.targets.settings import OtherTargetSettings as OtherTargetSettings
    from parquet_sink.targets.settings import RecordSinkSetup as RecordSinkSetup
    from parquet_sink.targets.settings import RetrySettings as RetrySettings
    from parquet_sink.targets.settings import Target as Target
    from parquet_sink.targets.settings import TargetSettings as TargetSettings
    from parquet_sink.targets.store import FileStore as FileStore
    from parquet_sink.targets.store import LocalFile as LocalFile
    from parquet_sink.targets.store import StoredFile as StoredFile
    from parquet_sink.targets.store import StoreSettings as StoreSettings
    from parquet_sink.targets.store import StoreUnusable as StoreUnusable
    from parquet_sink.targets.target_class import TargetClass as TargetClass
    from parquet_sink.transform.chain import Step as Step
    from parquet_sink.transform.chain import TransformChain as TransformChain
    from parquet_sink.transform.fields.base import Columns as Columns
    from parquet_sink.transform.fields.base import FieldTransform as FieldTransform
    from parquet_sink.transform.fields.base import TypedChange as TypedChange
    from parquet_sink.transform.keys import TRANSFORM_KEYS as TRANSFORM_KEYS
    from parquet_sink.transform.protocol import Predicate as Predicate
    from parquet_sink.transform.protocol import PredicateClass as PredicateClass
    from parquet_sink.transform.protocol import RecordFault as RecordFault
    from parquet_sink.transform.protocol import Side as Side
    from parquet_sink.transform.protocol import Transform as Transform
    from parquet_sink.transform.protocol import TransformClass as TransformClass
    from parquet_sink.transform.records import DecodedRecords as DecodedRecords
    from parquet_sink.transform.records import as_trees as as_trees
    from parquet_sink.validate.probe_kafka import Finding as Finding
    from parquet_sink.worker.herder.values import StoredOffset as StoredOffset
    from parquet_sink.worker.loop.flow import Flow as Flow
    from parquet_sink.worker.loop.flow import StoredOffsets as StoredOffsets
    from parquet_sink.worker_config.event_listeners import EventListener as EventListener
    from parquet_sink.worker_config.event_listeners import ListenerClass as ListenerClass
    from parquet_sink.worker_config.provider_class import OwnProvider as OwnProvider
    from parquet_sink.worker_config.provider_class import ProviderClass as ProviderClass
    from parquet_sink.worker_config.worker import Worker as Worker

    check_topics = reading.check
    check_record_sink = record_sinks.check
    record_sink_settings = record_sinks.settings
    check_source = checks.check
    SOURCE_CONNECTOR_KEYS = keys.OWN_KEYS

_NAMES: Final = {
    # keys of a plug-in, and what they come to
    "config.key": "Check Key Origin Type",
    "config.secret": "Secret",
    "config.values": "Values read",
    "config.provider": "Resolved ProviderError",
    "config.report": "Report",
    "config.machine": "Machine",
    "config.class_settings": "WrongSettings",
    # records
    "model.records": "VALUES_ONLY RecordBatch RecordParts",
    "convert.decoded": "SchemaColumns Untyped InferredColumns Inferred Piece Trees Typed Decoded Decoder",
    # transforms and predicates
    "transform.protocol": "Predicate PredicateClass RecordFault Side Transform TransformClass",
    "transform.records": "DecodedRecords as_trees",
    "transform.fields.base": "Columns FieldTransform TypedChange",
    "transform.chain": "Step TransformChain",
    # converters
    "convert.settings": "Converter ConverterSettings",
    "convert.custom": "ConverterClass OneByOne",
    "convert.invalid": "InvalidValue",
    "convert.decoders": "decoder_for",
    # config providers
    "worker_config.provider_class": "OwnProvider ProviderClass",
    # listeners of events
    "model.events": "Event",
    "worker_config.event_listeners": "EventListener ListenerClass",
    # connector classes
    "connectors.connector_class": "ConnectorClass",
    "worker_config.worker": "Worker",
    "connectors.connect_keys": "CONNECTOR_KEYS",
    "convert.keys": "CONVERTER_KEYS",
    "transform.keys": "TRANSFORM_KEYS",
    "rows.settings": "SHAPE_KEYS OBFUSCATION_KEYS ShapeSettings",
    "config.declared": "LocalPath declared filled_by key keys_of made check Bytes Long Milliseconds "
    "ShortBytes ShortMilliseconds",
    "settings.connector": "RestartSettings ErrorSettings ConnectorSettings",
    "net.settings": "HttpSettings",
    "kafka.settings": "OVERRIDE_KEYS TOPIC_KEYS FlushSettings KafkaSettings",
    "settings.sink": "SinkSettings",
    "files.settings": "FileSettings",
    "targets.settings": "RecordSinkSetup RetrySettings Target TargetSettings OtherTargetSettings",
    "targets.push.settings": "PushSettings",
    "connectors.reading": "kafka_settings",
    # targets
    "targets.target_class": "TargetClass",
    "targets.outcome": "Health Outcome ProbeResult Verdict",
    "files.accumulator": "FinishedFile",
    # file stores, for archives and reshape
    "targets.store": "FileStore LocalFile StoredFile StoreSettings StoreUnusable",
    # sinks that take records
    "targets.record_sink": "RecordSink SinkRecords",
    "connectors.record_sinks": "RECORD_SINK_KEYS",
    # sources
    "model.source_records": "SourceRecord",
    "addons.sources.task": "Reached SourceTask",
    "addons.sources.connector.keys": "SOURCE_KEYS",
    "addons.sources.connector.build": "source_settings",
    # kinds of connectors
    "connectors.kinds": "ConnectorKind",
    "worker.loop.flow": "Flow StoredOffsets",
    "worker.herder.values": "StoredOffset",
    "validate.probe_kafka": "Finding",
    # commands
    "cli.command_class": "CommandPlugin",
    # errors
    "errors": "RecordSinkFailed RetryLater SinkError SourceFailed",
    # trying a plug-in in a test
    "rows.row_builder": "Shaper",
    "rows.run": "Run",
}
"""By module below `parquet_sink`, the names that are its own."""
_PATHS: Final = {
    **{name: f"{module}:{name}" for module, names in _NAMES.items() for name in names.split()},
    "check_topics": "connectors.reading:check",
    "check_record_sink": "connectors.record_sinks:check",
    "record_sink_settings": "connectors.record_sinks:settings",
    "SOURCE_CONNECTOR_KEYS": "addons.sources.connector.keys:OWN_KEYS",
    "check_source": "addons.sources.connector.checks:check",
}
"""By name, where it is below `parquet_sink`."""

__all__ = list(_PATHS)


def __getattr__(name: str) -> Any:
    """A name, loaded. Raises AttributeError for one that is not here."""
    if name not in _PATHS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _PATHS[name].partition(":")
    found = globals()[name] = getattr(import_module(f"parquet_sink.{module}"), attribute)
    return found


def __dir__() -> list[str]:
    """All of them."""
    return list(_PATHS)
