"""The config providers of a worker file: `config.providers`, and of each its class and params."""

from collections.abc import Mapping
from dataclasses import replace
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


def with_providers(properties: Mapping[str, str], machine: Machine, report: Report) -> Machine:
    """The machine with the providers of a worker file; without a list of them, with those that it has.

    What is wrong goes to the report, and such a provider answers nothing. Kafka's own are made first, so that params of
    the others may hold placeholders of theirs.
    """
    texts = classes_by_name(LIST, "provider", properties, report)
    if not texts:
        return machine
    classes = {name: _class_of(name, texts[name], report) for name in texts}
    made: dict[str, Provider] = {name: BrokenProvider(name) for name in texts if classes[name] is None}
    for kafkas in (True, False):
        for name, class_ in classes.items():
            if class_ is not None and isinstance(class_, OfMachine) is kafkas:
                made[name] = _made(name, class_, texts[name], replace(machine, providers=dict(made)), report)
    return replace(machine, providers={name: made[name] for name in texts})


def _class_of(name: str, texts: Mapping[str, str], report: Report) -> ProviderClass | None:
    """The registered class that a provider has; None when there is none, which the report has then."""
    class_ = texts.get(CLASS, "").strip() or _WITHOUT_CLASS.get(name, "")
    try:
        if class_:
            return find_class(class_)
        reason = (
            f"It is missing; name the class of the config provider {printable(name)}, or write "
            f"{', '.join(_WITHOUT_CLASS)} in {LIST}, which need none."
        )
    except PluginUnusable as error:
        reason = str(error)
    report.problem(f"{PREFIX}{name}.{CLASS}", reason)
    return None


def _made(name: str, class_: ProviderClass, texts: Mapping[str, str], machine: Machine, report: Report) -> Provider:
    """The provider of a class. Its params may hold placeholders of the machine's, unless it is Kafka's own."""
    params = {one.removeprefix(PARAM): text for one, text in texts.items() if one.startswith(PARAM)}
    prefixed, resolved = PrefixedReport(report, f"{PREFIX}{name}.{PARAM}"), Resolved(params, params)
    if not isinstance(class_, OfMachine):
        before = len(report.problems)
        resolved = resolve(params, machine, prefixed)
        if len(report.problems) > before:
            return BrokenProvider(name)
    made: list[Provider] = []

    def make(values: Values) -> None:
        if isinstance(class_, OfMachine):
            made.append(class_.on_machine(machine, name, values))
        else:
            made.append(GuardedProvider(name, class_(values)))

    check = ClassCheck("config provider", tuple(class_.keys), make, f"{PREFIX}{name}.{CLASS}")
    return BrokenProvider(name) if validate(check, resolved, prefixed) is None else made[0]
