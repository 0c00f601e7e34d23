"""Settings of converters: how bytes become records. Their registries are in `keys_registry`."""

from parquet_sink.config import checks_convert as checks
from parquet_sink.config.key import Group, Key, Origin, Type
from parquet_sink.config.keys_apicurio import APICURIO_SETTINGS
from parquet_sink.config.keys_registry import REGISTRY_SETTINGS
from parquet_sink.config.setting import ANY, AVRO, JSON, JSON_SCHEMA, PROTOBUF, REGISTRY, Setting, setting_key
from parquet_sink.convert.settings import ConverterKind

_WRITING = "They concern the writing of records."
_JAVA = "They concern Java classes, and there are none here."
_CACHE = "What is kept of schemas is bounded by max.schemas.per.subject."


def _flag(kinds: frozenset[ConverterKind], name: str, default: bool, fills: str, doc: str) -> Setting:
    return Setting(setting_key(name, Type.BOOLEAN, doc, default=default), kinds, fills)


def _never(kinds: frozenset[ConverterKind], name: str, doc: str, why: str) -> Setting:
    """A flag whose other value would change what is read, and is refused."""
    return Setting(setting_key(name, Type.BOOLEAN, doc, default=False, check=checks.only(False, why)), kinds)


def _unused(kinds: frozenset[ConverterKind], doc: str, *names: str) -> tuple[Setting, ...]:
    return tuple(Setting(setting_key(name, Type.STRING, doc), kinds, unused=True) for name in names)


_DECODING = (
    Setting(
        setting_key(
            "schemas.enable",
            Type.BOOLEAN,
            "Whether each JSON value is an envelope of schema and payload (`true`, Kafka Connect's default), or JSON "
            "alone. Anything but an envelope is invalid input under `true`; set `false` for plain JSON objects.",
            default=True,
        ),
        JSON,
    ),
    _flag(
        JSON,
        "replace.null.with.default",
        True,
        "replace_null_with_default",
        "Whether null in a field with a default is read as that default. JSON without a schema has no defaults.",
    ),
    Setting(
        setting_key(
            "converter.encoding",
            Type.STRING,
            "Character set of text. A value that is no text in it is invalid input. The name is written twice, as in "
            "`value.converter.converter.encoding`.",
            default="UTF-8",
            check=checks.ENCODING,
        ),
        frozenset({"string"}),
        "encoding",
    ),
    _flag(
        AVRO,
        "enhanced.avro.schema.support",
        False,
        "enhanced_names",
        "Name the members of a union by their full names, with the namespace.",
    ),
    _flag(
        AVRO | JSON_SCHEMA,
        "generalized.sum.type.support",
        False,
        "generalized_sum_types",
        "Name the members of a union by their position, alike for all formats.",
    ),
    _flag(
        AVRO,
        "flatten.singleton.unions",
        True,
        "flatten_singleton_unions",
        "Read a union of one member as that member.",
    ),
    _flag(
        JSON_SCHEMA,
        "use.optional.for.nonrequired",
        False,
        "optional_for_nonrequired",
        "Read a property that is not required as optional.",
    ),
    _flag(
        PROTOBUF,
        "generate.index.for.unions",
        True,
        "index_for_unions",
        "Put a number behind the name of a `oneof`: `choice_0`.",
    ),
    _flag(
        PROTOBUF,
        "flatten.unions",
        False,
        "flatten_unions",
        "Read the members of a `oneof` as fields of the message itself.",
    ),
    _flag(PROTOBUF, "int.for.enums", False, "int_for_enums", "Read an enum as its number in place of its name."),
    _flag(
        PROTOBUF,
        "optional.for.nullables",
        False,
        "optional_for_nullables",
        "Read fields with the label `optional` as optional.",
    ),
    _flag(
        PROTOBUF,
        "optional.for.proto2",
        True,
        "optional_for_proto2",
        "Read fields of proto2 with the label `optional` as optional.",
    ),
    _flag(
        PROTOBUF,
        "wrapper.for.nullables",
        False,
        "wrapper_for_nullables",
        "Read fields of the wrapper messages (`google.protobuf.StringValue` and the like) as optional values.",
    ),
    _flag(
        PROTOBUF,
        "wrapper.for.raw.primitives",
        True,
        "wrapper_for_raw_primitives",
        "Read a wrapper message at the top as the value in it.",
    ),
    _never(
        PROTOBUF,
        "generate.struct.for.nulls",
        "Give an absent message a value whose fields have their defaults.",
        "an absent message is read as null",
    ),
    _never(
        JSON_SCHEMA,
        "json.fail.invalid.schema",
        "Check each value against all rules of its schema.",
        "values are read by their schema's types and not checked against its other rules",
    ),
    _never(
        JSON_SCHEMA,
        "preserve.additional.properties",
        "Keep properties that the schema does not name.",
        "properties that the schema does not name are left out",
    ),
    Setting(
        Key(
            "decimal.format",
            Group.CONVERT_SETTINGS,
            Type.STRING,
            "Form in which decimals are written; both are read, whichever is set.",
            choices=("BASE64", "NUMERIC"),
            origin=Origin.CONNECT,
        ),
        JSON | JSON_SCHEMA,
    ),
)

