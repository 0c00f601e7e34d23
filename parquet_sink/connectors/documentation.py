"""docs/reference/configuration.md and the help on keys: what a connector class and the worker file have.

`python -m parquet_sink.connectors.documentation > docs/reference/configuration.md` writes the page; with the
name of a connector class behind it, the keys of that class.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, Final

from parquet_sink import plugins
from parquet_sink.config import docs
from parquet_sink.config.key import Key
from parquet_sink.connectors.connector_class import CONNECTOR_CLASSES, DEFAULT_CLASS, ConnectorClass, find_class
from parquet_sink.convert.keys import SETTINGS, table_of_converters, table_of_settings, with_converters
from parquet_sink.convert.settings import CONVERT_SETTINGS
from parquet_sink.plugins import PluginUnusable
from parquet_sink.targets.target_class import TARGET_CLASSES, TYPE, TargetClass, find_target
from parquet_sink.transform.keys import PREDICATE_KEYS, STEP_KEYS, TRANSFORM, TRANSFORM_KEYS
from parquet_sink.worker_config.worker_keys import WORKER_KEYS

if TYPE_CHECKING:
    from parquet_sink.transform.protocol import PredicateClass, TransformClass

_INTRO: Final = """\
<!-- Written by `python -m parquet_sink.connectors.documentation > docs/reference/configuration.md`; do not edit. -->
# Configuration

A connector is one file, in Java's properties form or as JSON (`{"name": ..., "config": {...}}` or one flat object), as
Kafka Connect and the EMS connector have it. Files are UTF-8. What all connectors of a process share stands in the
worker file (`--worker`). `parquet-sink check FILE...` validates files without connecting to anything.

- A wrong value is reported as `Invalid [key]. reason`, all of a file at once, and nothing starts.
- A key that is unknown, removed or without effect is reported as a warning, with the nearest known key.
- A key or value whose feature is not built yet is refused by name, never ignored.
- A size is written with a unit or in bytes: `10MB` or `10000000`. kB, MB, GB and TB are powers of 1,000, KiB, MiB, GiB
  and TiB powers of 1,024, in any case; B is a byte.
- A duration is written with a unit or in milliseconds: `30s` or `30000`. Units are ms, s, m (or min), h and d (24
  hours), in small letters. `1.5h` is exact; what comes to no whole number (`0.5ms`) is refused, and so are several
  units together (`1h30m`) and `1_000`. Settings of Kafka's clients (`consumer.override.*`) are read by those: plain
  numbers.
- A blank value counts as absent. Choices may be written in any case.

## Secrets
Secrets are never printed, logged or put in an error. Better than in the file itself they stand elsewhere, and the file
names the place, in any value:

| Placeholder | Stands for |
|---|---|
| `${env:NAME}` | the environment variable `NAME` |
| `${file:PATH:KEY}` | the value of `KEY` in the properties file `PATH` |
| `${directory:PATH:FILE}` | the content of `FILE` in the folder `PATH` |

These are Kafka's config providers by their usual names; for `run` the worker file need not declare them, and may
declare others ([config-providers.md](../how-to/config-providers.md)). A placeholder that cannot be filled is an error.
Client settings are secret by their name: those with `password`, `jaas`, `secret`, `credential` or `token` in it, and
those that end in `.key` or `.pem`.

## Brokers
`--bootstrap-servers` wins over the environment variable `PARQUET_SINK_BOOTSTRAP_SERVERS`, that over
`consumer.bootstrap.servers` and `bootstrap.servers` of the worker file. A connector's
`consumer.override.bootstrap.servers` wins over all of them, with a warning when the option or the variable is set.
Every other `consumer.override.*` wins over the worker's `consumer.*`.

# Keys of a connector file
"""
_WORKER_INTRO: Final = """
# Keys of the worker file

