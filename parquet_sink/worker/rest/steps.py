"""Keys of the transforms and predicates that a configuration names, as clients are told of them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from parquet_sink import plugins
from parquet_sink.config.key import Key, Origin, Type
from parquet_sink.plugins import PluginUnusable
from parquet_sink.transform.keys import PREDICATE_KEYS, STEP_KEYS
from parquet_sink.worker.rest.definitions import Definition, Look, look_of


def steps(config: Mapping[str, str]) -> list[Definition]:
    """For each name its class, the class's own keys, and what all of its kind have."""
    found: list[Definition] = []
    for kind, what, own in (
        ("transforms", "Transformation", STEP_KEYS),
        ("predicates", "Predicate", PREDICATE_KEYS),
    ):
        for name in dict.fromkeys(one.strip() for one in config.get(kind, "").split(",") if one.strip()):
            found += _of_one(kind, what, name, own, config)
    return found


def _of_one(kind: str, what: str, name: str, own: Sequence[Key], config: Mapping[str, str]) -> list[Definition]:
    prefix, group = f"{kind}.{name}.", f"{kind.capitalize()}: {name}"
    looks = Look("HIGH", group, 0, "LONG", f"{what} type for {name}", type="CLASS", required=True)
    doc = f"Class for the '{name}' {what.lower()}."
    key = Key(f"{prefix}type", group, Type.STRING, doc, origin=Origin.CONNECT)
    first = Definition(key, looks, offered=tuple(sorted(class_names(kind))))
    of_class = class_keys(kind, config.get(f"{prefix}type", "").strip())
    others = [] if of_class is None else [*of_class, *own[1:]]
    return [
        first,
        *(
            Definition(replace(key, name=prefix + key.name), look_of(key, group, place, shown=key.name))
            for place, key in enumerate((one for one in others if not one.is_prefix), 1)
        ),
    ]


def class_names(kind: str) -> Sequence[str]:
    """The full names of all classes of a kind."""
    from parquet_sink.transform.classes import PREDICATE_CLASSES, TRANSFORM_CLASSES  # load Arrow

    return plugins.names(PREDICATE_CLASSES if kind == "predicates" else TRANSFORM_CLASSES)


def class_keys(kind: str, type_: str) -> Sequence[Key] | None:
    """Those of a class; None when it cannot be found, which is told elsewhere."""
    from parquet_sink.transform.classes import find_predicate, find_transform  # load Arrow: only where one is named

    if not type_ or "${" in type_:
        return None
    with suppress(PluginUnusable):
        return find_predicate(type_).keys if kind == "predicates" else find_transform(type_)[0].keys
    return None
