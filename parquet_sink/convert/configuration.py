"""The converters of a connector: that each is known and complete, that its settings are its own, and what they say."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypedDict

from parquet_sink import plugins
from parquet_sink.config.class_settings import ClassSettings, Judged, Texts, judge, section
from parquet_sink.config.machine import Machine
from parquet_sink.config.report import PrefixedReport, Report, quoted
from parquet_sink.config.values import NOTHING, Values
from parquet_sink.config.without_effect import suggest
from parquet_sink.convert import converters
from parquet_sink.convert.chosen import SIDES, Chosen, choose
from parquet_sink.convert.converter_setting import REGISTRY
from parquet_sink.convert.converters import JSON_CONVERTER, SIMPLE_HEADER
from parquet_sink.convert.keys import find_setting, settings_under
from parquet_sink.convert.registry import cross_checks
from parquet_sink.convert.registry.build import build_registry
from parquet_sink.convert.settings import ConverterSettings, Side


class Remarks(TypedDict):
    """Why a setting means nothing beside its converter, and beginnings of settings whose converter nobody knows."""

    foreign: Callable[[str], str | None]
    unjudged: tuple[str, ...]


def named(own: Values, worker: Values = NOTHING) -> Mapping[str, Chosen | None]:
    """By the prefix of its settings, the converter of each side; None when there is none, or none that is known."""
    return {f"{side}.converter.": choose(side, own, worker) for side in SIDES}


def check(own: Values, worker: Values, source: str, machine: Machine, report: Report) -> None:
    """Judge the converters of a connector with all their settings, also those that it has from the worker file.

    That of headers is judged where there are transforms, and is nobody's business otherwise. source: the worker file's
    name, for messages.
    """
    for side in SIDES if own.names("transforms") else SIDES[:2]:
        chosen = choose(side, own, worker)
        if side == "header":
            _unknown_of_headers(own, chosen, report)
        if chosen is None:
            _absent(side, own, worker, source, report)
        elif chosen.kind == "own":
            _own(chosen, report)
        elif _settings(chosen, report) and chosen.kind in REGISTRY:
            cross_checks.check(chosen, machine, report)


def _unknown_of_headers(own: Values, chosen: Chosen | None, report: Report) -> None:
    """Names that no converter has: the table has any behind `header.converter.`, for files in which nobody asks."""
    if chosen is None or chosen.kind == "own":
        return
    known = settings_under(chosen.prefix)
    for full in sorted(one for one in own.given if one.startswith(chosen.prefix)):
        if find_setting(full.removeprefix(chosen.prefix)) is None:
            report.warn(full, f"It is unknown and has no effect.{suggest(full, known, (chosen.prefix,))}")


def _absent(side: Side, own: Values, worker: Values, source: str, report: Report) -> None:
    """A wrong name in the connector file was reported when the file was read."""
    key = f"{side}.converter"
    inherited = worker.text(key) if key in worker.given else None
    if key in own.given:
        if side == "header" and (name := own.text(key)) is not None:  # of which nobody asks in other files
            report.problem(key, converters.refusal(name, _shown(own, key, name), side) or "")
        return
    if inherited is not None:
        refusal = converters.refusal(inherited, _shown(worker, key, inherited), side)
        report.problem(key, f"{refusal} It is set in {source}.")
    elif side == "value" and key not in worker.given:
        report.problem(
            key,
            f"It is set neither here nor in the worker file; name the records' converter, for plain JSON objects "
            f"{JSON_CONVERTER} with {key}.schemas.enable=false.",
        )


def _shown(values: Values, key: str, name: str) -> str | None:
    """The placeholder of a name that a provider gave; None for any other."""
    shown = values.quoted(key)
    return None if shown == quoted(name) else shown


def _settings(chosen: Chosen, report: Report) -> bool:
    """Check each setting by itself; True when none is wrong."""
    good = True
    for name, setting in chosen.settings:
        value = None if setting.key.is_prefix else chosen.value(name)
        reason = setting.key.check.test(value) if setting.key.check else None
        if reason is not None and (setting.key.is_prefix or value is not None):
            report.problem(chosen.prefix + name, reason)
            good = False
    return good


def remarks(own: Values, worker: Values = NOTHING) -> Remarks:
    """What `without_effect.warn_about` must know of the converters: a file that has none says nothing."""
    converter = named(own, worker) if own.knows("value.converter") else {}
    unjudged = tuple(prefix for prefix, chosen in converter.items() if chosen is None or chosen.kind == "own")
    return {"foreign": lambda name: foreign(name, converter), "unjudged": unjudged}


def _own(chosen: Chosen, report: Report) -> Texts | None:
    """Judge the settings of a class of a user's own by its own keys."""
    from parquet_sink.convert.own import CONVERTER_CLASSES  # loads Arrow: only where one is named

    found = plugins.find(CONVERTER_CLASSES, chosen.name)
    key = chosen.prefix.removesuffix(".")
    judged = Judged(
        "converter",
        tuple(found.keys),
        lambda values: found(values, chosen.side),
        lambda reason: report.problem(key, reason),
    )
    values = chosen.values
    full = sorted(name for name in {*values.texts, *values.given} if name.startswith(chosen.prefix))
    return judge(judged, section(values, full, chosen.prefix), PrefixedReport(report, chosen.prefix))


def build_headers(own: Values, worker: Values, machine: Machine) -> ConverterSettings:
    """How headers are decoded: by SimpleHeaderConverter where none is set."""
    return build_converter("header", own, worker, machine) or ConverterSettings(SIMPLE_HEADER.kind)


def foreign(name: str, converter: Mapping[str, Chosen | None]) -> str | None:
    """Why a setting of a converter has no effect with the one that is there; None when it has, or is no such setting.

    name: the whole key. converter: as `named` gives it.
    """
    for prefix, chosen in converter.items():
        setting = find_setting(name.removeprefix(prefix)) if name.startswith(prefix) else None
        if (
            setting is not None
            and chosen is not None
            and chosen.kind != "own"
            and not setting.concerns(chosen.converter)
        ):
            return f"It has no effect with {chosen.converter.class_name}."
    return None


def build_converter(side: Side, own: Values, worker: Values, machine: Machine) -> ConverterSettings | None:
    """How one side is decoded; None when no converter is set for it. own, worker: values of the two files."""
    chosen = choose(side, own, worker)
    if chosen is None:
        return None
    if chosen.kind == "own":
        key = chosen.prefix.removesuffix(".")
        return ConverterSettings("own", own=ClassSettings(key, chosen.name, _own(chosen, Report()) or ()))
    registry = build_registry(chosen, machine) if chosen.kind in REGISTRY else None
    return replace(ConverterSettings(kind=chosen.kind, registry=registry), **_options(chosen))


def _options(chosen: Chosen) -> dict[str, Any]:
    """Fields of ConverterSettings that the file sets, and that concern the converter."""
    return {setting.fills: chosen.value(name) for name, setting in chosen.settings if setting.fills}
