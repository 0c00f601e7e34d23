"""From a key of a table to Kafka Connect's definition of it (ConfigKeyInfo). Pure.

What clients show of Kafka Connect's own keys (importance, group, place, width, name) stands here as Kafka Connect 4.1
has it; of all other keys it is made from their tables.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from parquet_sink import plugins
from parquet_sink.config.docs import meaning_of
from parquet_sink.config.key import PREFIX, Key, Origin, Type, Value
from parquet_sink.convert.connect_values.settings import SimpleHeaderConverter
from parquet_sink.plugins import PluginUnusable
from parquet_sink.transform.keys import PREDICATE_KEYS, STEP_KEYS

COMMON: Final = "Common"
ERRORS: Final = "Error Handling"
_LINK: Final = re.compile(r"\[([^\[\]]+)\]\([^()]+\)")
_NO_DEFAULT: Final = "-"


@dataclass(frozen=True)
class Look:
    """How clients show a key. type: where Kafka Connect's differs from ours. default: likewise."""

    importance: str
    group: str
    order: int
    width: str
    display_name: str
    type: str = ""
    default: str = _NO_DEFAULT
    required: bool = False


CONNECT_LOOKS: Final[Mapping[str, Look]] = {
    "name": Look("HIGH", COMMON, 1, "MEDIUM", "Connector name", required=True),
    "connector.class": Look("HIGH", COMMON, 2, "LONG", "Connector class", required=True),
    "connector.plugin.version": Look("MEDIUM", COMMON, 3, "MEDIUM", "Connector version"),
    "tasks.max": Look("HIGH", COMMON, 4, "SHORT", "Tasks max"),
    "tasks.max.enforce": Look("LOW", COMMON, 5, "SHORT", "Enforce tasks max"),
    "key.converter": Look("LOW", COMMON, 6, "SHORT", "Key converter class", type="CLASS"),
    "key.converter.plugin.version": Look("LOW", COMMON, 7, "SHORT", "Key converter version"),
    "value.converter": Look("LOW", COMMON, 8, "SHORT", "Value converter class", type="CLASS"),
    "value.converter.plugin.version": Look("LOW", COMMON, 9, "SHORT", "Value converter version"),
    "header.converter": Look(
        "LOW", COMMON, 10, "SHORT", "Header converter class", type="CLASS", default=SimpleHeaderConverter.class_name
    ),
    "header.converter.plugin.version": Look("LOW", COMMON, 11, "SHORT", "Header converter version"),
    "transforms": Look("LOW", "Transforms", 12, "LONG", "Transforms", default=""),
    "predicates": Look("LOW", "Predicates", 13, "LONG", "Predicates", default=""),
    "config.action.reload": Look("LOW", COMMON, 14, "MEDIUM", "Reload Action", default="restart"),
    "errors.retry.timeout": Look("MEDIUM", ERRORS, 1, "MEDIUM", "Retry Timeout for Errors"),
    "errors.retry.delay.max.ms": Look("MEDIUM", ERRORS, 2, "MEDIUM", "Maximum Delay Between Retries for Errors"),
    "errors.tolerance": Look("MEDIUM", ERRORS, 3, "SHORT", "Error Tolerance"),
    "errors.log.enable": Look("MEDIUM", ERRORS, 4, "SHORT", "Log Errors"),
    "errors.log.include.messages": Look("MEDIUM", ERRORS, 5, "SHORT", "Log Error Details"),
    "topics": Look("HIGH", COMMON, 4, "LONG", "Topics", default=""),
    "topics.regex": Look("HIGH", COMMON, 4, "LONG", "Topics regex", default=""),
    "errors.deadletterqueue.topic.name": Look(
        "MEDIUM", ERRORS, 6, "MEDIUM", "Dead Letter Queue Topic Name", default=""
    ),
    "errors.deadletterqueue.topic.replication.factor": Look(
        "MEDIUM", ERRORS, 7, "MEDIUM", "Dead Letter Queue Topic Replication Factor", type="SHORT"
    ),
    "errors.deadletterqueue.context.headers.enable": Look(
        "MEDIUM", ERRORS, 8, "MEDIUM", "Enable Error Context Headers"
    ),
}
"""In the order in which Kafka Connect lists them."""

