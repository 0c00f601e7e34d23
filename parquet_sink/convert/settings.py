"""How keys and values of records are decoded."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from parquet_sink.config.class_settings import ClassSettings
from parquet_sink.convert.registry.settings import RegistrySettings

ConverterKind = Literal[
    "json",
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
    "own",
    "simple_header",
]

KIND_TEXTS: Final[Mapping[ConverterKind, str]] = {
    "json": "JSON without a schema",
    "json_envelope": "JSON in an envelope with its schema",
    "avro": "Avro behind the id of a registered schema",
    "protobuf": "Protobuf behind the id of a registered schema",
    "json_schema": "JSON behind the id of a registered schema",
    "xml": "XML documents",
    "string": "text",
    "bytes": "bytes as they are",
    "boolean": "one byte, 0 or 1",
    "short": "a number of 2 bytes",
    "integer": "a number of 4 bytes",
    "long": "a number of 8 bytes",
    "float": "a fraction of 4 bytes",
    "double": "a fraction of 8 bytes",
    "own": "by a class of your own",
    "simple_header": "text, read by SimpleHeaderConverter",
}
"""What each kind decodes, for `check` and for the documentation."""

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
