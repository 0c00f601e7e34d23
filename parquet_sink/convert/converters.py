"""Converters by name: Kafka Connect's class names and short names, to what we decode."""

from dataclasses import dataclass
from typing import Final

from parquet_sink import plugins
from parquet_sink.config.report import did_you_mean, quoted
from parquet_sink.convert.settings import ConverterKind, Side
from parquet_sink.plugins import PluginUnusable

JSON_CONVERTER: Final = "org.apache.kafka.connect.json.JsonConverter"
_CONNECT = "org.apache.kafka.connect.converters"
_APICURIO = "io.apicurio.registry.utils.converter"
_SUFFIX = "Converter"


@dataclass(frozen=True)
class Converter:
    """One converter that we can stand in for.

    kind: what it decodes; of JsonConverter without its envelope, which `schemas.enable` decides. apicurio: it talks
    to a registry of Apicurio's under names of its own, and has no short name, because Confluent's has it.
    """

    class_name: str
    kind: ConverterKind
    apicurio: bool = False

    @property
    def simple_name(self) -> str:
        return self.class_name.rpartition(".")[2]

    @property
    def short_names(self) -> tuple[str, ...]:
        """Kafka Connect's aliases (the simple name, and that without `Converter`), then our own word."""
        if self.apicurio:
            return ()
        pruned = self.simple_name.removesuffix(_SUFFIX)
        return tuple(dict.fromkeys((self.simple_name, pruned, self.kind)))

    @property
    def short_names_in_lower(self) -> tuple[str, ...]:
        """As they are compared."""
        return tuple(name.lower() for name in self.short_names)


CONVERTERS: Final = (
    Converter(JSON_CONVERTER, "json"),
    Converter("io.confluent.connect.avro.AvroConverter", "avro"),
    Converter("io.confluent.connect.protobuf.ProtobufConverter", "protobuf"),
    Converter("io.confluent.connect.json.JsonSchemaConverter", "json_schema"),
    Converter(f"{_APICURIO}.AvroConverter", "avro", apicurio=True),
    Converter("com.celonis.kafka.connect.ems.converter.XmlConverter", "xml"),
    Converter("org.apache.kafka.connect.storage.StringConverter", "string"),
    Converter(f"{_CONNECT}.ByteArrayConverter", "bytes"),
    Converter(f"{_CONNECT}.BooleanConverter", "boolean"),
    Converter(f"{_CONNECT}.ShortConverter", "short"),
    Converter(f"{_CONNECT}.IntegerConverter", "integer"),
    Converter(f"{_CONNECT}.LongConverter", "long"),
    Converter(f"{_CONNECT}.FloatConverter", "float"),
    Converter(f"{_CONNECT}.DoubleConverter", "double"),
)

_UNREADABLE: Final = {
    f"{_APICURIO}.ProtobufConverter": "Apicurio's ProtobufConverter puts the message's name into each record in a form "
    "of its own, which is not read; let producers write Confluent's form, and name "
    "io.confluent.connect.protobuf.ProtobufConverter.",
    f"{_APICURIO}.ExtJsonConverter": "Apicurio's ExtJsonConverter wraps each record in a form of its own, which is not "
    f"read; let producers write plain JSON or JSON with a schema, and name {JSON_CONVERTER}.",
}

SIMPLE_HEADER: Final = Converter("org.apache.kafka.connect.storage.SimpleHeaderConverter", "simple_header")
"""For headers alone, and theirs unless another one is named."""
HEADER_KINDS: Final[frozenset[ConverterKind]] = frozenset(
    {*("json", "string", "bytes", "boolean", "short", "integer", "long", "float", "double"), SIMPLE_HEADER.kind}
)
"""What decodes headers in Kafka Connect; of the others it says that they are no header converter."""

_BY_CLASS = {one.class_name: one for one in CONVERTERS}
_BY_SHORT_NAME = {name: one for one in CONVERTERS for name in one.short_names_in_lower}


def find(name: str, side: Side = "value") -> Converter | None:
    """The converter of a full class name, or of a short name in any case; None when unknown, or not for this side."""
    if side == "header" and name.lower() in {SIMPLE_HEADER.class_name.lower(), *SIMPLE_HEADER.short_names_in_lower}:
        return SIMPLE_HEADER
    found = _BY_CLASS.get(name) or _BY_SHORT_NAME.get(name.lower())
    if found is None:
        return None if name in _UNREADABLE or _unusable(name) is not None else Converter(name, "own")
    return None if side == "header" and found.kind not in HEADER_KINDS else found


def class_names(side: Side) -> list[str]:
    """The full names of those that are built in for values, keys or headers."""
    if side == "header":
        return [one.class_name for one in (SIMPLE_HEADER, *CONVERTERS) if one.kind in HEADER_KINDS]
    return [one.class_name for one in CONVERTERS]


def _unusable(name: str) -> str | None:
    """Why no class of that name that is not built in can be used; None when one can."""
    from parquet_sink.convert.own import CONVERTER_CLASSES  # loads Arrow: only where one is named

    try:
        plugins.find(CONVERTER_CLASSES, name)
    except PluginUnusable as error:
        return str(error)
    return None


def _is_there(name: str) -> bool:
    from parquet_sink.convert.own import CONVERTER_CLASSES

    try:
        plugins.locate(CONVERTER_CLASSES, name)
    except PluginUnusable:
        return False
    return True


def refusal(name: str, shown: str | None = None, side: Side = "value") -> str | None:
    """Why a converter cannot be used, and what to write; None when it can.

    shown: the name as messages may show it; None: the name itself.
    """
    if find(name, side) is not None:
        return None
    if name not in (*_UNREADABLE, *_BY_CLASS) and shown is None and _is_there(name):
        return _unusable(name)
    if side == "header":
        known = ", ".join(one.simple_name for one in (SIMPLE_HEADER, *CONVERTERS) if one.kind in HEADER_KINDS)
        return f"{shown or quoted(name)} is no converter of headers; known are {known}."
    if name in _UNREADABLE:
        return _UNREADABLE[name]
    known = ", ".join(one.simple_name for one in CONVERTERS if not one.apicurio)
    simple = {one.simple_name: one.class_name for one in CONVERTERS if not one.apicurio}
    hint = did_you_mean(name.rpartition(".")[2], simple, cutoff=0.7) if shown is None else ""
    return f"{shown or quoted(name)} is no converter known here; known are {known}.{hint}"