_WIDTHS: Final[Mapping[Type, str]] = {Type.STRING: "MEDIUM", Type.LIST: "LONG", Type.PASSWORD: "MEDIUM"}
"""Of all others SHORT."""


@dataclass(frozen=True)
class Definition:
    """A key as clients see it. offered: values that they let their users choose from."""

    key: Key
    look: Look
    dependents: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.key.name

    @property
    def default(self) -> str | None:
        """As text; None when there is none."""
        if self.look.default != _NO_DEFAULT:
            return self.look.default
        return None if self.look.required else text_of(self.key.default)

    def as_json(self) -> dict[str, Any]:
        """ConfigKeyInfo; its place in the group under the names of 4.1 and of 4.2."""
        look = self.look
        return {
            "name": self.name,
            "type": look.type or self.key.type.name,
            "required": look.required,
            "default_value": self.default,
            "importance": look.importance,
            "documentation": _plain(meaning_of(self.key)),
            "group": look.group,
            "order_in_group": look.order,
            "width": look.width,
            "display_name": look.display_name,
            "dependents": list(self.dependents),
            "order": look.order,
        }


def definitions(table: Sequence[Key], looks: Mapping[str, Look] = CONNECT_LOOKS) -> list[Definition]:
    """Of all keys but those that stand for a prefix: Kafka Connect's own first, in its order, then the table's."""
    keys = {key.name: key for key in table if not key.is_prefix}
    dependents: dict[str, list[str]] = {}
    for key in keys.values():
        if key.needs:
            dependents.setdefault(key.needs, []).append(key.name)
    found = {name: looks[name] for name in looks if name in keys}
    places: dict[str, int] = {}
    for name, key in keys.items():
        if name not in found:
            places[key.group] = places.get(key.group, 0) + 1
            found[name] = look_of(key, key.group, places[key.group])
    return [
        Definition(
            keys[name], look, () if name in looks else tuple(dependents.get(name, ())), _offered(keys[name], looks)
        )
        for name, look in found.items()
    ]


def _offered(key: Key, looks: Mapping[str, Look]) -> tuple[str, ...]:
    """As in Kafka Connect nothing for its own keys; nothing that is refused."""
    if key.name in looks:
        return ()
    return tuple(choice for choice in key.choices if key.not_built is None or not key.not_built.when(choice))


def look_of(key: Key, group: str, order: int, *, shown: str = "") -> Look:
    """How a key that Kafka Connect does not know is shown. shown: its name without what stands before it."""
    weight = "HIGH" if key.required else "LOW" if key.no_effect or key.deprecated else "MEDIUM"
    return Look(weight, group, order, _WIDTHS.get(key.type, "SHORT"), _title(shown or key.name), required=key.required)


def groups(found: Iterable[Definition]) -> list[str]:
    """Titles of groups, in the order of their first keys."""
    return list(dict.fromkeys(one.look.group for one in found))


def text_of(value: Value) -> str | None:
    """A default as Kafka Connect writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(value)
    return None if value is None else str(value)


def _title(name: str) -> str:
    words = name.removeprefix(PREFIX).replace(".", " ").replace("_", " ")
    return words[:1].upper() + words[1:]


def _plain(markdown: str) -> str:
    return _LINK.sub(r"\1", markdown).replace("`", "").replace("**", "")


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
    """Those of a class; None when it cannot be found, which is reported elsewhere."""
    from parquet_sink.transform.classes import find_predicate, find_transform  # load Arrow: only where one is named

    if not type_ or "${" in type_:
        return None
    with suppress(PluginUnusable):
        return find_predicate(type_).keys if kind == "predicates" else find_transform(type_)[0].keys
    return None
