"""How keys and values of records are decoded."""

from dataclasses import dataclass
from typing import Literal

from parquet_sink.config.class_settings import ClassSettings
from parquet_sink.convert.registry.settings import RegistrySettings

ConverterKind = Literal[
    "json",  # JSON without a schema
    "json_envelope",
    "avro",
    "protobuf",
    "json_schema",
    "xml",
    "string",
    "bytes",
    "boolean",
    "short",
    "integer",
    "long",
    "float",
    "double",
    "own",  # a class of a user's own
    "simple_header",  # Kafka Connect's SimpleHeaderConverter, for headers alone
]

Side = Literal["value", "key", "header"]
"""What of a record is decoded."""


@dataclass(frozen=True)
class ConverterSettings:
    """How bytes are decoded. Each option concerns the kinds that its comment names."""

    kind: ConverterKind = "json"
    registry: RegistrySettings | None = None  # avro, protobuf, json_schema: never None there
    own: ClassSettings | None = None  # own: never None there
    replace_null_with_default: bool = True  # json_envelope
    encoding: str = "UTF-8"  # string
    enhanced_names: bool = False  # avro: union members under their full names (enhanced.avro.schema.support)
    generalized_sum_types: bool = False  # avro, json_schema: generalized.sum.type.support
    flatten_singleton_unions: bool = True  # avro, json_schema: flatten.singleton.unions
    optional_for_nonrequired: bool = False  # json_schema: use.optional.for.nonrequired
    index_for_unions: bool = True  # protobuf: generate.index.for.unions
    flatten_unions: bool = False  # protobuf: flatten.unions
    int_for_enums: bool = False  # protobuf: int.for.enums
    optional_for_nullables: bool = False  # protobuf: optional.for.nullables
    optional_for_proto2: bool = True  # protobuf: optional.for.proto2
    wrapper_for_nullables: bool = False  # protobuf: wrapper.for.nullables
    wrapper_for_raw_primitives: bool = True  # protobuf: wrapper.for.raw.primitives