_UNUSED = (
    *_unused(ANY, "It is known from the key's own name.", "converter.type"),
    *_unused(JSON | JSON_SCHEMA, _CACHE, "schemas.cache.size"),
    *_unused(REGISTRY, _CACHE, "schemas.cache.config", "latest.cache.size", "latest.cache.ttl.sec"),
    *_unused(
        REGISTRY,
        _WRITING,
        "auto.register.schemas",
        "use.latest.version",
        "latest.compatibility.strict",
        "normalize.schemas",
        "propagate.schema.tags",
        "use.schema.id",
        "id.compatibility.strict",
        "schema.format",
        "key.subject.name.strategy",
        "value.subject.name.strategy",
        "reference.subject.name.strategy",
        "key.schema.id.serializer",
        "value.schema.id.serializer",
        "schema.reflection",
        "scrub.invalid.names",
        "connect.meta.data",
        "ignore.default.for.nullables",
    ),
    *_unused(AVRO, _WRITING, "allow.optional.map.keys", "discard.type.doc.default", "avro.remove.java.properties"),
    *_unused(
        AVRO,
        _JAVA,
        "specific.avro.reader",
        "specific.avro.key.type",
        "specific.avro.value.type",
        "avro.reflection.allow.null",
        "avro.use.logical.type.converters",
    ),
    *_unused(PROTOBUF, _WRITING, "enhanced.protobuf.schema.support", "skip.known.types", "reference.lookup.only"),
    *_unused(PROTOBUF, _JAVA, "specific.protobuf.key.type", "specific.protobuf.value.type", "derive.type"),
    *_unused(
        JSON_SCHEMA,
        _WRITING,
        "object.additional.properties",
        "json.oneof.for.nullables",
        "json.schema.spec.version",
        "json.default.property.inclusion",
        "json.indent.output",
        "json.write.dates.iso8601",
    ),
    *_unused(JSON_SCHEMA, _JAVA, "json.key.type", "json.value.type", "type.property", "json.fail.unknown.properties"),
)

SETTINGS: tuple[Setting, ...] = (*_DECODING, *REGISTRY_SETTINGS, *APICURIO_SETTINGS, *_UNUSED)
PREFIXES = ("value.converter.", "key.converter.")


def settings_under(prefix: str) -> tuple[Key, ...]:
    """The whole table as keys of a file, `value.converter.` or `key.converter.` before each name."""
    return tuple(setting.under(prefix) for setting in SETTINGS)


def find_setting(name: str) -> Setting | None:
    """The setting of a name without its prefix: an exact one before the longest that ends in `.*`."""
    matching = [setting for setting in SETTINGS if setting.key.matches(name)]
    return max(matching, key=lambda one: (not one.key.is_prefix, len(one.key.name)), default=None)
