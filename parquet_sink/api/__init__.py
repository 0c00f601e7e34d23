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
    from parquet_sink.convert.decoded import Decoded as Decoded
    from parquet_sink.convert.decoded import Decoder as Decoder
    from parquet_sink.convert.decoded import Inferred as Inferred
    from parquet_sink.convert.decoded import Piece as Piece
    from parquet_sink.convert.decoded import Trees as Trees
    from parquet_sink.convert.decoded import Typed as Typed
    from parquet_sink.convert.decoders import decoder_for as decoder_for
    from parquet_sink.convert.invalid import InvalidValue as InvalidValue
    from parquet_sink.convert.keys import CONVERTER_KEYS as CONVERTER_KEYS
    from parquet_sink.convert.own import ConverterClass as ConverterClass
    from parquet_sink.convert.own import OneByOne as OneByOne
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
    from parquet_sink.rows.run import Run as Run
    from parquet_sink.rows.settings import OBFUSCATION_KEYS as OBFUSCATION_KEYS
    from parquet_sink.rows.settings import SHAPE_KEYS as SHAPE_KEYS
    from parquet_sink.rows.settings import ShapeSettings as ShapeSettings
    from parquet_sink.rows.shaper import Shaper as Shaper
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
    from parquet_sink.targets.record_sink_setup import RecordSinkSetup as RecordSinkSetup
    from parquet_sink.targets.settings import OtherTargetSettings as OtherTargetSettings
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

