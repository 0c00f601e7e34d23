"""ProtobufConverter, as Confluent's reads records."""

from parquet_sink.config.declared import declared, key
from parquet_sink.config.key import Origin
from parquet_sink.convert.registry.converter import JAVA, WRITING, RegistryConverter, never
from parquet_sink.convert.settings import CONVERT_SETTINGS, without_meaning


@declared(group=CONVERT_SETTINGS, origin=Origin.CONNECT)
class ProtobufConverter(RegistryConverter):
    """Protobuf behind the id of a registered schema."""

    title = "Protobuf behind the id of a registered schema"
    class_name = "io.confluent.connect.protobuf.ProtobufConverter"
    word = "protobuf"
    label = "Protobuf"
    schemas = "PROTOBUF"
    payloads = "parquet_sink.addons.formats.protobuf.decoder:decoder"
    more = (
        *RegistryConverter.more,
        never(
            "generate.struct.for.nulls",
            "Give an absent message a value whose fields have their defaults.",
            "an absent message is read as null",
        ),
    )
    unused = (
        *RegistryConverter.unused,
        *without_meaning(WRITING, "enhanced.protobuf.schema.support", "skip.known.types", "reference.lookup.only"),
        *without_meaning(JAVA, "specific.protobuf.key.type", "specific.protobuf.value.type", "derive.type"),
    )

    index_for_unions: bool = key(
        "generate.index.for.unions", "Put a number behind the name of a `oneof`: `choice_0`.", default=True
    )
    flatten_unions: bool = key(
        "flatten.unions", "Read the members of a `oneof` as fields of the message itself.", default=False
    )
    int_for_enums: bool = key("int.for.enums", "Read an enum as its number in place of its name.", default=False)
    optional_for_nullables: bool = key(
        "optional.for.nullables", "Read fields with the label `optional` as optional.", default=False
    )
    optional_for_proto2: bool = key(
        "optional.for.proto2", "Read fields of proto2 with the label `optional` as optional.", default=True
    )
    wrapper_for_nullables: bool = key(
        "wrapper.for.nullables",
        "Read fields of the wrapper messages (`google.protobuf.StringValue` and the like) as optional values.",
        default=False,
    )
    wrapper_for_raw_primitives: bool = key(
        "wrapper.for.raw.primitives", "Read a wrapper message at the top as the value in it.", default=True
    )