The file of Kafka Connect's standalone mode (`connect-standalone.properties`). It may be absent. Settings of its
converters are those of a connector file.
"""

_TRANSFORMS_INTRO: Final = """\
`N` stands for a name that `transforms` or `predicates` lists. What a transform is, and examples of each, are in
[transforms.md](transforms.md).
"""
TRANSFORMS: Final = "transforms"
PREDICATES: Final = "predicates"
_KINDS: Final = ((plugins.TRANSFORMS, "transforms.N."), (plugins.PREDICATES, "predicates.N."))


def markdown(connector_class: str = DEFAULT_CLASS) -> str:
    """The whole page, with the keys of one connector class. Raises plugins.PluginUnusable."""
    keys = find_class(connector_class).keys
    parts = [_INTRO]
    for group in docs.groups(keys):
        if group == CONVERT_SETTINGS:
            parts += [table_of_converters(), table_of_settings()]
        elif group == TRANSFORM:
            parts.append(_transforms())
        else:
            parts.append(docs.section(group, keys))
    parts.append(_WORKER_INTRO)
    parts += [docs.section(group, WORKER_KEYS) for group in docs.groups(WORKER_KEYS) if group != CONVERT_SETTINGS]
    return "\n".join(parts)


def help_text() -> str:
    """All keys as plain text, for a terminal: of all connector classes, and of the worker file."""
    return "\n".join(_help_lines())


def _help_lines() -> Iterator[str]:
    keys = find_class().keys
    yield from _help("Connector file", keys)
    for name in plugins.names(CONNECTOR_CLASSES):
        shared = keys if name in plugins.BUILT_IN[plugins.CONNECTORS] else ()
        yield from _help_of(f"connector.class={name}", find_class, name, shared)
    for name in sorted(plugins.installed(TARGET_CLASSES)):
        yield from _help_of(f"{TYPE}={name}", find_target, name, keys)
    yield from _help_settings()
    yield from _help("Worker file", WORKER_KEYS)


def _help_of(
    setting: str, find: Callable[[str], ConnectorClass | TargetClass], name: str, before: Sequence[Key]
) -> Iterator[str]:
    """Keys that are not among those before. A package that cannot be loaded does not cost the others their help."""
    try:
        keys = find(name).keys
    except PluginUnusable as error:
        yield from (str(error), "")
    else:
        names = {key.name for key in before}
        yield from _help(f"Connector file with {setting}", [key for key in keys if key.name not in names])


def _help(title: str, keys: Sequence[Key]) -> Iterator[str]:
    for group in docs.groups(keys):
        if group == TRANSFORM:
            yield from _help_of_transforms(title)
        elif group != CONVERT_SETTINGS:
            yield from docs.help_section(f"{title}: {group}", [key for key in keys if key.group == group])


def _help_settings() -> Iterator[str]:
    meant = [with_converters(one) for one in SETTINGS if not one.unused]
    yield from docs.help_section("Both files, after value.converter. or key.converter.", meant)
    yield from docs.help_section("Accepted without effect there", [one.key for one in SETTINGS if one.unused])


def _transforms() -> str:
    """The keys that all transforms have, then for each class its names and its own keys."""
    parts = [f"## {TRANSFORM}", "", _TRANSFORMS_INTRO, *docs.TABLE_HEAD, *(docs.row_of(key) for key in _of_all_steps())]
    for group, prefix in _KINDS:
        for found, names in _classes(group):
            listed = ", ".join(f"`{name}`" for name in names)
            parts += ["", f"### {_title(names)}", "", f"{summary_of(found)} {listed}.", ""]
            keys = _behind(prefix, found.keys)
            parts += [*docs.TABLE_HEAD, *(docs.row_of(key) for key in keys)] if keys else []
    return "\n".join([*parts, ""])


def _help_of_transforms(title: str) -> Iterator[str]:
    yield from docs.help_section(f"{title}: {TRANSFORM}", _of_all_steps())
    for group, prefix in _KINDS:
        for found, names in _classes(group):
            yield from docs.help_section(f"{title}: {prefix}type={_title(names)}", _behind(prefix, found.keys))


def _classes(group: str) -> "list[tuple[TransformClass | PredicateClass, list[str]]]":
    """Each class that is built in, with its full names."""
    from parquet_sink.transform.classes import find_predicate, find_transform  # loads Arrow, for those who need it

    names: dict[str, list[str]] = {}
    for name, path in plugins.BUILT_IN[group].items():
        names.setdefault(path, []).append(name)
    found = (
        find_transform(one[0])[0] if group == plugins.TRANSFORMS else find_predicate(one[0]) for one in names.values()
    )
    return list(zip(found, names.values(), strict=True))


@dataclass(frozen=True)
class StepClass:
    """A transform or predicate. names: in full; summary: the first paragraph of its docstring; keys: with N."""

    title: str
    names: tuple[str, ...]
    summary: str
    keys: tuple[Key, ...]


def steps_of(kind: str) -> Iterator[StepClass]:
    """Transforms, or predicates: what all of them have, without a title; those built in, then those installed.

    Packages that cannot be loaded are left out.
    """
    group, prefix = _KINDS[0] if kind == TRANSFORMS else _KINDS[1]
    yield StepClass("", (), "", tuple(_behind(prefix, STEP_KEYS if kind == TRANSFORMS else PREDICATE_KEYS)))
    for found, names in (*_classes(group), *_installed(group)):
        yield StepClass(_title(names), tuple(names), summary_of(found), tuple(_behind(prefix, found.keys)))


def _installed(group: str) -> "list[tuple[TransformClass | PredicateClass, list[str]]]":
    """Likewise each class of an installed package."""
    from parquet_sink.transform.classes import PREDICATE_CLASSES, TRANSFORM_CLASSES  # loads Arrow

    kind: plugins.Kind[Any] = TRANSFORM_CLASSES if group == plugins.TRANSFORMS else PREDICATE_CLASSES
    names: dict[str, list[str]] = {}
    for one in plugins.declared(kind):
        names.setdefault(one.path, []).append(one.name)
    found: list[tuple[TransformClass | PredicateClass, list[str]]] = []
    for path, own in names.items():
        with suppress(PluginUnusable):
            found.append((plugins.load(kind, plugins.Located(own[0], path)), own))
    return found


def summary_of(found: object) -> str:
    """The first paragraph of the docstring of a class, in one line."""
    return " ".join(cleandoc(found.__doc__ or "").partition("\n\n")[0].split())


def _of_all_steps() -> list[Key]:
    return [*TRANSFORM_KEYS, *_behind("transforms.N.", STEP_KEYS), *_behind("predicates.N.", PREDICATE_KEYS)]


def _behind(prefix: str, keys: Sequence[Key]) -> list[Key]:
    return [replace(key, name=prefix + key.name) for key in keys]


def _title(names: Sequence[str]) -> str:
    return names[0].rpartition(".")[2].partition("$")[0]


if __name__ == "__main__":
    sys.stdout.write(markdown(*sys.argv[1:2]))