_PATHS: Final = {
    # keys of a plug-in, and what they come to
    "Check": "config.key:Check",
    "Key": "config.key:Key",
    "Origin": "config.key:Origin",
    "Type": "config.key:Type",
    "Secret": "config.secret:Secret",
    "Values": "config.values:Values",
    "read": "config.values:read",
    "Resolved": "config.provider:Resolved",
    "Report": "config.report:Report",
    "Machine": "config.machine:Machine",
    "WrongSettings": "config.class_settings:WrongSettings",
    # records
    "VALUES_ONLY": "model.records:VALUES_ONLY",
    "RecordBatch": "model.records:RecordBatch",
    "RecordParts": "model.records:RecordParts",
    "Inferred": "convert.decoded:Inferred",
    "Piece": "convert.decoded:Piece",
    "Trees": "convert.decoded:Trees",
    "Typed": "convert.decoded:Typed",
    # transforms and predicates
    "Predicate": "transform.protocol:Predicate",
    "PredicateClass": "transform.protocol:PredicateClass",
    "RecordFault": "transform.protocol:RecordFault",
    "Side": "transform.protocol:Side",
    "Transform": "transform.protocol:Transform",
    "TransformClass": "transform.protocol:TransformClass",
    "DecodedRecords": "transform.records:DecodedRecords",
    "as_trees": "transform.records:as_trees",
    "Columns": "transform.fields.base:Columns",
    "FieldTransform": "transform.fields.base:FieldTransform",
    "TypedChange": "transform.fields.base:TypedChange",
    "Step": "transform.chain:Step",
    "TransformChain": "transform.chain:TransformChain",
    # converters
    "Converter": "convert.settings:Converter",
    "ConverterClass": "convert.own:ConverterClass",
    "OneByOne": "convert.own:OneByOne",
    "Decoded": "convert.decoded:Decoded",
    "Decoder": "convert.decoded:Decoder",
    "InvalidValue": "convert.invalid:InvalidValue",
    "ConverterSettings": "convert.settings:ConverterSettings",
    "decoder_for": "convert.decoders:decoder_for",
    # config providers
    "ProviderError": "config.provider:ProviderError",
    "OwnProvider": "worker_config.provider_class:OwnProvider",
    "ProviderClass": "worker_config.provider_class:ProviderClass",
    # listeners of events
    "Event": "model.events:Event",
    "EventListener": "worker_config.event_listeners:EventListener",
    "ListenerClass": "worker_config.event_listeners:ListenerClass",
    # connector classes
    "ConnectorClass": "connectors.connector_class:ConnectorClass",
    "Worker": "worker_config.worker:Worker",
    "CONNECTOR_KEYS": "connectors.connect_keys:CONNECTOR_KEYS",
    "CONVERTER_KEYS": "convert.keys:CONVERTER_KEYS",
    "TRANSFORM_KEYS": "transform.keys:TRANSFORM_KEYS",
    "SHAPE_KEYS": "rows.settings:SHAPE_KEYS",
    "OBFUSCATION_KEYS": "rows.settings:OBFUSCATION_KEYS",
    "LocalPath": "config.declared:LocalPath",
    "declared": "config.declared:declared",
    "filled_by": "config.declared:filled_by",
    "key": "config.declared:key",
    "keys_of": "config.declared:keys_of",
    "made": "config.declared:made",
    "check": "config.declared:check",
    "Bytes": "config.declared:Bytes",
    "Long": "config.declared:Long",
    "Milliseconds": "config.declared:Milliseconds",
    "RestartSettings": "settings.connector:RestartSettings",
    "HttpSettings": "net.settings:HttpSettings",
    "OVERRIDE_KEYS": "kafka.settings:OVERRIDE_KEYS",
    "TOPIC_KEYS": "kafka.settings:TOPIC_KEYS",
    "ErrorSettings": "settings.connector:ErrorSettings",
    "SinkSettings": "settings.sink:SinkSettings",
    "FlushSettings": "kafka.settings:FlushSettings",
    "KafkaSettings": "kafka.settings:KafkaSettings",
    "ShapeSettings": "rows.settings:ShapeSettings",
    "FileSettings": "files.settings:FileSettings",
    "RetrySettings": "targets.settings:RetrySettings",
    "PushSettings": "targets.push.settings:PushSettings",
    "kafka_settings": "connectors.reading:kafka_settings",
    "check_topics": "connectors.reading:check",
    # targets
    "Target": "targets.settings:Target",
    "TargetClass": "targets.target_class:TargetClass",
    "TargetSettings": "targets.settings:TargetSettings",
    "OtherTargetSettings": "targets.settings:OtherTargetSettings",
    "Health": "targets.outcome:Health",
    "Outcome": "targets.outcome:Outcome",
    "ProbeResult": "targets.outcome:ProbeResult",
    "Verdict": "targets.outcome:Verdict",
    "FinishedFile": "files.accumulator:FinishedFile",
    # file stores, for archives and reshape
    "FileStore": "targets.store:FileStore",
    "LocalFile": "targets.store:LocalFile",
    "StoredFile": "targets.store:StoredFile",
    "StoreSettings": "targets.store:StoreSettings",
    "StoreUnusable": "targets.store:StoreUnusable",
    # sinks that take records
    "RecordSink": "targets.record_sink:RecordSink",
    "SinkRecords": "targets.record_sink:SinkRecords",
    "RecordSinkSetup": "targets.record_sink_setup:RecordSinkSetup",
    "RECORD_SINK_KEYS": "connectors.record_sinks:RECORD_SINK_KEYS",
    "check_record_sink": "connectors.record_sinks:check",
    "record_sink_settings": "connectors.record_sinks:settings",
    # sources
    "SourceRecord": "model.source_records:SourceRecord",
    "Reached": "addons.sources.task:Reached",
    "SourceTask": "addons.sources.task:SourceTask",
    "SOURCE_CONNECTOR_KEYS": "addons.sources.connector.keys:OWN_KEYS",
    "SOURCE_KEYS": "addons.sources.connector.keys:SOURCE_KEYS",
    "source_settings": "addons.sources.connector.build:source_settings",
    "check_source": "addons.sources.connector.checks:check",
    # kinds of connectors
    "ConnectorKind": "connectors.kinds:ConnectorKind",
    "ConnectorSettings": "settings.connector:ConnectorSettings",
    "Flow": "worker.loop.flow:Flow",
    "StoredOffset": "worker.herder.values:StoredOffset",
    "StoredOffsets": "worker.loop.flow:StoredOffsets",
    "Finding": "validate.probe_kafka:Finding",
    # commands
    "CommandPlugin": "cli.command_class:CommandPlugin",
    # errors
    "RecordSinkFailed": "errors:RecordSinkFailed",
    "RetryLater": "errors:RetryLater",
    "SinkError": "errors:SinkError",
    "SourceFailed": "errors:SourceFailed",
    # trying a plug-in in a test
    "Shaper": "rows.shaper:Shaper",
    "Run": "rows.run:Run",
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
