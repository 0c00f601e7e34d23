"""The config providers of a worker file: `config.providers`, and of each its class and params."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from parquet_sink.config.built_in_providers import BUILT_IN, DirectoryProvider, EnvironmentProvider, FileProvider
from parquet_sink.config.class_settings import Judged, judge
from parquet_sink.config.key import Check, Key, Origin, Type, Value
from parquet_sink.config.machine import Machine
from parquet_sink.config.provider import Provider
from parquet_sink.config.providers import Resolved, resolve
from parquet_sink.config.report import PrefixedReport, Report, did_you_mean, printable, quoted
from parquet_sink.config.values import Values
from parquet_sink.plugins import PluginUnusable
from parquet_sink.worker_config.provider_class import (
    BrokenProvider,
    GuardedProvider,
    OwnProvider,
    find_class,
)

LIST: Final = "config.providers"
PREFIX: Final = "config.providers."
_PARAM: Final = "param."
_OF_KAFKA: Final = "org.apache.kafka.common.config.provider."
_BY_CLASS: Final = {"EnvVarConfigProvider": "env", "FileConfigProvider": "file", "DirectoryConfigProvider": "directory"}
"""Kafka's own classes, in full or by the last part of their names, as the provider that is built in for each."""


def _absolute(value: Value) -> str | None:
    wrong = [one for one in value if not one.startswith("/")] if isinstance(value, tuple) else []
    return f"{quoted(wrong[0])} is no absolute path; write it from / on." if wrong else None


def _pattern(value: Value) -> str | None:
    try:
        re.compile(str(value))
    except re.error as error:
        return f"{quoted(str(value))} is no regular expression ({error}); correct it."
    return None


_GROUP: Final = "Params"
_ALLOWED_PATHS: Final = Key(
    "allowed.paths",
    _GROUP,
    Type.LIST,
    "Absolute paths of folders, or files, that may be read.",
    check=Check("absolute paths", _absolute),
    origin=Origin.CONNECT,
)
_ALLOW_LIST: Final = Key(
    "allowlist.pattern",
    _GROUP,
    Type.STRING,
    "Regular expression; variables whose whole name it matches may be read.",
    check=Check("a regular expression", _pattern),
    origin=Origin.CONNECT,
)


@dataclass
class _Making:
    """What is being read: texts of the worker file about providers, by name of the provider and key behind it."""

    machine: Machine
    report: Report
    texts: dict[str, dict[str, str]] = field(default_factory=dict)
    made: dict[str, Provider] = field(default_factory=dict)


def with_providers(properties: Mapping[str, str], machine: Machine, report: Report) -> Machine:
    """The machine with the providers of a worker file; without a list of them, with those that it has.

    What is wrong goes to the report, and such a provider answers nothing. Params of classes that are not built in may
    hold placeholders of those that are.
    """
    names = [name for one in properties.get(LIST, "").split(",") if (name := one.strip())]
    making = _Making(machine, report)
    for full in sorted(properties):
        if full.startswith(PREFIX):
            _take(full, properties[full], names, making)
    if not names:
        return machine
    if (again := next((name for name in names if names.count(name) > 1), None)) is not None:
        report.problem(LIST, f"{quoted(again)} is named twice; name each provider once.")
    own = {name: class_ for name in dict.fromkeys(names) if (class_ := _built_in(name, making)) is not None}
    for name, class_ in own.items():
        making.made[name] = _own(name, class_, making)
    return replace(machine, providers={name: making.made[name] for name in dict.fromkeys(names)})


def _take(full: str, text: str, names: list[str], making: _Making) -> None:
    """A key to the provider that it is of; one of nobody's is warned about."""
    rest = full.removeprefix(PREFIX)
    owner = max((name for name in names if rest.startswith(f"{name}.")), key=len, default=None)
    if owner is None:
        name, _, behind = rest.partition(".")
        hint = did_you_mean(name, {one: f"{PREFIX}{one}.{behind}" for one in names}, cutoff=0.6)
        making.report.warn(
            full, f"It has no effect: {LIST} does not name {quoted(name)}; list it there, or remove the key.{hint}"
        )
        return
    behind = rest.removeprefix(f"{owner}.")
    if behind != "class" and not behind.startswith(_PARAM):
        making.report.warn(
            full, f"It is unknown and has no effect; a provider has {PREFIX}{owner}.class and {PREFIX}{owner}.param.*."
        )
    making.texts.setdefault(owner, {})[behind] = text


def _built_in(name: str, making: _Making) -> str | None:
    """Makes a provider of Kafka's own; of another one the name of its class, which is still to be made."""
    class_ = making.texts.get(name, {}).get("class", "").strip()
    kind = name if not class_ and name in BUILT_IN else _BY_CLASS.get(class_.removeprefix(_OF_KAFKA))
    if kind is not None:
        making.made[name] = _of_kafka(name, kind, making)
        return None
    if class_:
        return class_
    making.report.problem(
        f"{PREFIX}{name}.class",
        f"It is missing; name the class of the config provider {printable(name)}, or write {', '.join(BUILT_IN)} in "
        f"{LIST}, which need none.",
    )
    making.made[name] = BrokenProvider(name)
    return None


def _of_kafka(name: str, kind: str, making: _Making) -> Provider:
    def environment(values: Values) -> Provider:
        text = values.text(_ALLOW_LIST.name)
        return EnvironmentProvider(name, making.machine, None if text is None else re.compile(text))

    def files(values: Values) -> Provider:
        allowed = values.names(_ALLOWED_PATHS.name) if _ALLOWED_PATHS.name in values.given else None
        return (FileProvider if kind == "file" else DirectoryProvider)(name, making.machine, allowed)

    keys, make = ((_ALLOW_LIST,), environment) if kind == "env" else ((_ALLOWED_PATHS,), files)
    params = _params(name, making)
    return _made(name, keys, make, Resolved(params, params), making)


def _own(name: str, class_: str, making: _Making) -> Provider:
    """Params may hold placeholders of what was made before."""
    try:
        found = find_class(class_)
    except PluginUnusable as error:
        making.report.problem(f"{PREFIX}{name}.class", str(error))
        return BrokenProvider(name)
    params, inner = _params(name, making), Report()
    resolved = resolve(params, replace(making.machine, providers=dict(making.made)), inner)
    prefix = f"{PREFIX}{name}.{_PARAM}"
    making.report.problems += [text.replace("Invalid [", f"Invalid [{prefix}", 1) for text in inner.problems]
    if inner.problems:
        return BrokenProvider(name)

    def make(values: Values) -> Provider:
        made: OwnProvider = found(values)
        return GuardedProvider(name, made)

    return _made(name, tuple(found.keys), make, resolved, making)


def _params(name: str, making: _Making) -> dict[str, str]:
    texts = making.texts.get(name, {})
    return {one.removeprefix(_PARAM): text for one, text in texts.items() if one.startswith(_PARAM)}


def _made(
    name: str, keys: tuple[Key, ...], make: Callable[[Values], Provider], params: Resolved, making: _Making
) -> Provider:
    """Of settings that were judged, by a class that was made with them."""
    made: list[Provider] = []
    report = PrefixedReport(making.report, f"{PREFIX}{name}.{_PARAM}")

    def on_class(reason: str) -> None:
        making.report.problem(f"{PREFIX}{name}.class", reason)

    judged = Judged("config provider", keys, lambda values: made.append(make(values)), on_class)
    return made[0] if judge(judged, params, report) is not None else BrokenProvider(name)
