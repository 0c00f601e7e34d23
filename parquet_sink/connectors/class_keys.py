"""All keys that a configuration may hold: of its connector class, and of the classes that its keys name."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache

from parquet_sink import plugins
from parquet_sink.config.key import Key, find
from parquet_sink.connectors.connector_class import CONNECTOR_CLASSES, find_class
from parquet_sink.net.settings import ENDPOINT
from parquet_sink.plugins import BUILT_IN, TARGETS, PluginUnusable
from parquet_sink.targets.target_class import PUSH, TARGET_CLASSES, TYPE, TargetClass, of_endpoint


def keys_of(config: Mapping[str, str]) -> tuple[Key, ...]:
    """Of a class that cannot be found, those of the default one. Raises nothing.

    Behind them stand the secret keys of all other classes: what a file kept of an earlier class stays a secret.
    """
    own = find_class().keys
    with suppress(PluginUnusable):
        own = find_class(config["connector.class"].strip()).keys if "connector.class" in config else own
    with suppress(PluginUnusable):
        own = with_target(own, config)
    return (*own, *_of_steps(config), *_secrets_of_all())


@cache
def _secrets_of_all() -> tuple[Key, ...]:
    """Return the secret keys of all connector classes that are installed."""
    secrets: dict[str, Key] = {}
    for name in plugins.names(CONNECTOR_CLASSES):
        with suppress(PluginUnusable):
            secrets |= {key.name: key for key in find_class(name).keys if key.secret}
    return tuple(secrets.values())


def with_target(keys: Sequence[Key], config: Mapping[str, str]) -> Sequence[Key]:
    """Those of a connector class, and of the target of another package that a file of it names.

    Raises PluginUnusable for a target that cannot be loaded.
    """
    type_ = find(keys, TYPE)
    if type_ is None or PUSH not in type_.choices:
        return keys
    name = config.get(TYPE, "").strip()
    if name.lower() in ("", PUSH):
        target = of_endpoint(config.get(ENDPOINT, "").strip())
    elif (found := _installed(name)) is not None:
        target, chosen = found, replace(type_, choices=(*type_.choices, name))
        keys = [chosen if key is type_ else key for key in keys]
    else:
        return keys
    known = {key.name for key in keys}
    return [*keys, *(key for key in target.keys if key.name not in known)]


def _installed(name: str) -> TargetClass | None:
    """The target of another package; None where no package has one of that name. Raises PluginUnusable."""
    try:
        located = None if name.lower() in BUILT_IN[TARGETS] else plugins.locate(TARGET_CLASSES, name)
    except PluginUnusable:
        return None
    return None if located is None else plugins.load(TARGET_CLASSES, located)


def _of_steps(config: Mapping[str, str]) -> Iterator[Key]:
    """Of transforms and predicates, as they are written in the file."""
    for kind in ("transforms", "predicates"):
        for name in filter(None, (one.strip() for one in config.get(kind, "").split(","))):
            yield from _under(f"{kind}.{name}.", kind, config.get(f"{kind}.{name}.type", "").strip())


def _under(prefix: str, kind: str, type_: str) -> Iterator[Key]:
    if not type_ or "${" in type_:
        return
    from parquet_sink.transform.classes import find_predicate, find_transform  # load Arrow: only where one is named

    with suppress(Exception):  # a class of another's that cannot be loaded: its keys are known by their names
        found = find_predicate(type_) if kind == "predicates" else find_transform(type_)[0]
        yield from [replace(key, name=prefix + key.name) for key in found.keys]
