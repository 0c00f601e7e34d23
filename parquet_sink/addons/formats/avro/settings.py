"""AvroConverter: Confluent's, and Apicurio's with settings of its own."""

from functools import partial

from parquet_sink.config.declared import declared, filled_by, key
from parquet_sink.config.key import Origin
from parquet_sink.convert.registry.converter import GENERALIZED, JAVA, WRITING, RegistryConverter, registry_settings
from parquet_sink.convert.registry.keys import APICURIO_KEYS, APICURIO_UNUSED
from parquet_sink.convert.registry.settings import RegistrySettings
from parquet_sink.convert.settings import CONVERT_SETTINGS, without_meaning


@declared(group=CONVERT_SETTINGS, origin=Origin.CONNECT)
class AvroConverter(RegistryConverter):
    """Avro behind the id of a registered schema."""

    title = "Avro behind the id of a registered schema"
    class_name = reported = "io.confluent.connect.avro.AvroConverter"
    word = "avro"
    label = "Avro"
    schemas = "AVRO"
    payloads = "parquet_sink.addons.formats.avro.decoder:decoder"
    unused = (
        *RegistryConverter.unused,
        *without_meaning(WRITING, "allow.optional.map.keys", "discard.type.doc.default", "avro.remove.java.properties"),
        *without_meaning(
            JAVA,
            "specific.avro.reader",
            "specific.avro.key.type",
            "specific.avro.value.type",
            "avro.reflection.allow.null",
            "avro.use.logical.type.converters",
        ),
    )

    enhanced_names: bool = key(
        "enhanced.avro.schema.support",
        "Name the members of a union by their full names, with the namespace.",
        default=False,
    )
    generalized_sum_types: bool = key("generalized.sum.type.support", GENERALIZED, default=False)
    flatten_singleton_unions: bool = key(
        "flatten.singleton.unions", "Read a union of one member as that member.", default=True
    )


@declared(group=CONVERT_SETTINGS, origin=Origin.CONNECT)
class ApicurioAvroConverter(AvroConverter):
    """The same, by a registry of Apicurio's under its own names; it has no short name, because Confluent's has it."""

    class_name = "io.apicurio.registry.utils.converter.AvroConverter"
    label = "Apicurio"
    apicurio = True
    more = (*AvroConverter.more, *APICURIO_KEYS)
    unused = (*AvroConverter.unused, *APICURIO_UNUSED)

    registry: RegistrySettings = filled_by(
        "apicurio.registry.url", default=RegistrySettings(()), computed=partial(registry_settings, apicurio=True)
    )

    @classmethod
    def short_names(cls) -> tuple[str, ...]:
        return ()
