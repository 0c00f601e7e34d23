"""Validates the converters of a connector with their settings, and builds them.

As in Kafka Connect, a converter that the connector file names takes nothing from the worker file. Settings without a
converter add to the worker's.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypedDict

from parquet_sink.config import declared
from parquet_sink.config.class_settings import ClassSettings, Texts, section
from parquet_sink.config.key import find as find_key
from parquet_sink.config.machine import Machine
from parquet_sink.config.report import PrefixedReport, Report, quoted
from parquet_sink.config.values import NOTHING, Values
from parquet_sink.config.without_effect import suggest
from parquet_sink.convert import converters
from parquet_sink.convert.connect_values.settings import SIMPLE_HEADER
from parquet_sink.convert.json.settings import JsonConverter
from parquet_sink.convert.keys import find_setting, settings_under
from parquet_sink.convert.settings import SIDES, Converter, CustomConverter, Side


@dataclass(frozen=True)
class Chosen:
    """What a side is converted with. name: as the file has it. file: the values that count, of both files."""

    side: Side
    name: str
    converter: type[Converter]
    file: Values

    @property
    def prefix(self) -> str:
        return f"{self.side}.converter."

    @property
    def custom(self) -> bool:
        """Whether it is of another package."""
        return self.converter is CustomConverter

    @property
    def writes(self) -> bool:
        """Whether a source may use it."""
        if self.custom:
            from parquet_sink.convert import custom  # loads Arrow: only where one is named

            return custom.writes(self.name)
        return self.converter.writes()

    @cached_property
    def values(self) -> Values:
        """Its settings, by their own names."""
        file, prefix = self.file, self.prefix
        there = [one for one in (*file.texts, *file.given) if one.startswith(prefix)]
        known = [key.name for key in self.converter.keys if file.knows(prefix + key.name)]
        return Values(
            {name: file.value(prefix + name) for name in known},
            {one.removeprefix(prefix) for one in file.given if one.startswith(prefix)},
            {one.removeprefix(prefix): file.shown(one) for one in there},
            {one.removeprefix(prefix): file.texts[one] for one in there if one in file.texts},
        )


def choose(side: Side, own: Values, worker: Values = NOTHING) -> Chosen | None:
    """The converter of one side; None when there is none, or none that is known."""
    key = f"{side}.converter"
    values = own if key in own.given or key not in worker.given else own.over(worker, key)
    name = values.text(key)
    converter = None if name is None else converters.find(name, side)
    return None if name is None or converter is None else Chosen(side, name, converter, values)


class Remarks(TypedDict):
    """Why a setting means nothing beside its converter, and beginnings of settings whose converter nobody knows."""

    foreign: Callable[[str], str | None]
    unvalidated: tuple[str, ...]


def check(own: Values, worker: Values, source: str, machine: Machine, report: Report) -> None:
    """Validate the converters of a connector with all their settings, also those that it has from the worker file.

    That of headers is validated where there are transforms alone. source: the worker file's name, for messages.
    """
    for side in SIDES if own.names("transforms") else SIDES[:2]:
        chosen = choose(side, own, worker)
        if side == "header":
            _unknown_of_headers(own, chosen, report)
        if chosen is None:
            _absent(side, own, worker, source, report)
        elif chosen.custom:
            _texts(chosen, machine, report)
        elif _settings(chosen, report):
            chosen.converter.check(chosen.values, machine, PrefixedReport(report, chosen.prefix))


def _unknown_of_headers(own: Values, chosen: Chosen | None, report: Report) -> None:
    """Names that no converter has: the table has any behind `header.converter.`, for files in which nobody asks."""
    if chosen is None or chosen.custom:
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
            f"{JsonConverter.class_name} with {key}.schemas.enable=false.",
        )


def _shown(values: Values, key: str, name: str) -> str | None:
    """The placeholder of a name that a provider gave; None for any other."""
    shown = values.quoted(key)
    return None if shown == quoted(name) else shown


def _settings(chosen: Chosen, report: Report) -> bool:
    """Check each setting by itself; True when none is wrong."""
    good = True
    for name in sorted(chosen.values.given):
        if (key := find_key(chosen.converter.keys, name)) is None:
            continue
        value = None if key.is_prefix else chosen.values.value(name)
        reason = key.check.test(value) if key.check else None
        if reason is not None and (key.is_prefix or value is not None):
            report.problem(chosen.prefix + name, reason)
            good = False
    return good


def _texts(chosen: Chosen, machine: Machine, report: Report) -> Texts | None:
    """The settings of a class of another package, validated by its own keys."""
    from parquet_sink.convert import custom  # loads Arrow: only where one is named

    file = chosen.file
    full = sorted(name for name in {*file.texts, *file.given} if name.startswith(chosen.prefix))
    return custom.check(chosen.name, chosen.side, section(file, full, chosen.prefix), machine, report)


def remarks(own: Values, worker: Values = NOTHING) -> Remarks:
    """What `without_effect.warn_about` must know of the converters: a file that has none says nothing."""
    sides = SIDES if own.knows("value.converter") else ()
    found = {f"{side}.converter.": choose(side, own, worker) for side in sides}
    unvalidated = tuple(prefix for prefix, chosen in found.items() if chosen is None or chosen.custom)
    return {"foreign": lambda name: _foreign(name, found), "unvalidated": unvalidated}


def _foreign(name: str, found: Mapping[str, Chosen | None]) -> str | None:
    """Why a setting of a converter has no effect with the one that is there; None when it has, or is no such setting.

    name: the whole key. found: by the prefix of its settings, the converter of each side.
    """
    for prefix, chosen in found.items():
        setting = find_setting(name.removeprefix(prefix)) if name.startswith(prefix) else None
        if setting is not None and chosen is not None and not chosen.custom and chosen.converter not in setting.of:
            return f"It has no effect with {chosen.converter.class_name}."
    return None


def build_headers(own: Values, worker: Values, machine: Machine) -> Converter:
    """How headers are converted: by SimpleHeaderConverter where none is set."""
    return build_converter("header", own, worker, machine) or SIMPLE_HEADER


def build_converter(side: Side, own: Values, worker: Values, machine: Machine) -> Converter | None:
    """How one side is converted; None when no converter is set for it. own, worker: values of the two files."""
    chosen = choose(side, own, worker)
    if chosen is None:
        return None
    if not chosen.custom:
        return declared.made(chosen.converter, chosen.values, machine)
    from parquet_sink.convert.custom import settings  # loads Arrow: only where one is named

    texts = _texts(chosen, machine, Report()) or ()
    return settings(ClassSettings(f"{side}.converter", chosen.name, texts), machine)
