"""Finds converters by name: Kafka Connect's class names and short names, and those of other packages."""

from collections.abc import Callable
from typing import Any, Final

from parquet_sink import plugins
from parquet_sink.config.report import did_you_mean, quoted
from parquet_sink.convert.settings import Converter, CustomConverter, Side
from parquet_sink.plugins import Kind, PluginUnusable

_APICURIO: Final = "io.apicurio.registry.utils.converter"

CONVERTERS: Final[tuple[type[Converter], ...]] = tuple(
    map(plugins.named, plugins.BUILT_IN[plugins.CONVERTERS].values())
)
"""Those that are built in, in the registry's order."""

_UNREADABLE: Final = {
    f"{_APICURIO}.ProtobufConverter": "Apicurio's ProtobufConverter puts the message's name into each record in a form "
    "of its own, which is not read; let producers write Confluent's form, and name "
    "io.confluent.connect.protobuf.ProtobufConverter.",
    f"{_APICURIO}.ExtJsonConverter": "Apicurio's ExtJsonConverter wraps each record in a form of its own, which is not "
    "read; let producers write plain JSON or JSON with a schema, and name "
    "org.apache.kafka.connect.json.JsonConverter.",
}
_BY_CLASS: Final = {one.class_name: one for one in CONVERTERS}
_BY_SHORT_NAME: Final = {name.lower(): one for one in CONVERTERS for name in one.short_names()}


def find(name: str, side: Side = "value") -> type[Converter] | None:
    """The converter of a full class name, or of a short name in any case; None when unknown, or not for this side.

    Of another package it is `CustomConverter`, which stands for its class.
    """
    found = _built_in(name)
    if found is None:
        return None if name in _UNREADABLE or _unusable(name) is not None else CustomConverter
    return found if side in found.sides else None


def _built_in(name: str) -> type[Converter] | None:
    return _BY_CLASS.get(name) or _BY_SHORT_NAME.get(name.lower())


def made(kind: str, registry: object = None, **options: object) -> Converter:
    """Settings of a built-in converter by its short name; of JSON those without a schema, `json_envelope` with one."""
    if kind in ("json", "json_envelope"):
        options["schemas_enable"] = kind == "json_envelope"
    if registry is not None:
        options["registry"] = registry
    return _BY_SHORT_NAME[kind.partition("_envelope")[0]](**options)


def class_names(side: Side) -> list[str]:
    """The full names of those that are built in for values, keys or headers."""
    return [one.class_name for one in _of(side)]


def _of(side: Side) -> list[type[Converter]]:
    """Those for headers alone first."""
    found = [one for one in CONVERTERS if side in one.sides]
    return sorted(found, key=lambda one: len(one.sides) > 1)


def _unusable(name: str, look: Callable[[Kind[Any], str], object] = plugins.find) -> str | None:
    """Why no class of that name that is not built in can be used; None when one can. look: `find` loads it."""
    from parquet_sink.convert.custom import CONVERTER_CLASSES  # loads Arrow: only where one is named

    try:
        look(CONVERTER_CLASSES, name)
    except PluginUnusable as error:
        return str(error)
    return None


def refusal(name: str, shown: str | None = None, side: Side = "value") -> str | None:
    """Why a converter cannot be used, and what to write; None when it can.

    shown: the name as messages may show it; None: the name itself.
    """
    if find(name, side) is not None:
        return None
    built_in = name in _UNREADABLE or _built_in(name) is not None
    if not built_in and shown is None and _unusable(name, plugins.locate) is None:
        return _unusable(name)
    if side == "header":
        known = ", ".join(one.simple_name() for one in _of(side))
        return f"{shown or quoted(name)} is not a converter of headers; known are {known}."
    if name in _UNREADABLE:
        return _UNREADABLE[name]
    simple = {one.simple_name(): one.class_name for one in _of(side) if one.short_names()}
    hint = did_you_mean(name.rpartition(".")[2], simple, cutoff=0.7) if shown is None else ""
    return f"{shown or quoted(name)} is not a known converter; known are {', '.join(simple)}.{hint}"
