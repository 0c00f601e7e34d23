"""The config providers of a worker file: `config.providers`, and of each its class and params."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from parquet_sink.config.class_settings import CLASS, PARAM, ClassCheck, classes_by_name, validate
from parquet_sink.config.machine import Machine
from parquet_sink.config.provider import Provider, Resolved
from parquet_sink.config.providers import resolve
from parquet_sink.config.report import PrefixedReport, Report, printable
from parquet_sink.config.values import Values
from parquet_sink.plugins import PluginUnusable
from parquet_sink.worker_config.provider_class import (
    BrokenProvider,
    GuardedProvider,
    OfMachine,
    ProviderClass,
    find_class,
)

LIST: Final = "config.providers"
PREFIX: Final = "config.providers."
_WITHOUT_CLASS: Final = {
    "env": "EnvVarConfigProvider",
    "file": "FileConfigProvider",
    "directory": "DirectoryConfigProvider",
}
"""Providers that need no class, and the one that they have."""


@dataclass
class _Making:
    """What is being read: texts of the worker file about providers, by name of the provider and key behind it."""

    machine: Machine
    report: Report
    texts: Mapping[str, Mapping[str, str]]
    made: dict[str, Provider] = field(default_factory=dict)


def with_providers(properties: Mapping[str, str], machine: Machine, report: Report) -> Machine:
    """The machine with the providers of a worker file; without a list of them, with those that it has.

    What is wrong goes to the report, and such a provider answers nothing. Kafka's own are made first, so that params of
    the others may hold placeholders of theirs.
    """
    making = _Making(machine, report, classes_by_name(LIST, "provider", properties, report))
    if not making.texts:
        return machine
    classes = {name: class_ for name in making.texts if (class_ := _class_of(name, making)) is not None}
    for name in sorted(classes, key=lambda one: not isinstance(classes[one], OfMachine)):
        making.made[name] = _made(name, classes[name], making)
    return replace(machine, providers={name: making.made[name] for name in making.texts})


def _class_of(name: str, making: _Making) -> ProviderClass | None:
    """The registered class that a provider has; None when there is none, which the report has then."""
    class_ = making.texts[name].get(CLASS, "").strip() or _WITHOUT_CLASS.get(name, "")
    try:
        if class_:
            return find_class(class_)
        reason = (
            f"It is missing; name the class of the config provider {printable(name)}, or write "
            f"{', '.join(_WITHOUT_CLASS)} in {LIST}, which need none."
        )
    except PluginUnusable as error:
        reason = str(error)
    making.report.problem(f"{PREFIX}{name}.{CLASS}", reason)
    making.made[name] = BrokenProvider(name)
    return None


def _made(name: str, class_: ProviderClass, making: _Making) -> Provider:
    """The provider of a class. Its params may hold placeholders of those made before, unless it is Kafka's own."""
    texts = making.texts[name]
    params = {one.removeprefix(PARAM): text for one, text in texts.items() if one.startswith(PARAM)}
    prefix, resolved = f"{PREFIX}{name}.{PARAM}", Resolved(params, params)
    if not isinstance(class_, OfMachine):
        inner = Report()
        resolved = resolve(params, replace(making.machine, providers=dict(making.made)), inner)
        making.report.problems += [text.replace("Invalid [", f"Invalid [{prefix}", 1) for text in inner.problems]
        if inner.problems:
            return BrokenProvider(name)
    made: list[Provider] = []

    def make(values: Values) -> None:
        if isinstance(class_, OfMachine):
            made.append(class_.on_machine(making.machine, name, values))
        else:
            made.append(GuardedProvider(name, class_(values)))

    def on_class(reason: str) -> None:
        making.report.problem(f"{PREFIX}{name}.{CLASS}", reason)

    check = ClassCheck("config provider", tuple(class_.keys), make, on_class)
    wrong = validate(check, resolved, PrefixedReport(making.report, prefix)) is None
    return BrokenProvider(name) if wrong else made[0]
