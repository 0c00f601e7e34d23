"""Settings of converters that are accepted, and that change nothing here; each with the reason."""

from typing import Final

from parquet_sink.config.key import Type
from parquet_sink.convert.converter_setting import (
    ANY,
    AVRO,
    JSON,
    JSON_SCHEMA,
    PROTOBUF,
    REGISTRY,
    Setting,
    setting_key,
)
from parquet_sink.convert.settings import ConverterKind

_WRITING = "They concern the writing of records."
_JAVA = "They concern Java classes, and there are none here."
_CACHE = "What is kept of schemas is bounded by max.schemas.per.subject."


def _unused(kinds: frozenset[ConverterKind], doc: str, *names: str) -> tuple[Setting, ...]:
    return tuple(Setting(setting_key(name, Type.STRING, doc), kinds, unused=True) for name in names)


UNUSED_SETTINGS: Final = (
    *_unused(ANY, "It is known from the key's own name.", "converter.type"),
    *_unused(ANY, "There is one version of each class here.", "plugin.version"),
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
