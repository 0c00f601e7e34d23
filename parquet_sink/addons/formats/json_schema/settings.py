"""JsonSchemaConverter, as Confluent's reads records."""

from parquet_sink.config.declared import declared, key
from parquet_sink.config.key import Origin
from parquet_sink.convert.json.settings import CACHE_SIZE, DECIMAL_FORMAT
from parquet_sink.convert.registry.converter import GENERALIZED, JAVA, WRITING, RegistryConverter, never
from parquet_sink.convert.settings import CONVERT_SETTINGS, without_meaning


@declared(group=CONVERT_SETTINGS, origin=Origin.CONNECT)
class JsonSchemaConverter(RegistryConverter):
    """JSON behind the id of a registered schema. flatten_singleton_unions: a union of one is read as that member."""

    title = "JSON behind the id of a registered schema"
    class_name = "io.confluent.connect.json.JsonSchemaConverter"
    word = "json_schema"
    label = "JSON Schema"
    schemas = "JSON"
    payloads = "parquet_sink.addons.formats.json_schema.decoder:decoder"
    more = (
        *RegistryConverter.more,
        never(
            "json.fail.invalid.schema",
            "Check each value against all rules of its schema.",
            "values are read by their schema's types and not checked against its other rules",
        ),
        DECIMAL_FORMAT,
    )
    unused = (
        *RegistryConverter.unused,
        *CACHE_SIZE,
        *without_meaning(
            WRITING,
            "object.additional.properties",
            "json.oneof.for.nullables",
            "json.schema.spec.version",
            "json.default.property.inclusion",
            "json.indent.output",
            "json.write.dates.iso8601",
        ),
        *without_meaning(JAVA, "json.key.type", "json.value.type", "type.property", "json.fail.unknown.properties"),
    )

    generalized_sum_types: bool = key("generalized.sum.type.support", GENERALIZED, default=False)
    flatten_singleton_unions: bool = True
    optional_for_nonrequired: bool = key(
        "use.optional.for.nonrequired", "Read a property that is not required as optional.", default=False
    )
    preserve_additional: bool = key(
        "preserve.additional.properties",
        "Keep properties that the schema does not name, as JSON text in a field `additionalProperties`; false leaves "
        "them out, with a warning. Those that the schema permits explicitly are kept anyway.",
        default=False,
    )
