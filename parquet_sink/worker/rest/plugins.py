"""`/connector-plugins`: the classes that a configuration may name, their keys, and a configuration judged by them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from parquet_sink import __version__, plugins
from parquet_sink.config.key import Key
from parquet_sink.connectors.connector_class import CONNECTOR_CLASSES, DEFAULT_CLASS, find_class
from parquet_sink.convert import converters
from parquet_sink.convert.keys import SETTINGS
from parquet_sink.plugins import PluginUnusable
from parquet_sink.worker.herder.errors import HerderError
from parquet_sink.worker.herder.protocol import Herder
from parquet_sink.worker.rest import bodies
from parquet_sink.worker.rest.call import Call, Reply, RestError
from parquet_sink.worker.rest.config_infos import NO_DEFAULTS, Judge, config_infos, plugin_keys
from parquet_sink.worker.rest.definitions import definitions
from parquet_sink.worker.rest.renderings import type_of
from parquet_sink.worker.rest.steps import class_keys

_SUFFIX: Final = "Connector"
_CLASS: Final = "connector.class"
_CONNECTORS: Final = ("sink", "source", "unknown")
"""Types of connectors; the last of one whose package is broken."""


class Plugins:
    """The endpoints, each a method that may be called from any thread."""

    def __init__(self, herder: Herder, judge: Judge, defaults: Mapping[str, str] = NO_DEFAULTS) -> None:
        """defaults: of keys that the worker file gives."""
        self._herder, self._judge, self._defaults = herder, judge, defaults

    def all(self, call: Call) -> Reply:
        """Connectors, or with `connectorsOnly=false` all classes."""
        wished = all_plugins() if not call.flag("connectorsOnly", default=True) else _connectors()
        return Reply([{"class": name, "type": kind, "version": __version__} for name, kind in wished])

    def keys(self, call: Call) -> Reply:
        return Reply([one.as_json() for one in _definitions(call.path["plugin"])])

    def validate(self, call: Call) -> Reply:
        """Nothing is refused: what is wrong stands beside each key."""
        given = bodies.texts_of(bodies.object_of(call.body, "the configuration"), "the configuration")
        config = {name: "" if text is None else text for name, text in given.items()}
        named, asked = config.get(_CLASS, "").strip(), call.path["plugin"]
        if not named:
            raise RestError(500, _without_class())
        if not _stem(named).endswith(_stem(asked)):
            raise RestError(400, f"Included connector type {named} does not match request type {asked}")
        require_class(named, 500)
        literal = {**config, _CLASS: self._literal(named)}
        return Reply(config_infos(literal, self._stored(config), self._judge, self._defaults))

    def _literal(self, named: str) -> str:
        if "${" in named:
            raise RestError(500, f"{_CLASS} is a placeholder here; write the class itself to have its keys judged.")
        return named

    def _stored(self, config: Mapping[str, str]) -> Mapping[str, str]:
        """What a connector of that name has now."""
        with suppress(HerderError):
            return self._herder.info(config.get("name", "")).config
        return {}


def require_class(name: str | None, status: int = 400) -> None:
    """Refuses a configuration without a connector class that is there, in Kafka Connect's words. Raises RestError.

    status: for a class that is not there, which Kafka Connect tells otherwise where it only validates.
    """
    if name is None or not name.strip():
        raise RestError(400, _without_class())
    if "${" in name:
        return
    try:
        find_class(name.strip())
    except PluginUnusable as error:
        raise RestError(
            status, f"Failed to find any class that implements Connector and which name matches {name}: {error}"
        ) from None


def _without_class() -> str:
    return f"Connector config contains no connector type; set {_CLASS}, to {DEFAULT_CLASS} for example."


def _connectors() -> Iterator[tuple[str, str]]:
    return ((name, type_of({_CLASS: name})) for name in plugins.names(CONNECTOR_CLASSES))


def all_plugins() -> Iterator[tuple[str, str]]:
    """Full names, each with what it is, in Kafka Connect's order."""
    from parquet_sink.convert.own import CONVERTER_CLASSES  # these load Arrow
    from parquet_sink.transform.classes import PREDICATE_CLASSES, TRANSFORM_CLASSES

    yield from _connectors()
    yield from ((name, "transformation") for name in plugins.names(TRANSFORM_CLASSES))
    yield from ((name, "predicate") for name in plugins.names(PREDICATE_CLASSES))
    yield from ((name, "converter") for name in converters.class_names("value"))
    yield from ((name, "converter") for name in plugins.names(CONVERTER_CLASSES))
    yield from ((name, "header_converter") for name in converters.class_names("header"))


def _definitions(asked: str) -> Sequence[Any]:
    """Keys of a plug-in by its full or short name. Raises RestError."""
    for name, kind in all_plugins():
        if asked not in (name, *_short_names(name, kind)):
            continue
        if kind in _CONNECTORS:
            return plugin_keys(find_class(name).keys)
        return definitions(_keys(name, kind), {})
    raise RestError(404, f"Unknown plugin {asked}.")


def _short_names(name: str, kind: str) -> Iterator[str]:
    """The last part, and that without the name of its kind."""
    simple = name.rpartition(".")[2]
    yield simple
    for suffix in (_SUFFIX, "$Value", "Converter", "Predicate", "Transformation"):
        if simple != suffix and simple.endswith(suffix):
            yield simple.removesuffix(suffix)


def _keys(name: str, kind: str) -> Sequence[Key]:
    if kind in ("transformation", "predicate"):
        return class_keys("predicates" if kind == "predicate" else "transforms", name) or ()
    converter = converters.find(name, "header" if kind == "header_converter" else "value")
    if converter is None or converter.kind == "own":
        return ()
    return [one.key for one in SETTINGS if converter.kind in one.kinds and not one.unused]


def _stem(name: str) -> str:
    return name.removesuffix(_SUFFIX) if len(name) > len(_SUFFIX) else name
