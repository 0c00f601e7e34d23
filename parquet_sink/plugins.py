"""Plug-ins by name: those built in, and those of any installed package that declares a Python entry point.

Each room that has plug-ins says what one must have (a protocol) and makes a `Kind` of it. A plug-in is found by its
full name, by a short name as Kafka Connect derives it (`EmsSinkConnector` and `EmsSink` of
`com.celonis.kafka.connect.ems.sink.EmsSinkConnector`), by whatever name its entry point has, or, where a kind takes
it, as `package.module.Class`. Nothing is imported before it is asked for, and installed packages are looked through
only for a name that is not built in.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from parquet_sink.config.report import did_you_mean, printable, quoted

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

CONNECTORS: Final = "parquet_sink.connectors"
TRANSFORMS: Final = "parquet_sink.transforms"
PREDICATES: Final = "parquet_sink.predicates"
CONVERTERS: Final = "parquet_sink.converters"
CONFIG_PROVIDERS: Final = "parquet_sink.config_providers"
LISTENERS: Final = "parquet_sink.listeners"
COMMANDS: Final = "parquet_sink.commands"
CONNECTOR_KINDS: Final = "parquet_sink.connector_kinds"
TARGETS: Final = "parquet_sink.targets"
_CONNECT: Final = "org.apache.kafka.connect.transforms"
_FILE: Final = "org.apache.kafka.connect.file"
_TRANSFORM: Final = "parquet_sink.addons.transforms"
_CONVERT: Final = "parquet_sink.convert"
_FORMATS: Final = "parquet_sink.addons.formats"
_ENCODERS: Final = "parquet_sink.addons.sources.encoding.encoders"


def _sides(name: str, path: str) -> Mapping[str, str]:
    """A class of Kafka Connect that works on values or on keys: its two names."""
    return {f"{_CONNECT}.{name}${side}": f"{_TRANSFORM}.{path}" for side in ("Value", "Key")}


def _whole(name: str, module: str) -> Mapping[str, str]:
    """A class of Kafka Connect that works on whole records."""
    return {f"{_CONNECT}.{name}": f"{_TRANSFORM}.whole.{module}:{name}"}


BUILT_IN: Final[Mapping[str, Mapping[str, str]]] = {
    CONNECTORS: {
        "parquet_sink.EmsSink": "parquet_sink.connectors.ems.sink:EmsSink",
        "com.celonis.kafka.connect.ems.sink.EmsSinkConnector": "parquet_sink.connectors.ems.sink:EmsSink",
        f"{_FILE}.FileStreamSourceConnector": "parquet_sink.addons.sources.file.connector.source:FileStreamSource",
        "parquet_sink.S3Sink": "parquet_sink.connectors.ems.sink:S3Sink",
        "org.apache.kafka.connect.file.FileStreamSinkConnector": (
            "parquet_sink.addons.file_sink.connector.sink:FileStreamSink"
        ),
    },
    CONNECTOR_KINDS: {
        "sink": "parquet_sink.connectors.kinds:SINK",
        "record_sink": "parquet_sink.connectors.kinds:RECORD_SINK",
        "source": "parquet_sink.addons.sources.kind:SOURCE",
    },
    TRANSFORMS: {
        **_sides("Cast", "fields.cast:Cast"),
        **_sides("Flatten", "fields.flatten:Flatten"),
        **_sides("InsertField", "fields.insert_field:InsertField"),
        **_sides("MaskField", "fields.mask_field:MaskField"),
        **_sides("ReplaceField", "fields.replace_field:ReplaceField"),
        **_sides("TimestampConverter", "fields.timestamp_converter:TimestampConverter"),
        **_sides("ExtractField", "whole.structure:ExtractField"),
        **_sides("HoistField", "whole.structure:HoistField"),
        **_sides("HeaderFrom", "whole.record_headers:HeaderFrom"),
        **_sides("SetSchemaMetadata", "whole.structure:SetSchemaMetadata"),
        **_whole("DropHeaders", "record_headers"),
        **_whole("Filter", "predicates"),
        **_whole("InsertHeader", "record_headers"),
        **_whole("RegexRouter", "routers"),
        **_whole("TimestampRouter", "routers"),
        **_whole("ValueToKey", "value_to_key"),
        "io.debezium.transforms.ExtractNewRecordState": f"{_TRANSFORM}.debezium.extract:ExtractNewRecordState",
        "parquet_sink.HeaderToValue": f"{_TRANSFORM}.whole.to_value:HeaderToValue",
        "parquet_sink.KeyToValue": f"{_TRANSFORM}.whole.to_value:KeyToValue",
        "parquet_sink.Sql": "parquet_sink.addons.sql.transform:Sql",
        "sql": "parquet_sink.addons.sql.transform:Sql",
    },
    PREDICATES: {
        f"{_CONNECT}.predicates.{name}": f"{_TRANSFORM}.whole.predicates:{name}"
        for name in ("HasHeaderKey", "RecordIsTombstone", "TopicNameMatches")
    },
    CONVERTERS: {
        "org.apache.kafka.connect.json.JsonConverter": f"{_CONVERT}.json.settings:JsonConverter",
        "io.confluent.connect.avro.AvroConverter": f"{_FORMATS}.avro.settings:AvroConverter",
        "io.confluent.connect.protobuf.ProtobufConverter": f"{_FORMATS}.protobuf.settings:ProtobufConverter",
        "io.confluent.connect.json.JsonSchemaConverter": f"{_FORMATS}.json_schema.settings:JsonSchemaConverter",
        "io.apicurio.registry.utils.converter.AvroConverter": f"{_FORMATS}.avro.settings:ApicurioAvroConverter",
        "com.celonis.kafka.connect.ems.converter.XmlConverter": f"{_FORMATS}.xml.settings:XmlConverter",
        "org.apache.kafka.connect.storage.StringConverter": f"{_CONVERT}.plain.settings:StringConverter",
        **{
            f"org.apache.kafka.connect.converters.{name}Converter": f"{_CONVERT}.plain.settings:{name}Converter"
            for name in ("ByteArray", "Boolean", "Short", "Integer", "Long", "Float", "Double")
        },
        "org.apache.kafka.connect.storage.SimpleHeaderConverter": (
            f"{_CONVERT}.connect_values.settings:SimpleHeaderConverter"
        ),
    },
    CONFIG_PROVIDERS: {
        f"org.apache.kafka.common.config.provider.{name}ConfigProvider": (
            f"parquet_sink.config.built_in_providers:{class_}Provider"
        )
        for name, class_ in {"EnvVar": "Environment", "File": "File", "Directory": "Directory"}.items()
    },
    LISTENERS: {},
    TARGETS: {
        "push": "parquet_sink.targets.push.settings:PushApi",
        "directory": "parquet_sink.targets.directory.settings:Directory",
        "s3": "parquet_sink.targets.s3.settings:S3",
    },
    COMMANDS: {
        name: f"parquet_sink.cli.built_in:{name.capitalize()}"
        for name in (
            *("run", "worker", "workers", "connectors", "status", "check", "explain", "try", "test", "parked"),
            *("history", "archive", "replay", "reshape", "tune", "demo", "target", "kafka", "help"),
        )
    },
}
"""By group and name, where the object is. Connectors are what pyproject.toml declares, too; so a checkout works without
installing.
"""

ENCODERS: Final[Mapping[str, str]] = {
    "org.apache.kafka.connect.json.JsonConverter": f"{_ENCODERS}:json",
    "org.apache.kafka.connect.storage.StringConverter": f"{_ENCODERS}:text",
    "org.apache.kafka.connect.converters.ByteArrayConverter": f"{_ENCODERS}:as_bytes",
    "org.apache.kafka.connect.storage.SimpleHeaderConverter": f"{_ENCODERS}:simple",
}
"""By the name of a built-in converter, where sources have what writes by its settings."""

PAGE: Final = "parquet_sink.addons.page.site:WorkersPage"
"""What a worker that serves REST shows to browsers."""


class PluginUnusable(ValueError):
    """No plug-in of that name can be used. The text says why and names the cure."""


@dataclass(frozen=True)
class Kind(Generic[T]):
    """One kind of plug-in. group: of entry points. what: for messages. suffixes: what short names may leave out.

    protocol: what a plug-in must have; a runtime-checkable protocol. called: a class is the plug-in itself, and made
    by who found it; else it is made here, without arguments. by_path: `package.module.Class` is a name, too, with
    what may stand behind `$`.
    """

    group: str
    what: str
    suffixes: tuple[str, ...]
    protocol: type[T]
    called: bool = False
    by_path: bool = False


@dataclass(frozen=True)
class Located:
    """A plug-in that is there. path: `module:attribute`. package: that has its entry point; empty for one of ours."""

    name: str
    path: str
    package: str = ""


def find(kind: Kind[T], name: str) -> T:
    """The plug-in of a full name, a short name, an entry point or a path. Raises PluginUnusable."""
    return load(kind, locate(kind, name))


def locate(kind: Kind[Any], name: str) -> Located:
    """Where the plug-in of a name is, without loading it. Raises PluginUnusable."""
    paths = _matching(kind, name, BUILT_IN.get(kind.group, {})) or _matching(kind, name, installed(kind))
    if len(set(paths.values())) > 1:
        raise PluginUnusable(f"{quoted(name)} stands for {' and '.join(sorted(paths))}; write one of them in full.")
    if paths:
        return Located(*next(iter(paths.items())))
    if kind.by_path and (path := _import_path(name)) is not None:
        return Located(name, path)
    raise PluginUnusable(_unknown(kind, name))


def names(kind: Kind[Any]) -> tuple[str, ...]:
    """The full names of all plug-ins that are there, built-in ones first."""
    built_in = BUILT_IN.get(kind.group, {})
    return (*built_in, *sorted(name for name in installed(kind) if name not in built_in))


def installed(kind: Kind[Any]) -> dict[str, str]:
    """By name, where the object of each entry point is."""
    return {one.name: one.path for one in declared(kind)}


def declared(kind: Kind[Any]) -> tuple[Located, ...]:
    """The entry points of all installed packages, those of one name included."""
    from importlib.metadata import entry_points  # a tenth of what the command line loads, for those who need it

    found = entry_points(group=kind.group)
    return tuple(Located(one.name, one.value, _package(one)) for one in found)


def _package(point: "EntryPoint") -> str:
    """Whose it is; "" where that package has no metadata, of which Python 3.12 and newer warn."""
    metadata = point.dist.metadata if point.dist else None
    return metadata["Name"] if metadata and "Name" in metadata else ""


def short_names(kind: Kind[Any], name: str) -> Iterator[str]:
    """The names that Kafka Connect would take for a class, too: the last part, and that without its suffix."""
    simple = name.rpartition(".")[2]
    yield simple
    for suffix in kind.suffixes:
        if simple.endswith(suffix) and simple != suffix:
            yield simple.removesuffix(suffix)


def _matching(kind: Kind[Any], name: str, known: Mapping[str, str]) -> dict[str, str]:
    """The known names that a name stands for: itself, or all that it is a short name of."""
    if name in known:
        return {name: known[name]}
    return {full: path for full, path in known.items() if name in short_names(kind, full)}


def _import_path(name: str) -> str | None:
    """`package.module.Class$Key` as `package.module:Class`; None when there is no such module."""
    module, _, attribute = name.partition("$")[0].rpartition(".")
    if not (attribute.isidentifier() and module and all(part.isidentifier() for part in module.split("."))):
        return None
    try:
        there = find_spec(module) is not None
    except ModuleNotFoundError as error:  # of another name: its package needs something that is not there
        there = not f"{module}.".startswith(f"{error.name}.")
    except Exception:  # noqa: BLE001 - its package fails when it is imported, and loading it says how
        there = True
    return f"{module}:{attribute}" if there else None


def _unknown(kind: Kind[Any], name: str) -> str:
    known = names(kind)
    near = {short: full for full in known for short in (full, *short_names(kind, full))}
    simple = name.rpartition(".")[2]
    stem = simple.partition("$")[0]
    hint = did_you_mean(stem if stem in near else simple, near, cutoff=0.7)
    shown: dict[str, str] = {}  # one that has its name in two ways, as Sql and sql, is named once
    for full in known:
        one = full.rpartition(".")[2].partition("$")[0] if kind.called else full
        shown.setdefault(one.lower(), one)
    return (
        f"{quoted(name)} is not a known {kind.what}; known are {', '.join(map(printable, shown.values()))}. "
        f"Write one of them, or install the Python package that has it.{hint}"
    )


def load(kind: Kind[T], located: Located) -> T:
    """The object there, made when it is a class and its kind says so. Raises PluginUnusable."""
    name, path = located.name, located.path
    try:
        found = named(path)
        made = found() if isinstance(found, type) and not kind.called else found
    except Exception as error:  # whatever another's code raises, the file that names it is reported
        reason = f"{type(error).__name__}: {error}"
        raise PluginUnusable(
            f"{quoted(name)} cannot be loaded from {path} ({printable(reason)}); correct the package that has it."
        ) from error
    if not isinstance(made, kind.protocol):
        raise PluginUnusable(
            f"{quoted(name)} at {path} cannot be used as {kind.what}: "
            f"it has no {_missing(kind, made)}; correct the package."
        )
    return made


def named(path: str) -> Any:
    """What a `module:attribute` names. So settings name what they open, and load it only then."""
    module, _, attribute = path.partition(":")
    found: Any = import_module(module)
    for step in attribute.split("."):
        found = getattr(found, step)
    return found


def _missing(kind: Kind[Any], made: object) -> str:
    wanted = sorted(name for name in dir(kind.protocol) if not name.startswith("_"))
    declared = sorted(name for name in kind.protocol.__annotations__ if name not in wanted)
    return ", ".join(name for name in (*declared, *wanted) if not hasattr(made, name))
