"""All keys that a configuration may hold: of its connector class, and of the classes that its keys name."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from parquet_sink.config.key import Key
from parquet_sink.connectors.connector_class import find_class
from parquet_sink.plugins import PluginUnusable


def keys_of(config: Mapping[str, str]) -> tuple[Key, ...]:
    """Of a class that cannot be found, those of the default one. Raises nothing."""
    own = find_class().keys
    with suppress(PluginUnusable):
        own = find_class(config["connector.class"].strip()).keys if "connector.class" in config else own
    return (*own, *_of_steps(config))


def _of_steps(config: Mapping[str, str]) -> Iterator[Key]:
    """Of transforms and predicates, as they are written in the file."""
    for kind in ("transforms", "predicates"):
        for name in filter(None, (one.strip() for one in config.get(kind, "").split(","))):
            yield from _under(f"{kind}.{name}.", kind, config.get(f"{kind}.{name}.type", "").strip())


def _under(prefix: str, kind: str, type_: str) -> Iterator[Key]:
    if not type_ or "${" in type_:
        return
    from parquet_sink.transform.classes import find_predicate, find_transform  # load Arrow: only where one is named

    with suppress(Exception):  # a class of another's that cannot be loaded: its keys are judged by their names
        found = find_predicate(type_) if kind == "predicates" else find_transform(type_)[0]
        yield from [replace(key, name=prefix + key.name) for key in found.keys]
